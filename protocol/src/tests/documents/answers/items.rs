//! Answers of the responses protocol.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{any_of, count, exactly, list, mark, one_of, tomorrow, word};
use super::{Made, citation, few, many, numbered_calls, tokens};

/// An answer of the responses protocol.
pub(in crate::tests) fn responses(made: Made) -> BoxedStrategy<Value> {
    let details = |name: &'static str| exactly(vec![(name, few())]);
    let usage = made.object(
        vec![
            ("input_tokens", many()),
            ("input_tokens_details", details("cached_tokens")),
            ("output_tokens", many()),
            ("output_tokens_details", details("reasoning_tokens")),
            ("total_tokens", many()),
        ],
        vec![("cost", mark())],
    );
    let nothing = || one_of(&[json!(null)]);
    let reasons = one_of(&[json!("max_output_tokens"), json!("content_filter")]);
    let reason = made.object(vec![("reason", any_of(vec![reasons, mark()]))], vec![]);
    let ends = any_of(vec![
        Just(json!(["completed", null])).boxed(),
        Just(json!(["completed", null])).boxed(),
        reason.prop_map(|reason| json!(["incomplete", reason])).boxed(),
    ]);
    let response = made.object(
        vec![
            ("id", word("resp_1")),
            ("object", word("response")),
            ("created_at", one_of(&[json!(7), json!(7.5)])),
            ("end", ends),
            ("background", one_of(&[json!(false)])),
            ("error", nothing()),
            ("instructions", any_of(vec![word("Be brief."), nothing()])),
            ("max_output_tokens", nothing()),
            ("max_tool_calls", nothing()),
            ("model", word("m")),
            ("output", list(item(made), 0..5)),
            ("parallel_tool_calls", one_of(&[json!(true), json!(false)])),
            ("previous_response_id", nothing()),
            ("prompt_cache_key", nothing()),
            ("reasoning", one_of(&[json!({ "effort": "low", "summary": null })])),
            ("safety_identifier", nothing()),
            ("service_tier", any_of(vec![word("default"), word("flex"), mark()])),
            ("store", one_of(&[json!(true)])),
            ("temperature", one_of(&[json!(1.0), json!(0.5)])),
            ("text", one_of(&[json!({ "format": { "type": "text" } })])),
            ("tool_choice", word("auto")),
            ("tools", one_of(&[json!([]), json!([{ "type": "function", "name": "tool" }])])),
            ("top_logprobs", one_of(&[json!(0)])),
            ("top_p", one_of(&[json!(1.0)])),
            ("truncation", word("disabled")),
            ("usage", any_of(vec![usage, nothing()])),
            ("user", nothing()),
            ("metadata", one_of(&[json!({}), json!({ "a": "b" })])),
        ],
        vec![("completed_at", count()), ("moderation", exactly(vec![("flagged", mark())]))],
    );
    let with_status = |mut response: Value| {
        if let Value::Object(members) = &mut response
            && let Some(Value::Array(end)) = members.shift_remove("end")
        {
            members.insert("status".to_owned(), end[0].clone());
            members.insert("incomplete_details".to_owned(), end[1].clone());
        }
        for (index, item) in response["output"].as_array_mut().into_iter().flatten().enumerate() {
            if item["id"].is_string() {
                item["id"] = format!("{}_{index}", item["id"].as_str().unwrap_or_default()).into();
            }
        }
        response
    };
    numbered_calls(response.prop_map(with_status).boxed(), "output")
}

fn item(made: Made) -> BoxedStrategy<Value> {
    let of_kind =
        |kind: &'static str, id: &'static str, members: Vec<(&'static str, BoxedStrategy<Value>)>| {
            let own = vec![("type", word(kind)), ("id", word(id)), ("status", word("completed"))];
            made.object([own, members].concat(), vec![])
        };
    let arguments = any_of(vec![mark(), word("{\"a\":1.5}"), word("")]);
    let call = of_kind(
        "function_call",
        "fc_1",
        vec![("call_id", word("call")), ("name", word("tool")), ("arguments", arguments)],
    );
    let custom = of_kind(
        "custom_tool_call",
        "ctc_1",
        vec![("call_id", word("call")), ("name", word("free")), ("input", any_of(vec![mark(), word("")]))],
    );
    let sizes = if made == Made::Oddly { 0..4 } else { 1..4 };
    let message = || {
        let content = list(part(made), sizes.clone());
        of_kind("message", "msg_1", vec![("role", word("assistant")), ("content", content)])
    };
    let action = exactly(vec![("type", word("search")), ("query", mark())]);
    let search = of_kind("web_search_call", "ws_1", vec![("action", action)]);
    let image =
        of_kind("image_generation_call", "ig_1", vec![("output_format", word("png")), ("result", mark())]);
    let compaction = of_kind("compaction", "cmp_1", vec![("encrypted_content", mark())]);
    let mut items = vec![
        message(),
        message(),
        message(),
        call,
        custom,
        thought(made),
        thought(made),
        search,
        image,
        compaction,
        tomorrow(),
    ];
    if made == Made::Oddly {
        items.push(word("no object"));
        items.push(
            made.object(
                vec![("type", word("message"))],
                vec![("content", mark()), ("role", word("assistant"))],
            ),
        );
    }
    any_of(items)
}

fn thought(made: Made) -> BoxedStrategy<Value> {
    let texts = |kind: &'static str| list(exactly(vec![("type", word(kind)), ("text", mark())]), 1..3);
    let own = || vec![("type", word("reasoning")), ("id", word("rs_1"))];
    let proof =
        || ("encrypted_content", any_of(vec![mark(), "redacted:q[0-9]{12}".prop_map(Value::from).boxed()]));
    let summed = made.object([own(), vec![("summary", texts("summary_text"))]].concat(), vec![proof()]);
    let shown = made.object(
        [own(), vec![("summary", one_of(&[json!([])])), ("content", texts("reasoning_text"))]].concat(),
        vec![proof()],
    );
    let both = made.object(
        [own(), vec![("summary", texts("summary_text")), ("content", texts("reasoning_text"))]].concat(),
        vec![proof()],
    );
    let odd = made.object(own(), vec![("summary", list(tomorrow(), 1..2)), proof()]);
    any_of(if made == Made::Oddly { vec![summed, shown, both, odd] } else { vec![summed, shown] })
}

fn part(made: Made) -> BoxedStrategy<Value> {
    let annotation = any_of(vec![
        citation(made, Some("url_citation")),
        citation(made, Some("document_citation")),
        exactly(vec![("type", word("file_citation")), ("file_id", mark())]),
    ]);
    let text = || {
        made.object(
            vec![
                ("type", word("output_text")),
                ("text", any_of(vec![mark(), mark(), mark(), word("")])),
                ("annotations", list(annotation.clone(), 0..3)),
                ("logprobs", any_of(vec![tokens(made), one_of(&[json!([])])])),
            ],
            vec![],
        )
    };
    let refusal = made.object(vec![("type", word("refusal")), ("refusal", mark())], vec![]);
    let mut parts = vec![text(), text(), text(), refusal];
    if made == Made::Oddly {
        parts.extend([tomorrow(), word("no object")]);
        parts.push(
            made.object(
                vec![("type", word("output_text")), ("logprobs", tokens(made))],
                vec![("text", mark())],
            ),
        );
    }
    any_of(parts)
}
