"""The levels of reading a stream: events, raw events, text, the whole document; and what its errors carry."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gatewright
import pytest
from conftest import Connection, Gateway
from gatewright import AsyncClient, Client

Serve = Callable[[Callable[[Connection], None]], str]

QUESTION: Any = [{"role": "user", "content": "Reply with exactly: one two three"}]


def chunk(text: str, finish: str = "null") -> bytes:
    choice = f'{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":{finish}}}'
    return f'data: {{"id":"c","object":"chat.completion.chunk","choices":[{choice}]}}\n\n'.encode()


END = chunk("", '"stop"') + b"data: [DONE]\n\n"


def sending(*parts: bytes) -> Callable[[Connection], None]:
    def answer(connection: Connection) -> None:
        connection.stream_head()
        for part in parts:
            connection.send(part)

    return answer


def open_stream(base_url: str) -> gatewright.ChatCompletionStream:
    client = Client(base_url, "key", max_retries=0)
    return client.chat.completions.create(model="m", messages=[], stream=True)


async def open_async(base_url: str) -> gatewright.AsyncChatCompletionStream:
    client = AsyncClient(base_url, "key", max_retries=0)
    return await client.chat.completions.create(model="m", messages=[], stream=True)


# The whole document.


def test_the_final_document_matches_the_non_streaming_response(client: Client) -> None:
    whole = client.chat.completions.create(model="model-sol", messages=QUESTION)
    with client.chat.completions.create(model="model-sol", messages=QUESTION, stream=True) as stream:
        final = stream.get_final_completion()
    assert final.object == "chat.completion"
    assert final.choices[0].message.content == whole.choices[0].message.content == "one two three"
    assert final.choices[0].finish_reason == "stop"
    response = gatewright.response_of(final)
    assert response is not None
    assert response.request_id == stream.response.request_id


def test_final_documents_of_responses_and_native_streams(client: Client) -> None:
    responses = client.responses.create(model="model-sol", input="Reply with exactly: hi there", stream=True)
    assert responses.get_final_response().output_text == "hi there"
    native = client.native.stream_generate_content(
        "model-luna", contents=[{"parts": [{"text": "Reply with exactly: hi there"}]}]
    )
    candidates = native.get_final_response().candidates
    assert candidates is not None
    assert candidates[0].content is not None
    assert "".join(part.text or "" for part in candidates[0].content.parts) == "hi there"


def test_the_final_document_includes_earlier_events_and_can_be_requested_again(serve: Serve) -> None:
    stream = open_stream(serve(sending(chunk("one"), chunk(" two"), END)))
    assert next(stream).choices[0].delta.content == "one"
    final = stream.get_final_completion()
    assert final.choices[0].message.content == "one two"
    assert stream.get_final_completion() is final
    with pytest.raises(gatewright.ConfigurationError, match="read as the whole document"):
        list(stream)


@pytest.mark.parametrize("way", ["events", "text", "with"])
def test_the_final_document_is_available_after_reading_the_stream(serve: Serve, way: str) -> None:
    stream = open_stream(serve(sending(chunk("one"), chunk(" two"), END)))
    if way == "with":
        with stream:
            assert len(list(stream)) == 3
    elif way == "events":
        for event in stream:
            assert event.object == "chat.completion.chunk"
    else:
        assert "".join(stream.text()) == "one two"
    assert stream.get_final_completion().choices[0].message.content == "one two"


async def test_closing_within_a_loop_over_text_discards_what_was_read(serve: Serve) -> None:
    parts = chunk("one") + chunk("two") + chunk("three")
    url = serve(lambda connection: hang_after(connection, parts))
    stream, seen = open_stream(url), []
    for piece in stream.text():
        seen.append(piece)
        stream.close()
    async with AsyncClient(url, "key", max_retries=0) as client:
        opened = await client.chat.completions.create(model="m", messages=[], stream=True)
        async for piece in opened.text():
            seen.append(piece)
            await opened.close()
    assert seen == ["one", "one"]


def test_closing_from_another_thread_is_an_error_for_the_text(serve: Serve) -> None:
    stream = open_stream(serve(lambda connection: hang_after(connection, chunk("one"))))
    begun = threading.Event()

    def read() -> None:
        for _ in stream.text():
            begun.set()

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        assert begun.wait(10)
        stream.close()
        with pytest.raises(gatewright.ConfigurationError, match="another thread or task has closed it"):
            reading.result(10)


@pytest.mark.parametrize("is_busy", [False, True], ids=["waiting", "busy"])
async def test_closing_from_another_task_is_an_error_for_the_text(serve: Serve, is_busy: bool) -> None:
    stream = await open_async(serve(lambda connection: hang_after(connection, chunk("one"))))
    begun, closed = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        async for _ in stream.text():
            begun.set()
            if is_busy:
                await closed.wait()

    reading = asyncio.create_task(read())
    await begun.wait()
    await stream.close()
    closed.set()
    with pytest.raises(gatewright.ConfigurationError, match="another thread or task has closed it"):
        await reading


def test_closing_a_stream_of_messages_from_another_thread_is_an_error_for_its_text(serve: Serve) -> None:
    start = {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one"}}
    events = "".join(f"data: {json.dumps(event)}\n\n" for event in (start, block, text)).encode()
    base_url = serve(lambda connection: hang_after(connection, events))
    begun = threading.Event()
    with (
        Client(base_url, "key", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[]) as stream,
        ThreadPoolExecutor(1) as pool,
    ):
        reading = pool.submit(lambda: [begun.set() for _ in stream.text_stream])
        assert begun.wait(10)
        stream.close()
        with pytest.raises(gatewright.ConfigurationError, match="another thread or task has closed it"):
            reading.result(10)


def test_an_abandoned_stream_has_no_final_document(serve: Serve) -> None:
    stream = open_stream(serve(lambda connection: hang_after(connection, chunk("one"))))
    for _ in stream:
        break
    with pytest.raises(gatewright.ConfigurationError, match="closed before it was complete"):
        stream.get_final_completion()


def hang_after(connection: Connection, *parts: bytes) -> None:
    sending(*parts)(connection)
    connection.wait_until_closed(10)


def test_closing_from_another_thread_ends_the_wait_for_the_document(serve: Serve) -> None:
    stream = open_stream(serve(lambda connection: hang_after(connection, chunk("one"))))
    threading.Timer(0.2, stream.close).start()
    started = time.monotonic()
    with pytest.raises(gatewright.ConfigurationError, match="closed"):
        stream.get_final_completion()
    assert time.monotonic() - started < 2


async def test_async_final_documents(gateway: Gateway, serve: Serve) -> None:
    async with AsyncClient(gateway.base_url, gateway.key) as client:
        stream = await client.chat.completions.create(model="model-sol", messages=QUESTION, stream=True)
        assert (await stream.get_final_completion()).choices[0].message.content == "one two three"
        responses = await client.responses.create(
            model="model-sol", input="Reply with exactly: hi there", stream=True
        )
        assert (await responses.get_final_response()).output_text == "hi there"
    stream = await open_async(serve(sending(chunk("one"), chunk(" two"), END)))
    assert [piece async for piece in stream.text()] == ["one", " two"]
    final = await stream.get_final_completion()
    assert final.choices[0].message.content == "one two"
    assert await stream.get_final_completion() is final


async def test_a_timed_out_wait_for_the_document_can_be_resumed(serve: Serve) -> None:
    more = threading.Event()

    def answer(connection: Connection) -> None:
        sending(chunk("one"))(connection)
        assert more.wait(5)
        connection.send(chunk(" two") + END)

    stream = await open_async(serve(answer))
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(stream.get_final_completion(), 0.2)
    more.set()
    assert (await stream.get_final_completion()).choices[0].message.content == "one two"


# Raw events and text.

FRAMES = (
    b": hello\n: again\nretry: 2500\n\n",
    b"event: ping\nid: 7\ndata:\n\n",
    chunk("one"),
    b": PROCESSING\n\n",
    END,
)


def check_frames(frames: list[gatewright.RawEvent]) -> None:
    comments = [comment for frame in frames for comment in frame.comments]
    assert [comment.strip() for comment in comments] == ["hello", "again", "PROCESSING"]
    assert [frame.retry for frame in frames if frame.retry is not None] == [2.5]
    ping = next(frame for frame in frames if frame.event == "ping")
    assert ping.id == "7"
    assert frames[-1].data == "[DONE]"
    assert '"content":"one"' in next(frame.data or "" for frame in frames if "one" in (frame.data or ""))
    assert "[DONE]" in repr(frames[-1])


def test_raw_events_return_every_frame(serve: Serve) -> None:
    check_frames(list(open_stream(serve(sending(*FRAMES))).raw_events()))


async def test_raw_events_async(serve: Serve) -> None:
    stream = await open_async(serve(sending(*FRAMES)))
    check_frames([frame async for frame in stream.raw_events()])


def test_raw_events_yield_an_error_frame_and_then_raise(serve: Serve) -> None:
    stream = open_stream(serve(sending(chunk("one"), b'data: {"error":{"message":"overloaded"}}\n\n')))
    seen: list[str | None] = []
    with pytest.raises(gatewright.StreamError, match="overloaded"):
        seen.extend(noted.data for noted in noting(stream.raw_events(), seen))
    assert seen[-1] == '{"error":{"message":"overloaded"}}'


def noting(frames: Iterator[gatewright.RawEvent], seen: list[str | None]) -> Iterator[gatewright.RawEvent]:
    """Records each event's data before the stream continues, so that it is known when the stream raises."""
    for frame in frames:
        seen.append(frame.data)
    yield from ()


def test_text_of_each_protocol(client: Client) -> None:
    chat = client.chat.completions.create(model="model-sol", messages=QUESTION, stream=True)
    assert "".join(chat.text()) == "one two three"
    responses = client.responses.create(model="model-sol", input="Reply with exactly: hi there", stream=True)
    assert "".join(responses.text()) == "hi there"
    native = client.native.stream_generate_content(
        "model-luna", contents=[{"parts": [{"text": "Reply with exactly: hi there"}]}]
    )
    assert "".join(native.text()) == "hi there"


def test_the_first_read_chooses_the_level(serve: Serve) -> None:
    stream = open_stream(serve(lambda connection: hang_after(connection, chunk("one"))))
    assert next(stream).choices[0].delta.content == "one"
    pieces = stream.text()
    with pytest.raises(
        gatewright.ConfigurationError, match=r"being read by events\(\), no longer by text\(\)"
    ):
        next(pieces)


def whole_stream(serve: Serve) -> gatewright.ChatCompletionStream:
    return open_stream(serve(sending(chunk("one"), chunk(" two"), END)))


READS: dict[str, Callable[[gatewright.ChatCompletionStream], object]] = {
    "events": list,
    "raw_events": lambda stream: list(stream.raw_events()),
    "text": lambda stream: list(stream.text()),
}


@pytest.mark.parametrize("first", READS)
@pytest.mark.parametrize("second", READS)
def test_a_second_loop_raises_instead_of_looking_complete(serve: Serve, first: str, second: str) -> None:
    stream = whole_stream(serve)
    assert READS[first](stream)
    with pytest.raises(gatewright.ConfigurationError, match="it has been read to its end"):
        READS[second](stream)
    assert stream.get_final_completion().choices[0].message.content == "one two"


@pytest.mark.parametrize("read", READS)
def test_a_loop_after_a_failure_raises_instead_of_looking_complete(serve: Serve, read: str) -> None:
    stream = open_stream(serve(sending(chunk("one"))))
    with pytest.raises(gatewright.StreamTruncatedError):
        READS[read](stream)
    with pytest.raises(gatewright.ConfigurationError, match="ended with an error"):
        READS[read](stream)


def test_the_document_beside_a_loop_ends_the_loop_with_an_error(serve: Serve) -> None:
    stream = whole_stream(serve)
    loop = iter(stream)
    next(loop)
    assert stream.get_final_completion().choices[0].message.content == "one two"
    with pytest.raises(gatewright.ConfigurationError, match="read as the whole document"):
        next(loop)


def test_a_loop_left_within_another_ends_the_outer_one_with_an_error(serve: Serve) -> None:
    stream = whole_stream(serve)
    outer = iter(stream)
    next(outer)
    for _ in stream:
        break
    with pytest.raises(gatewright.ConfigurationError, match="left early"):
        next(outer)


def test_another_level_is_refused_also_when_everything_has_arrived(serve: Serve) -> None:
    stream = whole_stream(serve)
    next(stream)
    time.sleep(0.2)
    with pytest.raises(gatewright.ConfigurationError, match="no longer by text"):
        list(stream.text())


def test_a_stream_without_text_has_none(serve: Serve) -> None:
    assert list(open_stream(serve(sending(END))).text()) == []


FAILED_ANSWER = (
    b'event: response.created\ndata: {"type":"response.created","response":{"id":"r","object":"response",'
    b'"status":"in_progress","output":[]},"sequence_number":0}\n\n'
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"i",'
    b'"output_index":0,"content_index":0,"delta":"one","sequence_number":1}\n\n'
    b'event: response.failed\ndata: {"type":"response.failed","response":{"id":"r","object":"response",'
    b'"status":"failed","output":[],"error":{"code":"server_error","message":"out of luck"}},'
    b'"sequence_number":2}\n\n'
)


def test_the_text_of_a_failed_answer_ends_with_its_error(serve: Serve) -> None:
    with Client(serve(sending(FAILED_ANSWER)), "key", max_retries=0) as client:
        pieces = client.responses.create(model="m", input="x", stream=True).text()
        assert next(pieces) == "one"
        with pytest.raises(gatewright.StreamError, match="out of luck") as caught:
            next(pieces)
    assert caught.value.code == "server_error"
    assert caught.value.partial.status == "failed"


async def test_async_streams_never_look_complete_when_they_are_not(serve: Serve) -> None:
    def url() -> str:
        return serve(sending(chunk("one"), chunk(" two"), END))

    stream = await open_async(url())
    assert [piece async for piece in stream.text()] == ["one", " two"]
    with pytest.raises(gatewright.ConfigurationError, match="read to its end"):
        [event async for event in stream]
    beside = await open_async(url())
    loop = aiter(beside)
    await anext(loop)
    await beside.get_final_completion()
    with pytest.raises(gatewright.ConfigurationError, match="read as the whole document"):
        await anext(loop)
    async with AsyncClient(serve(sending(FAILED_ANSWER)), "key", max_retries=0) as client:
        failed = await client.responses.create(model="m", input="x", stream=True)
        with pytest.raises(gatewright.StreamError, match="out of luck"):
            [piece async for piece in failed.text()]


@pytest.mark.parametrize("level", ["raw_events", "text"])
def test_leaving_any_level_closes_the_connection(serve: Serve, level: str) -> None:
    closed = threading.Event()

    def answer(connection: Connection) -> None:
        sending(chunk("one"))(connection)
        if connection.wait_until_closed(10):
            closed.set()

    stream = open_stream(serve(answer))
    for _ in getattr(stream, level)():
        break
    assert closed.wait(2)


# Errors.


def check_partial(error: gatewright.APIError) -> None:
    assert isinstance(error, gatewright.StreamTruncatedError)
    assert error.partial.object == "chat.completion"
    assert error.partial.choices[0].message.content == "one two"
    assert error.received is not None
    assert error.received.events == 2
    assert error.received.bytes == len(chunk("one") + chunk(" two"))
    assert error.response is not None
    assert error.response.status_code == 200
    assert error.response.headers["x-request-id"] == error.request_id == "req_stream"
    back = pickle.loads(pickle.dumps(error))
    assert vars(back) == vars(error)
    assert back.partial.choices[0].message.content == "one two"
    assert back.received.events == 2
    assert back.response.headers == error.response.headers


@pytest.mark.parametrize("level", ["events", "raw_events", "text", "final"])
def test_an_error_carries_the_received_data_at_every_level(serve: Serve, level: str) -> None:
    stream = open_stream(serve(sending(chunk("one"), chunk(" two"))))
    read: dict[str, Callable[[], Any]] = {
        "events": lambda: list(stream),
        "raw_events": lambda: list(stream.raw_events()),
        "text": lambda: list(stream.text()),
        "final": stream.get_final_completion,
    }
    with pytest.raises(gatewright.APIError) as caught:
        read[level]()
    check_partial(caught.value)


async def test_an_async_error_carries_the_received_data(serve: Serve) -> None:
    stream = await open_async(serve(sending(chunk("one"), chunk(" two"))))
    with pytest.raises(gatewright.APIError) as caught:
        [event async for event in stream]
    check_partial(caught.value)
    with pytest.raises(gatewright.StreamTruncatedError) as again:
        await stream.get_final_completion()
    check_partial(again.value)


def test_errors_before_any_event_have_no_partial_data(serve: Serve) -> None:
    with pytest.raises(gatewright.StreamTruncatedError) as caught:
        list(open_stream(serve(sending(b": nothing\n\n"))))
    assert caught.value.partial is None
    assert caught.value.received is not None
    assert caught.value.received.events == 0
    with pytest.raises(gatewright.APIConnectionError) as refused:
        open_stream("http://127.0.0.1:9")
    assert refused.value.partial is None
    assert refused.value.received is None
    assert refused.value.response is None


def test_a_pickled_error_retains_its_cause() -> None:
    with pytest.raises(gatewright.APIConnectionError) as caught:
        Client("http://127.0.0.1:9", "key", max_retries=0).models.list()
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back.__cause__) == str(caught.value.__cause__)
    assert type(back.__cause__) is type(caught.value.__cause__)
