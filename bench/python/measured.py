"""What the measured Python programs share: `PROGRAM WORK MODEL COUNT HOST` does one kind of work COUNT times
and prints its cost as one line of JSON. bench/src/measured.rs is its counterpart.

The kinds of work: `ask` for a whole response, `read` a stream, `crowd` (100 requests at a time),
`read-async`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

AT_ONCE = 100
"""Requests of a crowd that are under way at once."""
MESSAGES: list[Any] = [{"role": "user", "content": "Tell me about rivers."}]
WORK, MODEL, COUNT, HOST = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
BASE_URL = f"http://{HOST}/v1"


def weight(text: str | None) -> int:
    """The text that was read as a number: its non-empty pieces, and their characters."""
    return len(text) + 1 if text else 0


def peak_kilobytes() -> int:
    """Peak resident memory of this process so far."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


def report(operations: int, cpu_ns: int, wall_ns: int, answer: int, **more: int) -> None:
    """Prints the measurements."""
    figures = {
        "operations": operations,
        "cpu_us": cpu_ns / 1e3,
        "wall_us": wall_ns / 1e3,
        "peak_kb": peak_kilobytes(),
        "answer": answer,
    }
    print(json.dumps(figures | more))


def same(answers: set[int]) -> int:
    """Returns the value, which must be the same each time."""
    if len(answers) != 1:
        sys.exit(f"different answers were read: {sorted(answers)}")
    return answers.pop()


def chunks() -> int:
    """Operations of one stream: its chunks, as the model's name says."""
    words = MODEL.split("-")
    return int(words[1]) if len(words) > 1 else 1


def measure(once: Callable[[], int], count: int = COUNT, each: int | None = None, **more: int) -> None:
    """Does the work the given number of times and prints its cost. `once` returns what it read, as a
    number."""
    answers = {once() for _ in range(1 + count // 10)}
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(count):
        answers.add(once())
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    report(count * (each or chunks()), cpu, wall, same(answers), **more)


async def measure_async(once: Callable[[], Awaitable[int]]) -> None:
    """The same on an event loop: one at a time, or many concurrently."""
    width = AT_ONCE if WORK == "crowd" else 1

    async def turns(count: int) -> set[int]:
        answers = set()
        for _ in range(count):
            if width == 1:
                answers.add(await once())
            else:
                answers.update(await asyncio.gather(*(once() for _ in range(width))))
        return answers

    answers = await turns(1 + COUNT // width // 10)
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    answers |= await turns(COUNT // width)
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    report(COUNT // width * width * chunks(), cpu, wall, same(answers))


def main(works: dict[str, Callable[[], int]], works_async: dict[str, Callable[[], Awaitable[int]]]) -> None:
    """Runs the work that the arguments select. Values: one iteration of each work."""
    if WORK in works:
        measure(works[WORK])
    else:
        asyncio.run(measure_async(works_async[WORK]))
