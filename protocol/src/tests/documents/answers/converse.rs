//! Answers of the converse protocol.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{any_of, count, exactly, list, mark, one_of, word};
use super::{Made, few, many};

/// An answer of the converse protocol.
pub(in crate::tests) fn converse(made: Made) -> BoxedStrategy<Value> {
    let ends = [
        "end_turn",
        "tool_use",
        "max_tokens",
        "guardrail_intervened",
        "content_filtered",
        "model_context_window_exceeded",
    ];
    let usage = made.object(
        vec![
            ("inputTokens", many()),
            ("outputTokens", many()),
            ("totalTokens", many()),
            ("cacheReadInputTokens", few()),
            ("cacheWriteInputTokens", few()),
        ],
        vec![("cacheDetails", list(exactly(vec![("ttl", mark()), ("inputTokens", few())]), 1..3))],
    );
    let message =
        made.object(vec![("role", word("assistant")), ("content", list(block(made), 0..5))], vec![]);
    let answer = made.object(
        vec![
            ("output", exactly(vec![("message", message)])),
            ("stopReason", any_of(vec![one_of(&ends.map(Value::from)), mark()])),
            ("usage", usage),
            ("metrics", exactly(vec![("latencyMs", count())])),
        ],
        vec![
            ("additionalModelResponseFields", exactly(vec![("logits", mark())])),
            ("trace", exactly(vec![("guardrail", exactly(vec![("actionReason", mark())]))])),
            ("serviceTier", exactly(vec![("type", any_of(vec![word("default"), word("flex"), mark()]))])),
        ],
    );
    let stopped = |(mut answer, sequence): (Value, Value)| {
        if sequence.is_string() {
            answer["stopReason"] = "stop_sequence".into();
            answer["additionalModelResponseFields"] = json!({ "stop_sequence": sequence });
        }
        numbered(answer)
    };
    let sequence = prop_oneof![4 => Just(Value::Null), 1 => mark()];
    (answer, sequence).prop_map(stopped).boxed()
}

/// Gives each call a unique id.
fn numbered(mut answer: Value) -> Value {
    let content = answer.pointer_mut("/output/message/content").and_then(Value::as_array_mut);
    for (index, block) in content.into_iter().flatten().enumerate() {
        if block["toolUse"]["toolUseId"] == "call" {
            block["toolUse"]["toolUseId"] = format!("call_{index}").into();
        }
    }
    answer
}

fn one(name: &'static str, value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    value.prop_map(move |value| Value::Object(Map::from_iter([(name.to_owned(), value)]))).boxed()
}

fn block(made: Made) -> BoxedStrategy<Value> {
    let text = || made.object(vec![("text", mark())], vec![]);
    let input = any_of(vec![one_of(&[json!({}), json!({ "a": [1.5, null] })]), exactly(vec![("a", mark())])]);
    let call = made
        .object(vec![("toolUseId", word("call")), ("name", word("tool")), ("input", input.clone())], vec![]);
    let searching =
        exactly(vec![("toolUseId", mark()), ("name", word("search")), ("type", word("server_tool_use"))]);
    let proof = || any_of(vec![mark(), mark(), word("")]);
    let shown = made.object(vec![("text", proof())], vec![("signature", proof())]);
    let hidden =
        mark().prop_map(|mark| BASE64_STANDARD.encode(mark.as_str().unwrap_or_default()).into()).boxed();
    let quote = list(exactly(vec![("text", mark())]), 1..3);
    let web = one("web", exactly(vec![("url", mark())]));
    let citation = any_of(vec![
        made.object(vec![("title", mark()), ("sourceContent", quote.clone()), ("location", web)], vec![]),
        exactly(vec![("title", mark()), ("sourceContent", quote)]),
    ]);
    let cited = exactly(vec![
        ("content", list(exactly(vec![("text", mark())]), 1..3)),
        ("citations", list(citation, 1..3)),
    ]);
    let mut blocks = vec![
        text(),
        text(),
        one("toolUse", call.clone()),
        one("toolUse", call),
        one("toolUse", searching),
        one("reasoningContent", one("reasoningText", shown)),
        one("reasoningContent", one("redactedContent", hidden)),
        one("citationsContent", cited),
        one("blockOfTomorrow", mark()),
    ];
    if made == Made::Oddly {
        let source = exactly(vec![("bytes", word("AA=="))]);
        blocks.push(one("image", exactly(vec![("format", word("png")), ("source", source.clone())])));
        blocks.push(one("video", exactly(vec![("format", mark()), ("source", source)])));
        blocks.push(word("no object"));
        blocks.push(exactly(vec![]));
    }
    any_of(blocks)
}
