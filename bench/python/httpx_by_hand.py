"""A floor for Python clients: httpx and json, or orjson, with no more than the response needs."""

import json

import httpx
from measured import BASE_URL, MESSAGES, MODEL, WORK, main, weight

IS_ASYNC = WORK == "crowd" or WORK.startswith("read-async")
URL = f"{BASE_URL}/chat/completions"
HEADERS = {"authorization": "Bearer none"}
LIMITS = httpx.Limits(max_connections=100)

client = (httpx.AsyncClient if IS_ASYNC else httpx.Client)(headers=HEADERS, limits=LIMITS, trust_env=False)
loads = json.loads
if WORK.endswith("-orjson"):
    import orjson

    loads = orjson.loads


def body(stream: bool) -> dict:
    return {"model": MODEL, "messages": MESSAGES} | ({"stream": True} if stream else {})


def weight_of(completion: dict) -> int:
    return weight(completion["choices"][0]["message"]["content"]) + completion["usage"]["total_tokens"]


def weight_of_line(line: str) -> int:
    if not line.startswith("data: ") or line == "data: [DONE]":
        return 0
    choices = loads(line[6:])["choices"]
    return weight(choices[0]["delta"].get("content")) if choices else 0


def ask() -> int:
    return weight_of(loads(client.post(URL, json=body(False)).raise_for_status().content))


def read() -> int:
    with client.stream("POST", URL, json=body(True)) as response:
        return sum(weight_of_line(line) for line in response.raise_for_status().iter_lines())


async def ask_async() -> int:
    return weight_of(loads((await client.post(URL, json=body(False))).raise_for_status().content))


async def read_async() -> int:
    async with client.stream("POST", URL, json=body(True)) as response:
        response.raise_for_status()
        return sum([weight_of_line(line) async for line in response.aiter_lines()])


main(
    {"ask": ask, "read": read, "read-orjson": read},
    {"crowd": ask_async, "read-async": read_async, "read-async-orjson": read_async},
)
