"""A turn with a tool over the responses protocol. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import json

import gatewright
from gatewright.types import InputItemParam, ResponseToolParam

client = gatewright.Client()

weather: ResponseToolParam = {
    "type": "function",
    "name": "weather",
    "description": "Weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
turn: list[InputItemParam] = [{"role": "user", "content": "What is the weather in Lisbon?"}]

response = client.responses.create(
    model="model-sol",
    input=turn,
    tools=[weather],
    tool_choice={"type": "function", "name": "weather"},
)
for item in response.output:
    if item.type == "function_call":
        print(f"the model calls {item.name} with {json.loads(item.arguments)}")
        # Send the item back unchanged, followed by its result.
        turn += [
            item,
            {"type": "function_call_output", "call_id": item.call_id, "output": "sunny, 24 degrees"},
        ]

print("events:")
for event in client.responses.create(model="model-sol", input=turn, stream=True):
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)
    elif event.type == "response.completed":
        print(f"\n{event.response.status}")
