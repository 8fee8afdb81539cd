"""Options of clients and calls, clients derived from others, and pickled clients."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, CallOptions, Client, _images, _videos

Serve = Callable[[Callable[[Connection], None]], str]


class Recorder:
    """A gateway that answers `{}` and records its requests."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []

    def __call__(self, connection: Connection) -> None:
        self.connections.append(connection)
        connection.answer(b"{}")

    def head(self, number: int = -1) -> str:
        return self.connections[number].head.lower()

    def lines(self, number: int = -1) -> list[str]:
        return self.head(number).split("\r\n")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_a_derived_client_merges_options_and_leaves_the_original_unchanged(
    serve: Serve, recorder: Recorder
) -> None:
    first = Client(serve(recorder), "key", default_headers={"x-all": "1"}, default_query={"v": 2})
    second = first.with_options(extra_headers={"x-team": "blue", "x-role": "a"}, extra_query={"q": 1})
    third = second.with_options(extra_headers={"X-Team": "red"}, max_retries=0)
    third.models.list(extra_query={"p": True})
    assert recorder.lines()[0] == "get /v1/models?v=2&q=1&p=true http/1.1"
    assert {"x-all: 1", "x-team: red", "x-role: a"} <= set(recorder.lines())
    assert "blue" not in recorder.head()
    first.models.list()
    assert "x-team" not in recorder.head()
    assert "x-all: 1" in recorder.lines()


def test_body_members_are_added_or_replaced_entirely(serve: Serve, recorder: Recorder) -> None:
    client = Client(serve(recorder), "key").with_options(extra_body={"user": "u", "metadata": {"a": 1}})
    client.chat.completions.create(
        model="m", messages=[], user="me", seed=1, extra_body={"metadata": {"b": 2}, "own": None}
    )
    assert json.loads(recorder.connections[0].body) == {
        "model": "m",
        "messages": [],
        "user": "u",
        "seed": 1,
        "metadata": {"b": 2},
        "own": None,
    }


def test_extra_body_members_do_not_change_whether_a_response_streams(
    serve: Serve, recorder: Recorder
) -> None:
    client = Client(serve(recorder), "key")
    document = '"stream".*; to stream, give stream to chat.completions.create itself'
    with pytest.raises(gatewright.InvalidRequestError, match=document):
        client.chat.completions.create(model="m", messages=[], extra_body={"stream": True})
    with pytest.raises(gatewright.InvalidRequestError, match=document):
        client.with_options(extra_body={"stream": True}).chat.completions.create(model="m", messages=[])
    stream = '"stream".*; for a whole response, call chat.completions.create without stream'
    with pytest.raises(gatewright.InvalidRequestError, match=stream):
        client.chat.completions.create(model="m", messages=[], stream=True, extra_body={"stream": False})
    assert recorder.connections == []


def test_timeouts_retries_and_the_idempotency_key_are_options_of_a_call(
    serve: Serve, recorder: Recorder
) -> None:
    def refuse(connection: Connection) -> None:
        recorder.connections.append(connection)
        connection.answer(b"{}", "503 X", "retry-after-ms: 1")

    client = Client(serve(refuse), "key", max_retries=0)
    with pytest.raises(gatewright.InternalServerError) as caught:
        client.chat.completions.create(model="m", messages=[], max_retries=2, idempotency_key="once")
    assert caught.value.attempts == len(recorder.connections) == 3
    assert all("idempotency-key: once" in recorder.lines(number) for number in range(3))


def test_a_silent_server_hits_the_calls_timeout(serve: Serve) -> None:
    client = Client(serve(lambda _: time.sleep(3)), "key", max_retries=0)
    for options in (CallOptions(timeout=0.2), CallOptions(first_byte_timeout=0.2)):
        started = time.monotonic()
        with pytest.raises(gatewright.APITimeoutError):
            client.models.list(**options)
        assert time.monotonic() - started < 2


def test_stream_timeouts_are_options_of_a_call(serve: Serve) -> None:
    def hang(connection: Connection) -> None:
        connection.stream_head()
        connection.wait_until_closed(5)

    client = Client(serve(hang), "key", max_retries=0)
    for options in (CallOptions(idle_timeout=0.2), CallOptions(event_timeout=0.2)):
        stream = client.chat.completions.create(model="m", messages=[], stream=True, **options)
        with pytest.raises(gatewright.APITimeoutError):
            next(stream)


def test_a_single_call_can_be_validated(serve: Serve, recorder: Recorder) -> None:
    # 2.8: image_model_1 makes one image.
    client = Client(serve(recorder), "key")
    client.images.generate(model="image_model_1", prompt="cats", n=2)
    with pytest.raises(gatewright.InvalidRequestError) as caught:
        client.images.generate(model="image_model_1", prompt="cats", n=2, validate=True)
    assert caught.value.violations[0]["section"] == "2.8"
    client.with_options(validate=True).images.generate(
        model="image_model_1", prompt="cats", n=2, validate=False
    )
    assert len(recorder.connections) == 2


def test_an_unknown_option_is_a_type_error_that_names_it(client: Client) -> None:
    with pytest.raises(TypeError, match=r"models\.list\(\) has no argument 'tiemout'; .* 'timeout'\?"):
        client.models.list(tiemout=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"with_options\(\) has no argument 'max_retry'; .* 'max_retries'\?"):
        client.with_options(max_retry=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_a_body_over_the_limit_is_an_error(serve: Serve) -> None:
    client = Client(
        serve(lambda connection: connection.answer(b'{"a":"%s"}' % (b"x" * 100))),
        "key",
        max_body_bytes=64,
        max_retries=0,
    )
    with pytest.raises(gatewright.DecodeError, match="64 bytes"):
        client.models.list()


def test_waiting_for_a_pool_slot_ends_with_a_distinct_error(serve: Serve) -> None:
    def hang(connection: Connection) -> None:
        connection.stream_head()
        connection.wait_until_closed(5)

    client = Client(serve(hang), "key", max_connections=1, pool_timeout=0.1, max_retries=0)
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    with stream, pytest.raises(gatewright.PoolTimeoutError):
        client.models.list()


def test_requests_go_to_the_proxy_instead_of_the_gateway(serve: Serve, recorder: Recorder) -> None:
    client = Client("http://gateway.invalid", "key", proxy=serve(recorder))
    client.models.list()
    assert recorder.lines()[0] == "get http://gateway.invalid/v1/models http/1.1"


def test_a_proxy_from_the_environment_is_used(serve: Serve, recorder: Recorder) -> None:
    program = "import gatewright; gatewright.Client('http://gateway.invalid', 'key').models.list()"
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment["HTTP_PROXY"] = serve(recorder)
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=30)
    assert recorder.lines()[0] == "get http://gateway.invalid/v1/models http/1.1"


def test_a_gateway_that_accepts_no_connection_hits_the_connect_timeout() -> None:
    with socket.socket() as listener, socket.socket() as queued:
        listener.bind(("127.0.0.1", 0))
        # Its queue has room for one connection, which is never accepted; the next one gets no response.
        listener.listen(0)
        queued.connect(listener.getsockname())
        base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        client = Client(base_url, "key", connect_timeout=0.2, max_retries=0)
        started = time.monotonic()
        with pytest.raises(gatewright.APITimeoutError, match="timed out connecting"):
            client.models.list()
        assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("status", "header", "body", "attempts"),
    [
        ("503 X", "x-should-retry: false", b"{}", 1),
        ("400 X", "x-should-retry: true", b"{}", 3),
        ("429 X", "x-test: 1", b'{"error":{"code":"insufficient_quota"}}', 1),
        ("429 X", "x-test: 1", b"{}", 3),
    ],
)
def test_the_gateway_can_control_retries(
    serve: Serve, status: str, header: str, body: bytes, attempts: int
) -> None:
    base_url = serve(lambda connection: connection.answer(body, status, f"retry-after-ms: 1\r\n{header}"))
    with pytest.raises(gatewright.APIStatusError) as caught:
        Client(base_url, "key", max_retries=2).models.list()
    assert caught.value.attempts == attempts


def test_an_error_has_its_response_headers_even_when_pickled(serve: Serve) -> None:
    base_url = serve(lambda connection: connection.answer(b"{}", "404 X", "X-Of-The-Answer: yes"))
    with pytest.raises(gatewright.NotFoundError) as caught:
        Client(base_url, "key").models.list()
    error = caught.value
    assert error.response is not None
    assert error.headers is not None
    assert error.headers["x-of-the-answer"] == "yes"
    assert pickle.loads(pickle.dumps(error)).headers == error.headers == error.response.headers
    assert gatewright.GatewrightError("nothing was sent").headers is None


def test_proxies_can_be_disabled(serve: Serve, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    base_url = serve(recorder).replace("127.0.0.1", "localhost")
    Client(base_url, "key", proxy=False).models.list()
    assert recorder.lines()[0] == "get /v1/models http/1.1"


# Pickles and copies.


def test_a_client_pickles_as_its_configuration_without_the_key(
    serve: Serve, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(serve(recorder), "sk-canary", default_headers={"x-all": "1"}, timeout=7)
    client = client.with_options(extra_headers={"x-team": "blue"})
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(client, protocol)
        assert b"canary" not in pickled
        monkeypatch.delenv("GATEWRIGHT_API_KEY", raising=False)
        with pytest.raises(gatewright.ConfigurationError, match="GATEWRIGHT_API_KEY"):
            pickle.loads(pickled)
        monkeypatch.setenv("GATEWRIGHT_API_KEY", "of-the-environment")
        back = pickle.loads(pickled)
        back.models.list()
        assert {"x-all: 1", "x-team: blue", "authorization: bearer of-the-environment"} <= set(
            recorder.lines()
        )


def test_a_client_pickles_with_its_key_on_request(
    serve: Serve, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWRIGHT_API_KEY", "first")
    from_environment = pickle.dumps(Client(serve(recorder), pickle_key=True))
    given = pickle.dumps(Client(serve(recorder), "given", pickle_key=True))
    monkeypatch.delenv("GATEWRIGHT_API_KEY")
    for pickled, key in ((from_environment, "first"), (given, "given")):
        pickle.loads(pickled).models.list()
        assert f"authorization: bearer {key}" in recorder.lines()


@pytest.mark.parametrize("pickle_key", [False, True])
def test_secret_headers_and_the_proxys_password_pickle_only_with_the_key(
    serve: Serve, recorder: Recorder, monkeypatch: pytest.MonkeyPatch, pickle_key: bool
) -> None:
    monkeypatch.setenv("GATEWRIGHT_API_KEY", "of-the-environment")
    proxy = serve(recorder).replace("http://", "http://user:canary-p@ss@")
    client = Client(
        "http://gateway.invalid",
        proxy=proxy,
        default_headers={"X-API-Key": "canary-1", "x-goog-api-key": "canary-2", "x-all": "1"},
        default_query={"api_key": "canary-3", "page": 1},
        pickle_key=pickle_key,
    ).with_options(extra_headers={"Cookie": "canary-4", "x-team": "blue"})
    client = client.with_options(extra_headers={"Authorization": "Bearer canary-5"})
    pickled = pickle.dumps(client)
    assert (b"canary" in pickled) is pickle_key
    pickle.loads(pickled).models.list()
    assert {"x-all: 1", "x-team: blue"} <= set(recorder.lines())
    assert "page=1" in recorder.lines()[0]
    kept = [f"canary-{number}" in recorder.head() for number in range(1, 6)]
    assert kept == [pickle_key] * 5
    assert ("proxy-authorization: " in recorder.head()) is pickle_key
    client.models.list()
    assert "canary-5" in recorder.head(), "pickling leaves the client as it was"


def provide() -> str:
    return "from-a-callable"


def test_a_callable_key_pickles_by_its_name(serve: Serve, recorder: Recorder) -> None:
    pickle.loads(pickle.dumps(Client(serve(recorder), provide))).models.list()
    assert "authorization: bearer from-a-callable" in recorder.lines()


def test_an_async_client_pickles_too() -> None:
    client = AsyncClient("http://127.0.0.1:9", "key", pickle_key=True, max_retries=0)
    assert repr(pickle.loads(pickle.dumps(client))) == "AsyncClient('http://127.0.0.1:9')"


class Subclass(Client):
    """A client with an attribute of its own."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url, "key", pickle_key=True)
        self.team = "blue"


def test_subclasses_retain_their_type(serve: Serve, recorder: Recorder) -> None:
    client = Subclass(serve(recorder))
    for twin in (
        client.with_options(timeout=5),
        copy.copy(client),
        copy.deepcopy(client),
        pickle.loads(pickle.dumps(client)),
    ):
        assert type(twin) is Subclass
        assert twin.team == "blue"
        twin.models.list()
    assert len(recorder.connections) == 4


def test_copies_share_the_connections(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key)
    twins = [copy.copy(client), copy.deepcopy({"client": client})["client"], client.with_options(timeout=5)]
    for twin in twins:
        assert twin.models.list().data
    client.close()
    for twin in twins:
        with pytest.raises(gatewright.ConfigurationError, match="closed"):
            twin.models.list()


def test_no_inspectable_attribute_contains_a_secret() -> None:
    client = Client("http://127.0.0.1:9", "sk-canary", pickle_key=True)
    assert "canary" not in repr(client) + str(vars(client)) + str(dir(client))


def own_threads() -> int:
    """Threads with our name: the keeper, and, for ten seconds, those that resolved names."""
    count = 0
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(OSError):
            count += (task / "comm").read_text().strip() == "gatewright"
    return count


def test_many_clients_share_the_process_threads(gateway: Gateway) -> None:
    Client(gateway.base_url, gateway.key).models.list()
    before = own_threads()
    assert before >= 1
    for _ in range(30):
        Client(gateway.base_url, gateway.key).models.list()
    assert own_threads() <= before + 2


# The specification describes every option.

SPEC = json.loads((Path(__file__).parents[2] / "spec/options.json").read_text())
CATALOG = json.loads((Path(__file__).parents[2] / "spec/catalog.json").read_text())


def described(scope: str) -> dict[str, object]:
    """The options of a scope in Python, each with its default."""
    options = [option for option in SPEC[scope]["options"] if "python" in option.get("only", ["python"])]
    defaults = CATALOG["defaults"]
    return {option["name"]: defaults.get(option.get("catalog"), option.get("default")) for option in options}


def test_waits_and_downloads_accept_the_specified_options(client: Client, tmp_path: Path) -> None:
    task = client.videos.generations.create(model="video_model_1", prompt="a wave")
    for name in described("wait"):
        if name != "on_progress":
            with pytest.raises(TypeError, match=f"^{name} must be a number of seconds, not str"):
                client.videos.generations.wait(task.id, **{name: "soon"})  # type: ignore[arg-type]
    for name in described("save"):
        for save in (client.videos.generations.save, client.images.save):
            with pytest.raises(TypeError, match=f"{name} |not an instance of"):
                save(task, tmp_path / "f", **{name: "all"})  # type: ignore[call-arg, operator]
    with pytest.raises(TypeError, match="no argument 'intervall'; did you mean 'interval'"):
        client.videos.generations.wait(task.id, intervall=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="no argument 'signal'"):
        client.images.save({}, tmp_path / "f", signal=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    ("method", "scope"),
    [
        (_videos.VideosGenerations.wait, "wait"),
        (_videos.VideosGenerations.save, "save"),
        (_images.Images.save, "save"),
    ],
)
def test_the_documentation_of_waits_and_downloads_names_every_option(
    method: Callable[..., object], scope: str
) -> None:
    assert f"options: {', '.join(described(scope))}: see " in (method.__doc__ or "")


def test_a_client_accepts_the_specified_options() -> None:
    for face in (Client, AsyncClient):
        assert list(inspect.signature(face).parameters) == list(described("client"))


def test_options_round_trip_through_the_core(serve: Serve, recorder: Recorder) -> None:
    client = Client(serve(recorder), "key", pickle_key=True).with_options(
        timeout=float("inf"),
        idle_timeout=1.5,
        max_retries=0,
        extra_headers={"x-team": "blue", "cookie": "canary"},
        extra_query={"tag": ["a", "b"], "n": 1},
        extra_body={"deep": {"list": [1, None, "ä"]}},
        validate=False,
    )
    pickle.loads(pickle.dumps(client)).chat.completions.create(model="m", messages=[])
    assert recorder.lines()[0] == "post /v1/chat/completions?tag=a&tag=b&n=1 http/1.1"
    assert {"x-team: blue", "cookie: canary"} <= set(recorder.lines())
    assert json.loads(recorder.connections[0].body)["deep"] == {"list": [1, None, "ä"]}
    twin = pickle.loads(pickle.dumps(client.with_options(extra_headers={"Cookie": "other"})))
    twin.models.list()
    assert "cookie: other" in recorder.lines()
