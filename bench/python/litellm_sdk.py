"""litellm's SDK, as its users write it."""

import litellm
from measured import BASE_URL, MESSAGES, MODEL, main, weight

OPTIONS = {"model": f"openai/{MODEL}", "messages": MESSAGES, "api_base": BASE_URL, "api_key": "none"}
litellm.telemetry = False
litellm.suppress_debug_info = True


def ask() -> int:
    completion = litellm.completion(**OPTIONS)
    return weight(completion.choices[0].message.content) + completion.usage.total_tokens


def read() -> int:
    total = 0
    for chunk in litellm.completion(**OPTIONS, stream=True):
        if chunk.choices:
            total += weight(chunk.choices[0].delta.content)
    return total


async def read_async() -> int:
    total = 0
    async for chunk in await litellm.acompletion(**OPTIONS, stream=True):
        if chunk.choices:
            total += weight(chunk.choices[0].delta.content)
    return total


main({"ask": ask, "read": read}, {"read-async": read_async})
