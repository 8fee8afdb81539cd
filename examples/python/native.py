"""The native generate-content protocol. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import gatewright
from gatewright.types import NativeContentParam

client = gatewright.Client()
contents: list[NativeContentParam] = [{"role": "user", "parts": [{"text": "Tell me about lakes."}]}]

print(client.native.count_tokens(model="model-luna", contents=contents).totalTokens, "tokens to send")

answer = client.native.generate_content(
    model="model-luna", contents=contents, generationConfig={"maxOutputTokens": 40}
)
for candidate in answer.candidates or []:
    for part in candidate.content.parts if candidate.content else []:
        print(part.text)

for event in client.native.stream_generate_content(model="model-luna", contents=contents):
    for candidate in event.candidates or []:
        for part in candidate.content.parts if candidate.content else []:
            print(part.text, end="", flush=True)
print()
