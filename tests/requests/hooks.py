"""For Schemathesis: most of what it generates names models that exist, so that requests reach an upstream.

Without `alt`, a native stream is an array, as its official clients want it (spec/gaps.md), but the
specification shows only the events.
"""

import schemathesis

MODELS = {"image": "image_model_2", "video": "video_model_3"}
TEXT = ["model-sol", "model-breeze", "model-cedar"]


def model_for(path: str, given: str) -> str:
    kind = next((model for part, model in MODELS.items() if part in path), None)
    return kind or TEXT[len(given) % len(TEXT)]


@schemathesis.hook
def map_body(context, body):
    # An empty name is wrong by the specification, and stays so.
    if isinstance(body, dict) and isinstance(body.get("model"), str) and body["model"]:
        body["model"] = model_for(context.operation.path, body["model"])
    # Videos are made in the background, and told about over the network.
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
