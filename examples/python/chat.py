"""Ask a model. Reads GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY."""

import gatewright

with gatewright.Client() as client:
    completion = client.chat.completions.create(
        model="model-sol",
        messages=[
            {"role": "system", "content": "You are terse."},
            {"role": "user", "content": "Reply with exactly: a short answer"},
        ],
        temperature=0,
    )
    print(completion.choices[0].message.content)
    print(f"{completion.usage.total_tokens} tokens, request {completion._request_id}")
    print("members:", ", ".join(completion.keys()))

    try:
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "hello"}])
    except gatewright.NotFoundError as error:
        print(f"{error.status_code} {error.code}: {error.message}")
