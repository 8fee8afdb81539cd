"""The README's code."""

from gatewright import Client
from gatewright.types import ChatMessageParam

with Client() as client:
    messages: list[ChatMessageParam] = [{"role": "user", "content": "Say hello."}]
    completion = client.chat.completions.create(model="model-sol", messages=messages)
    print(completion.choices[0].message.content)
    with client.chat.completions.create(model="model-sol", messages=messages, stream=True) as stream:
        for text in stream.text():
            print(text, end="", flush=True)
    print()
