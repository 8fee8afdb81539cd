"""Hooks for Schemathesis: most generated requests name existing models, so that they reach an upstream.

Without `alt`, a native stream is an array, as its official clients expect (spec/gaps.md), but the
specification shows only the events.

In the native format a missing key is 403, and a wrong one is 400 with a reason that says so, as its clients
expect (spec/gaps.md). The check `ignored_auth` accepts 401 and 403 as the rejection of a key. These hooks
teach it the native format; no other 400 counts.
"""

from urllib.parse import parse_qs, urlsplit

import schemathesis
from schemathesis.specs.openapi import checks

MODELS = {
    "embeddings": "embedding_model_1",
    "rerank": "rerank_model_1",
    "moderations": "moderation_model_1",
    "speech": "speech_model_1",
    "transcriptions": "transcription_model_1",
    "translations": "transcription_model_1",
    "image": "image_model_2",
    "video": "video_model_3",
}
TEXT = ["model-sol", "model-breeze", "model-cedar"]


def model_for(path: str, given: str) -> str:
    kind = next((model for part, model in MODELS.items() if part in path), None)
    return kind or TEXT[len(given) % len(TEXT)]


@schemathesis.hook
def map_body(context, body):
    # An empty name violates the specification, and is left unchanged.
    if isinstance(body, dict) and isinstance(body.get("model"), str) and body["model"]:
        body["model"] = model_for(context.operation.path, body["model"])
    # Videos are made in the background, and reported over the network.
    if isinstance(body, dict):
        body.pop("webhook_url", None)
    return body


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and isinstance(path_parameters.get("model"), str):
        path_parameters["model"] = model_for(context.operation.path, path_parameters["model"])
    return path_parameters


@schemathesis.hook
def before_call(context, case, kwargs):  # noqa: ARG001 (Schemathesis goes by these names)
    if case.operation.path.endswith(":streamGenerateContent"):
        case.query = {**(case.query or {}), "alt": "sse"}


takes_for_refusal = checks._enforces_auth


def refuses_key(response, authenticated) -> bool:
    """Whether the response to a request without the right key rejects the key, in the protocol's format."""
    is_native = authenticated.request.path_url.startswith("/v1beta/")
    if not is_native or response.status_code not in (400, 403):
        return takes_for_refusal(response, authenticated)
    request = response.request
    places = ["authorization" in request.headers, "x-goog-api-key" in request.headers]
    has_key = any(places) or "key" in parse_qs(urlsplit(request.url).query)
    error = response.json()["error"]
    reasons = [detail.get("reason") for detail in error.get("details", [])]
    wrong, missing = (400, "INVALID_ARGUMENT", ["API_KEY_INVALID"]), (403, "PERMISSION_DENIED", [])
    return (response.status_code, error["status"], reasons) == (wrong if has_key else missing)


checks._enforces_auth = refuses_key
