"""What the events of a message amount to so far: what `get_final_message` returns, which the core makes.

As in the core, any JSON is accepted: what does not fit is dropped, and nothing fails. An event costs as much
as its own text, whatever has arrived before.
"""

from __future__ import annotations

from itertools import islice

from gatewright._growing import GrowingText, ListSoFar, TextSoFar
from gatewright._json_prefix import whole_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The block that a piece begins if the event of the block did not arrive.
_BLOCK_OF_DELTA = {"input_json_delta": "tool_use", "signature_delta": "thinking", "citations_delta": "text"}
# Members that name something. They are replaced, other text is appended to.
_NAMES = frozenset(("format", "id", "model", "name", "object", "provider", "role", "type"))
# How many entries of a list are searched for the one that a piece belongs to.
_MAX_SEARCHED = 64
# What a message has even if the server leaves it out.
_REQUIRED = {"id": "", "type": "message", "role": "assistant", "model": ""}
_REQUIRED_USAGE = {"input_tokens": 0, "output_tokens": 0}


class MessageSoFar:
    """The message. Its methods keep the dicts they are given; its documents are built when they are read."""

    def __init__(self) -> None:
        # Every member but the content.
        self._message: dict[str, Any] = {}
        # By `index`, which need not arrive in order.
        self._blocks: dict[int, Block] = {}
        # The highest index; looking for it among all blocks would take longer with each of them.
        self._last = -1
        self._is_over = False

    def begin(self, message: Any) -> list[Block]:
        """Begins the message; returns its blocks, which a server that does not stream sends at once."""
        if not isinstance(message, dict):
            return []
        given = message.pop("content", None)
        self._message = message
        if not isinstance(given, list):
            return []
        blocks = [Block(block) for block in given if isinstance(block, dict)]
        self._blocks = dict(enumerate(blocks))
        self._last = len(blocks) - 1
        return blocks

    def begin_block(self, event: dict[str, Any]) -> None:
        """Adds a block."""
        members = event.get("content_block")
        if isinstance(members, dict):
            self._put(_index_of(event, self._last + 1), Block(members))

    def block(self, event: dict[str, Any]) -> Block:
        """The block of a piece, which the piece begins if it is not known."""
        index = self._index(event)
        return self._blocks.get(index) or self._put(index, Block({}))

    def end_block(self, event: dict[str, Any]) -> Block:
        """Ends a block and returns it. One that is not known has no members, and is not added."""
        block = self._blocks.get(self._index(event)) or Block({})
        block.is_open = False
        return block

    def _index(self, event: dict[str, Any]) -> int:
        return _index_of(event, max(self._last, 0))

    def _put(self, index: int, block: Block) -> Block:
        self._blocks[index] = block
        self._last = max(self._last, index)
        return block

    def settle(self, event: dict[str, Any]) -> None:
        """Adds what is known at the end. A usage repeats only what has changed."""
        delta, usage = event.get("delta"), event.get("usage")
        if isinstance(delta, dict):
            _keep_known(self._message, delta)
        if isinstance(usage, dict):
            known = self._message.get("usage")
            if isinstance(known, dict):
                _keep_known(known, usage)
            else:
                self._message["usage"] = usage
        rest = {name: value for name, value in event.items() if name not in ("type", "delta", "usage")}
        _keep_known(self._message, rest)

    def end(self) -> None:
        """Ends the message, and with it every block."""
        self._is_over = True

    def document(self) -> dict[str, Any]:
        """The message as it would be without streaming."""
        message = dict(self._message)
        message["content"] = [
            self._blocks[index].document(is_over=self._is_over) for index in sorted(self._blocks)
        ]
        _add_missing(message, _REQUIRED)
        message.setdefault("stop_reason")
        message.setdefault("stop_sequence")
        usage = message.get("usage")
        if usage is None or isinstance(usage, dict):
            message["usage"] = _add_missing(dict(usage or {}), _REQUIRED_USAGE)
        return message


class Block:
    """A block of the content."""

    __slots__ = ("_input", "_members", "is_open")

    def __init__(self, members: dict[str, Any]) -> None:
        # Text that pieces were added to is a `GrowingText`, at every depth.
        self._members = members
        # The JSON of the input of a call. None if it has not begun, or the input arrived as an object.
        self._input: GrowingText | None = None
        self.is_open = True

    @property
    def text(self) -> str:
        """The text of a block of text that arrived whole."""
        text = self._members.get("text") if self._members.get("type") == "text" else None
        return text if isinstance(text, str) else ""

    def add(self, delta: dict[str, Any]) -> TextSoFar | ListSoFar | None:
        """Adds a piece; returns the text that it belongs to, the JSON of the input, or the citations."""
        kind = delta.pop("type", None)
        if not isinstance(kind, str):
            kind = ""
        if not self._members:
            self._members["type"] = _BLOCK_OF_DELTA.get(kind) or _without_suffixes(kind)
        if kind == "input_json_delta":
            piece = delta.get("partial_json")
            if self._input is None:
                self._input = GrowingText(is_json=True)
            return self._input.push(piece if isinstance(piece, str) else "")
        if kind == "citations_delta":
            return self._cite(delta)
        if kind == "signature_delta":
            # It arrives whole.
            _keep_known(self._members, delta)
            return None
        _merge(self._members, delta)
        return self._so_far(kind.removesuffix("_delta"))

    def _cite(self, delta: dict[str, Any]) -> ListSoFar:
        citations = self._members.get("citations")
        new = [delta["citation"]] if "citation" in delta else []
        if isinstance(citations, list):
            citations += new
        elif new:
            citations = self._members["citations"] = new
        else:
            citations = []
        return ListSoFar(citations)

    def _so_far(self, name: str) -> TextSoFar | None:
        text = self._members.get(name)
        if isinstance(text, str) and name not in _NAMES:
            # The first piece of a text.
            text = self._members[name] = GrowingText(text)
        return text.so_far() if isinstance(text, GrowingText) else None

    def document(self, *, is_over: bool = False) -> dict[str, Any]:
        """The block as it would be without streaming; of an open call, the input so far."""
        document: dict[str, Any] = _written(self._members)
        if self._input is not None and self._input.text().strip():
            document["input"] = _input_of(self._input, is_open=self.is_open and not is_over)
        elif document.get("type") == "tool_use":
            document.setdefault("input", {})
        if document.get("input") is None:
            # An input of null is none.
            document.pop("input", None)
        _add_missing(document, {"type": ""})
        return document


def _input_of(text: GrowingText, *, is_open: bool) -> Any:
    try:
        return whole_value(text.text())
    except ValueError:
        if not is_open:
            # A text that is truncated or not JSON stays as it arrived.
            return text.text()
        so_far = text.so_far().value
        return {} if so_far is None else so_far


def _index_of(members: dict[str, Any], default: int) -> int:
    """The index; the default if there is none, or one that cannot be one: negative, or no integer."""
    index = members.get("index")
    return index if type(index) is int and index >= 0 else default


def _without_suffixes(kind: str) -> str:
    while kind.endswith("_delta"):
        kind = kind.removesuffix("_delta")
    return kind


def _merge(target: dict[str, Any], members: dict[str, Any]) -> None:
    """Merges a piece's members into the earlier ones. Text is appended to text, lists are appended to lists,
    and objects are merged; any other value replaces the earlier one. None never replaces anything, and a list
    or an object never replaces text."""
    for name, value in members.items():
        old = target.get(name)
        if old is None:
            target[name] = value
        elif value is None:
            continue
        elif isinstance(old, (str, GrowingText)):
            if isinstance(value, str) and name not in _NAMES:
                if isinstance(old, str):
                    old = target[name] = GrowingText(old)
                old.push(value)
            elif not isinstance(value, (dict, list)) and value != "":
                target[name] = value
        elif isinstance(old, list) and isinstance(value, list):
            _merge_list(old, value)
        elif isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        else:
            target[name] = value


def _merge_list(values: list[Any], more: list[Any]) -> None:
    """Appends to a list. If its entries have an `index`, an entry is a piece of the one with the same
    index."""
    for value in more:
        # It almost always belongs to the newest entry; otherwise the nearest ones are searched.
        index = _index_of(value, -1) if isinstance(value, dict) else -1
        nearest = islice(reversed(values), _MAX_SEARCHED if index >= 0 else 0)
        entry = next((one for one in nearest if isinstance(one, dict) and _index_of(one, -1) == index), None)
        if entry is None:
            values.append(value)
        else:
            _merge(entry, value)


def _written(value: Any) -> Any:
    """A copy with texts as they are so far."""
    if isinstance(value, GrowingText):
        return value.text()
    if isinstance(value, dict):
        return {name: _written(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_written(element) for element in value]
    return value


def _keep_known(members: dict[str, Any], newer: dict[str, Any]) -> None:
    """Replaces members by newer ones that have a value."""
    members.update((name, value) for name, value in newer.items() if value is not None)


def _add_missing(members: dict[str, Any], required: dict[str, Any]) -> dict[str, Any]:
    members.update((name, value) for name, value in required.items() if members.get(name) is None)
    return members
