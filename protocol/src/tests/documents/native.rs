//! Requests of the native protocol.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{any_of, call_id, count, exactly, flag, list, mark, number, object, one_of, schema, word};

pub(in crate::tests) fn native() -> BoxedStrategy<Value> {
    let instruction = object(vec![("parts", list(text(), 1..3))], vec![("role", word("system"))]);
    object(
        vec![("contents", list(content(), 1..6))],
        vec![
            ("systemInstruction", instruction),
            ("generationConfig", generation_config()),
            ("tools", list(tool(), 1..4)),
            ("toolConfig", tool_config()),
            ("safetySettings", list(exactly(vec![("category", mark())]), 1..2)),
            ("cachedContent", mark()),
        ],
    )
}

/// A part of an unknown kind.
fn tomorrow() -> BoxedStrategy<Value> {
    exactly(vec![("kindOfTomorrow", mark())])
}

fn content() -> BoxedStrategy<Value> {
    let role = one_of(&[json!("user"), json!("model"), json!("function")]);
    object(vec![("parts", list(part(), 1..5))], vec![("role", role)])
}

fn signature() -> (&'static str, BoxedStrategy<Value>) {
    (
        "thoughtSignature",
        any_of(vec![mark(), one_of(&[json!("Z3ctc2lnbmF0dXJlOkErLz0"), json!("Z3ctcmVkYWN0ZWQ6QSsvPQ==")])]),
    )
}

fn text() -> BoxedStrategy<Value> {
    object(vec![("text", any_of(vec![mark(), word("")]))], vec![("thought", flag()), signature()])
}

fn part() -> BoxedStrategy<Value> {
    let kind = one_of(&[json!("image/png"), json!("audio/wav"), json!("application/pdf"), json!("odd")]);
    let data = one_of(&[json!("AA=="), json!("-_8"), json!("AA"), json!("")]);
    let inline = object(vec![("mimeType", kind.clone()), ("data", data)], vec![("displayName", mark())]);
    let file = object(vec![("fileUri", mark())], vec![("mimeType", kind)]);
    let args = any_of(vec![one_of(&[json!({}), json!({ "a": [1.5, null] })]), exactly(vec![("a", mark())])]);
    let call = object(vec![("name", word("tool"))], vec![("id", call_id()), ("args", args)]);
    let response = any_of(vec![
        exactly(vec![("output", any_of(vec![mark(), word("{\"a\":1}"), word("7")]))]),
        exactly(vec![("error", any_of(vec![mark(), word("{\"a\":1}")]))]),
        exactly(vec![("output", mark()), ("more", mark())]),
        one_of(&[json!({}), json!({ "a": { "b": [1.0] } })]),
    ]);
    let result = object(
        vec![("name", any_of(vec![word("tool"), word("lost")])), ("response", response)],
        vec![("id", call_id()), ("willContinue", flag())],
    );
    any_of(vec![
        text(),
        object(vec![("inlineData", inline)], vec![("mediaResolution", mark())]),
        object(vec![("fileData", file)], vec![("videoMetadata", exactly(vec![("fps", mark())]))]),
        object(vec![("functionCall", call)], vec![signature(), ("thought", flag())]),
        object(vec![("functionResponse", result)], vec![]),
        object(vec![], vec![("text", mark()), ("codeExecutionResult", exactly(vec![("output", mark())]))]),
        tomorrow(),
        word("no object"),
    ])
}

fn generation_config() -> BoxedStrategy<Value> {
    let thinking = object(
        vec![],
        vec![
            ("thinkingBudget", one_of(&[json!(-2), json!(-1), json!(0), json!(1), json!(9000)])),
            ("includeThoughts", flag()),
            ("thinkingLevel", any_of(vec![word("LOW"), word("high"), word("THINKING_LEVEL_UNSPECIFIED")])),
        ],
    );
    let older = exactly(vec![("type", word("OBJECT")), ("title", mark()), ("nullable", flag())]);
    object(
        vec![],
        vec![
            ("temperature", number()),
            ("topP", number()),
            ("topK", number()),
            ("frequencyPenalty", number()),
            ("presencePenalty", number()),
            ("seed", number()),
            ("candidateCount", count()),
            ("maxOutputTokens", count()),
            ("stopSequences", list(mark(), 1..4)),
            ("responseLogprobs", flag()),
            ("logprobs", one_of(&[json!(0), json!(5)])),
            (
                "responseMimeType",
                one_of(&[json!("text/plain"), json!("application/json"), json!("text/x.enum")]),
            ),
            ("responseSchema", older),
            ("responseJsonSchema", schema()),
            ("responseModalities", list(mark(), 1..3)),
            ("thinkingConfig", thinking),
        ],
    )
}

fn tool() -> BoxedStrategy<Value> {
    let older = exactly(vec![("type", word("OBJECT")), ("description", mark())]);
    let function = object(
        vec![("name", word("tool"))],
        vec![
            ("description", mark()),
            ("parameters", older),
            ("parametersJsonSchema", schema()),
            ("behavior", mark()),
        ],
    );
    object(
        vec![],
        vec![
            ("functionDeclarations", list(any_of(vec![function, tomorrow()]), 1..3)),
            ("googleSearch", exactly(vec![("a", mark())])),
        ],
    )
}

fn tool_config() -> BoxedStrategy<Value> {
    let mode = one_of(&[json!("AUTO"), json!("ANY"), json!("NONE"), json!("VALIDATED"), json!("odd")]);
    let calling = object(vec![], vec![("mode", mode), ("allowedFunctionNames", list(word("tool"), 1..3))]);
    object(
        vec![],
        vec![("functionCallingConfig", calling), ("retrievalConfig", exactly(vec![("a", mark())]))],
    )
}
