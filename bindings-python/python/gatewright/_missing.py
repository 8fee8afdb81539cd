"""Names that callers of other SDKs look for: the error says what to do. Imported with the first such name."""

from __future__ import annotations

from gatewright._mistakes import hint
from gatewright.generated.errors import ConfigurationError

# By place and name, what other SDKs have there and this client does not.
MISSING: dict[str, dict[str, str]] = {
    "client": {
        "caches": "caches of contents",
        "chats": "chat sessions",
        "completions": "text completions beside client.chat.completions",
        "containers": "containers",
        "conversations": "conversations beside previous_response_id of responses",
        "evals": "evaluations",
        "fine_tuning": "fine-tuning",
        "live": "live sessions",
        "realtime": "realtime sessions",
        "tunings": "tuning",
        "uploads": "uploads",
        "vector_stores": "vector stores",
    },
    "client.chat.completions": {
        "delete": "stored chat completions",
        "list": "stored chat completions",
        "messages": "stored chat completions",
        "retrieve": "stored chat completions",
        "update": "stored chat completions",
    },
    "client.images": {"create_variation": "variations of images", "edit": "edits of images"},
    "client.messages": {"batches": "batches"},
    "client.models": {"delete": "deletion of models"},
    "client.responses": {
        "cancel": "cancellation of responses in the background",
        "input_tokens": "token counts of responses",
    },
    "client.videos": {
        "delete": "deletion of videos",
        "list": "lists of videos",
        "remix": "remixes of videos",
    },
}

# By place and name, where this client has what other SDKs have there.
ELSEWHERE: dict[str, dict[str, str]] = {
    "client": {
        "aio": "here it is gatewright.AsyncClient",
        "beta": "Gatewright has its operations on the client itself: client.beta.chat.completions.parse is "
        "client.chat.completions.parse, client.beta.messages is client.messages",
    },
    "client.models": {
        "count_tokens": "here it is client.native.count_tokens",
        "embed_content": "here it is client.embeddings.create",
        "generate_content": "here it is client.native.generate_content",
        "generate_content_stream": "here it is client.native.stream_generate_content",
        "generate_images": "here it is client.images.generate",
        "generate_videos": "here it is client.videos.generations.create",
    },
    "client.videos": {
        "create": "here it is client.videos.generations.create",
        "create_and_poll": "here it is client.videos.generations.create_and_wait",
        "download_content": "here it is client.videos.generations.save",
        "poll": "here it is client.videos.generations.wait",
        "retrieve": "here it is client.videos.generations.retrieve",
    },
}

_WITH_RESPONSE = "here it is gatewright.with_response(method, …), which returns the result and its response"
# The same in every place.
_EVERYWHERE = {"with_raw_response": _WITH_RESPONSE, "with_streaming_response": _WITH_RESPONSE}


class MissingOperationError(ConfigurationError, AttributeError):
    """The client has no such operation; for `hasattr`, it is an AttributeError."""


def missing(owner: object, place: str, name: str) -> AttributeError:
    """The error about an attribute that a client or a resource doesn't have.

    Args:
        owner: The client or the resource.
        place: The owner as callers write it: `client.images`.
        name: The attribute.
    """
    lacking = MISSING.get(place, {}).get(name)
    if lacking is not None:
        message = f"Gatewright has no {lacking} yet; call this API of your provider with its own SDK"
        return MissingOperationError(f"{place}.{name}: {message}")
    elsewhere = ELSEWHERE.get(place, {}).get(name) or _EVERYWHERE.get(name)
    if elsewhere is not None:
        return MissingOperationError(f"{place}.{name}: {elsewhere}")
    known = [] if name.startswith("_") else [one for one in dir(owner) if not one.startswith("_")]
    shown = type(owner).__name__ if place == "client" else place
    return AttributeError(f"{shown} has no attribute {name!r}{hint(name, known)}")
