"""The scenarios that every client runs, and their expected results.

A client is a subclass of `Client` that implements each of these actions with its own API. It hides its types:
the scenarios see texts, calls and refusals.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

STORY = "Tell me about rivers"
PICTURE = Path(__file__).parent.with_name("picture.png").read_bytes()
PLACES = {
    "type": "object",
    "properties": {"the_city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}},
    "required": ["the_city", "days"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Target:
    """A gateway with an upstream: its URL, and its names for the models."""

    name: str
    url: str
    key: str
    models: dict[str, str]
    """The model of each protocol."""
    limited: dict[str, str] | None = None
    """Models that answer 429 and `retry-after: 7`."""
    broken: dict[str, str] | None = None
    """Models whose streams break off with an error."""
    drawing: dict[str, str] | None = None
    """The model that draws, by the protocol of the clients that ask for it."""
    drops_pictures: bool = False
    """Whether what is behind the gateway does not pass pictures on."""
    hides_usage: bool = False
    """Whether what is behind the gateway tells no usage of streams."""
    mends_streams: bool = False
    """Whether what is behind the gateway may ask again for a stream that breaks off, so that all arrives, or
    fail before the first piece."""
    hides_wait: bool = False
    """Whether what is behind the gateway does not pass `retry-after` on."""
    lacks: dict[str, dict[str, str]] = field(default_factory=dict)
    """Scenarios that a client cannot play there, and why, by the client's name; `*` is any."""


@dataclass(frozen=True)
class Tool:
    name: str = "get_weather"
    description: str = "The weather in a city."
    parameters: dict = field(
        default_factory=lambda: {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        }
    )


@dataclass(frozen=True)
class Answer:
    text: str
    input_tokens: int
    """Tokens read."""
    output_tokens: int
    """Tokens written."""


@dataclass(frozen=True)
class Call:
    name: str
    arguments: dict
    turn: object
    """The whole turn of the model, as the client wants it back."""
    id: str | None = None


class Refused(Exception):
    """A failed call as the client reports it: the status, the message for its user, and how long to wait."""

    def __init__(self, status: int | None, message: str, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class Client(ABC):
    """A client for one target and one of its models. Its calls raise `Refused` and never retry."""

    name: str
    protocol: str
    draw: Callable[[str, str], bytes] | None = None
    """Where the client draws: a PNG of a text in a size such as `256x256`."""

    written: int | None = None
    """Output tokens of the last stream, as its end reported them."""

    def __init__(self, target: Target, model: str) -> None:
        self.target = target
        self.model = model

    @abstractmethod
    def ask(self, text: str, picture: bytes | None = None) -> Answer:
        """Sends a system prompt, a text and, after it, a PNG."""

    @abstractmethod
    def stream(self, text: str) -> Iterator[str]:
        """The pieces of text."""

    @abstractmethod
    def call(self, text: str, tool: Tool, streamed: bool) -> Call:
        """Sends a tool that the model must call."""

    @abstractmethod
    def give(self, text: str, tool: Tool, call: Call, result: str) -> str:
        """Sends the result of a call, and returns the text that answers it."""

    @abstractmethod
    def fill(self, text: str, schema: dict) -> dict:
        """Requests a document that fits a schema."""


def chat(new: Callable[..., Client]) -> None:
    answer = new().ask("Reply with exactly: good morning")
    assert answer.text == "good morning", answer
    assert min(answer.input_tokens, answer.output_tokens) > 0, answer


def stream(new: Callable[..., Client]) -> None:
    client = new()
    pieces = list(client.stream(STORY))
    assert len(pieces) > 4, pieces
    assert client.target.hides_usage or (client.written or 0) > 0, client.written
    assert "".join(pieces) == client.ask(STORY).text, pieces


def tools(new: Callable[..., Client]) -> None:
    calling(new(), streamed=False)


def streamed_tools(new: Callable[..., Client]) -> None:
    calling(new(), streamed=True)


def calling(client: Client, streamed: bool) -> None:
    question = "What is the weather in Paris?"
    tool = Tool()
    call = client.call(question, tool, streamed)
    assert (call.name, call.arguments) == ("get_weather", {"city": "Paris"}), call
    text = client.give(question, tool, call, "clear and cold")
    assert "clear and cold" in text, text


def structured(new: Callable[..., Client]) -> None:
    document = new().fill("Plan a trip to Paris", PLACES)
    assert set(document) == {"the_city", "days"}, document
    assert isinstance(document["the_city"], str), document
    assert all(isinstance(day, int) for day in document["days"]), document


def image(new: Callable[..., Client]) -> None:
    client = new()
    seen = client.ask("Reply with exactly: a picture", PICTURE)
    assert seen.text == "a picture", seen
    unseen = client.ask("Reply with exactly: a picture")
    assert client.target.drops_pictures or seen.input_tokens > unseen.input_tokens, (seen, unseen)


def draw(new: Callable[..., Client]) -> None:
    client = new("drawing")
    drawn = client.draw("A lighthouse at dusk", "256x256")
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n"), drawn[:99]
    # The third-party server draws the same picture for every request.
    assert drawn == PICTURE or struct.unpack(">II", drawn[16:24]) == (256, 256), drawn[:24]


def unknown_model(new: Callable[..., Client]) -> None:
    error = refused(lambda: new(model="no-such-model").ask("Say hello"))
    assert error.status == 404, error
    assert "no-such-model" in str(error), error


def wrong_key(new: Callable[..., Client]) -> None:
    client = new(key="a-wrong-key-of-nobody")
    error = refused(lambda: client.ask("Say hello"))
    # The native protocol has always answered 400 here.
    assert error.status == (400 if client.protocol == "native" else 401), error
    assert "a-wrong-key-of-nobody" not in str(error), error


def rate_limit(new: Callable[..., Client]) -> None:
    client = new("limited")
    error = refused(lambda: client.ask("Say hello"))
    assert error.status == 429, error
    if not client.target.hides_wait:
        assert error.retry_after == "7", (error.retry_after, error)


def broken_stream(new: Callable[..., Client]) -> None:
    pieces, failure = [], None
    client = new("broken")
    try:
        pieces.extend(client.stream(STORY))
    except Exception as error:
        failure = error
    # Whatever repaired it, a partial response is never presented as complete.
    if client.target.mends_streams and "".join(pieces) == new().ask(STORY).text:
        return
    assert isinstance(failure, Refused), (failure, pieces)
    assert str(failure), failure
    assert pieces or client.target.mends_streams, failure


SCENARIOS: list[Callable[[Callable[..., Client]], None]] = [
    chat,
    stream,
    tools,
    streamed_tools,
    structured,
    image,
    draw,
    unknown_model,
    wrong_key,
    rate_limit,
    broken_stream,
]
NEEDS = {"draw": "drawing", "rate_limit": "limited", "broken_stream": "broken"}
"""Scenarios for which a target needs models of a kind."""


def plays(kind: type[Client], scenario: Callable) -> bool:
    """Whether a client can express a scenario: most of them can't draw."""
    return scenario is not draw or kind.draw is not None


def refused(call: Callable[[], object]) -> Refused:
    try:
        got = call()
    except Refused as error:
        return error
    raise AssertionError(f"it was not refused: {got!r}")
