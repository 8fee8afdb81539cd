"""An answer as a value of a type: a dataclass here, or a pydantic model, a TypedDict, a JSON Schema."""

from dataclasses import dataclass

import gatewright


@dataclass
class City:
    name: str
    population: int


with gatewright.Client() as client:
    completion = client.chat.completions.parse(
        model="model-sol",
        messages=[{"role": "user", "content": "A city of Norway, and how many live there."}],
        response_format=City,
    )
    message = completion.choices[0].message
    # Type checkers know that this is a City.
    if message.parsed is None:
        print("refused:", message.refusal)
    else:
        print(f"{message.parsed.name} has more than {message.parsed.population - 1} inhabitants.")

    response = client.responses.parse(model="model-sol", input="A city of Norway.", text_format=City)
    assert response.output_parsed is not None
    print(response.output_parsed.name)

    with client.chat.completions.stream(
        model="model-sol",
        messages=[{"role": "user", "content": "Another city of Norway."}],
        response_format=City,
    ) as stream:
        for event in stream:
            if event.type == "content.delta":
                print("so far:", event.parsed)
            elif event.type == "content.done" and event.parsed is not None:
                print("at last:", event.parsed.name)
