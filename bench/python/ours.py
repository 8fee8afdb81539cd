"""Our client in Python, as its users write it."""

from gatewright import AsyncClient, Client
from measured import BASE_URL, MESSAGES, MODEL, WORK, main, weight

IS_ASYNC = WORK in ("crowd", "read-async")
client = (AsyncClient if IS_ASYNC else Client)(base_url=BASE_URL, api_key="none")


def ask() -> int:
    completion = client.chat.completions.create(model=MODEL, messages=MESSAGES)
    return weight(completion.choices[0].message.content) + completion.usage.total_tokens


def read() -> int:
    total = 0
    for chunk in client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True):
        if chunk.choices:
            total += weight(chunk.choices[0].delta.content)
    return total


async def ask_async() -> int:
    completion = await client.chat.completions.create(model=MODEL, messages=MESSAGES)
    return weight(completion.choices[0].message.content) + completion.usage.total_tokens


async def read_async() -> int:
    total = 0
    async for chunk in await client.chat.completions.create(model=MODEL, messages=MESSAGES, stream=True):
        if chunk.choices:
            total += weight(chunk.choices[0].delta.content)
    return total


main({"ask": ask, "read": read}, {"crowd": ask_async, "read-async": read_async})
