//! Properties of every request: written for its own protocol it is unchanged, and for another one nothing is lost
//! silently.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::{DEFAULTS, PROTOCOLS, documents, streams, tries};
use crate::conversation::{Conversation, Protocol, ToolChoice};

/// Number of requests per protocol.
const REQUESTS: u32 = 100;

/// The protocols, with strategies for random requests.
fn sources() -> [(Protocol, &'static str, BoxedStrategy<Value>); 4] {
    [
        (Protocol::Responses, "responses", documents::responses()),
        (Protocol::Native, "native", documents::native()),
        (Protocol::Chat, "chat", documents::chat()),
        (Protocol::Messages, "messages", documents::messages()),
    ]
}

/// Runs a test with many requests of each protocol.
fn every_request(test: impl Fn(Protocol, &str, &Value, &Conversation) -> Result<(), TestCaseError>) {
    for (source, folder, requests) in sources() {
        let config =
            ProptestConfig { cases: tries(REQUESTS), failure_persistence: None, ..ProptestConfig::default() };
        let last = RefCell::new(Value::Null);
        // The same requests in every run: the fuzz target looks for others.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let result = TestRunner::new_with_rng(config, random).run(&requests, |request| {
            last.replace(request.clone());
            let conversation = source
                .request_in(request.clone(), "m", streams(&request))
                .map_err(|malformed| TestCaseError::fail(malformed.to_string()))?;
            test(source, folder, &request, &conversation)
        });
        if let Err(error) = result {
            panic!("{folder}: {error}\nof {:#}", last.borrow());
        }
    }
}

#[test]
fn any_request_round_trips_unchanged() {
    every_request(|source, _, request, conversation| {
        let back = source.request_out(conversation, DEFAULTS);
        prop_assert_eq!(&back.body, request);
        prop_assert!(back.dropped.is_empty(), "{:?}", back.dropped);
        Ok(())
    });
}

/// Found by the fuzz target.
#[test]
fn empty_and_invalid_members_round_trip_in_place() {
    let chat = json!({ "model": "m", "messages": [{ "role": "tool", "tool_call_id": "", "content": "x" }] });
    let function = json!({ "functionDeclarations": [{ "name": "f" }] });
    let native = json!({ "contents": [{ "parts": [{ "text": "x" }] }], "tools": ["a", {}, function, "b"] });
    let schema = json!({ "name": "a", "schema": { "type": "object" } });
    let no_schema = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }],
        "response_format": { "type": "json_object", "json_schema": schema } });
    let no_name = json!({ "model": "m", "input": "x",
        "text": { "format": { "type": "json_schema", "schema": { "type": "object" } } } });
    let requests = [
        (Protocol::Chat, chat),
        (Protocol::Native, native),
        (Protocol::Chat, no_schema),
        (Protocol::Responses, no_name),
    ];
    for (source, request) in requests {
        let conversation = source.request_in(request.clone(), "m", false).expect("a request");
        let back = source.request_out(&conversation, DEFAULTS);
        assert_eq!((back.body, back.dropped), (request, Vec::new()));
    }
}

#[test]
fn no_request_content_is_lost_silently() {
    every_request(|source, _, request, conversation| {
        let choice = conversation.tool_choice.as_ref().map(|choice| &choice.value);
        let own: Vec<&str> = conversation.own.iter().map(|given| &*given.at).collect();
        for (target, other) in PROTOCOLS.into_iter().filter(|(target, _)| *target != source) {
            let outgoing = target.request_out(conversation, DEFAULTS);
            for at in &outgoing.dropped {
                prop_assert!(request.pointer(at).is_some(), "{} reports {at}, which is nowhere", other);
            }
            let body = outgoing.body.to_string();
            for (at, mark) in marks(request) {
                let is_written = body.contains(&mark);
                let is_within = |place: &str| {
                    at.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                };
                let is_reported = outgoing.dropped.iter().any(|place| is_within(place));
                let is_own = own.iter().any(|place| is_within(place));
                // Tools that the choice excludes need not be written.
                let is_left_out =
                    matches!(choice, Some(ToolChoice::Allowed { .. })) && at.starts_with("/tools/");
                // The gateway searches the answer for them.
                let is_stop =
                    target == Protocol::Responses && conversation.stop.iter().any(|stop| stop.at == at);
                prop_assert!(
                    is_written || is_reported || is_own || is_left_out || is_stop,
                    "{} loses {at} in silence: {:#}",
                    other,
                    outgoing.body
                );
            }
        }
        Ok(())
    });
}

/// The places of all marks.
pub(super) fn marks(request: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), request)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Object(members) => open.extend(
                members
                    .iter()
                    .map(|(name, value)| (format!("{at}/{}", super::super::members::escaped(name)), value)),
            ),
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)));
            }
            Value::String(text) if text.len() == 13 && text.starts_with('q') => {
                found.push((at, text.clone()));
            }
            _ => {}
        }
    }
    found
}
