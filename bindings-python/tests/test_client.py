"""The client against the real gateway and a scripted one: operations, options, metadata, errors."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import math
import os
import pickle
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import Client, response_of, with_response

HELLO = [{"role": "user", "content": "Reply with exactly: good morning"}]


def test_chat(client: Client) -> None:
    completion = client.chat.completions.create(model="model-sol", messages=HELLO)  # type: ignore[arg-type]
    assert completion.object == "chat.completion"
    assert completion.choices[0].message.content == "good morning"
    assert completion.choices[0].message.tool_calls is None
    assert completion["usage"]["total_tokens"] == completion.usage.total_tokens


def test_a_result_can_be_sent_in_a_request(client: Client) -> None:
    first = client.chat.completions.create(model="model-sol", messages=[{"role": "user", "content": "hello"}])
    second = client.chat.completions.create(
        model="model-sol",
        messages=[
            {"role": "user", "content": "hello"},
            first.choices[0].message,
            {"role": "user", "content": "on"},
        ],
    )
    assert second.choices[0].finish_reason == "stop"


def test_responses_and_compact(client: Client) -> None:
    response = client.responses.create(model="model-terra", input="Reply with exactly: a response")
    assert response.status == "completed"
    texts = [
        part.text
        for item in response.output
        if item.type == "message"
        for part in item.content
        if part.type == "output_text"
    ]
    assert texts == ["a response"]
    compacted = client.responses.compact(model="model-terra", input="a long talk")
    assert compacted.object == "response.compaction"


def test_models_are_retrieved_by_their_listed_names(client: Client) -> None:
    listed = client.models.list().data[0]
    assert client.models.retrieve(listed.id) == listed
    native = client.native.models.list().models[0]
    assert native.name.startswith("models/")
    assert client.native.models.get(native.name) == native
    assert client.native.models.get(model=native.name.removeprefix("models/")) == native
    answer = client.native.generate_content(
        model=native.name, contents=[{"parts": [{"text": "Reply with exactly: by name"}]}]
    )
    assert answer.candidates[0].content.parts[0].text == "by name"
    with pytest.raises(gatewright.NotFoundError, match="another/model"):
        client.models.retrieve("another/model")
    with pytest.raises(gatewright.InvalidRequestError):
        client.models.retrieve("../admin")


async def test_models_are_retrieved_asynchronously(gateway: Gateway) -> None:
    async with gatewright.AsyncClient(gateway.base_url, gateway.key) as client:
        assert (await client.models.retrieve("model-sol")).id == "model-sol"
        assert (await client.native.models.get("models/model-sol")).name == "models/model-sol"


def test_native_bounds_are_checked_in_either_spelling_before_sending(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key, validate=True)
    with pytest.raises(gatewright.InvalidRequestError) as caught:
        client.native.generate_content(
            model="model-sol",
            contents=[{"parts": [{"text": "hello"}]}],
            extra_body={"generation_config": {"stop_sequences": list("abcdef")}},
        )
    (violation,) = caught.value.violations
    assert violation["pointer"] == "/generation_config/stop_sequences"


def test_model_lists(client: Client) -> None:
    assert "model-sol" in [model.id for model in client.models.list().data]
    page = client.native.models.list(pageSize=1)
    assert len(page.models) == 1
    assert page.nextPageToken is not None
    assert client.native.models.list(pageSize=1, pageToken=page.nextPageToken).models[0] != page.models[0]


def test_a_list_page_iterates_over_its_elements_and_is_otherwise_a_mapping(client: Client) -> None:
    page = client.models.list()
    assert list(page) == page.data
    assert [model.id for model in page] == [model["id"] for model in page["data"]]
    assert dict(page) == page.to_dict() == {"object": "list", "data": page.data}
    assert {**page}["object"] == "list"
    assert list(page.keys()) == ["object", "data"]
    assert "data" in page
    assert len(page) == 2
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert list(pickle.loads(pickle.dumps(page, protocol))) == page.data
    assert [model.name for model in client.native.models.list(pageSize=2)]
    # Only the page: its elements, and every other record, iterate over names.
    assert "id" in list(page.data[0])
    assert list(client.native.count_tokens(model="model-luna", contents=[{"parts": [{"text": "a"}]}])) == [
        "totalTokens"
    ]


def test_output_text_joins_the_text_of_a_response(
    client: Client, receive: Callable[[bytes], gatewright.Record]
) -> None:
    response = client.responses.create(model="model-sol", input="Reply with exactly: one two")
    assert response.output_text == "one two"
    assert "output_text" not in response
    last = list(client.responses.create(model="model-sol", input="Reply with exactly: a", stream=True))[-1]
    assert last.response.output_text == "a"  # type: ignore[union-attr]  # pyright: ignore
    parts = [
        {"type": "message", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal"}]},
        {"type": "reasoning"},
        {"type": "message", "content": [{"type": "output_text", "text": "b"}, {"type": "output_text"}]},
        {"type": "message", "content": None},
    ]
    answer: Any = receive(json.dumps({"output": parts}).encode())
    assert answer.output_text == "ab"
    answer = receive(b'{"output": []}')
    assert answer.output_text == ""
    answer = receive(b'{"input": []}')
    assert not hasattr(answer, "output_text")
    answer = receive(b'{"output_text": "its own", "output": []}')
    assert answer.output_text == "its own"


def test_errors_describe_the_response_that_caused_them(client: Client) -> None:
    with pytest.raises(gatewright.NotFoundError) as caught:
        client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    response = caught.value.response
    assert response is not None
    assert response.status_code == 404
    assert response.headers["content-type"].startswith("application/json")
    assert response.request_id == caught.value.request_id
    assert response.attempts == 1
    assert 0 < response.elapsed < 10
    assert pickle.loads(pickle.dumps(caught.value)).response == response


def test_native(client: Client) -> None:
    answer = client.native.generate_content(
        "model-luna", contents=[{"parts": [{"text": "Reply with exactly: native content"}]}]
    )
    assert answer.candidates is not None
    assert answer.candidates[0].content is not None
    assert answer.candidates[0].content.parts[0].text == "native content"
    count = client.native.count_tokens(model="model-luna", contents=[{"parts": [{"text": "one two"}]}])
    assert count.totalTokens > 0


def test_images(client: Client) -> None:
    images = client.images.generate(
        model="image_model_2", prompt="a boat", size="256x256", n=2, response_format="b64_json"
    )
    for image in images.data:
        assert base64.b64decode(image.b64_json or "").startswith(b"\x89PNG")
        assert image.url is None


def test_embeddings_are_numbers_or_base64_text_on_request(client: Client) -> None:
    found = client.embeddings.create(model="embedding_model_1", input=["a boat", "a lake"], dimensions=3)
    assert [(entry.index, len(entry.embedding)) for entry in found] == [(0, 3), (1, 3)]
    assert found.usage.prompt_tokens == found.usage.total_tokens > 0
    encoded = client.embeddings.create(
        model="embedding_model_1", input="a boat", dimensions=3, encoding_format="base64"
    )
    text = encoded.data[0].embedding
    assert isinstance(text, str)
    assert struct.unpack("<3f", base64.b64decode(text)) == pytest.approx(found.data[0].embedding)
    for tokens in ([1, 2, 3], [[1, 2, 3]]):
        assert len(client.embeddings.create(model="embedding_model_1", input=tokens).data) == 1


def test_documents_are_ranked(client: Client) -> None:
    documents = ["Interest rates of banks", {"text": "Boats on the lake", "id": 7}]
    ranking = client.rerank.create(
        model="rerank_model_1", query="boats on a lake", documents=documents, top_n=1, return_documents=True
    )
    assert [(result.index, result.document.text) for result in ranking] == [(1, "Boats on the lake")]
    assert ranking.usage.total_tokens > 0


def test_texts_and_parts_are_moderated(client: Client) -> None:
    calm, harmful = client.moderations.create(model="moderation_model_1", input=["a boat", "punch"])
    assert (calm.flagged, harmful.flagged) == (False, True)
    assert harmful.categories["violence"] is True
    assert harmful.category_scores["violence"] > calm.category_scores["violence"]
    parts = [
        {"type": "text", "text": "punch"},
        {"type": "image_url", "image_url": {"url": "https://example.com"}},
    ]
    found = client.moderations.create(input=parts)
    assert (found.model, len(found.results)) == ("moderation_model_1", 1)


def test_texts_are_read_aloud(client: Client) -> None:
    spoken = client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
    assert (type(spoken), spoken[:4], spoken[8:12]) == (bytes, b"RIFF", b"WAVE")
    samples = client.audio.speech.create(
        model="speech_model_1", input="a boat", voice="alloy", response_format="pcm", speed=1
    )
    assert samples == spoken[44:]
    with pytest.raises(gatewright.BadRequestError, match="use wav or pcm"):
        client.audio.speech.create(
            model="speech_model_1", input="a boat", voice="alloy", response_format="mp3"
        )


def test_sounds_are_transcribed(client: Client, tmp_path: Path) -> None:
    spoken = client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
    found = client.audio.transcriptions.create(
        model="transcription_model_1",
        file=("boat.wav", spoken),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
        temperature=0.5,
    )
    assert found.duration == 0.12
    assert " ".join(word.word for word in found.words) == found.text
    assert (found.segments[0].text, found.usage.type) == (found.text, "tokens")
    (tmp_path / "boat.wav").write_bytes(spoken)
    for form in (client.audio.transcriptions, client.audio.translations):
        again = form.create(model="transcription_model_1", file=tmp_path / "boat.wav")
        assert (again.text, "words" in again) == (found.text, False)


def test_speech_arrives_as_events(client: Client) -> None:
    whole = client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
    with client.audio.speech.create(
        model="speech_model_1", input="a boat", voice="alloy", stream_format="sse"
    ) as stream:
        *deltas, last = stream
    assert b"".join(base64.b64decode(delta.audio) for delta in deltas) == whole
    assert last.type == "speech.audio.done"


def test_transcripts_arrive_as_events_and_as_text(client: Client) -> None:
    request: Any = {"model": "transcription_model_1", "file": ("boat.wav", b"RIFF")}
    found = client.audio.transcriptions.create(**request)
    *deltas, last = client.audio.transcriptions.create(**request, stream=True)
    assert ("".join(delta.delta for delta in deltas), last.text) == (found.text, found.text)
    for form in (client.audio.transcriptions, client.audio.translations):
        assert form.create(**request, response_format="text") == found.text + "\n"
        assert form.create(**request, response_format="vtt").startswith("WEBVTT\n")
    with pytest.raises(gatewright.InvalidRequestError, match="give response_format to"):
        client.audio.transcriptions.create(**request, extra_body={"response_format": "srt"})


def test_batch_has_a_result_for_each_request(client: Client) -> None:
    lines = [
        json.dumps(
            {
                "custom_id": name,
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": {"model": "model-sol", "messages": [{"role": "user", "content": "Say hi"}]},
            }
        )
        for name in ("one", "two")
    ]
    content = "\n".join(lines).encode()
    file = client.files.create(file=("requests.jsonl", content), purpose="batch")
    assert (file.filename, file.bytes, client.files.content(file.id)) == (
        "requests.jsonl",
        len(content),
        content,
    )
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
    )
    deadline = time.monotonic() + 30
    while batch.status == "in_progress" and time.monotonic() < deadline:
        time.sleep(0.02)
        batch = client.batches.retrieve(batch.id)
    assert (batch.status, batch.request_counts.completed) == ("completed", 2)
    results = [json.loads(line) for line in client.files.content(batch.output_file_id).splitlines()]
    assert [result["custom_id"] for result in results] == ["one", "two"]
    assert batch.id in [listed.id for listed in client.batches.list()]
    page = client.files.list(limit=1, purpose="batch_output")
    assert (page.data[0].id, page.last_id) == (batch.output_file_id, batch.output_file_id)
    assert client.files.delete(file.id).deleted
    with pytest.raises(gatewright.NotFoundError):
        client.files.retrieve(file.id)
    with pytest.raises(gatewright.BadRequestError, match="line 1 is not one JSON object"):
        client.files.create(file=b"requests", purpose="batch")


async def test_plain_operations_are_asynchronous(gateway: Gateway) -> None:
    async with gatewright.AsyncClient(gateway.base_url, gateway.key) as client:
        ranking = await client.rerank.create(model="rerank_model_1", query="a boat", documents=["a boat"])
        assert ranking.results[0].relevance_score == 1
        assert not (await client.moderations.create(input="a boat")).results[0].flagged
        spoken = await client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
        assert spoken.startswith(b"RIFF")
        stream = await client.audio.speech.create(
            model="speech_model_1", input="a boat", voice="alloy", stream_format="sse"
        )
        events = [event async for event in stream]
        assert b"".join(base64.b64decode(event.audio) for event in events[:-1]) == spoken
        words = await client.audio.transcriptions.create(
            model="transcription_model_1", file=io.BytesIO(spoken), stream=True
        )
        assert [event async for event in words][-1].type == "transcript.text.done"
        text = await client.audio.translations.create(
            model="transcription_model_1", file=("boat.wav", spoken), response_format="text"
        )
        assert isinstance(text, str)


async def test_event_loop_goes_on_while_a_slow_file_is_read(gateway: Gateway, tmp_path: Path) -> None:
    pipe = tmp_path / "boat.wav"
    os.mkfifo(pipe)
    async with gatewright.AsyncClient(gateway.base_url, gateway.key) as client:
        spoken = await client.audio.speech.create(model="speech_model_1", input="a boat", voice="alloy")
        call = asyncio.create_task(
            client.audio.transcriptions.create(model="transcription_model_1", file=pipe)
        )
        await asyncio.sleep(0.05)
        # The reader waits in a thread for what this writes.
        assert not call.done()
        await asyncio.to_thread(pipe.write_bytes, spoken)
        assert (await call).text
        with pytest.raises(TypeError, match=r"pass pathlib\.Path"):
            await client.audio.transcriptions.create(model="transcription_model_1", file="boat.wav")


async def test_embeddings_are_created_asynchronously(gateway: Gateway) -> None:
    async with gatewright.AsyncClient(gateway.base_url, gateway.key) as client:
        found = await client.embeddings.create(model="embedding_model_1", input="a boat", dimensions=3)
    assert len(found.data[0].embedding) == 3


def test_wait_returns_completed_videos(client: Client) -> None:
    task = client.videos.generations.create(model="video_model_1", prompt="waves", duration=3)
    # Pending if the videos of earlier tests take all slots.
    assert task.status in ("pending", "processing")
    assert task.output is None
    done = client.videos.generations.wait(task.id, interval=0.05)
    assert done.status == client.videos.generations.retrieve(task.id).status == "completed"
    assert done.output is not None
    assert done.output.format == "mp4"
    both = client.videos.generations.create_and_wait(
        model="video_model_4", prompt="waves", duration=3, interval=0.05
    )
    assert both.status == "completed"


def test_waiting_raises_on_failure_and_on_timeout(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    # 2.7: a failed task has an error with a message. 3: other states are waited for.
    task = {"id": "t", "status": "failed", "created": 1, "model": "m", "error": {"message": "too dark"}}
    base_url = serve(lambda connection: connection.answer(json.dumps(task).encode()))
    with pytest.raises(gatewright.TaskFailedError, match="too dark") as caught:
        Client(base_url, "key").videos.generations.wait("t")
    assert caught.value.body["id"] == "t"
    base_url = serve(lambda connection: connection.answer(b'{"id":"t","status":"dreaming"}'))
    with pytest.raises(gatewright.APITimeoutError, match="t is not done"):
        Client(base_url, "key").videos.generations.wait("t", interval=0.02, timeout=0.1)


def test_the_response_is_accessible_from_the_result(client: Client) -> None:
    result = client.models.list()
    response = response_of(result)
    assert response is not None
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("application/json")
    assert response.request_id == result._request_id == response.headers["x-request-id"]
    assert response.attempts == 1
    assert 0 < response.elapsed < 10
    assert response_of(result.data[0]) is None
    assert response_of(gatewright.Record({})) is None
    for bare in ([], "text", b"bytes", None):
        with pytest.raises(TypeError, match="call the method by with_response"):
            response_of(bare)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_method_called_with_response_returns_both(client: Client, tmp_path: Path) -> None:
    models, response = with_response(client.models.list)
    assert response == response_of(models)
    stream, response = with_response(
        client.chat.completions.create, model="model-sol", messages=HELLO, stream=True
    )
    assert response == stream.response
    video = client.videos.generations
    task, response = with_response(video.create_and_wait, model="video_model_1", prompt="a", interval=0.01)
    assert (task.status, response) == ("completed", response_of(task))
    with pytest.raises(TypeError, match="returned no response"):
        with_response(video.save, task, tmp_path / "video")
    with pytest.raises(TypeError, match=r"needs a method of a client"):
        with_response(len, [])


async def test_a_coroutine_called_with_response_returns_both(gateway: Gateway) -> None:
    async with gatewright.AsyncClient(gateway.base_url, gateway.key) as client:
        models, response = await with_response(client.models.list)
        assert response == response_of(models)


def test_options_of_a_call(serve: Callable[[Callable[[Connection], None]], str]) -> None:
    heads: list[str] = []

    def answer(connection: Connection) -> None:
        heads.append(connection.head)
        connection.answer(b"{}")

    client = Client(serve(answer) + "/v1/", "secret")
    client.models.list(extra_headers={"X-Team": "blue"}, extra_query={"a": [1, 2], "b": True, "c": None})
    assert heads[0].startswith("GET /v1/models?a=1&a=2&b=true HTTP/1.1")
    lines = [line.lower() for line in heads[0].split("\r\n")]
    assert "x-team: blue" in lines
    assert "authorization: bearer secret" in lines
    assert any(line.startswith("user-agent: gatewright-python python/3.") for line in lines)


def test_path_parameters_cannot_escape_their_segment(client: Client) -> None:
    for hostile in ("../admin", "a/b", "..\\x", ""):
        with pytest.raises(gatewright.GatewrightError):
            client.videos.generations.retrieve(hostile)


def test_malformed_options_are_rejected() -> None:
    with pytest.raises(gatewright.ConfigurationError, match="base URL"):
        Client("not a url", "key")
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0"):
        Client("http://127.0.0.1:1", "key", timeout=-1)
    with pytest.raises(ValueError, match="timeout"):
        Client("http://127.0.0.1:1", "key", timeout=math.nan)


def test_the_environment_is_read(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWRIGHT_BASE_URL", gateway.base_url)
    monkeypatch.setenv("GATEWRIGHT_API_KEY", gateway.key)
    assert Client().models.list().data
    monkeypatch.delenv("GATEWRIGHT_API_KEY")
    message = r"set GATEWRIGHT_API_KEY, or pass `api_key=…`"
    for client in (gatewright.Client, gatewright.AsyncClient):
        with pytest.raises(gatewright.ConfigurationError, match=message):
            client()


def test_no_repr_shows_the_key(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key)
    assert gateway.base_url in repr(client)
    assert gateway.key not in repr(client) + str(vars(client))


def test_a_closed_client_rejects_calls(gateway: Gateway) -> None:
    with Client(gateway.base_url, gateway.key) as client:
        client.models.list()
    with pytest.raises(gatewright.ConfigurationError, match="closed"):
        client.models.list()
    assert gateway.base_url in repr(client)


def test_an_infinite_timeout_means_no_limit(gateway: Gateway) -> None:
    client = Client(gateway.base_url, gateway.key, timeout=math.inf, idle_timeout=math.inf)
    assert client.models.list(timeout=math.inf).data


def test_threads_share_a_client_and_the_gil_is_released_meanwhile(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    together = threading.Barrier(4, timeout=5)

    def answer(connection: Connection) -> None:
        # Passes only if four calls are in progress at once; this server runs in the same interpreter.
        together.wait()
        connection.answer(b'{"ok":true}')

    client = Client(serve(answer), "key", max_retries=0)
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(client.models.list())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [{"ok": True}] * 4


def test_a_call_ends_when_its_timeout_expires(serve: Callable[[Callable[[Connection], None]], str]) -> None:
    client = Client(serve(lambda _: time.sleep(5)), "key")
    started = time.monotonic()
    with pytest.raises(gatewright.APITimeoutError):
        client.models.list(timeout=0.2)
    assert time.monotonic() - started < 2


# Errors by status and class: spec/errors.json; bodies in the standard form (7 rule 4, ours).

STATUSES = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    409: "ConflictError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    500: "InternalServerError",
    501: "NotImplementedByGatewayError",
    503: "InternalServerError",
    418: "APIStatusError",
}


@pytest.mark.parametrize(("status", "name"), STATUSES.items())
def test_each_status_raises_its_class(
    serve: Callable[[Callable[[Connection], None]], str], status: int, name: str
) -> None:
    body = {"error": {"message": "no", "type": "some_type", "param": "n", "code": "some_code"}}
    headers = "content-type: application/json\r\nx-request-id: req_1\r\nretry-after: 7"
    base_url = serve(lambda connection: connection.answer(json.dumps(body).encode(), f"{status} X", headers))
    with pytest.raises(gatewright.APIStatusError) as caught:
        Client(base_url, "key").models.list(max_retries=0)
    error = caught.value
    assert type(error) is getattr(gatewright, name)
    assert (error.status_code, error.request_id, error.code, error.param, error.type, error.message) == (
        status,
        "req_1",
        "some_code",
        "n",
        "some_type",
        "no",
    )
    assert error.retry_after == 7.0
    assert error.body == body
    assert error.operation == "list_models"
    assert str(error) == f"models.list: status {status}: no (request req_1)"


def test_errors_pickle_with_everything(client: Client) -> None:
    with pytest.raises(gatewright.NotFoundError) as caught:
        client.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(caught.value, protocol))
        assert type(back) is gatewright.NotFoundError
        assert vars(back) == vars(caught.value)
        assert str(back) == str(caught.value)
    assert caught.value.code == "model_not_found"
    assert back.request_id.startswith("req_")


def test_native_errors_are_parsed_too(client: Client) -> None:
    with pytest.raises(gatewright.NotFoundError) as caught:
        client.native.generate_content("nope", contents=[{"parts": [{"text": "x"}]}])
    assert caught.value.body["error"]["status"] == "NOT_FOUND"
    assert caught.value.type == "NOT_FOUND"


def test_wrong_key_raises_authentication_error(gateway: Gateway) -> None:
    with pytest.raises(gatewright.AuthenticationError) as caught:
        Client(gateway.base_url, "wrong").models.list()
    assert caught.value.code == "invalid_api_key"


def test_a_failed_connection_is_a_connection_error_with_its_cause() -> None:
    with pytest.raises(gatewright.APIConnectionError) as caught:
        Client("http://127.0.0.1:9", "key").models.list(max_retries=0)
    assert caught.value.status_code is None
    assert caught.value.__cause__ is not None


def test_html_instead_of_json_retains_status_and_body(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    base_url = serve(lambda connection: connection.answer(b"<html>", headers="content-type: text/html"))
    with pytest.raises(gatewright.DecodeError) as caught:
        Client(base_url, "key").models.list(max_retries=0)
    assert caught.value.status_code == 200
    assert caught.value.body == "<html>"


def test_an_error_or_an_array_instead_of_a_response_is_a_decode_error(
    serve: Callable[[Callable[[Connection], None]], str],
) -> None:
    body = {"error": {"message": "No room.", "type": "server_error", "param": "model", "code": "full"}}
    base_url = serve(lambda connection: connection.answer(json.dumps(body).encode()))
    with pytest.raises(gatewright.DecodeError, match="No room") as caught:
        Client(base_url, "key").models.list()
    assert (caught.value.status_code, caught.value.body) == (200, body)
    assert (caught.value.code, caught.value.param, caught.value.type) == ("full", "model", "server_error")
    base_url = serve(lambda connection: connection.answer(b"[]"))
    with pytest.raises(gatewright.DecodeError, match="it is an array"):
        Client(base_url, "key").models.list()


def test_limits_are_checked_before_sending_if_enabled(gateway: Gateway) -> None:
    # 2.8: image_model_1 makes one image, in three sizes.
    client = Client(gateway.base_url, gateway.key, validate=True)
    with pytest.raises(gatewright.InvalidRequestError) as caught:
        client.images.generate(model="image_model_1", prompt="cats", n=2, size="512x512")
    assert {violation["pointer"] for violation in caught.value.violations} == {"/n", "/size"}
    assert caught.value.attempts == 0
    assert pickle.loads(pickle.dumps(caught.value)).violations == caught.value.violations


@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_numbers_outside_json_become_none(receive: Callable[[bytes], gatewright.Record], number: str) -> None:
    # Deviation 30 of real providers: return the response, never crash.
    record = receive(f'{{"score": {number}, "text": "kept"}}'.encode())
    assert (record.score, record.text) == (None, "kept")
    assert record.to_json() == '{"score":null,"text":"kept"}'
