"""The same script twice: before.py uses the official SDK, after.py this client. They differ in the import and
the constructor, and print the same; `cargo xtask test migration` verifies that.

Usage: GATEWRIGHT_BASE_URL=… GATEWRIGHT_API_KEY=… python FILE
"""

import os

from gatewright import BadRequestError, Client, NotFoundError

BASE_URL = os.environ["GATEWRIGHT_BASE_URL"] + "/v1"
API_KEY = os.environ["GATEWRIGHT_API_KEY"]

client = Client(base_url=BASE_URL, api_key=API_KEY)

# Chat
completion = client.chat.completions.create(
    model="model-sol",
    messages=[
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": "Reply with exactly: good morning"},
    ],
    temperature=0.2,
    max_completion_tokens=50,
)
choice = completion.choices[0]
print("chat:", choice.message.role, choice.message.content, choice.finish_reason)
print("usage:", completion.usage.prompt_tokens, completion.usage.completion_tokens)

weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
completion = client.chat.completions.create(
    model="model-sol",
    messages=[{"role": "user", "content": "What is the weather in Oslo?"}],
    tools=[weather],
    tool_choice="required",
)
for call in completion.choices[0].message.tool_calls or []:
    print("tool call:", call.type, call.function.name, call.function.arguments)

# Custom tools, and a choice among tools
code = {"type": "custom", "custom": {"name": "run_code", "description": "Runs Python."}}
completion = client.chat.completions.create(
    model="model-sol",
    messages=[{"role": "user", "content": "Call run_code with 'print(42)'."}],
    tools=[weather, code],
    tool_choice={"type": "custom", "custom": {"name": "run_code"}},
)
for call in completion.choices[0].message.tool_calls or []:
    print("custom call:", call.type, call.custom.name, call.custom.input)
only = {"mode": "required", "tools": [{"type": "function", "function": {"name": "weather"}}]}
completion = client.chat.completions.create(
    model="model-sol",
    messages=[{"role": "user", "content": "Call run_code in Oslo."}],
    tools=[weather, code],
    tool_choice={"type": "allowed_tools", "allowed_tools": only},
)
for call in completion.choices[0].message.tool_calls or []:
    print("allowed call:", call.type, call.function.name, call.function.arguments)

# Streaming
stream = client.chat.completions.create(
    model="model-breeze",
    messages=[{"role": "user", "content": "Tell me about rivers."}],
    stream=True,
    stream_options={"include_usage": True},
)
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="")
    if chunk.usage:
        print("\nstream usage:", chunk.usage.total_tokens)

with client.chat.completions.create(
    model="model-breeze",
    messages=[{"role": "user", "content": "Tell me about lakes."}],
    stream=True,
) as stream:
    for chunk in stream:
        if chunk.choices[0].delta.content:
            print("first word:", chunk.choices[0].delta.content)
            break

# Responses
response = client.responses.create(
    model="model-terra",
    instructions="You are terse.",
    input="Reply with exactly: a response",
)
print("response:", response.status, response.output_text, response.usage.total_tokens)
for item in response.output:
    if item.type == "message":
        print("item:", item.role, item.content[0].type, item.content[0].text)

for event in client.responses.create(model="model-terra", input="Tell me about lakes.", stream=True):
    if event.type == "response.output_text.delta":
        print(event.delta, end="")
    elif event.type == "response.completed":
        print("\nwhole:", event.response.output_text)

for event in client.responses.create(
    model="model-terra",
    input="Call run_code with 'print(42)'.",
    tools=[{"type": "custom", "name": "run_code"}],
    tool_choice={"type": "custom", "name": "run_code"},
    stream=True,
):
    if event.type == "response.custom_tool_call_input.delta":
        print(event.delta, end="")
    elif event.type == "response.output_item.done":
        print("\ncustom call:", event.item.type, event.item.name, event.item.input)

# Stored responses
stored = client.responses.retrieve(response.id)
print("kept:", stored.id == response.id, stored.status, stored.output_text)
for item in client.responses.input_items.list(response.id, order="asc", limit=10):
    print("input item:", item.type, item.role, item.content[0].type, item.content[0].text)
client.responses.delete(response.id)
try:
    client.responses.retrieve(response.id)
except NotFoundError as error:
    print("gone:", error.status_code, error.code, error.param)
try:
    client.responses.create(model="model-terra", input="And then?", previous_response_id=response.id)
except BadRequestError as error:
    print("nothing to go on from:", error.status_code, error.code, error.param)

# Images
image = client.images.generate(
    model="image_model_2",
    prompt="a lighthouse at dusk",
    size="256x256",
    response_format="b64_json",
    n=1,
)
print("image:", len(image.data), image.data[0].b64_json[:8], image.data[0].url)

# Models
for model in client.models.list():
    print("model:", model.id, model.owned_by)
print("models:", len(client.models.list().data))
print("model:", client.models.retrieve("model-sol").owned_by)

# Options of a call, response metadata, errors
quick = client.with_options(timeout=20, max_retries=0)
completion = quick.chat.completions.create(
    model="model-sol",
    messages=[{"role": "user", "content": "Reply with exactly: quick"}],
    timeout=10,
    extra_headers={"x-trace": "1"},
    extra_query={"tag": "a"},
    extra_body={"user": "u-1"},
)
print("quick:", completion.choices[0].message.content, completion._request_id is not None)
print("as a dict:", sorted(completion.to_dict()["choices"][0]["message"]))
try:
    client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "hi"}])
except NotFoundError as error:
    print("refused:", error.status_code, error.code, error.param)
    print("by request:", error.request_id is not None, error.response.status_code)
client.close()
