"""The Python side of `cargo xtask soak REQUESTS EVENTS`: prints `PHASE DONE` forty times per phase."""

from __future__ import annotations

import asyncio
import gc
import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from gatewright import AsyncClient, Client

if TYPE_CHECKING:
    from gatewright.types import ChatMessageParam

MODEL = "m"
MESSAGES: list[ChatMessageParam] = [{"role": "user", "content": "Tell me about rivers."}]
ANSWER = "Rivers shape the land they cross."
AT_ONCE = 8
"""Calls that are under way at once on the event loop."""
EVENTS_PER_STREAM = 10_000
"""Events of each stream that xtask's server sends."""
SAMPLES = 40
"""Samples of a phase."""


def shares(total: int) -> list[tuple[int, int]]:
    """The work of each sample as (how much, how much is done then)."""
    bounds = [total * sample // SAMPLES for sample in range(SAMPLES + 1)]
    return [(after - before, after) for before, after in pairwise(bounds)]


def report(phase: str, done: int) -> None:
    gc.collect()
    print(phase, done, flush=True)


def blocking(requests: int, streams: int) -> None:
    with Client() as client:
        for share, done in shares(requests):
            for _ in range(share):
                completion = client.chat.completions.create(model=MODEL, messages=MESSAGES)
                assert completion.choices[0].message.content == ANSWER
            report("sync requests", done)
        for share, done in shares(streams):
            for _ in range(share):
                with client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True) as stream:
                    seen = sum(len(chunk.choices) for chunk in stream)
                assert seen == EVENTS_PER_STREAM
            report("sync events", done * EVENTS_PER_STREAM)


async def asynchronous(requests: int, streams: int) -> None:
    async with AsyncClient() as client:

        async def call() -> None:
            completion = await client.chat.completions.create(model=MODEL, messages=MESSAGES)
            assert completion.choices[0].message.content == ANSWER

        for share, done in shares(requests // AT_ONCE):
            for _ in range(share):
                await asyncio.gather(*(call() for _ in range(AT_ONCE)))
            report("async requests", done * AT_ONCE)
        for share, done in shares(streams):
            for _ in range(share):
                seen = 0
                async with await client.chat.completions.create(
                    model=MODEL, messages=MESSAGES, stream=True
                ) as stream:
                    async for chunk in stream:
                        seen += len(chunk.choices)
                assert seen == EVENTS_PER_STREAM
            report("async events", done * EVENTS_PER_STREAM)


def main(requests: int, events: int) -> None:
    streams = events // EVENTS_PER_STREAM
    # Half from blocking calls, half from an event loop.
    blocking(requests // 2, streams // 2)
    asyncio.run(asynchronous(requests - requests // 2, streams - streams // 2))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
