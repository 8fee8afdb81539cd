//! Features that not every protocol has: signed reasoning, files, developer messages, tool choices,
//! caching, refusals. They reach an upstream in its protocol's form, and inexpressible ones are reported as dropped.

use serde_json::{Value, json};

use super::requests::request;
use super::{Bench, model_at, normal, pairs, steps};
use crate::callers::Protocol;

/// The model's reasoning and its signature.
const THOUGHT: &str = "They ask about two cities.";
const PROOF: &str = "cHJvb2Y=";
/// The signature of redacted reasoning as clients of the native protocol get it: the gateway's mark and the signature, in base64.
const MARKED: &str = "Z3ctcmVkYWN0ZWQ6Y0hKdmIyWT0=";
/// A document in base64.
const DOCUMENT: &str = "JVBERi0xLjQK";
const FROM_DEVELOPER: &str = "Speak of snow first.";
const REFUSAL: &str = "That I do not tell.";

/// Adds a feature to a request in the form of its protocol. False if the protocol doesn't have it.
type AddFeature = fn(Protocol, &mut Value) -> bool;

/// What an upstream receives of a feature, and what is reported to the client.
struct Sent {
    /// Pointers into the upstream's request and their values; null means absent.
    words: Vec<(&'static str, Value)>,
    /// The dropped pointers.
    dropped: &'static str,
}

fn members<const N: usize>(words: [(&'static str, Value); N]) -> Sent {
    Sent { words: words.into(), dropped: "" }
}

impl Sent {
    fn but(self, dropped: &'static str) -> Self {
        Self { dropped, ..self }
    }
}

/// Whether an upstream gets a signature without a mark: it is of the client's own protocol, or a chat server.
fn knows_the_maker(client: Protocol, speaks: Protocol) -> bool {
    client == speaks.spoken_for(client) || client == Protocol::Chat || speaks == Protocol::Chat
}

/// Sends a feature in each protocol that has it to an upstream of each kind. If two clients' features reach an upstream in
/// the same form, the complete requests are equal.
async fn expect(add_feature: AddFeature, sent: fn(Protocol, Protocol) -> Sent) {
    expect_of(add_feature, |_, _| true, sent).await;
}

/// The same for selected pairs of client and upstream.
async fn expect_of(
    add_feature: AddFeature,
    is_selected: fn(Protocol, Protocol) -> bool,
    sent: fn(Protocol, Protocol) -> Sent,
) {
    let bench = Bench::start(steps).await;
    let mut whole: Vec<(Protocol, Protocol, Value)> = Vec::new();
    let mut count = 0;
    for (speaks, client) in pairs() {
        let here = format!("{client:?} at {speaks:?}");
        let (path, mut body) = request(client, &model_at(speaks), false, false);
        if !is_selected(client, speaks) || !add_feature(client, &mut body) {
            continue;
        }
        count += 1;
        let (got, dropped) = bench.ask(client, speaks, &path, &body).await;
        if speaks.spoken_for(client) == client {
            assert_eq!((got, dropped.as_str()), (normal(body), ""), "{here}");
            continue;
        }
        let expected = sent(client, speaks);
        for (at, words) in &expected.words {
            assert_eq!(got.pointer(at).unwrap_or(&Value::Null), words, "{here}, {at}: {got:#}");
        }
        assert_eq!(dropped, expected.dropped, "{here}: {got:#}");
        let alike = |(spoken, by, _): &&(Protocol, Protocol, Value)| {
            *spoken == speaks && sent(*by, speaks).words == expected.words
        };
        if let Some((_, by, first)) = whole.iter().find(alike) {
            assert_eq!(&got, first, "{here}, and of {by:?}");
        }
        whole.push((speaks, client, got));
    }
    assert!(count >= 2 * Protocol::ALL.len(), "at least two protocols support it");
}

/// The list at a pointer.
fn list<'a>(body: &'a mut Value, at: &str) -> &'a mut Vec<Value> {
    body.pointer_mut(at).and_then(Value::as_array_mut).unwrap_or_else(|| panic!("a list at {at}"))
}

#[tokio::test]
async fn reasoning_reaches_every_upstream_except_summaries_at_messages() {
    let add_feature: AddFeature = |client, body| {
        match client {
            Protocol::Chat => {
                body["messages"][2]["reasoning_details"] =
                    json!([{"type": "reasoning.text", "text": THOUGHT, "signature": PROOF}]);
            }
            Protocol::Responses => {
                let content = json!([{"type": "reasoning_text", "text": THOUGHT}]);
                let item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": content,
                    "encrypted_content": PROOF});
                list(body, "/input").insert(1, item);
            }
            Protocol::Messages => {
                let block = json!({"type": "thinking", "thinking": THOUGHT, "signature": PROOF});
                list(body, "/messages/1/content").insert(0, block);
            }
            Protocol::Native => {
                let part = json!({"text": THOUGHT, "thought": true, "thoughtSignature": PROOF});
                list(body, "/contents/1/parts").insert(0, part);
            }
        }
        true
    };
    expect_of(add_feature, knows_the_maker, |client, speaks| {
        // What the native protocol shows of its reasoning is a summary.
        let is_summary = client == Protocol::Native;
        match speaks {
            Protocol::Chat if is_summary => members([(
                "/messages/2/reasoning_details",
                json!([{"type": "reasoning.summary", "summary": THOUGHT},
                    {"type": "reasoning.encrypted", "data": PROOF}]),
            )]),
            Protocol::Chat if client == Protocol::Responses => members([(
                "/messages/2/reasoning_details",
                json!([{"type": "reasoning.text", "text": THOUGHT, "signature": PROOF, "id": "rs_1"}]),
            )]),
            Protocol::Chat => members([(
                "/messages/2/reasoning_details",
                json!([{"type": "reasoning.text", "text": THOUGHT, "signature": PROOF}]),
            )]),
            Protocol::Responses => members([(
                "/input/1",
                json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}],
                    "encrypted_content": PROOF}),
            )]),
            // Its providers accept only the signature of reasoning that they showed in full.
            Protocol::Messages if is_summary => {
                members([("/messages/1/content/0/type", json!("text"))]).but("/contents/1/parts/0")
            }
            Protocol::Messages => members([(
                "/messages/1/content/0",
                json!({"type": "thinking", "thinking": THOUGHT, "signature": PROOF}),
            )]),
            Protocol::Native => members([(
                "/contents/1/parts/0",
                json!({"text": THOUGHT, "thought": true, "thoughtSignature": PROOF}),
            )]),
        }
    })
    .await;
}

#[tokio::test]
async fn redacted_reasoning_reaches_every_upstream() {
    let add_feature: AddFeature = |client, body| {
        match client {
            Protocol::Chat => {
                body["messages"][2]["reasoning_details"] =
                    json!([{"type": "reasoning.encrypted", "data": PROOF}]);
            }
            Protocol::Responses => {
                let item = json!({"type": "reasoning", "id": "rs_1", "summary": [],
                    "encrypted_content": format!("redacted:{PROOF}")});
                list(body, "/input").insert(1, item);
            }
            Protocol::Messages => {
                let block = json!({"type": "redacted_thinking", "data": PROOF});
                list(body, "/messages/1/content").insert(0, block);
            }
            Protocol::Native => {
                let part = json!({"text": "", "thoughtSignature": MARKED});
                list(body, "/contents/1/parts").insert(0, part);
            }
        }
        true
    };
    expect_of(add_feature, knows_the_maker, |client, speaks| match speaks {
        Protocol::Chat if client == Protocol::Responses => members([(
            "/messages/2/reasoning_details",
            json!([{"type": "reasoning.encrypted", "data": PROOF, "id": "rs_1"}]),
        )]),
        Protocol::Chat => members([(
            "/messages/2/reasoning_details",
            json!([{"type": "reasoning.encrypted", "data": PROOF}]),
        )]),
        Protocol::Responses => {
            members([("/input/1", json!({"type": "reasoning", "summary": [], "encrypted_content": PROOF}))])
        }
        Protocol::Messages => {
            members([("/messages/1/content/0", json!({"type": "redacted_thinking", "data": PROOF}))])
        }
        Protocol::Native => {
            members([("/contents/1/parts/0", json!({"text": "", "thoughtSignature": PROOF}))])
        }
    })
    .await;
}

/// Requests low reasoning effort.
fn think(client: Protocol, body: &mut Value) {
    match client {
        Protocol::Chat => body["reasoning_effort"] = "low".into(),
        Protocol::Responses => body["reasoning"] = json!({"effort": "low"}),
        Protocol::Messages => body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024}),
        Protocol::Native => {
            body["generationConfig"]["thinkingConfig"] = json!({"thinkingBudget": 1024});
        }
    }
}

#[tokio::test]
async fn reasoning_effort_and_budget_are_converted() {
    let add_feature: AddFeature = |client, body| {
        think(client, body);
        // In the messages protocol, reasoning counts against the token limit and excludes sampling parameters.
        let (config, most, top_p) = match client {
            Protocol::Chat | Protocol::Messages => (body, "max_tokens", "top_p"),
            Protocol::Responses => (body, "max_output_tokens", "top_p"),
            Protocol::Native => (&mut body["generationConfig"], "maxOutputTokens", "topP"),
        };
        config[most] = 4096.into();
        let config = config.as_object_mut().expect("an object");
        config.retain(|name, _| name != "temperature" && name != top_p);
        true
    };
    expect(add_feature, |client, speaks| match speaks {
        Protocol::Chat => members([("/reasoning_effort", json!("low"))]),
        // The messages protocol always shows its reasoning, and the others on request.
        Protocol::Responses if client == Protocol::Messages => {
            members([("/reasoning", json!({"effort": "low", "summary": "auto"}))])
        }
        Protocol::Responses => members([("/reasoning", json!({"effort": "low"}))]),
        Protocol::Messages => members([("/thinking", json!({"type": "enabled", "budget_tokens": 1024}))]),
        Protocol::Native if client == Protocol::Messages => members([(
            "/generationConfig/thinkingConfig",
            json!({"thinkingBudget": 1024, "includeThoughts": true}),
        )]),
        Protocol::Native => members([("/generationConfig/thinkingConfig", json!({"thinkingBudget": 1024}))]),
    })
    .await;
}

#[tokio::test]
async fn reasoning_beyond_max_tokens_is_dropped_for_messages_and_reported() {
    let add_feature: AddFeature = |client, body| {
        think(client, body);
        // Only an upstream of messages would reject it, and a client of messages avoids it.
        client != Protocol::Messages
    };
    expect(add_feature, |client, speaks| match speaks {
        Protocol::Chat => members([("/reasoning_effort", json!("low"))]),
        Protocol::Responses => members([("/reasoning", json!({"effort": "low"}))]),
        Protocol::Messages => {
            members([("/thinking", Value::Null), ("/temperature", json!(0.5))]).but(match client {
                Protocol::Chat => "/reasoning_effort",
                Protocol::Responses => "/reasoning/effort",
                _ => "/generationConfig/thinkingConfig/thinkingBudget",
            })
        }
        Protocol::Native => members([("/generationConfig/thinkingConfig", json!({"thinkingBudget": 1024}))]),
    })
    .await;
}

#[tokio::test]
async fn files_reach_every_upstream_and_names_those_that_support_them() {
    let add_feature: AddFeature = |client, body| {
        let url = format!("data:application/pdf;base64,{DOCUMENT}");
        let (at, part) = match client {
            Protocol::Chat => {
                let file = json!({"filename": "snow.pdf", "file_data": url});
                ("/messages/1/content", json!({"type": "file", "file": file}))
            }
            Protocol::Responses => {
                ("/input/0/content", json!({"type": "input_file", "filename": "snow.pdf", "file_data": url}))
            }
            Protocol::Messages => {
                let source = json!({"type": "base64", "media_type": "application/pdf", "data": DOCUMENT});
                let block = json!({"type": "document", "source": source, "title": "snow.pdf"});
                ("/messages/0/content", block)
            }
            Protocol::Native => {
                let data = json!({"mimeType": "application/pdf", "data": DOCUMENT});
                ("/contents/0/parts", json!({"inlineData": data}))
            }
        };
        list(body, at).push(part);
        true
    };
    expect(add_feature, |client, speaks| {
        let url = format!("data:application/pdf;base64,{DOCUMENT}");
        let is_named = client != Protocol::Native;
        match speaks {
            Protocol::Chat => {
                let mut file = json!({"file_data": url});
                if is_named {
                    file["filename"] = "snow.pdf".into();
                }
                members([("/messages/1/content/2", json!({"type": "file", "file": file}))])
            }
            Protocol::Responses => {
                // It requires a name.
                let name = if is_named { "snow.pdf" } else { "file" };
                let part = json!({"type": "input_file", "filename": name, "file_data": url});
                members([("/input/0/content/2", part)])
            }
            Protocol::Messages => {
                let source = json!({"type": "base64", "media_type": "application/pdf", "data": DOCUMENT});
                let mut block = json!({"type": "document", "source": source});
                if is_named {
                    block["title"] = "snow.pdf".into();
                }
                members([("/messages/0/content/2", block)])
            }
            Protocol::Native => {
                let data = json!({"mimeType": "application/pdf", "data": DOCUMENT});
                members([("/contents/0/parts/2", json!({"inlineData": data}))]).but(match client {
                    Protocol::Chat => "/messages/1/content/2/file/filename",
                    Protocol::Responses => "/input/0/content/2/filename",
                    _ => "/messages/0/content/2/title",
                })
            }
        }
    })
    .await;
}

/// Both instructions at the beginning, for protocols without another place for them.
fn both_instructions(speaks: Protocol) -> (&'static str, Value) {
    if speaks == Protocol::Native {
        ("/systemInstruction", json!({"parts": [{"text": "Be brief."}, {"text": FROM_DEVELOPER}]}))
    } else {
        let text = |text: &str| json!({"type": "text", "text": text});
        ("/system", json!([text("Be brief."), text(FROM_DEVELOPER)]))
    }
}

#[tokio::test]
async fn developer_message_becomes_an_instruction_if_the_role_is_unsupported() {
    let add_feature: AddFeature = |client, body| {
        let prompt = json!({"role": "developer", "content": FROM_DEVELOPER});
        match client {
            Protocol::Chat => list(body, "/messages").insert(1, prompt),
            Protocol::Responses => list(body, "/input").insert(0, prompt),
            Protocol::Messages | Protocol::Native => return false,
        }
        true
    };
    expect(add_feature, |_, speaks| match speaks {
        Protocol::Chat => members([("/messages/1", json!({"role": "developer", "content": FROM_DEVELOPER}))]),
        Protocol::Responses => unreachable!("it is called in chat"),
        Protocol::Messages | Protocol::Native => members([both_instructions(speaks)]),
    })
    .await;
}

#[tokio::test]
async fn later_developer_message_moves_to_the_front_and_is_reported() {
    let add_feature: AddFeature = |client, body| {
        let prompt = json!({"role": "developer", "content": FROM_DEVELOPER});
        match client {
            Protocol::Chat => list(body, "/messages").insert(6, prompt),
            Protocol::Responses => list(body, "/input").insert(7, prompt),
            Protocol::Messages | Protocol::Native => return false,
        }
        true
    };
    expect(add_feature, |client, speaks| match speaks {
        Protocol::Chat => members([("/messages/6", json!({"role": "developer", "content": FROM_DEVELOPER}))]),
        Protocol::Responses => unreachable!("it is called in chat"),
        Protocol::Messages | Protocol::Native => members([both_instructions(speaks)]).but(match client {
            Protocol::Chat => "/messages/6/role",
            _ => "/input/7/role",
        }),
    })
    .await;
}

#[tokio::test]
async fn forced_tool_call_is_forced_at_every_upstream() {
    let any: AddFeature = |client, body| {
        match client {
            Protocol::Chat | Protocol::Responses => body["tool_choice"] = "required".into(),
            Protocol::Messages => body["tool_choice"] = json!({"type": "any"}),
            Protocol::Native => body["toolConfig"]["functionCallingConfig"] = json!({"mode": "ANY"}),
        }
        true
    };
    expect(any, |_, speaks| match speaks {
        Protocol::Chat | Protocol::Responses => members([("/tool_choice", json!("required"))]),
        Protocol::Messages => members([("/tool_choice", json!({"type": "any"}))]),
        Protocol::Native => members([("/toolConfig", json!({"functionCallingConfig": {"mode": "ANY"}}))]),
    })
    .await;
    let this: AddFeature = |client, body| {
        match client {
            Protocol::Chat => {
                body["tool_choice"] = json!({"type": "function", "function": {"name": "weather"}});
            }
            Protocol::Responses => body["tool_choice"] = json!({"type": "function", "name": "weather"}),
            Protocol::Messages => body["tool_choice"] = json!({"type": "tool", "name": "weather"}),
            Protocol::Native => {
                body["toolConfig"]["functionCallingConfig"] =
                    json!({"mode": "ANY", "allowedFunctionNames": ["weather"]});
            }
        }
        true
    };
    expect(this, |_, speaks| match speaks {
        Protocol::Chat => {
            members([("/tool_choice", json!({"type": "function", "function": {"name": "weather"}}))])
        }
        Protocol::Responses => members([("/tool_choice", json!({"type": "function", "name": "weather"}))]),
        Protocol::Messages => members([("/tool_choice", json!({"type": "tool", "name": "weather"}))]),
        Protocol::Native => {
            let calling = json!({"mode": "ANY", "allowedFunctionNames": ["weather"]});
            members([("/toolConfig/functionCallingConfig", calling)])
        }
    })
    .await;
}

/// Adds a clock and a map to the tools, of which only the weather and the clock are allowed.
fn allow_two(client: Protocol, body: &mut Value, mode: &str) -> bool {
    let at = if client == Protocol::Native { "/tools/0/functionDeclarations" } else { "/tools" };
    let tools = list(body, at);
    for name in ["clock", "map"] {
        let mut tool = tools[0].clone();
        let named = if client == Protocol::Chat { &mut tool["function"] } else { &mut tool };
        named["name"] = name.into();
        tools.push(tool);
    }
    let choice = allowed(client, mode);
    match client {
        Protocol::Chat | Protocol::Responses => body["tool_choice"] = choice,
        Protocol::Native if mode == "required" => body["toolConfig"]["functionCallingConfig"] = choice,
        Protocol::Messages | Protocol::Native => return false,
    }
    true
}

/// The allowed tools weather and clock in the form of a protocol; null if it has none.
fn allowed(protocol: Protocol, mode: &str) -> Value {
    match protocol {
        Protocol::Chat => {
            let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
            let allowed = json!({"mode": mode, "tools": [tool("weather"), tool("clock")]});
            json!({"type": "allowed_tools", "allowed_tools": allowed})
        }
        Protocol::Responses => {
            let tool = |name: &str| json!({"type": "function", "name": name});
            json!({"type": "allowed_tools", "mode": mode, "tools": [tool("weather"), tool("clock")]})
        }
        Protocol::Native if mode == "required" => {
            json!({"mode": "ANY", "allowedFunctionNames": ["weather", "clock"]})
        }
        Protocol::Messages | Protocol::Native => Value::Null,
    }
}

/// An upstream of messages gets only the allowed tools.
fn two_tools(kind: &str) -> Sent {
    members([
        ("/tools/0/name", json!("weather")),
        ("/tools/1/name", json!("clock")),
        ("/tools/2", Value::Null),
        ("/tool_choice", json!({"type": kind})),
    ])
}

#[tokio::test]
async fn required_allowed_tools_are_forced_at_every_upstream() {
    let add_feature: AddFeature = |client, body| allow_two(client, body, "required");
    expect(add_feature, |_, speaks| match speaks {
        Protocol::Chat | Protocol::Responses => members([("/tool_choice", allowed(speaks, "required"))]),
        Protocol::Messages => two_tools("any"),
        Protocol::Native => members([("/toolConfig/functionCallingConfig", allowed(speaks, "required"))]),
    })
    .await;
}

#[tokio::test]
async fn optional_allowed_tools_are_dropped_for_native_and_reported() {
    let add_feature: AddFeature = |client, body| allow_two(client, body, "auto");
    expect(add_feature, |_, speaks| match speaks {
        Protocol::Chat | Protocol::Responses => members([("/tool_choice", allowed(speaks, "auto"))]),
        Protocol::Messages => two_tools("auto"),
        // Its list of names requires forced calls.
        Protocol::Native => {
            members([("/toolConfig", Value::Null), ("/tools/0/functionDeclarations/2/name", json!("map"))])
                .but("/tool_choice")
        }
    })
    .await;
}

#[tokio::test]
async fn cache_control_reaches_messages_and_is_reported_as_dropped_elsewhere() {
    let add_feature: AddFeature = |client, body| {
        let question = match client {
            Protocol::Chat => "/messages/1/content/0",
            Protocol::Messages => "/messages/0/content/0",
            Protocol::Responses | Protocol::Native => return false,
        };
        for at in [question, "/tools/0"] {
            let cached = body.pointer_mut(at).expect("a part, and a tool");
            cached["cache_control"] = json!({"type": "ephemeral"});
        }
        true
    };
    expect(add_feature, |client, speaks| {
        let dropped = match client {
            Protocol::Chat => "/messages/1/content/0/cache_control, /tools/0/cache_control",
            _ => "/messages/0/content/0/cache_control, /tools/0/cache_control",
        };
        let at = |question: &'static str, tool: &'static str, words: Value| {
            members([(question, words.clone()), (tool, words)])
        };
        match speaks {
            Protocol::Chat => {
                let question = "/messages/1/content/0/cache_control";
                at(question, "/tools/0/cache_control", Value::Null).but(dropped)
            }
            Protocol::Responses => {
                let question = "/input/0/content/0/cache_control";
                at(question, "/tools/0/cache_control", Value::Null).but(dropped)
            }
            Protocol::Messages => {
                let question = "/messages/0/content/0/cache_control";
                at(question, "/tools/0/cache_control", json!({"type": "ephemeral"}))
            }
            Protocol::Native => {
                let question = "/contents/0/parts/0/cache_control";
                at(question, "/tools/0/functionDeclarations/0/cache_control", Value::Null).but(dropped)
            }
        }
    })
    .await;
}

#[tokio::test]
async fn refusal_becomes_plain_text_if_the_protocol_has_none() {
    let add_feature: AddFeature = |client, body| {
        match client {
            Protocol::Chat => {
                let part = json!({"type": "refusal", "refusal": REFUSAL});
                body["messages"][5] = json!({"role": "assistant", "content": [part]});
            }
            Protocol::Responses => {
                let part = json!({"type": "refusal", "refusal": REFUSAL});
                body["input"][6] = json!({"role": "assistant", "content": [part]});
            }
            Protocol::Messages | Protocol::Native => return false,
        }
        true
    };
    expect(add_feature, |_, speaks| match speaks {
        Protocol::Chat => {
            let content = json!([{"type": "refusal", "refusal": REFUSAL}]);
            let message = json!({"role": "assistant", "content": content});
            members([("/messages/5", message)])
        }
        Protocol::Responses => unreachable!("it is called in chat"),
        Protocol::Messages => members([("/messages/3/content", json!([{"type": "text", "text": REFUSAL}]))]),
        Protocol::Native => members([("/contents/3/parts", json!([{"text": REFUSAL}]))]),
    })
    .await;
}
