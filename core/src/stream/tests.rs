//! Properties of streams that hold for any bytes and any packet boundaries, tested on bodies in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::reading::{MAX_PREFIX_BYTES, MAX_STRAY_LOOKS};
use super::shape::{self, RepairLevel};
use super::{Accumulator, Bounds, GuardedBody, IdleTimeout, MAX_PACKETS_A_TURN, Opened, RawStream};
use crate::api::generated::shapes::{chunk_shape, whole_shape};
use crate::api::operation::Operation;
use crate::api::operations::{
    CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, STREAM_GENERATE_CONTENT,
};
use crate::api::shape::Shape;
use crate::api::types;
use crate::transport::response::Head;
use crate::transport::route::Body;
use crate::wire::error::{Error, ErrorKind};

const OPERATIONS: [&Operation; 4] =
    [&CREATE_CHAT_COMPLETION, &CREATE_RESPONSE, &STREAM_GENERATE_CONTENT, &CREATE_MESSAGE];

/// A stream of the given packets.
fn stream(operation: &'static Operation, packets: &[&[u8]]) -> RawStream {
    let packets: Vec<_> = packets.iter().map(|packet| Ok(Bytes::copy_from_slice(packet))).collect();
    stream_of(operation, Body::Decoded(Box::pin(futures_util::stream::iter(packets))))
}

fn stream_of(operation: &'static Operation, body: Body) -> RawStream {
    let head = Head {
        status: 200,
        headers: HeaderMap::new(),
        attempts: 1,
        elapsed: Duration::ZERO,
        secrets: crate::transport::secret::Secrets::default(),
    };
    let silence = Duration::from_mins(1);
    let bounds = Bounds {
        silence: IdleTimeout { limit: silence, option: "idle_timeout" },
        event_idle: silence,
        max_body_bytes: 1 << 20,
    };
    RawStream::new(Opened { operation, head, body: GuardedBody::free(body), bounds })
}

/// What a level delivers, and how the stream ends.
type ReadResult<T> = (Vec<T>, Option<(ErrorKind, String, Option<Bytes>, Option<u64>)>);

fn end(error: &Error) -> (ErrorKind, String, Option<Bytes>, Option<u64>) {
    let events = error.received().map(|received| received.events);
    (error.kind(), error.message().to_owned(), error.partial().cloned(), events)
}

async fn read<T>(
    mut stream: RawStream,
    mut next: impl AsyncFnMut(&mut RawStream) -> Result<Option<Vec<T>>, Error>,
) -> ReadResult<T> {
    let mut all = Vec::new();
    loop {
        match next(&mut stream).await {
            Ok(Some(batch)) => all.extend(batch),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(end(&error))),
        }
    }
}

/// Everything that a body yields, at all levels.
fn all_of(operation: &'static Operation, packets: &[&[u8]]) -> impl PartialEq + std::fmt::Debug + use<> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let new = || stream(operation, packets);
        let whole = new().finish().await.map(|answer| answer.body).map_err(|error| end(&error));
        (
            read(new(), RawStream::next_batch).await,
            read(new(), RawStream::next_frames).await,
            read(new(), RawStream::next_text).await,
            whole,
        )
    })
}

fn cut<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    bounds.extend([0, bytes.len()]);
    bounds.sort_unstable();
    bounds.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Bodies made of typical pieces of streams, in any order.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é🙂\"}}]}\n\n"),
        4 => Just("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\n\"}}]}\n\n"),
        4 => Just("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n"),
        2 => Just("data: {\"id\":\"c\",\"choices\":[{\"index\":1,\"delta\":{\"content\":\"b\"}}]}\n\n"),
        2 => Just("data: {\"choices\":[{\"delta\":{\"content\":[\"a\"],\"tool_calls\":[{\"id\":\"t\"}]}}]}\r\n\r\n"),
        2 => Just("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"),
        3 => Just("event: response.output_text.delta\ndata: {\"delta\":\"a\\ud800\"}\n\n"),
        1 => Just("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\"}}\n\n"),
        3 => Just("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"b\"}]}}]}\n\n"),
        1 => Just("event: message_start\ndata: {\"message\":{\"id\":\"m\"}}\n\n"),
        3 => Just("event: content_block_delta\ndata: {\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"é\"}}\n\n"),
        2 => Just("data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}}\n\n"),
        1 => Just("data: {\"type\":\"message_stop\"}\n\n"),
        1 => Just("data: {\"x\":NaN}\n\n"),
        1 => Just("data: {\"error\":{\"message\":\"m\"}}\n\n"),
        1 => Just("data: {rubbish}\n\n"),
        1 => Just("data: [DONE]\n\n"),
        1 => Just("data: null\n\n"),
        1 => Just(": comment\n\n"),
        1 => Just("retry: 5\nid: 7\n\n"),
        1 => Just("{\"error\":\"bare\"}\n"),
        1 => Just("{\"choices\":[]}"),
        1 => Just("<html>"),
        1 => Just("\u{FEFF}"),
        1 => Just("data: {\"choi"),
        1 => Just("\r"),
        1 => Just("\n"),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes())
}

#[tokio::test]
async fn leading_white_space_is_skipped_up_to_a_limit() {
    let event = b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let blanks = |count: usize| vec![b'\n'; count];
    for blank in [b"\n", b"\r", b" "] {
        // A line of blanks belongs to the first line, which is then not a field; empty lines belong to nothing.
        let prefix = blank.repeat(MAX_PREFIX_BYTES);
        let packets: Vec<&[u8]> = prefix.chunks(1000).chain([&event[..]]).collect();
        let (events, end) = read(stream(&CREATE_CHAT_COMPLETION, &packets), RawStream::next_batch).await;
        assert_eq!((events.len(), end.is_none()), if blank == b" " { (0, false) } else { (1, true) });
    }
    for size in [1, 7, 4096, 4 << 20] {
        let prefix = blanks(size.max(4 * MAX_PREFIX_BYTES));
        let mut stream = stream(&CREATE_CHAT_COMPLETION, &prefix.chunks(size).collect::<Vec<_>>());
        let error = stream.next_batch().await.expect_err("over the limit");
        assert_eq!(error.kind(), ErrorKind::Decode);
        let read = usize::try_from(stream.received().bytes).expect("few");
        assert!(read <= MAX_PREFIX_BYTES + size, "{read} bytes were read");
    }
}

/// Streams of similar chunks with an odd one among them, each with its end.
fn alike() -> [(&'static Operation, Vec<String>); 4] {
    let texts = ["", "a", "b\\n", "\\\"", "c", "é", "\\ud800", "d"];
    let each = |chunk: fn(usize, &str) -> String| {
        texts.iter().enumerate().map(|(number, text)| chunk(number, text)).collect::<Vec<_>>()
    };
    let chat = each(|number, text| {
        format!(
            r#"{{"id":"c","choices":[{{"index":{},"delta":{{"content":"{text}"}}}}],"obfuscation":"{number}x"}}"#,
            usize::from(number == 4)
        )
    });
    let responses = each(|number, text| {
        format!(
            r#"{{"type":"response.output_text.delta","sequence_number":{},"output_index":0,"delta":"{text}","obfuscation":"{text}"}}"#,
            number + 7
        )
    });
    let native = each(|number, text| {
        format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}},"index":0}}],"usageMetadata":{{"totalTokenCount":{}}}}}"#,
            number * number
        )
    });
    let messages = each(|number, text| {
        format!(
            r#"{{"type":"content_block_delta","index":{},"delta":{{"type":"text_delta","text":"{text}"}}}}"#,
            usize::from(number == 4)
        )
    });
    let ended = |mut chunks: Vec<String>, end: &str| {
        chunks.push(end.to_owned());
        chunks
    };
    [
        (&CREATE_CHAT_COMPLETION, ended(chat, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#)),
        (
            &CREATE_RESPONSE,
            ended(responses, r#"{"type":"response.incomplete","response":{"id":"r","output":[]}}"#),
        ),
        (&STREAM_GENERATE_CONTENT, ended(native, r#"{"candidates":[{"finishReason":"STOP"}]}"#)),
        (&CREATE_MESSAGE, ended(messages, r#"{"type":"message_stop"}"#)),
    ]
}

#[tokio::test]
async fn similar_chunks_accumulate_like_individual_chunks() {
    for (operation, chunks) in alike() {
        let events: Vec<_> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
        let body = events.concat();
        let whole = stream(operation, &[body.as_bytes()]).finish().await.expect("whole").body;
        let mut one_by_one = Accumulator::new(operation);
        for chunk in &chunks {
            one_by_one.push_json(chunk).expect("JSON");
        }
        let expected = one_by_one.document();
        assert_eq!(serde_json::from_slice::<Value>(&whole).ok(), expected, "{}", operation.id);
        let (texts, end) = read(stream(operation, &[body.as_bytes()]), RawStream::next_text).await;
        assert!(end.is_none());
        let mut texts_one_by_one = Vec::new();
        for event in &events {
            texts_one_by_one
                .extend(read(stream(operation, &[event.as_bytes()]), RawStream::next_text).await.0);
        }
        assert_eq!(texts, texts_one_by_one, "{}", operation.id);
    }
}

#[tokio::test(start_paused = true)]
async fn always_ready_body_yields_to_other_tasks_and_timers() {
    let event = Bytes::from_static(b"data: {\"choices\":[]}\n\n");
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    let packets = std::iter::repeat_with(move || {
        count.fetch_add(1, Ordering::SeqCst);
        Ok(Bytes::from_static(b": alive\n\n\n\n"))
    });
    let packets = futures_util::stream::iter(std::iter::once(Ok(event)).chain(packets));
    let body = Body::Decoded(Box::pin(packets));
    let mut stream = stream_of(&CREATE_CHAT_COMPLETION, body);
    assert_eq!(stream.next_batch().await.expect("an event").expect("one").len(), 1);
    let before = taken.load(Ordering::SeqCst);
    assert!(stream.try_next_batch().is_none(), "nothing is ready");
    assert!(taken.load(Ordering::SeqCst) - before <= MAX_PACKETS_A_TURN);
    // Other tasks run meanwhile, and the clock advances.
    let silence = tokio::join!(stream.next_batch(), tokio::time::advance(Duration::from_mins(2))).0;
    assert_eq!(silence.expect_err("no event for too long").kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn stray_json_lines_are_examined_a_bounded_number_of_times() {
    let body = "{\"error\"}\n".repeat(5000);
    let mut stream = stream(&CREATE_CHAT_COMPLETION, &[b"data: {\"choices\":[]}\n\n", body.as_bytes()]);
    assert!(stream.next_batch().await.is_ok());
    assert!(stream.next_batch().await.is_err());
    assert_eq!(stream.reader.stray_looks, MAX_STRAY_LOOKS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn packet_boundaries_do_not_change_results_at_any_level(
        bytes in body(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        operation in prop::sample::select(&OPERATIONS[..]),
    ) {
        let whole = all_of(operation, &[&bytes]);
        prop_assert_eq!(&whole, &all_of(operation, &cut(&bytes, &cuts)));
        prop_assert_eq!(&whole, &all_of(operation, &bytes.chunks(1).collect::<Vec<_>>()));
    }

    #[test]
    fn whole_document_equals_accumulated_events(
        bytes in body(),
        operation in prop::sample::select(&OPERATIONS[..]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let _entered = runtime.enter();
        let (events, end) = runtime.block_on(read(stream(operation, &[&bytes]), RawStream::next_batch));
        let (texts, _) = runtime.block_on(read(stream(operation, &[&bytes]), RawStream::next_text));
        let mut accumulator = Accumulator::new(operation);
        let mut text = String::new();
        for event in &events {
            accumulator.push_json(&event.data).expect("JSON");
            text.extend(super::text::text(operation.protocol, &event.data).expect("JSON"));
        }
        prop_assert_eq!(texts.concat(), text);
        let whole = runtime.block_on(stream(operation, &[&bytes]).finish());
        let document = match (whole, end) {
            (Ok(answer), None) => Some(answer.body),
            (Err(_), Some((.., partial, _))) => partial,
            (whole, end) => panic!("{whole:?} is not {end:?}"),
        };
        let document: Option<Value> = document.map(|body| serde_json::from_slice(&body).expect("JSON"));
        prop_assert_eq!(document, accumulator.document());
    }

    #[test]
    fn arbitrary_bytes_end_the_stream_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        operation in prop::sample::select(&OPERATIONS[..]),
    ) {
        let _ = all_of(operation, &[&bytes]);
    }

    #[test]
    fn text_is_reassembled_however_it_is_split(
        text in "[a-zé🙂\"\\\\\n]{0,40}",
        cuts in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let characters: Vec<char> = text.chars().collect();
        let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut % (characters.len() + 1)).collect();
        bounds.extend([0, characters.len()]);
        bounds.sort_unstable();
        let pieces: Vec<String> =
            bounds.windows(2).map(|pair| characters[pair[0]..pair[1]].iter().collect()).collect();
        for (operation, chunk, pointer) in texts() {
            let mut accumulator = Accumulator::new(operation);
            for piece in &pieces {
                accumulator.push_json(&chunk(piece).to_string()).expect("JSON");
            }
            let document = accumulator.document().expect("a piece at least");
            prop_assert_eq!(document.pointer(pointer), Some(&Value::from(text.as_str())), "{}", pointer);
        }
    }

    #[test]
    fn arbitrary_json_chunks_accumulate_into_an_object(chunks in prop::collection::vec(chunk(), 1..6)) {
        for operation in OPERATIONS {
            let mut accumulator = Accumulator::new(operation);
            for chunk in &chunks {
                accumulator.push(chunk.clone());
            }
            prop_assert!(accumulator.document().is_some_and(|document| document.is_object()));
        }
    }

    #[test]
    fn repair_is_idempotent_and_leaves_valid_chunks_unchanged(chunk in chunk()) {
        for operation in OPERATIONS {
            let shape = chunk_shape(operation);
            let structure = shape::mend(shape, chunk.clone(), RepairLevel::Structure);
            // Repairing a repaired value changes nothing.
            prop_assert_eq!(&structure, &shape::mend(shape, structure.clone(), RepairLevel::Structure));
            if shape::check(shape, &chunk.to_string()).is_ok() {
                prop_assert_eq!(&structure, &chunk);
            }
        }
    }
}

/// A chunk with a piece of text.
type Chunk = fn(&str) -> Value;

/// Where text can arrive in pieces: the operation, a chunk with a piece, and the place of the whole text.
fn texts() -> [(&'static Operation, Chunk, &'static str); 7] {
    [
        (
            &CREATE_CHAT_COMPLETION,
            |piece| json!({"choices": [{"index": 0, "delta": {"content": piece}}]}),
            "/choices/0/message/content",
        ),
        (
            &CREATE_CHAT_COMPLETION,
            |piece| json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}}]}),
            "/choices/0/message/tool_calls/0/function/arguments",
        ),
        (
            &CREATE_RESPONSE,
            |piece| json!({"type": "response.output_text.delta", "output_index": 0, "delta": piece}),
            "/output/0/content/0/text",
        ),
        (
            &CREATE_RESPONSE,
            |piece| json!({"type": "response.function_call_arguments.delta", "delta": piece}),
            "/output/0/arguments",
        ),
        (
            &STREAM_GENERATE_CONTENT,
            |piece| json!({"candidates": [{"content": {"parts": [{"text": piece}]}}]}),
            "/candidates/0/content/parts/0/text",
        ),
        (
            &CREATE_MESSAGE,
            |piece| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}),
            "/content/0/text",
        ),
        (
            &CREATE_MESSAGE,
            |piece| json!({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": piece}}),
            "/content/0/thinking",
        ),
    ]
}

/// Chunks with the members of all protocols and arbitrary values.
fn chunk() -> impl Strategy<Value = Value> {
    let names = [
        "id",
        "object",
        "created",
        "model",
        "choices",
        "index",
        "delta",
        "message",
        "content",
        "role",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "finish_reason",
        "usage",
        "type",
        "response",
        "output",
        "item",
        "item_id",
        "output_index",
        "content_index",
        "part",
        "text",
        "summary",
        "annotations",
        "error",
        "candidates",
        "parts",
        "thought",
        "usageMetadata",
        "promptTokenCount",
        "total_tokens",
        "metadata",
        "content_block",
        "partial_json",
        "input",
        "thinking",
        "citation",
        "stop_reason",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..4).prop_map(Value::from),
        any::<f32>().prop_filter("JSON has no other", |number| number.is_finite()).prop_map(Value::from),
        prop::sample::select(
            &[
                "",
                "a",
                "1",
                "1.5",
                "stop",
                "response.output_text.delta",
                "response.output_item.added",
                "response.content_part.added",
                "message_start",
                "content_block_start",
                "content_block_delta",
                "message_delta",
                "text_delta",
                "input_json_delta",
                "signature_delta",
                "citations_delta"
            ][..]
        )
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            3 => prop::collection::vec((prop::sample::select(names.to_vec()), inner), 0..7)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

/// A chunk built from the tables, in each protocol: the types must not require what the tables omit.
#[test]
fn repair_tables_satisfy_the_generated_types() {
    fn assert_reads<T: serde::de::DeserializeOwned>(shape: &'static Shape, value: Value) {
        let whole = shape::mend(shape, value, RepairLevel::Whole);
        if let Err(error) = serde_json::from_value::<T>(whole.clone()) {
            panic!("{error}: {whole}");
        }
    }

    let [chat, responses, native, messages] = OPERATIONS.map(chunk_shape);
    let call = json!({"function": {}});
    assert_reads::<types::ChatCompletionChunk>(
        chat,
        json!({"choices": [{"delta": {"tool_calls": [call]}}], "usage": {"total_tokens": 1}}),
    );
    assert_reads::<types::ResponseStreamEvent>(
        responses,
        json!({"response": {"output": [{"content": [{}]}], "tools": [{}], "error": {"code": "c"}, "usage": {"total_tokens": 1},
               "incomplete_details": {}, "text": {}, "reasoning": {}, "metadata": {"a": 1}}, "item": {"summary": [{}]}, "part": {}}),
    );
    let part =
        json!({"functionCall": {"args": {}}, "functionResponse": {"id": "i"}, "inlineData": {"data": ""}});
    assert_reads::<types::GenerateContentResponse>(
        native,
        json!({"candidates": [{"content": {"parts": [part, {}]}}, {"content": {}}], "usageMetadata": {}}),
    );
    assert_reads::<types::MessageStreamEvent>(
        messages,
        json!({"message": {"content": [{}]}, "content_block": {"cache_control": {}}, "delta": {}, "usage": {"output_tokens": 1},
               "error": {}}),
    );
    let [chat, responses, _, messages] = OPERATIONS.map(whole_shape);
    assert_reads::<types::ChatCompletion>(chat, json!({"choices": [{"message": {"tool_calls": [call]}}]}));
    assert_reads::<types::Response>(responses, json!({}));
    assert_reads::<types::Message>(messages, json!({"content": [{}], "usage": {"cache_creation": {}}}));
}
