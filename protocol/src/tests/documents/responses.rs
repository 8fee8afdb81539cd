//! Requests of the responses protocol.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    any_of, call_id, count, exactly, flag, list, mark, number, object, one_of, schema, tomorrow, word,
};

pub(in crate::tests) fn responses() -> BoxedStrategy<Value> {
    let reasoning = object(
        vec![],
        vec![
            ("effort", any_of(vec![word("none"), word("high"), mark()])),
            ("summary", any_of(vec![word("auto"), mark()])),
        ],
    );
    let text = object(vec![], vec![("format", format()), ("verbosity", mark())]);
    object(
        vec![("model", word("m")), ("input", any_of(vec![mark(), list(item(), 0..9)]))],
        vec![
            ("instructions", mark()),
            ("max_output_tokens", count()),
            ("temperature", number()),
            ("top_p", number()),
            ("parallel_tool_calls", flag()),
            ("store", flag()),
            ("stream", flag()),
            ("background", flag()),
            ("truncation", any_of(vec![word("disabled"), mark()])),
            ("metadata", exactly(vec![("a", mark())])),
            ("user", mark()),
            ("service_tier", any_of(vec![word("auto"), word("flex"), mark()])),
            ("prompt_cache_key", mark()),
            ("previous_response_id", mark()),
            ("include", list(one_of(&[json!("message.output_text.logprobs"), json!("x")]), 1..3)),
            ("top_logprobs", one_of(&[json!(0), json!(5)])),
            ("tools", list(tool(), 1..5)),
            ("tool_choice", choice()),
            ("reasoning", reasoning),
            ("text", text),
        ],
    )
}

/// Fields that items have besides their content.
fn own() -> Vec<(&'static str, BoxedStrategy<Value>)> {
    vec![("id", mark()), ("status", word("completed"))]
}

fn with_own(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> Vec<(&'static str, BoxedStrategy<Value>)> {
    members.into_iter().chain(own()).collect()
}

fn item() -> BoxedStrategy<Value> {
    let content = || any_of(vec![mark(), word(""), list(part(), 0..4)]);
    let role =
        one_of(&[json!("user"), json!("assistant"), json!("system"), json!("developer"), json!("odd")]);
    let call = object(
        vec![
            ("type", word("function_call")),
            ("call_id", call_id()),
            ("name", word("tool")),
            ("arguments", any_of(vec![mark(), word("{\"a\":1.5}"), word("")])),
        ],
        own(),
    );
    let custom = object(
        vec![
            ("type", word("custom_tool_call")),
            ("call_id", call_id()),
            ("name", word("free")),
            ("input", mark()),
        ],
        own(),
    );
    let result = object(
        vec![
            ("type", one_of(&[json!("function_call_output"), json!("custom_tool_call_output")])),
            ("call_id", call_id()),
            ("output", content()),
        ],
        own(),
    );
    let texts = |kind: &'static str| list(exactly(vec![("type", word(kind)), ("text", mark())]), 1..3);
    let content_of_thought = any_of(vec![mark(), "redacted:q[0-9]{12}".prop_map(Value::from).boxed()]);
    let thought = object(
        vec![("type", word("reasoning"))],
        with_own(vec![
            ("summary", any_of(vec![texts("summary_text"), list(tomorrow(), 1..2)])),
            ("content", texts("reasoning_text")),
            ("encrypted_content", content_of_thought),
        ]),
    );
    let message =
        object(vec![("role", role), ("content", content())], with_own(vec![("type", word("message"))]));
    let compaction = object(vec![("type", word("compaction")), ("encrypted_content", mark())], own());
    any_of(vec![
        message.clone(),
        message,
        call,
        custom,
        result,
        thought,
        compaction,
        tomorrow(),
        word("no object"),
    ])
}

fn part() -> BoxedStrategy<Value> {
    let annotations = list(exactly(vec![("type", mark())]), 1..2);
    let text = object(
        vec![("type", one_of(&[json!("input_text"), json!("output_text")])), ("text", mark())],
        vec![("annotations", annotations), ("logprobs", list(exactly(vec![("token", word("x"))]), 1..2))],
    );
    let refusal = object(vec![("type", word("refusal")), ("refusal", mark())], vec![]);
    let url =
        one_of(&[json!("https://a.example/i.png"), json!("data:image/png;base64,AA=="), json!("data:,x")]);
    let image = object(
        vec![("type", word("input_image"))],
        vec![("image_url", url), ("file_id", mark()), ("detail", any_of(vec![word("low"), mark()]))],
    );
    let data = one_of(&[
        json!("data:application/pdf;base64,AA=="),
        json!("data:text/plain;base64,YQ=="),
        json!("data:text/plain;charset=utf-8;base64,YQ=="),
        json!("AA=="),
    ]);
    let file = object(
        vec![("type", word("input_file"))],
        vec![("file_data", data), ("file_url", mark()), ("file_id", mark()), ("filename", mark())],
    );
    let sound =
        object(vec![("data", word("AA==")), ("format", one_of(&[json!("wav"), json!("mpeg")]))], vec![]);
    let audio = object(vec![("type", word("input_audio")), ("input_audio", sound)], vec![]);
    any_of(vec![text.clone(), text, refusal, image, file, audio, tomorrow(), word("no object")])
}

fn tool() -> BoxedStrategy<Value> {
    let function = object(
        vec![("type", word("function")), ("name", word("tool"))],
        vec![("description", mark()), ("parameters", schema()), ("strict", flag())],
    );
    let grammar = exactly(vec![("type", word("grammar")), ("syntax", word("regex")), ("definition", mark())]);
    let custom = object(
        vec![("type", word("custom")), ("name", word("free"))],
        vec![("description", mark()), ("format", any_of(vec![grammar, tomorrow()]))],
    );
    any_of(vec![function, custom, tomorrow()])
}

fn choice() -> BoxedStrategy<Value> {
    let named = |kind, name| exactly(vec![("type", word(kind)), ("name", word(name))]);
    let some = exactly(vec![
        ("type", word("allowed_tools")),
        ("mode", one_of(&[json!("auto"), json!("required")])),
        ("tools", list(any_of(vec![named("function", "tool"), named("custom", "free"), tomorrow()]), 1..3)),
    ]);
    any_of(vec![
        one_of(&[json!("auto"), json!("none"), json!("required"), json!("odd")]),
        named("function", "tool"),
        named("custom", "free"),
        some,
        tomorrow(),
    ])
}

fn format() -> BoxedStrategy<Value> {
    let json_schema = object(
        vec![("type", word("json_schema")), ("name", word("form")), ("schema", schema())],
        vec![("description", mark()), ("strict", flag())],
    );
    any_of(vec![
        object(vec![("type", one_of(&[json!("text"), json!("json_object")]))], vec![]),
        json_schema,
        tomorrow(),
    ])
}
