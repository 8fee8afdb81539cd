"""Uses what tests/promise adds to the spec: typed, callable, routed."""

import gatewright

client = gatewright.Client()
try:
    greeting = client.greetings.create(name="Ada", words="good morning", loud=True)
    words: str = greeting.text
    print(words)
except gatewright.NotImplementedByGatewayError as error:
    print(f"greetings.create: {error.status_code} {error.code}")

completion = client.chat.completions.create(
    model="model-sol", messages=[{"role": "user", "content": "hello"}], mood="calm"
)
mood: str | None = completion.answered_mood
# Methods that are built on it have them, too.
parsed = client.chat.completions.parse(
    model="model-sol",
    messages=[{"role": "user", "content": "hello"}],
    response_format={"type": "object"},
    mood="calm",
)
mood = mood or parsed.answered_mood
print("answered_mood:", mood or "none")
