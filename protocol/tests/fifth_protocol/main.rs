//! A protocol is added by its folder alone: that of `lines` is outside the crate, and every other protocol is translated to it
//! and from it, although none of them knows it.

mod lines;
mod recipe;

use gatewright_protocol::conversation::{Conversation, Delta, Protocol, Usage};
use gatewright_protocol::grammar::transcript;
use gatewright_protocol::inspect::{EventAction, StreamInspector, StreamProgress};
use gatewright_protocol::judge::judge;
use gatewright_protocol::{
    Action, AnswerAdapter, Capabilities, Defaults, EncodedRequest, Marking, ResponseContext, StreamError,
    StreamIn as _, Thinking, mark,
};
use serde_json::{Value, json};

use self::lines::LINES;

const DEFAULTS: Defaults = Defaults {
    max_tokens: 4096,
    thinking: Thinking::Budget,
    functions_only: false,
    capabilities: Capabilities::MOST,
};

/// What a client sends: instructions, a question, an answer, a question, and something that `lines` can't express.
fn request_of(client: Protocol) -> Value {
    match client.name() {
        "chat" => json!({ "model": "m", "max_tokens": 20, "temperature": 0.5, "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "Hello?" },
            { "role": "assistant", "content": "Hello." },
            { "role": "user", "content": "And now?" },
        ]}),
        "responses" => {
            json!({ "model": "m", "max_output_tokens": 20, "temperature": 0.5, "instructions": "Be brief.",
            "input": [
                { "role": "user", "content": "Hello?" },
                { "role": "assistant", "content": "Hello." },
                { "role": "user", "content": "And now?" },
            ]})
        }
        "messages" => {
            json!({ "model": "m", "max_tokens": 20, "temperature": 0.5, "system": "Be brief.", "messages": [
                { "role": "user", "content": "Hello?" },
                { "role": "assistant", "content": "Hello." },
                { "role": "user", "content": "And now?" },
            ]})
        }
        "native" => json!({ "generationConfig": { "maxOutputTokens": 20, "temperature": 0.5 },
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "contents": [
            { "role": "user", "parts": [{ "text": "Hello?" }] },
            { "role": "model", "parts": [{ "text": "Hello." }] },
            { "role": "user", "parts": [{ "text": "And now?" }] },
        ]}),
        _ => own_request(),
    }
}

/// The same in the protocol itself.
fn own_request() -> Value {
    json!({ "model": "m", "longest": 20, "say": [
        { "by": "system", "text": "Be brief." },
        { "by": "user", "text": "Hello?" },
        { "by": "model", "text": "Hello." },
        { "by": "user", "text": "And now?" },
    ]})
}

fn conversation_of(client: Protocol) -> Conversation {
    client.request_in(request_of(client), "m", false).expect("a request")
}

fn context() -> ResponseContext {
    let request = json!({});
    ResponseContext {
        model: "mine".to_owned(),
        request,
        id: "id_1".to_owned(),
        created: 1,
        ..ResponseContext::default()
    }
}

/// The whole answer of a provider, as the gateway writes it for a client.
fn answered(conversation: &Conversation, from: Protocol, document: Value) -> Value {
    let to = conversation.source;
    let mut answer = from.answer_in(document).expect("an answer");
    AnswerAdapter::new(conversation, from, DEFAULTS).answer(&mut answer);
    mark(&mut answer, to);
    to.answer_out(answer, &context())
}

/// The stream of a provider, as the gateway writes it for a client. `events`: their data.
fn streamed(conversation: &Conversation, from: Protocol, events: &[String]) -> Vec<u8> {
    let to = conversation.source;
    let mut adapter = AnswerAdapter::new(conversation, from, DEFAULTS);
    let mut reader = Marking::new(from.stream_in(), from, to);
    let (mut writer, mut deltas, mut bytes) = (to.stream_out(context()), Vec::new(), Vec::new());
    let mut write = |deltas: &mut Vec<Delta>| {
        adapter.deltas(deltas);
        deltas.drain(..).for_each(|delta| writer.delta(delta, &mut bytes));
    };
    for event in events {
        reader.event(None, event, &mut deltas).expect("an event");
        write(&mut deltas);
    }
    bytes
}

#[test]
fn request_of_every_client_is_translated() {
    for client in Protocol::OF_CLIENTS {
        let EncodedRequest { body, dropped } = LINES.request_out(&conversation_of(client), DEFAULTS);
        assert_eq!(body, own_request(), "{client:?}");
        assert_eq!(judge(LINES, &body), []);
        let temperature = dropped.iter().filter(|place| place.ends_with("/temperature")).count();
        assert_eq!((dropped.len(), temperature), (1, 1), "{client:?}: {dropped:?}");
    }
    assert_eq!(LINES.path(Action::Answer { stream: false }, "m"), "/lines");
}

#[test]
fn whole_answer_reaches_every_client() {
    let document = json!({ "model": "theirs", "said": "Later.", "why": "cut", "tokens": [7, 2] });
    for client in Protocol::OF_CLIENTS {
        let answer = answered(&conversation_of(client), LINES, document.clone());
        let read = client.answer_in(answer).expect("an answer");
        let again = LINES.answer_out(read, &context());
        let own = json!({ "model": "mine", "said": "Later.", "why": "cut", "tokens": [7, 2] });
        assert_eq!(again, own, "{client:?}");
    }
}

#[test]
fn unknown_finish_reason_is_kept_for_clients() {
    let document = json!({ "model": "theirs", "said": "Later.", "why": "tired", "tokens": [7, 2] });
    let answer = answered(&conversation_of(Protocol::Chat), LINES, document);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["provider_extra"]["/why"], "tired");
}

#[test]
fn stream_reaches_every_client() {
    let events = [
        r#"{"model":"theirs","started":true}"#,
        r#"{"more":"La"}"#,
        r#"{"more":"ter."}"#,
        r#"{"why":"done","tokens":[7,2]}"#,
    ];
    let events = events.map(str::to_owned);
    for client in Protocol::OF_CLIENTS {
        let bytes = streamed(&conversation_of(client), LINES, &events);
        let read = transcript(client, &bytes);
        assert_eq!(read.faults, [], "{client:?}: {}", String::from_utf8_lossy(&bytes));
        assert_eq!((read.text.as_str(), read.failed), ("Later.", false), "{client:?}");
    }
}

#[test]
fn its_clients_reach_every_upstream() {
    let conversation = conversation_of(LINES);
    for upstream in Protocol::OF_UPSTREAMS {
        let EncodedRequest { body, dropped } = upstream.request_out(&conversation, DEFAULTS);
        assert_eq!(judge(upstream, &body), [], "{upstream:?}: {body}");
        assert!(dropped.is_empty(), "{upstream:?}: {dropped:?}");
    }
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
        "content": [{ "type": "text", "text": "Later." }], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": { "input_tokens": 7, "output_tokens": 2 } });
    let answer = answered(&conversation, Protocol::Messages, message);
    assert_eq!(answer, json!({ "model": "mine", "said": "Later.", "why": "done", "tokens": [7, 2] }));
    let chunk = |delta: Value, end: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        json!({ "id": "c", "object": "chat.completion.chunk", "model": "theirs", "choices": [choice] })
            .to_string()
    };
    let chunks = [
        chunk(json!({ "role": "assistant", "content": "La" }), Value::Null),
        chunk(json!({ "content": "ter." }), Value::Null),
        chunk(json!({}), json!("stop")),
        "[DONE]".to_owned(),
    ];
    let read = transcript(LINES, &streamed(&conversation, Protocol::Chat, &chunks));
    assert_eq!(read.faults, []);
    assert_eq!((read.text.as_str(), read.ends.as_slice()), ("Later.", &["done".to_owned()][..]));
}

#[test]
fn its_events_pass_through_with_the_clients_name_for_the_model() {
    let mut inspector = StreamInspector::new(LINES, "mine", false);
    let started = r#"{"model":"theirs","started":true}"#;
    let EventAction::Rename(at) = inspector.event(None, started) else { panic!("the model is another") };
    assert_eq!(&started[at], r#""theirs""#);
    assert!(matches!(inspector.event(None, r#"{"more":"Later."}"#), EventAction::Pass));
    assert!(matches!(inspector.event(None, r#"{"why":"done","tokens":[7,2]}"#), EventAction::Pass));
    let usage = Usage { input: Some(7), output: Some(2), ..Usage::default() };
    assert_eq!(
        (inspector.usage, inspector.pieces, inspector.progress),
        (Some(usage), 1, StreamProgress::Ended)
    );
}

#[test]
fn its_errors_are_read_and_written() {
    let failure = LINES.failure_in(400, br#"{"wrong":"say is empty"}"#);
    assert_eq!(failure.message, "say is empty");
    let inspector = StreamInspector::new(LINES, "mine", false);
    let event = LINES.error_event(&StreamError::of(&failure), &inspector, 0);
    assert_eq!(event, "data: {\"wrong\":\"say is empty\"}\n\n");
}
