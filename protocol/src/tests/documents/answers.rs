//! Answers of every protocol.

mod converse;
mod items;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(in crate::tests) use self::converse::converse;
pub(in crate::tests) use self::items::responses;
use super::{any_of, call_id, chat_call, chat_part, count, exactly, list, mark, one_of, tomorrow, word};

/// How well-formed an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tests) enum Made {
    /// Each field has its type in the protocol.
    Well,
    /// Fields may be null, empty, or of another type.
    Oddly,
}

impl Made {
    /// An object: `always` has the fields that are always present, `maybe` those that may be missing.
    fn object(
        self,
        always: Vec<(&'static str, BoxedStrategy<Value>)>,
        maybe: Vec<(&'static str, BoxedStrategy<Value>)>,
    ) -> BoxedStrategy<Value> {
        if self == Self::Oddly {
            return super::object(always, maybe);
        }
        let member = |name: &'static str, value: BoxedStrategy<Value>| {
            value.prop_map(move |value| Some((name.to_owned(), value))).boxed()
        };
        let mut members: Vec<BoxedStrategy<Option<(String, Value)>>> =
            always.into_iter().map(|(name, value)| member(name, value)).collect();
        for (name, value) in maybe {
            members.push(prop_oneof![Just(None), member(name, value)].boxed());
        }
        members.push(prop_oneof![9 => Just(None), 1 => member(UNKNOWN, mark())].boxed());
        members.prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
    }
}

/// A field that no protocol has.
pub(in crate::tests) const UNKNOWN: &str = "a/member of ~ tomorrow";

/// A position in a text, possibly beyond its end.
fn place() -> BoxedStrategy<Value> {
    one_of(&[json!(0), json!(2), json!(7), json!(13), json!(90)])
}

/// Numbers the items of an array by their index.
fn numbered(items: BoxedStrategy<Value>, name: &'static str) -> BoxedStrategy<Value> {
    let number = move |mut items: Value| {
        for (index, item) in items.as_array_mut().into_iter().flatten().enumerate() {
            if let Value::Object(members) = item {
                members.insert(name.to_owned(), index.into());
            }
        }
        items
    };
    items.prop_map(number).boxed()
}

/// A count that is part of another one.
fn few() -> BoxedStrategy<Value> {
    (1_u64..100).prop_map(Value::from).boxed()
}

/// A count that includes others.
fn many() -> BoxedStrategy<Value> {
    (1000_u64..100_000).prop_map(Value::from).boxed()
}

/// Tokens with their log probabilities.
fn tokens(made: Made) -> BoxedStrategy<Value> {
    let token = || {
        vec![("token", mark()), ("logprob", word_or_number()), ("bytes", one_of(&[json!([72]), json!(null)]))]
    };
    let top = list(made.object(token(), vec![]), 0..3);
    list(made.object([token(), vec![("top_logprobs", top)]].concat(), vec![]), 1..3)
}

fn word_or_number() -> BoxedStrategy<Value> {
    one_of(&[json!(-0.5), json!(-2), json!(0)])
}

/// The fields of a citation in the chat and responses formats.
fn citation(made: Made, kind: Option<&'static str>) -> BoxedStrategy<Value> {
    let always = kind.map(|kind| ("type", word(kind))).into_iter().collect();
    made.object(
        always,
        vec![
            ("start_index", place()),
            ("end_index", place()),
            ("url", mark()),
            ("title", mark()),
            ("quote", mark()),
        ],
    )
}

/// An answer of the chat protocol.
pub(in crate::tests) fn chat(made: Made) -> BoxedStrategy<Value> {
    let usage = made.object(
        vec![("prompt_tokens", many()), ("completion_tokens", many()), ("total_tokens", many())],
        vec![
            (
                "prompt_tokens_details",
                exactly(vec![
                    ("cached_tokens", few()),
                    ("cache_write_tokens", few()),
                    ("audio_tokens", few()),
                ]),
            ),
            ("completion_tokens_details", exactly(vec![("reasoning_tokens", few())])),
            ("cost", mark()),
        ],
    );
    made.object(
        vec![
            ("id", word("chatcmpl-1")),
            ("object", word("chat.completion")),
            ("created", one_of(&[json!(7)])),
            ("model", word("m")),
            ("choices", numbered(list(chat_choice(made), 1..4), "index")),
            ("usage", any_of(vec![usage, one_of(&[json!(null)])])),
        ],
        vec![
            ("service_tier", any_of(vec![word("default"), word("flex"), mark()])),
            ("system_fingerprint", word("fp")),
            ("provider", mark()),
        ],
    )
}

fn chat_choice(made: Made) -> BoxedStrategy<Value> {
    let words = ["stop", "length", "tool_calls", "content_filter", "function_call"].map(Value::from);
    let nothing = one_of(&[json!(null)]);
    let logprobs = made.object(
        vec![("content", tokens(made)), ("refusal", any_of(vec![tokens(made), nothing.clone()]))],
        vec![],
    );
    let choice = made.object(
        vec![
            ("message", chat_message(made)),
            ("logprobs", any_of(vec![logprobs, nothing.clone(), nothing])),
            ("finish_reason", any_of(vec![one_of(&words), one_of(&words), mark()])),
        ],
        vec![("content_filter_results", exactly(vec![("hate", mark())]))],
    );
    choice.prop_map(identify_calls).boxed()
}

fn chat_message(made: Made) -> BoxedStrategy<Value> {
    let nothing = one_of(&[json!(null)]);
    let mut contents = vec![mark(), mark(), nothing, word("")];
    let mut calls = chat_tidy_call();
    if made == Made::Oddly {
        contents.push(list(chat_part(), 0..4));
        calls = chat_call();
    }
    let annotation = any_of(vec![
        made.object(vec![("type", word("url_citation")), ("url_citation", citation(made, None))], vec![]),
        made.object(
            vec![("type", word("document_citation")), ("document_citation", citation(made, None))],
            vec![],
        ),
        exactly(vec![("type", word("file")), ("file", exactly(vec![("hash", mark())]))]),
    ]);
    made.object(
        vec![("role", word("assistant")), ("content", any_of(contents))],
        vec![
            ("refusal", mark()),
            ("reasoning_content", mark()),
            ("reasoning", mark()),
            ("reasoning_details", list(chat_detail(made), 1..5)),
            ("tool_calls", list(calls, 1..4)),
            ("annotations", list(annotation, 1..3)),
            ("audio", exactly(vec![("id", mark()), ("data", mark()), ("transcript", mark())])),
        ],
    )
}

fn chat_tidy_call() -> BoxedStrategy<Value> {
    let arguments = any_of(vec![mark(), word("{\"a\": 1.5}"), word("")]);
    let function = exactly(vec![("name", word("tool")), ("arguments", arguments)]);
    let custom = exactly(vec![("name", word("free")), ("input", mark())]);
    any_of(vec![
        Made::Well.object(vec![("type", word("function")), ("function", function)], vec![]),
        Made::Well.object(vec![("type", word("custom")), ("custom", custom)], vec![]),
    ])
}

fn chat_detail(made: Made) -> BoxedStrategy<Value> {
    let ids = if made == Made::Oddly { any_of(vec![call_id(), word("r1")]) } else { word("r1") };
    let detail = |kind: &'static str, members: Vec<(&'static str, BoxedStrategy<Value>)>| {
        let own = vec![("id", ids.clone()), ("index", count()), ("format", word("a-form"))];
        made.object([vec![("type", word(kind))], members].concat(), own)
    };
    let proven = || any_of(vec![mark(), one_of(&[json!(null)])]);
    let mut details = vec![
        detail("reasoning.text", vec![("text", mark()), ("signature", proven())]),
        detail("reasoning.summary", vec![("summary", mark())]),
        detail("reasoning.encrypted", vec![("data", mark())]),
    ];
    if made == Made::Oddly {
        details.push(tomorrow());
    }
    any_of(details)
}

/// Gives each well-formed call an id, and some of them a signature.
fn identify_calls(mut choice: Value) -> Value {
    let mut proofs = Vec::new();
    let calls = choice.pointer_mut("/message/tool_calls").and_then(Value::as_array_mut);
    for (index, call) in calls.into_iter().flatten().enumerate() {
        let is_known = call["type"] == "function" || call["type"] == "custom";
        if is_known && call["id"].is_null() {
            let id = format!("call_{index}");
            if index != 1 {
                proofs.push(
                    json!({ "type": "reasoning.encrypted", "data": format!("proof_{index}"), "id": id }),
                );
            }
            call["id"] = id.into();
        }
    }
    if let Some(Value::Array(details)) = choice.pointer_mut("/message/reasoning_details") {
        details.extend(proofs);
    }
    choice
}

/// An answer of the messages protocol.
pub(in crate::tests) fn messages(made: Made) -> BoxedStrategy<Value> {
    let words = ["end_turn", "max_tokens", "tool_use", "refusal", "pause_turn"].map(Value::from);
    let usage = made.object(
        vec![
            ("input_tokens", many()),
            ("output_tokens", many()),
            ("cache_creation_input_tokens", few()),
            ("cache_read_input_tokens", few()),
        ],
        vec![
            ("service_tier", any_of(vec![word("standard"), word("priority"), mark()])),
            ("output_tokens_details", exactly(vec![("thinking_tokens", few())])),
            ("cache_creation", exactly(vec![("ephemeral_5m_input_tokens", few())])),
            ("server_tool_use", exactly(vec![("web_search_requests", count())])),
            ("inference_geo", mark()),
        ],
    );
    let ends = any_of(vec![
        one_of(&words).prop_map(|word| json!([word, null])).boxed(),
        mark().prop_map(|word| json!([word, null])).boxed(),
        mark().prop_map(|sequence| json!(["stop_sequence", sequence])).boxed(),
    ]);
    let message = made.object(
        vec![
            ("id", word("msg_1")),
            ("type", word("message")),
            ("role", word("assistant")),
            ("model", word("m")),
            ("content", list(messages_block(made), 0..5)),
            ("end", ends),
            ("usage", usage),
        ],
        vec![
            ("container", exactly(vec![("id", mark()), ("expires_at", mark())])),
            ("context_management", exactly(vec![("applied_edits", list(mark(), 1..2))])),
        ],
    );
    let with_stop_reason = |mut message: Value| {
        if let Value::Object(members) = &mut message
            && let Some(Value::Array(end)) = members.shift_remove("end")
        {
            members.insert("stop_reason".to_owned(), end[0].clone());
            members.insert("stop_sequence".to_owned(), end[1].clone());
        }
        message
    };
    numbered_calls(message.prop_map(with_stop_reason).boxed(), "content")
}

/// Gives each block or item that calls a tool a unique id.
fn numbered_calls(answer: BoxedStrategy<Value>, list: &'static str) -> BoxedStrategy<Value> {
    let number = move |mut answer: Value| {
        for (index, call) in answer[list].as_array_mut().into_iter().flatten().enumerate() {
            for name in ["id", "call_id"] {
                if call[name] == "call" {
                    call[name] = format!("call_{index}").into();
                }
            }
        }
        answer
    };
    answer.prop_map(number).boxed()
}

fn messages_block(made: Made) -> BoxedStrategy<Value> {
    let cited = |kind: &'static str, members: Vec<(&'static str, BoxedStrategy<Value>)>| {
        made.object([vec![("type", word(kind)), ("cited_text", mark())], members].concat(), vec![])
    };
    let citation = any_of(vec![
        cited(
            "web_search_result_location",
            vec![("url", mark()), ("title", mark()), ("encrypted_index", word("Eo8B"))],
        ),
        cited(
            "search_result_location",
            vec![("source", mark()), ("title", mark()), ("search_result_index", count())],
        ),
        cited(
            "char_location",
            vec![
                ("document_index", count()),
                ("document_title", mark()),
                ("start_char_index", count()),
                ("end_char_index", count()),
            ],
        ),
        cited("page_location", vec![("document_title", mark()), ("start_page_number", count())]),
        tomorrow(),
    ]);
    let text = || {
        made.object(
            vec![("type", word("text")), ("text", mark())],
            vec![("citations", list(citation.clone(), 1..3))],
        )
    };
    let input = any_of(vec![one_of(&[json!({}), json!({ "a": [1.5, null] })]), exactly(vec![("a", mark())])]);
    let call = made.object(
        vec![
            ("type", word("tool_use")),
            ("id", word("call")),
            ("name", word("tool")),
            ("input", input.clone()),
        ],
        vec![],
    );
    let searching = made.object(
        vec![
            ("type", word("server_tool_use")),
            ("id", mark()),
            ("name", word("web_search")),
            ("input", input),
        ],
        vec![],
    );
    let found = made.object(
        vec![("type", word("web_search_tool_result")), ("tool_use_id", mark())],
        vec![("content", list(exactly(vec![("type", word("web_search_result")), ("url", mark())]), 1..3))],
    );
    let proof = || any_of(vec![mark(), mark(), word("")]);
    let thought =
        made.object(vec![("type", word("thinking")), ("thinking", proof()), ("signature", proof())], vec![]);
    let hidden = made.object(vec![("type", word("redacted_thinking")), ("data", mark())], vec![]);
    let mut blocks =
        vec![text(), text(), text(), call.clone(), call, searching, found, thought, hidden, tomorrow()];
    if made == Made::Oddly {
        let image = json!({ "type": "base64", "media_type": "image/png", "data": "AA==" });
        let source = any_of(vec![one_of(&[image]), exactly(vec![("type", word("url")), ("url", mark())])]);
        blocks.push(made.object(vec![("type", word("image")), ("source", source.clone())], vec![]));
        blocks
            .push(made.object(vec![("type", word("document")), ("source", source)], vec![("title", mark())]));
        let content = any_of(vec![mark(), list(text(), 0..3)]);
        blocks.push(made.object(
            vec![("type", word("tool_result")), ("tool_use_id", mark()), ("content", content)],
            vec![],
        ));
        blocks.push(word("no object"));
    }
    any_of(blocks)
}

/// An answer of the native protocol.
pub(in crate::tests) fn native(made: Made) -> BoxedStrategy<Value> {
    let usage = made.object(
        vec![("promptTokenCount", many()), ("candidatesTokenCount", many()), ("totalTokenCount", many())],
        vec![
            ("cachedContentTokenCount", few()),
            ("thoughtsTokenCount", few()),
            ("toolUsePromptTokenCount", few()),
            (
                "promptTokensDetails",
                list(exactly(vec![("modality", word("TEXT")), ("tokenCount", few())]), 1..2),
            ),
            ("trafficType", mark()),
        ],
    );
    let rating = || list(exactly(vec![("category", mark()), ("probability", word("LOW"))]), 1..2);
    let feedback = || made.object(vec![], vec![("safetyRatings", rating()), ("blockReasonMessage", mark())]);
    let answered = made.object(
        vec![
            ("candidates", numbered(list(native_candidate(made), 1..3), "index")),
            ("modelVersion", word("m")),
            ("responseId", word("r1")),
        ],
        vec![("usageMetadata", usage.clone()), ("promptFeedback", feedback()), ("createTime", word("now"))],
    );
    let blocked = exactly(vec![
        ("promptFeedback", exactly(vec![("blockReason", mark()), ("safetyRatings", rating())])),
        ("modelVersion", word("m")),
        ("responseId", word("r1")),
        ("usageMetadata", usage),
    ]);
    prop_oneof![19 => answered, 1 => blocked].boxed()
}

fn native_candidate(made: Made) -> BoxedStrategy<Value> {
    let words = ["STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "A_LATER_WORD"].map(Value::from);
    let token = || made.object(vec![("token", mark()), ("logProbability", word_or_number())], vec![]);
    let top = exactly(vec![("candidates", list(token(), 0..3))]);
    let both = list(exactly(vec![("chosen", token()), ("top", top)]), 1..3);
    let apart = |both: Value| {
        let all = |name: &str| -> Value {
            both.as_array().into_iter().flatten().map(|one| one[name].clone()).collect()
        };
        json!({ "chosenCandidates": all("chosen"), "topCandidates": all("top") })
    };
    let logprobs = both.prop_map(apart).boxed();
    let source = || {
        any_of(vec![
            exactly(vec![("web", made.object(vec![("uri", mark())], vec![("title", mark())]))]),
            exactly(vec![(
                "retrievedContext",
                made.object(vec![], vec![("uri", mark()), ("title", mark()), ("text", mark())]),
            )]),
        ])
    };
    let segment = made.object(
        vec![],
        vec![("partIndex", one_of(&[json!(0), json!(1)])), ("startIndex", place()), ("endIndex", place())],
    );
    let support = exactly(vec![
        ("segment", segment),
        ("groundingChunkIndices", list(one_of(&[json!(0), json!(1), json!(7)]), 0..3)),
    ]);
    let grounding = made.object(
        vec![("groundingChunks", list(source(), 1..3))],
        vec![("groundingSupports", list(support, 1..3)), ("webSearchQueries", list(mark(), 1..2))],
    );
    let recited = made.object(
        vec![("uri", mark())],
        vec![("startIndex", place()), ("endIndex", place()), ("title", mark())],
    );
    let rating = exactly(vec![("category", mark()), ("probability", word("LOW"))]);
    let content =
        made.object(vec![("role", word("model")), ("parts", list(native_part(made), 1..5))], vec![]);
    let content = if made == Made::Oddly {
        any_of(vec![
            content.clone(),
            content.clone(),
            content,
            one_of(&[json!({}), json!({ "role": "model" })]),
        ])
    } else {
        content
    };
    made.object(
        vec![("finishReason", any_of(vec![one_of(&words), one_of(&words), mark()])), ("content", content)],
        vec![
            ("logprobsResult", logprobs),
            ("groundingMetadata", grounding),
            ("citationMetadata", exactly(vec![("citationSources", list(recited, 1..3))])),
            ("safetyRatings", list(rating, 1..2)),
            ("avgLogprobs", word_or_number()),
            ("tokenCount", few()),
            ("finishMessage", mark()),
        ],
    )
}

fn native_part(made: Made) -> BoxedStrategy<Value> {
    let signature = || {
        let wrapped = one_of(&[json!("Z3ctc2lnbmF0dXJlOkErLz0="), json!("Z3ctcmVkYWN0ZWQ6QSsvPQ==")]);
        ("thoughtSignature", any_of(vec![mark(), wrapped]))
    };
    let text_value = any_of(vec![mark(), mark(), word("")]);
    let thinks = one_of(&[json!(true), json!(true), json!(false)]);
    let text = || made.object(vec![("text", text_value.clone())], vec![signature()]);
    let thought = made.object(vec![("text", text_value.clone()), ("thought", thinks)], vec![signature()]);
    let kind = one_of(&[json!("image/png"), json!("audio/wav"), json!("application/pdf"), json!("odd")]);
    let data = one_of(&[json!("AA=="), json!("-_8"), json!("AA"), json!("")]);
    let inline = made.object(vec![("mimeType", kind.clone()), ("data", data)], vec![("displayName", mark())]);
    let file = made.object(vec![("fileUri", mark())], vec![("mimeType", kind)]);
    let args = any_of(vec![one_of(&[json!({}), json!({ "a": [1.5, null] })]), exactly(vec![("a", mark())])]);
    let call = made.object(vec![("name", word("tool"))], vec![("id", call_id()), ("args", args)]);
    let code = exactly(vec![("language", word("PYTHON")), ("code", mark())]);
    let ran = exactly(vec![("outcome", word("OUTCOME_OK")), ("output", mark())]);
    let answered = exactly(vec![("name", word("tool")), ("response", exactly(vec![("output", mark())]))]);
    let mut parts = vec![
        text(),
        text(),
        text(),
        thought,
        made.object(vec![("inlineData", inline)], vec![]),
        made.object(vec![("fileData", file)], vec![]),
        made.object(vec![("functionCall", call)], vec![signature()]),
        exactly(vec![("executableCode", code)]),
        exactly(vec![("codeExecutionResult", ran)]),
        exactly(vec![("functionResponse", answered)]),
        exactly(vec![("kindOfTomorrow", mark())]),
    ];
    if made == Made::Oddly {
        parts.push(word("no object"));
    }
    any_of(parts)
}
