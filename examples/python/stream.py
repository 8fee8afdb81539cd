"""Stream an answer. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import gatewright

client = gatewright.Client()

# Leaving the block in any way closes the connection.
with client.chat.completions.create(
    model="model-luna",
    messages=[{"role": "user", "content": "Tell me about rivers."}],
    stream=True,
    stream_options={"include_usage": True},
) as stream:
    for chunk in stream:
        for choice in chunk.choices:
            print(choice.delta.content or "", end="", flush=True)
        if chunk.usage is not None:
            print(f"\n{chunk.usage.completion_tokens} tokens, status {stream.response.status_code}")
completion = stream.get_final_completion()
print(f"finished by {completion.choices[0].finish_reason}")

# Text only, then only the whole answer.
poem = client.responses.create(model="model-sol", input="Tell me about the sea.", stream=True)
print("".join(poem.text()))
again = client.responses.create(model="model-sol", input="Tell me about the sea.", stream=True)
print(again.get_final_response().output_text)
