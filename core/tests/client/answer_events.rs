//! Events that tell the answer so far.

use std::fmt::Debug;

use gatewright::types::{MessageRequest, ResponseRequest};
use gatewright::{ChatEvent, ChatEvents, Error, ErrorKind, ResponseEvents};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chat_request;
use crate::server::{Script, Server};
use crate::structured::{Town, chunk, end, response};
use crate::vectors;

/// An event as the vectors write it; none of a chunk.
pub(crate) fn json_of<T: Serialize + Debug>(event: &ChatEvent<'_, T>) -> Option<Value> {
    let mut json = match event {
        ChatEvent::Chunk(_) => return None,
        ChatEvent::ContentDelta { index, delta, snapshot, parsed } => {
            json!({"index": index, "delta": delta, "snapshot": snapshot, "parsed": parsed})
        }
        ChatEvent::ContentDone { index, content, parsed } => {
            json!({"index": index, "content": content, "parsed": parsed})
        }
        ChatEvent::RefusalDelta { index, delta, snapshot } => {
            json!({"index": index, "delta": delta, "snapshot": snapshot})
        }
        ChatEvent::RefusalDone { index, refusal } => json!({"index": index, "refusal": refusal}),
        ChatEvent::LogprobsContentDelta { index, content, snapshot } => {
            json!({"index": index, "content": content, "snapshot": snapshot})
        }
        ChatEvent::LogprobsContentDone { index, content } => json!({"index": index, "content": content}),
        ChatEvent::LogprobsRefusalDelta { index, refusal, snapshot } => {
            json!({"index": index, "refusal": refusal, "snapshot": snapshot})
        }
        ChatEvent::LogprobsRefusalDone { index, refusal } => json!({"index": index, "refusal": refusal}),
        ChatEvent::ToolArgumentsDelta { index, name, arguments_delta, arguments, parsed_arguments } => {
            json!({
                "index": index, "name": name, "arguments_delta": arguments_delta, "arguments": arguments,
                "parsed_arguments": parsed_arguments,
            })
        }
        ChatEvent::ToolArgumentsDone { index, name, arguments, parsed_arguments } => json!({
            "index": index, "name": name, "arguments": arguments, "parsed_arguments": parsed_arguments,
        }),
        other => panic!("the vectors know no {other:?}"),
    };
    json["type"] = event.type_name().into();
    Some(json)
}

#[derive(Deserialize)]
struct EventCase {
    name: String,
    /// Whether a value is requested.
    format: bool,
    chunks: Vec<Value>,
    events: Vec<Value>,
    error: Option<String>,
}

/// Reads all events; returns what they say, without chunks, how many chunks there were, and how they ended.
async fn read<T: Serialize + Debug>(events: &mut ChatEvents<T>) -> (Vec<Value>, usize, Result<(), Error>) {
    let (mut events_read, mut chunks) = (Vec::new(), 0);
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                chunks += usize::from(event.type_name() == "chunk");
                events_read.extend(json_of(&event));
            }
            Ok(None) => return (events_read, chunks, Ok(())),
            Err(error) => return (events_read, chunks, Err(error)),
        }
    }
}

async fn serving(chunks: &[Value]) -> Server {
    let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    let body = chunks.collect::<String>() + "data: [DONE]\n\n";
    Server::start([Script::events().packet(body).end()]).await
}

#[tokio::test]
async fn chat_events_are_those_of_the_vectors() {
    for case in vectors::read::<EventCase>("structured/events.json") {
        let server = serving(&case.chunks).await;
        let client = server.client();
        let (events_read, chunks, outcome) = if case.format {
            let stream = client.chat().completions().parse_stream::<Town>(&chat_request()).await.unwrap();
            let mut events = stream.events();
            let (events_read, chunks, outcome) = read(&mut events).await;
            if let Err(error) = &outcome {
                let again = events.try_next().await.unwrap_err();
                let last = events.finish().await.unwrap_err();
                assert_eq!((again.to_string(), last.to_string()), (error.to_string(), error.to_string()));
            }
            (events_read, chunks, outcome)
        } else {
            let mut events = client.chat().completions().stream(&chat_request()).await.unwrap().events();
            let read = read(&mut events).await;
            assert!(events.try_next().await.unwrap().is_none(), "{}", case.name);
            assert_eq!(events.finish().await.unwrap().choices.len(), 1, "{}", case.name);
            read
        };
        assert_eq!(chunks, case.chunks.len(), "{}", case.name);
        assert_eq!(events_read.len(), case.events.len(), "{}: {events_read:#?}", case.name);
        for (event, expected) in events_read.iter().zip(&case.events) {
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(event[name], *value, "{}: {name} of {event}", case.name);
            }
        }
        match (case.error, outcome) {
            (None, outcome) => outcome.unwrap(),
            (Some(expected), outcome) => {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StructuredOutput, "{}", case.name);
                assert!(
                    error.to_string().contains(&expected) && error.answer().is_some(),
                    "{}: {error}",
                    case.name
                );
            }
        }
    }
}

#[tokio::test]
async fn events_of_a_broken_stream_end_with_its_error_each_time_and_so_does_the_whole() {
    let server = Server::start([Script::events().packet(chunk("{\"name\": \"Os")).end()]).await;
    let client = server.client();
    let stream = client.chat().completions().parse_stream::<Town>(&chat_request()).await.unwrap();
    let mut events = stream.events();
    let (events_read, _, outcome) = read(&mut events).await;
    assert_eq!((events_read.len(), &events_read[0]["parsed"]), (1, &json!({"name": "Os"})));
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::StreamTruncated);
    assert_eq!(events.try_next().await.unwrap_err().kind(), ErrorKind::StreamTruncated);
    assert_eq!(events.finish().await.unwrap_err().kind(), ErrorKind::StreamTruncated);
}

#[tokio::test]
async fn whole_answer_may_come_in_place_of_its_events() {
    let body = chunk("one ") + &chunk("two") + &end("stop");
    let server = Server::start([Script::events().packet(body).end()]).await;
    let client = server.client();
    let mut events = client.chat().completions().stream(&chat_request()).await.unwrap().events();
    assert!(matches!(events.try_next().await.unwrap(), Some(ChatEvent::Chunk(_))));
    assert_eq!(events.raw().status(), 200);
    assert_eq!(events.finish().await.unwrap().text(), Some("one two"));
}

#[tokio::test]
async fn choices_have_texts_of_their_own() {
    let piece = |index: u32, text: &str, reason: Option<&str>| json!({"id": "c", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]});
    let chunks =
        [piece(0, "a", None), piece(1, "b", None), piece(0, "c", Some("stop")), piece(1, "d", Some("stop"))];
    let server = serving(&chunks).await;
    let client = server.client();
    let mut events = client.chat().completions().stream(&chat_request()).await.unwrap().events();
    let (events_read, _, _) = read(&mut events).await;
    let done = events_read.iter().filter(|event| event["type"] == "content.done");
    let done: Vec<_> = done.map(|event| (event["index"].clone(), event["content"].clone())).collect();
    assert_eq!(done, [(json!(0), json!("ac")), (json!(1), json!("bd"))]);
}

#[tokio::test]
async fn response_events_have_the_text_and_the_value_so_far() {
    let event = |event: Value| format!("data: {event}\n\n");
    let delta = |index: u32, text: &str| {
        event(json!({
            "type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text,
        }))
    };
    let text = r#"{"name": "Oslo", "population": 1, "districts": []}"#;
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let output = json!([{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}]);
    let last =
        json!({"type": "response.completed", "response": response("completed", &output, &Value::Null)});
    let body = delta(0, "Well: ") + &delta(1, &text[..12]) + &delta(1, &text[12..]) + &event(last);
    let server = Server::start([Script::events().packet(body).end()]).await;
    let client = server.client();
    let request = ResponseRequest::new("m", "Oslo?");
    let mut events = client.responses().parse_stream::<Town>(&request).await.unwrap().events();
    let mut states = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        states.push((event.type_.clone(), event.snapshot.map(str::to_owned), event.parsed.cloned()));
    }
    let kind = "response.output_text.delta".to_owned();
    let whole: Value = serde_json::from_str(text).unwrap();
    let expected = [
        (kind.clone(), Some("Well: ".to_owned()), None),
        (kind.clone(), Some(text[..12].to_owned()), Some(json!({"name": "Os"}))),
        (kind, Some(text.to_owned()), Some(whole)),
        ("response.completed".to_owned(), None, None),
    ];
    assert_eq!(states, expected);
    assert_eq!(events.finish().await.unwrap().value().unwrap().name, "Oslo");
}

#[derive(Deserialize)]
struct ResponseCase {
    name: String,
    /// Whether a value is requested.
    format: bool,
    stream: Vec<Value>,
    events: Vec<Value>,
}

/// All events as the vectors write them.
async fn response_events<T>(mut events: ResponseEvents<T>) -> Vec<Value> {
    let mut all = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        let mut json = serde_json::to_value(event.event).unwrap();
        json["snapshot"] = json!(event.snapshot);
        json["parsed"] = json!(event.parsed);
        all.push(json);
    }
    all
}

/// A stream of these events.
fn packets(events: &[Value]) -> String {
    events.iter().flat_map(|event| ["data: ".to_owned(), event.to_string(), "\n\n".to_owned()]).collect()
}

#[tokio::test]
async fn response_events_are_those_of_the_vectors() {
    for case in vectors::read::<ResponseCase>("structured/response_events.json") {
        let body = packets(&case.stream);
        let server = Server::start([Script::events().packet(body).end()]).await;
        let client = server.client();
        let request = ResponseRequest::new("m", "hi");
        let events = if case.format {
            response_events(client.responses().parse_stream::<Town>(&request).await.unwrap().events()).await
        } else {
            response_events(client.responses().stream(&request).await.unwrap().events()).await
        };
        assert_eq!(events.len(), case.events.len(), "{}: {events:#?}", case.name);
        for (event, expected) in events.iter().zip(&case.events) {
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(event[name], *value, "{}: {name} of {event}", case.name);
            }
        }
    }
}

#[derive(Deserialize)]
struct MessageCase {
    name: String,
    stream: Vec<Value>,
    events: Vec<Value>,
}

#[tokio::test]
async fn message_events_have_the_texts_of_the_vectors() {
    let is_piece = |event: &Value| event["type"] == "content_block_delta";
    // Events of the server may have such types, too.
    let is_text = |event: &&Value| {
        let is_named = ["text", "thinking", "input_json"].iter().any(|kind| event["type"] == *kind);
        is_named && event.get("snapshot").is_some()
    };
    let cases = vectors::read::<MessageCase>("structured/message_events.json");
    for case in cases.iter().filter(|case| case.stream.iter().any(is_piece)) {
        let body = packets(&case.stream);
        let server = Server::start([Script::events().packet(body).end()]).await;
        let request = MessageRequest::new("m", 1, Vec::new());
        let mut events = server.client().messages().stream(&request).await.unwrap().events();
        let (mut snapshots, mut count) = (Vec::new(), 0);
        while let Some(event) = events.try_next().await.unwrap() {
            count += 1;
            let is_input = event.delta.as_ref().is_some_and(|delta| delta.partial_json.is_some());
            snapshots.extend(event.snapshot.map(|snapshot| {
                if is_input { event.input.cloned().unwrap_or_else(|| json!({})) } else { json!(snapshot) }
            }));
        }
        assert_eq!(count, case.stream.len(), "{}", case.name);
        let expected = case.events.iter().filter(is_text).map(|event| event["snapshot"].clone());
        assert_eq!(snapshots, expected.collect::<Vec<_>>(), "{}", case.name);
        let whole = events.finish().await.unwrap();
        assert_eq!(whole.id, "m1", "{}", case.name);
    }
}
