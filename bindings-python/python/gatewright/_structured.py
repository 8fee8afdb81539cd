"""Structured output: from a type to the JSON Schema that is sent, and from the answer to a value."""

from __future__ import annotations

import json

from gatewright._engine import Record
from gatewright._view import View
from gatewright.generated.errors import ConfigurationError, StructuredOutputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from gatewright._parsed import ParsedAnswer, ParsedChatCompletion, ParsedContent, ParsedResponse

MAX_SCHEMA_DEPTH = 64
"""Maximum nesting of a schema, including copied references."""
MAX_SCHEMA_NODES = 10_000
"""Maximum number of schemas within a schema, including copies."""
MAX_SHOWN_TEXT = 200
"""Maximum number of characters of an answer that an error shows."""
MAX_NAME = 64
"""Maximum number of characters of a format's name."""

# Formats as they are on the wire, in chat or in responses.
_ON_THE_WIRE = ("json_schema", "json_object", "text")

_ADVICE = {
    "length": (
        "the answer was cut off: raise max_tokens, max_completion_tokens, max_output_tokens or "
        "maxOutputTokens"
    ),
    "content_filter": "the provider's content filter cut the answer off: change the prompt or the model",
}


class UnfitText(ValueError):
    """A text that is not a value of a format."""

    def __init__(self, path: str, reason: str, *, is_json: bool) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.code = "mismatch" if is_json else "invalid_json"


class Format:
    """The format of an answer: how it is requested, and how it is parsed."""

    def __init__(self, name: str, schema: Mapping[str, Any] | None, read: Callable[[str], Any]) -> None:
        self.name = name
        self.schema = schema
        self.read = read
        """The value of a text. Raises UnfitText."""

    def for_chat(self) -> dict[str, Any]:
        """The value of `response_format`."""
        return {"type": "json_schema", "json_schema": self._named()}

    def for_responses(self) -> dict[str, Any]:
        """The value of `text.format`."""
        return {"type": "json_schema", **self._named()}

    def for_messages(self) -> dict[str, Any]:
        """The value of `output_config.format`."""
        return {"type": "json_schema", "schema": self.schema}

    def for_native(self) -> dict[str, Any]:
        """The members of `generationConfig`."""
        return {"responseMimeType": "application/json", "responseJsonSchema": self.schema}

    def _named(self) -> dict[str, Any]:
        return {"name": self.name, "schema": self.schema, "strict": True}


class _Verbatim(Format):
    """A format that the caller wrote in its wire form."""

    def __init__(self, wire: Mapping[str, Any]) -> None:
        super().__init__("answer", None, str if wire["type"] == "text" else _read_json)
        self._wire = wire

    def for_chat(self) -> dict[str, Any]:
        return dict(self._wire)

    for_responses = for_messages = for_chat

    def for_native(self) -> dict[str, Any]:
        raise ValueError(
            f"native.parse() takes a type or a JSON Schema, not a format of type {self._wire['type']!r}"
        )


def format_of(kind: Any) -> Format:
    """The format of a type (a pydantic model, a dataclass, a TypedDict, any type that pydantic supports), of
    a JSON Schema, or of a format in its wire form.

    Raises:
        ConfigurationError: pydantic is missing, or has no schema for the type.
        ValueError: The schema is too large, or refers to itself in a way that cannot be made strict.
    """
    if isinstance(kind, (dict, Record)):
        if kind.get("type") in _ON_THE_WIRE:
            return _Verbatim(kind)
        return Format("answer", strict_schema(kind), _read_json)
    try:
        known = _formats.get(kind)
    except TypeError:
        raise TypeError(f"{kind!r} is no type and no JSON Schema") from None
    if known is None:
        known = _format_of_type(kind)
        if len(_formats) >= _MAX_FORMATS:
            _formats.clear()
        _formats[kind] = known
    return known


# A type's schema and validator take milliseconds to make. Types made at run time must not pile up.
_formats: dict[Any, Format] = {}
_MAX_FORMATS = 256


def _format_of_type(kind: Any) -> Format:
    adapter = type_adapter(kind)
    try:
        schema = adapter.json_schema()
    except Exception as error:
        # pydantic has several classes for this, and no common one.
        raise ConfigurationError(f"{_shown(kind)} has no JSON Schema: {error}") from error

    def read(text: str) -> Any:
        from pydantic import ValidationError

        try:
            return adapter.validate_json(text)
        except ValidationError as error:
            raise unfit(error) from error

    name = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__origin__") else "answer"
    return Format(format_name(name), strict_schema(schema), read)


def type_adapter(kind: Any) -> Any:
    """pydantic's adapter for a type; the error names the package to install."""
    try:
        from pydantic import TypeAdapter
    except ImportError as error:
        raise ConfigurationError(
            f"{_shown(kind)} needs pydantic 2: pip install pydantic; without it, give a JSON Schema"
        ) from error
    try:
        return TypeAdapter(kind)
    except Exception as error:
        raise ConfigurationError(f"pydantic cannot read {_shown(kind)}: {error}") from error


def _shown(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else repr(kind)


def format_name(name: str) -> str:
    """A name that the protocols allow: other characters become `_`, at most 64."""
    allowed = "".join(one if one.isascii() and (one.isalnum() or one in "_-") else "_" for one in name)
    return allowed[:MAX_NAME] or "answer"


def unfit(error: Any) -> UnfitText:
    """The first problem of pydantic's ValidationError, with its path: `$.population: …`."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return UnfitText(json_path(first["loc"]), first["msg"], is_json=first["type"] != "json_invalid")


def json_path(steps: tuple[str | int, ...]) -> str:
    """`$.cities[0].name`."""
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if step.isidentifier() else f"[{json.dumps(step, ensure_ascii=False)}]"
    return path


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnfitText("$", f"Invalid JSON: {error}", is_json=False) from error


# Strict schemas.


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that providers accept as strict: every property is required and no other is allowed, references
    with siblings are replaced by their targets, and null defaults are removed."""
    strict: dict[str, Any] = _Strict(schema).of(schema, 0)
    return strict


class _Strict:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_SCHEMA_NODES

    def of(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, (dict, Record)):
            return schema
        self._left -= 1
        if depth > MAX_SCHEMA_DEPTH or self._left < 0:
            raise ValueError(
                f"the schema nests deeper than {MAX_SCHEMA_DEPTH} levels or has more than {MAX_SCHEMA_NODES} "
                "parts; perhaps it refers to itself beside other keywords, such as a description"
            )
        strict = dict(schema.items())
        for name in ("$defs", "definitions", "properties"):
            if isinstance(strict.get(name), (dict, Record)):
                strict[name] = {key: self.of(value, depth + 1) for key, value in strict[name].items()}
        if strict.get("type") == "object":
            strict.setdefault("additionalProperties", False)
        if isinstance(strict.get("properties"), dict):
            strict["required"] = list(strict["properties"])
        if "items" in strict:
            strict["items"] = self.of(strict["items"], depth + 1)
        for name in ("anyOf", "allOf"):
            if isinstance(strict.get(name), (list, tuple)):
                strict[name] = [self.of(variant, depth + 1) for variant in strict[name]]
        parts = strict.get("allOf")
        if parts is not None and len(parts) == 1 and isinstance(parts[0], dict):
            del strict["allOf"]
            strict.update(parts[0])
        if "default" in strict and strict["default"] is None:
            del strict["default"]
        reference = strict.get("$ref")
        if isinstance(reference, str) and len(strict) > 1:
            del strict["$ref"]
            return self.of({**self._resolved(reference), **strict}, depth + 1)
        return strict

    def _resolved(self, reference: str) -> Mapping[str, Any]:
        found: Any = self._root
        for step in reference.removeprefix("#").removeprefix("/").split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step) if isinstance(found, (dict, Record)) else None
        if not reference.startswith("#/") or not isinstance(found, (dict, Record)):
            raise ValueError(f"the schema refers to {reference!r}, which is not in it")
        return found


# Answers.


def parsed_completion(completion: Any, wanted: Format) -> ParsedChatCompletion[Any]:
    """The completion with a value in each message.

    Raises:
        StructuredOutputError: A choice was cut off, or its text is not a value of the type.
    """
    choices = []
    for choice in completion.choices:
        message = choice.message
        fails = _Failing("chat.completions.parse", "create_chat_completion", completion)
        fails.if_cut_off(choice.finish_reason, message.content)
        text, value = message.content, None
        # Beside calls of tools, a text is no answer yet.
        if message.refusal is None and not (message.tool_calls or message.function_call):
            value = fails.read(wanted, text or "")
        choices.append(View(choice, message=View(message, parsed=value)))
    return View(completion, choices=choices)  # type: ignore[return-value]


def parsed_response(response: Any, wanted: Format) -> ParsedResponse[Any]:
    """The response with the value of its last message.

    Raises:
        StructuredOutputError: The response failed or was cut off, or its text is not a value of the type.
    """
    fails = _Failing("responses.parse", "create_response", response)
    text, refusal = last_message(response)
    if response.status == "incomplete":
        reason = response.incomplete_details and response.incomplete_details.reason
        fails.if_cut_off(cut_off_code(reason) or "incomplete", text)
    if response.status == "failed":
        error = response.error
        cause = (error and error.message) or "the gateway does not say why"
        raise fails.error("failed", f"the answer failed: {cause}")
    # Beside calls of tools, a text is no answer yet.
    calls = any(item.get("type") in ("function_call", "custom_tool_call") for item in response.output or [])
    value = None if text is None or refusal is not None or calls else fails.read(wanted, text)
    return View(response, output_parsed=value, refusal=refusal)  # type: ignore[return-value]


# Why answers of the four protocols are not whole, in the words of chat.
_CUT_OFF = {
    "length": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "MAX_TOKENS": "length",
    "content_filter": "content_filter",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
}


def cut_off_code(reason: Any) -> str | None:
    """Why an answer is cut off, as chat names it: `length` or `content_filter`. None for any other reason."""
    return _CUT_OFF.get(reason) if isinstance(reason, str) else None


def parsed_answer(message: Any, wanted: Format) -> ParsedAnswer[Any]:
    """The message of the messages protocol with the value of its text.

    Raises:
        StructuredOutputError: The message was cut off, or its text is not a value of the type.
    """
    fails = _Failing("messages.parse", "create_message", message)
    text = "".join(block.text or "" for block in message.content if block.get("type") == "text")
    fails.if_cut_off(cut_off_code(message.stop_reason), text)
    # Beside calls of tools, a text is no answer yet; and the text of a refusal never is.
    calls = any(block.get("type") == "tool_use" for block in message.content)
    value = None if calls or message.stop_reason == "refusal" else fails.read(wanted, text)
    return View(message, parsed_output=value)  # type: ignore[return-value]


def parsed_content(response: Any, wanted: Format) -> ParsedContent[Any]:
    """The native answer with the value of its first candidate.

    Raises:
        StructuredOutputError: The candidate was cut off, the prompt was blocked, or the text is not a value
            of the type.
    """
    fails = _Failing("native.parse", "generate_content", response)
    feedback = response.promptFeedback
    if not response.candidates and feedback is not None and feedback.get("blockReason"):
        fails.if_cut_off("content_filter", None)
    candidate = response.candidates[0] if response.candidates else None
    parts = candidate.content.parts if candidate is not None and candidate.content is not None else []
    text = "".join(part.text or "" for part in parts if not part.thought)
    fails.if_cut_off(cut_off_code(candidate and candidate.finishReason), text)
    # Beside calls of functions, a text is no answer yet.
    calls = any(part.functionCall is not None for part in parts)
    return View(response, parsed=None if calls else fails.read(wanted, text))  # type: ignore[return-value]


def last_message(response: Any) -> tuple[str | None, str | None]:
    """Text and refusal of the last message; None for each that is missing."""
    for item in reversed(response.output or []):
        if item.get("type") != "message":
            continue
        parts = item.get("content") or []
        texts = [part.text or "" for part in parts if part.get("type") == "output_text"]
        refusals = [part.refusal or "" for part in parts if part.get("type") == "refusal"]
        return "".join(texts) if texts else None, "".join(refusals) if refusals else None
    return None, None


class _Failing:
    """Creates the errors of one answer."""

    def __init__(self, method: str, operation: str, answer: Any) -> None:
        self._method = method
        self._operation = operation
        self._answer = answer

    def error(self, code: str, message: str, param: str | None = None) -> StructuredOutputError:
        metadata = self._answer._response
        error = StructuredOutputError(
            message,
            code=code,
            param=param,
            operation=self._operation,
            request_id=metadata and metadata.request_id,
            attempts=metadata.attempts if metadata else 0,
            response=metadata,
            answer=self._answer,
        )
        error._method = self._method
        return error

    def if_cut_off(self, reason: str | None, text: str | None) -> None:
        if reason in _ADVICE:
            raise self.error(reason, f"{_ADVICE[reason]} (reason: {reason}){_beginning(text)}")
        if reason == "incomplete":
            message = f"the answer is incomplete; the gateway does not say why{_beginning(text)}"
            raise self.error(reason, message)

    def read(self, wanted: Format, text: str) -> Any:
        try:
            return wanted.read(text)
        except UnfitText as error:
            message = f"the answer is no {wanted.name}: {error}{_beginning(text)}"
            raise self.error(error.code, message, error.path) from error.__cause__


def _beginning(text: str | None) -> str:
    if not text:
        return "; its text is empty"
    more = "…" if len(text) > MAX_SHOWN_TEXT else ""
    return f"; its text begins: {text[:MAX_SHOWN_TEXT]}{more}"
