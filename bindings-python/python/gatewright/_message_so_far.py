"""What the events of a message amount to so far."""

from __future__ import annotations

import json

from gatewright._growing import GrowingText, ListSoFar, TextSoFar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# The block that a piece begins if the event of the block did not arrive.
_BLOCK_OF_DELTA = {"input_json_delta": "tool_use", "signature_delta": "thinking", "citations_delta": "text"}
# Members of unknown blocks that are replaced, not appended to.
_NAMES = ("format", "id", "model", "name", "object", "provider", "role", "type")


def _merged(one: Any, other: Any) -> dict[str, Any]:
    return {**one, **other}


class MessageSoFar:
    """The message. Its documents are built when they are read."""

    def __init__(self) -> None:
        # Every member but the content; None before the message has begun.
        self._message: dict[str, Any] | None = None
        # By `index`, which need not arrive in order.
        self._blocks: dict[int, Block] = {}

    def begin(self, message: Mapping[str, Any]) -> list[Block]:
        """Begins the message; returns its blocks, which a server that does not stream sends at once."""
        self._message = dict(message)
        blocks = [Block(dict(block)) for block in self._message.pop("content", None) or []]
        self._blocks = dict(enumerate(blocks))
        return blocks

    def begin_block(self, event: Mapping[str, Any]) -> None:
        """Adds a block."""
        index = event.get("index")
        at = max(self._blocks, default=-1) + 1 if index is None else index
        self._blocks[at] = Block(dict(event.get("content_block") or {}))

    def block(self, event: Mapping[str, Any]) -> Block:
        """The block of a piece, or of the end of a block."""
        index = event.get("index")
        at = max(self._blocks, default=0) if index is None else index
        return self._blocks.setdefault(at, Block({}))

    def settle(self, event: Mapping[str, Any]) -> None:
        """Adds what is known at the end. A usage repeats only what has changed."""
        message = self._message if self._message is not None else {}
        _keep_known(message, event.get("delta") or {})
        usage = dict(message.get("usage") or {})
        _keep_known(usage, event.get("usage") or {})
        if usage:
            message["usage"] = usage
        rest = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        _keep_known(message, rest)
        self._message = message

    def end(self) -> None:
        """Ends every block."""
        for block in self._blocks.values():
            block.is_open = False

    def document(self) -> dict[str, Any] | None:
        """The message as it would be without streaming; None before it has begun."""
        if self._message is None:
            return None
        content = [self._blocks[index].document() for index in sorted(self._blocks)]
        return {**self._message, "content": content}


class Block:
    """A block of the content."""

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members
        # Members whose text grows.
        self._texts: dict[str, GrowingText] = {}
        # The JSON of the input of a call. Empty if the input arrived as an object.
        self._input = GrowingText(is_json=True)
        # None before the first piece with a citation.
        self._citations: list[Any] | None = None
        self.is_open = True

    @property
    def text(self) -> str | None:
        """The text of a block of text that arrived whole."""
        return self._members.get("text") if self._members.get("type") == "text" else None

    def add(self, delta: Mapping[str, Any]) -> TextSoFar | ListSoFar | None:
        """Adds a piece; returns the text that it belongs to, the JSON of the input, or the citations."""
        kind = delta.get("type") or ""
        if not self._members:
            self._members["type"] = _BLOCK_OF_DELTA.get(kind) or kind.removesuffix("_delta")
        if kind == "input_json_delta":
            return self._input.push(delta.get("partial_json") or "")
        if kind == "citations_delta":
            return self._cite(delta.get("citation"))
        members = {name: value for name, value in delta.items() if name != "type"}
        if kind == "signature_delta":
            # It arrives whole.
            _keep_known(self._members, members)
            return None
        for name, value in members.items():
            self._merge(name, value)
        text = self._texts.get(kind.removesuffix("_delta"))
        return None if text is None else text.so_far()

    def _cite(self, citation: Any) -> ListSoFar:
        if self._citations is None:
            self._citations = list(self._members.get("citations") or [])
        if citation is not None:
            self._citations.append(citation)
        return ListSoFar(self._citations)

    def _merge(self, name: str, value: Any) -> None:
        before: Any = self._members.get(name)
        if isinstance(value, str) and name not in _NAMES and (before is None or isinstance(before, str)):
            if name not in self._texts:
                self._texts[name] = GrowingText()
                self._texts[name].push(before or "")
                self._members[name] = ""
            self._texts[name].push(value)
        elif isinstance(before, (list, tuple)) and isinstance(value, (list, tuple)):
            self._members[name] = [*before, *value]
        elif hasattr(before, "keys") and hasattr(value, "keys"):
            self._members[name] = _merged(before, value)
        elif value not in (None, "") or before is None:
            self._members[name] = value

    def document(self) -> dict[str, Any]:
        """The block as it would be without streaming; of an open call, the input so far."""
        texts = {name: text.text() for name, text in self._texts.items()}
        document = {**self._members, **texts}
        if self._citations is not None:
            document["citations"] = list(self._citations)
        given = self._input.text()
        if given.strip():
            document["input"] = self._input_of(given)
        elif document.get("type") == "tool_use":
            document.setdefault("input", {})
        return document

    def _input_of(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            if not self.is_open:
                # A text that is truncated or not JSON stays as it arrived.
                return text
            so_far = self._input.so_far().value
            return {} if so_far is None else so_far


def _keep_known(members: dict[str, Any], newer: Mapping[str, Any]) -> None:
    """Replaces members by newer ones that have a value."""
    members.update((name, value) for name, value in newer.items() if value is not None)
