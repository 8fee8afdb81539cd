//! Tests the limits against tests/vectors/limits, against another validator, and with requests that violate more rules
//! than are reported.

use std::collections::HashMap;
use std::sync::LazyLock;

use gatewright::limits::{MAX_VIOLATIONS, Rules};
use gatewright::{Call, Client, ErrorKind, limits, operations};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::server::Server;
use crate::vectors;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    section: String,
    operation: String,
    body: Value,
    violations: Vec<Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    pointer: String,
    rule: String,
}

#[test]
fn every_request_vector_is_accepted_or_rejected_as_expected() {
    let files = ["limits/requests.json", "limits/tools.json", "limits/native.json", "limits/messages.json"];
    for case in files.into_iter().flat_map(vectors::read::<Case>) {
        let operation = operations::by_id(&case.operation).unwrap();
        let mut expected: Vec<_> =
            case.violations.iter().map(|v| (v.pointer.as_str(), v.rule.as_str())).collect();
        let violations = limits::check(operation, &case.body);
        let mut found: Vec<_> = violations.iter().map(|v| (v.pointer.as_str(), v.rule.as_str())).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{} ({})", case.name, case.section);
        assert!(violations.iter().all(|v| !v.message.is_empty() && !v.section.is_empty()), "{}", case.name);
    }
}

static BUNDLE: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../src/api/generated/requests.schema.json")).unwrap()
});

/// Whether a body satisfies the schema of its operation according to another validator.
fn other_validator_accepts(operation: &str, body: &Value) -> bool {
    static VALIDATORS: LazyLock<HashMap<String, jsonschema::Validator>> = LazyLock::new(|| {
        let operations = BUNDLE["operations"].as_object().unwrap().iter();
        let bodies = operations.filter_map(|(id, operation)| Some((id, operation["body"].as_str()?)));
        let compile = |(id, name): (&String, &str)| {
            let reference = format!("#/$defs/{name}");
            let schema = json!({ "$schema": BUNDLE["$schema"], "$ref": reference, "$defs": BUNDLE["$defs"] });
            (id.clone(), jsonschema::options().should_validate_formats(true).build(&schema).unwrap())
        };
        bodies.map(compile).collect()
    });
    // The other validator knows only one spelling of a native request.
    let canonical = operations::by_id(operation).and_then(|operation| limits::canonical(operation, body));
    VALIDATORS[operation].is_valid(canonical.as_ref().unwrap_or(body))
}

/// Whether a body satisfies the rules, not counting the limits of a model.
fn keeps_the_rules(operation: &str, body: &Value) -> bool {
    let mut body = body.clone();
    if let Some(model) = body.get_mut("model").filter(|model| model.as_str().is_some_and(|id| !id.is_empty()))
    {
        *model = json!("a-model-that-is-not-in-the-catalog");
    }
    let operation = operations::by_id(operation).unwrap();
    // Matching of calls and results is not expressed in a schema.
    let found = limits::check_with(operation, &body, Rules::default().private_webhooks(true));
    found.iter().all(|violation| violation.rule == "unmatched")
}

#[test]
fn another_validator_accepts_and_rejects_the_same_vectors() {
    let files = ["limits/requests.json", "limits/messages.json"];
    for case in files.into_iter().flat_map(vectors::read::<Case>) {
        // Where a webhook may lead is not expressed in a schema.
        if case.body.get("webhook_url").is_some_and(|url| !url.is_null()) {
            continue;
        }
        let other = other_validator_accepts(&case.operation, &case.body);
        assert_eq!(keeps_the_rules(&case.operation, &case.body), other, "{}", case.name);
    }
}

/// Any JSON made of the names and words that occur in requests.
fn values() -> impl Strategy<Value = Value> {
    let words =
        ["text", "user", "hi", "", "type", "function", "image_url", "message", "auto", "512x512", "hd"];
    let names = [
        "type",
        "text",
        "role",
        "content",
        "tool_calls",
        "function",
        "name",
        "parts",
        "image_url",
        "arguments",
        "id",
        "functionCall",
        "response",
        "output",
        "call_id",
        "strict",
        "url",
        "json_schema",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..200).prop_map(Value::from),
        prop_oneof![Just(0.5), Just(3.0), Just(-1e9)].prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(
                prop::sample::select(names.to_vec()).prop_map(str::to_owned),
                inner,
                0..5
            )
            .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn another_validator_agrees_on_any_member_value(
        operation in prop::sample::select(vec![
            ("create_chat_completion", json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]})),
            ("create_response", json!({"model": "m", "input": "hi"})),
            ("generate_content", json!({"contents": [{"parts": [{"text": "hi"}]}]})),
            ("create_image", json!({"model": "m", "prompt": "hi"})),
        ]),
        member in any::<prop::sample::Index>(),
        value in values(),
    ) {
        let (operation, mut body) = operation;
        let name = BUNDLE["operations"][operation]["body"].as_str().unwrap();
        let members: Vec<&String> = BUNDLE["$defs"][name]["properties"].as_object().unwrap().keys().collect();
        body[member.get(&members).as_str()] = value;
        prop_assert_eq!(keeps_the_rules(operation, &body), other_validator_accepts(operation, &body), "{}", body);
    }
}

#[test]
fn at_most_100_violations_are_listed_and_the_text_mentions_more() {
    let body = json!({ "model": "model-sol", "messages": vec![0; 20_000] });
    let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
    assert_eq!((violations.len(), violations.is_complete()), (MAX_VIOLATIONS, false));
    let text = violations.to_string();
    let start = "at least 101 rules are broken, the first 20: messages[0] is the number 0, not an object; ";
    assert!(text.starts_with(start) && text.len() < 4_000, "{text}");

    let body = json!({ "model": "model-sol", "messages": vec![0; 30] });
    let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
    assert_eq!((violations.len(), violations.is_complete()), (30, true));
    assert!(violations.to_string().starts_with("30 rules are broken, the first 20: "), "{violations}");
}

#[test]
fn no_violation_repeats_a_large_value_or_a_large_name() {
    let large = "x".repeat(1_000_000);
    let mut metadata = serde_json::Map::new();
    metadata.insert(large.clone(), json!(7));
    let body = json!({
        "model": "model-sol", "messages": [{"role": large, "content": "hi"}], "metadata": metadata,
        "stop": [large, large, large, large, 5],
    });
    let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
    assert_eq!(violations.len(), 4, "{violations}");
    for violation in &*violations {
        assert!(violation.pointer.len() <= 256 && violation.message.len() <= 300, "{violation}");
        assert!(body.pointer(&violation.pointer).is_some(), "{}", violation.pointer);
    }
    let body = json!({ "model": "image_model_1", "prompt": "x", "size": large, "webhook_url": large });
    assert!(limits::check(&operations::CREATE_IMAGE, &body).to_string().len() < 2_000);
    let body = json!({ "model": "video_model_1", "prompt": "x", "resolution": large, "webhook_url": large });
    assert!(limits::check(&operations::CREATE_VIDEO, &body).to_string().len() < 2_000);
}

/// Names of members are untrusted text.
#[tokio::test]
async fn name_in_a_rejected_request_does_not_control_the_terminal() {
    let server = Server::start([]).await;
    let client = server.builder().validate(true).build().unwrap();
    let body = json!({
        "model": "model-sol", "messages": [{"role": "user", "content": "hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "\u{202e}\u{1b}[2J": 1}},
        "metadata": {"\u{202e}\u{1b}[2J": 1},
    });
    let call = || Call::new(&operations::CREATE_CHAT_COMPLETION).body(body.to_string());
    let texts = [
        client.call(call()).await.map(drop).unwrap_err().to_string(),
        client.open(call()).await.map(drop).unwrap_err().to_string(),
        gatewright::limits::check(&operations::CREATE_CHAT_COMPLETION, &body).to_string(),
    ];
    for text in texts {
        assert!(text.contains("\\u{1b}[2J"), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
    }
}

#[tokio::test]
async fn internal_webhook_is_rejected_unless_the_gateway_is_internal() {
    // 2.6, 6: what gateways reject, and what an operator may allow.
    let refusal = async |base: &str, webhook: &str| {
        let client =
            Client::builder().base_url(base).api_key("k").max_retries(0).validate(true).build().unwrap();
        let body = json!({ "model": "video_model_1", "prompt": "x", "webhook_url": webhook }).to_string();
        let error = client.call(Call::new(&operations::CREATE_VIDEO).body(body)).await.unwrap_err();
        (error.kind(), error.message().to_owned())
    };
    for webhook in
        ["http://example.com/", "https://10.0.0.1/", "https://localhost/", "https://u:p@example.com/"]
    {
        let (kind, message) = refusal("https://gateway.example", webhook).await;
        assert_eq!(kind, ErrorKind::InvalidRequest, "{webhook}: {message}");
        assert!(message.starts_with("webhook_url ") && !message.contains("(ours)"), "{message}");
    }
    // Nothing listens on port 9: the request gets as far as the connection.
    assert_eq!(refusal("http://127.0.0.1:9", "http://10.0.0.1/").await.0, ErrorKind::Connection);
    assert_eq!(refusal("http://127.0.0.1:9", "https://u:p@10.0.0.1/").await.0, ErrorKind::InvalidRequest);
}
