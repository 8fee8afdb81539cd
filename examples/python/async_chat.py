"""Several answers at once with asyncio. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import asyncio

import gatewright


async def ask(client: gatewright.AsyncClient, topic: str) -> str:
    completion = await client.chat.completions.create(
        model="model-terra", messages=[{"role": "user", "content": f"Reply with exactly: about {topic}"}]
    )
    return completion.choices[0].message.content or ""


async def main() -> None:
    async with gatewright.AsyncClient() as client:
        for answer in await asyncio.gather(*(ask(client, topic) for topic in ("rivers", "lakes", "seas"))):
            print(answer)

        stream = await client.chat.completions.create(
            model="model-terra", messages=[{"role": "user", "content": "Tell me about seas."}], stream=True
        )
        async with stream:
            async for chunk in stream:
                print("".join(choice.delta.content or "" for choice in chunk.choices), end="", flush=True)
        print()


asyncio.run(main())
