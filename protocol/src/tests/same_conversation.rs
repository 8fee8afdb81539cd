//! The same conversation written in each protocol is read as the same conversation.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::super::effort::effort_of;
use super::super::{Defaults, EncodedRequest};
use super::{DEFAULTS, PROTOCOLS, tries};
use crate::capabilities::Thinking;
use crate::conversation::{
    Conversation, Format, Input, JsonPointer, Located, Media, MediaSource, Part, PartKind, Protocol,
    Reasoning, Role, ThinkingBudget, Tool, ToolCall, ToolChoice, ToolKind, ToolResult, Turn,
};

/// Number of random conversations per protocol.
const CONVERSATIONS: u32 = 100;
/// The places of a random conversation's effort and stop sequences.
const EFFORT: &str = "/effort";
const STOP: &str = "/stop/";

/// The same request in each protocol: instructions, an image, parallel calls and their results, a tool, limits.
fn requests() -> [(Protocol, Value); 4] {
    [
        (Protocol::Chat, chat()),
        (Protocol::Responses, responses()),
        (Protocol::Messages, messages()),
        (Protocol::Native, native()),
    ]
}

fn chat() -> Value {
    json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "Weather here?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } },
            ] },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "c1", "type": "function",
                  "function": { "name": "weather", "arguments": "{\"city\":\"Oslo\"}" } },
                { "id": "c2", "type": "function",
                  "function": { "name": "weather", "arguments": "{\"city\":\"Rome\"}" } },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "snow" },
            { "role": "tool", "tool_call_id": "c2", "content": "sun" },
            { "role": "assistant", "content": "Snow and sun." },
            { "role": "user", "content": "Thanks. And now?" },
        ],
        "tools": [{ "type": "function", "function": {
            "name": "weather", "description": "Tells it.", "parameters": { "type": "object", "properties": {} } } }],
        "tool_choice": "auto",
        "max_tokens": 64,
        "temperature": 0.5,
        "stream": true,
    })
}

fn responses() -> Value {
    json!({
        "model": "m",
        "instructions": "Be brief.",
        "input": [
            { "role": "user", "content": [
                { "type": "input_text", "text": "Weather here?" },
                { "type": "input_image", "image_url": "data:image/png;base64,AA==" },
            ] },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I look." }] },
            { "type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Oslo\"}" },
            { "type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{\"city\":\"Rome\"}" },
            { "type": "function_call_output", "call_id": "c1", "output": "snow" },
            { "type": "function_call_output", "call_id": "c2", "output": "sun" },
            { "role": "assistant", "content": "Snow and sun." },
            { "role": "user", "content": "Thanks. And now?" },
        ],
        "tools": [{
            "type": "function", "name": "weather", "description": "Tells it.", "parameters": { "type": "object", "properties": {} } }],
        "tool_choice": "auto",
        "max_output_tokens": 64,
        "temperature": 0.5,
        "stream": true,
    })
}

fn messages() -> Value {
    json!({
        "model": "m",
        "system": "Be brief.",
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "Weather here?" },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } },
            ] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "I look." },
                { "type": "tool_use", "id": "c1", "name": "weather", "input": { "city": "Oslo" } },
                { "type": "tool_use", "id": "c2", "name": "weather", "input": { "city": "Rome" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": "snow" },
                { "type": "tool_result", "tool_use_id": "c2", "content": "sun" },
            ] },
            { "role": "assistant", "content": "Snow and sun." },
            { "role": "user", "content": "Thanks. And now?" },
        ],
        "tools": [{ "name": "weather", "description": "Tells it.", "input_schema": { "type": "object", "properties": {} } }],
        "tool_choice": { "type": "auto" },
        "max_tokens": 64,
        "temperature": 0.5,
        "stream": true,
    })
}

fn native() -> Value {
    json!({
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "contents": [
            { "role": "user", "parts": [
                { "text": "Weather here?" },
                { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
            ] },
            { "role": "model", "parts": [
                { "text": "I look." },
                { "functionCall": { "id": "c1", "name": "weather", "args": { "city": "Oslo" } } },
                { "functionCall": { "id": "c2", "name": "weather", "args": { "city": "Rome" } } },
            ] },
            { "role": "user", "parts": [
                { "functionResponse": { "id": "c1", "name": "weather", "response": { "output": "snow" } } },
                { "functionResponse": { "id": "c2", "name": "weather", "response": { "output": "sun" } } },
            ] },
            { "role": "model", "parts": [{ "text": "Snow and sun." }] },
            { "role": "user", "parts": [{ "text": "Thanks. And now?" }] },
        ],
        "tools": [{ "functionDeclarations": [
            { "name": "weather", "description": "Tells it.", "parametersJsonSchema": { "type": "object", "properties": {} } }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } },
        "generationConfig": { "maxOutputTokens": 64, "temperature": 0.5 },
    })
}

fn nowhere<T>(given: &mut Located<T>) {
    given.at = JsonPointer::default();
}

/// The conversation without places and protocol.
fn bare(mut conversation: Conversation) -> Conversation {
    conversation.source = Protocol::Chat;
    conversation.own.clear();
    conversation.turns.iter_mut().for_each(bare_turn);
    for tool in &mut conversation.tools {
        tool.at = JsonPointer::default();
        tool.schema_at = JsonPointer::default();
        assert!(matches!(tool.kind, ToolKind::Function { .. }));
    }
    conversation.stop.iter_mut().for_each(nowhere);
    conversation.tool_choice.iter_mut().for_each(nowhere);
    conversation.parallel_tool_calls.iter_mut().for_each(nowhere);
    conversation.max_tokens.iter_mut().for_each(nowhere);
    conversation.user.iter_mut().for_each(nowhere);
    conversation.sampling.temperature.iter_mut().for_each(nowhere);
    conversation.sampling.top_p.iter_mut().for_each(nowhere);
    conversation
}

fn bare_turn(turn: &mut Turn) {
    turn.at = JsonPointer::default();
    turn.parts.iter_mut().for_each(bare_part);
}

fn bare_part(part: &mut Part) {
    part.at = JsonPointer::default();
    match &mut part.kind {
        PartKind::Result(result) => result.parts.iter_mut().for_each(bare_part),
        PartKind::Call(call) => assert!(matches!(call.input, Input::Json(_))),
        PartKind::Image(image) => assert!(matches!(image.source, MediaSource::Inline(_))),
        _ => {}
    }
}

#[test]
fn equivalent_requests_parse_to_the_same_conversation() {
    let [(_, first), rest @ ..] = requests();
    let first = bare(Protocol::Chat.request_in(first, "m", true).expect("a valid request"));
    for (protocol, request) in rest {
        let other = bare(protocol.request_in(request, "m", true).expect("a valid request"));
        assert_eq!(other, first, "{protocol:?}");
    }
}

#[test]
fn equivalent_requests_are_written_identically() {
    for (target, folder) in PROTOCOLS {
        let written: Vec<Value> = requests()
            .into_iter()
            .filter(|(source, _)| *source != target)
            .map(|(source, request)| {
                let conversation = source.request_in(request, "m", true).expect("a valid request");
                let outgoing = target.request_out(&conversation, DEFAULTS);
                assert!(outgoing.dropped.is_empty(), "{source:?} to {folder}: {:?}", outgoing.dropped);
                outgoing.body
            })
            .collect();
        for other in &written[1..] {
            assert_eq!(other, &written[0], "to {folder}");
        }
    }
}

/// What a conversation says, in order, and by whom.
fn role_contents(conversation: &Conversation) -> Vec<(Role, PartKind)> {
    let parts = conversation.turns.iter().flat_map(|turn| turn.parts.iter().map(|part| (turn.role, part)));
    parts
        .map(|(role, part)| {
            let mut part = part.clone();
            bare_part(&mut part);
            let kind = match part.kind {
                // Arguments are an object, whose fields have no order. Only some protocols name the tool in its result.
                PartKind::Call(mut call) => {
                    if let Input::Json(input) = &mut call.input {
                        let document: Value = serde_json::from_str(input).expect("arguments are JSON");
                        *input = document.to_string();
                    }
                    // Another model's call has none, and some providers need a placeholder.
                    call.signature = None;
                    PartKind::Call(call)
                }
                PartKind::Result(result) => PartKind::Result(ToolResult { name: None, ..result }),
                kind => kind,
            };
            (role, kind)
        })
        // Whitespace-only texts mean nothing, and some providers reject them.
        .filter(|(_, kind)| !matches!(kind, PartKind::Text(text) if text.trim().is_empty()))
        .collect()
}

/// The tools. One that isn't marked strict isn't strict, even where the default would be.
fn tools(tools: Vec<Tool>) -> Vec<ToolKind> {
    let kind = |tool: Tool| match tool.kind {
        ToolKind::Function { name, description, parameters, strict } => {
            ToolKind::Function { name, description, parameters, strict: strict.filter(|strict| strict.value) }
        }
        kind => kind,
    };
    tools.into_iter().map(kind).collect()
}

fn some(kind: PartKind) -> Part {
    Part { at: JsonPointer::default(), kind, cache: None }
}

fn turn(role: Role, parts: Vec<Part>) -> Turn {
    Turn { at: JsonPointer::default(), role, name: None, parts }
}

fn text() -> impl Strategy<Value = String> {
    // Characters that are special in JSON, mixed with any others.
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        select(vec!["\n", "\"", "\\", "🎈", " "]).prop_map(str::to_owned)
    ];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

/// A question, and the model's answer: a text, calls with their results, or both.
fn exchange() -> impl Strategy<Value = (Vec<Part>, Option<String>, Vec<(String, String)>)> {
    let image = Media {
        source: MediaSource::Inline("AA==".to_owned()),
        media_type: Some("image/png".to_owned()),
        name: None,
        detail: None,
    };
    let question = (text(), any::<bool>()).prop_map(move |(text, shows)| {
        let image = shows.then(|| some(PartKind::Image(image.clone())));
        [some(PartKind::Text(text))].into_iter().chain(image).collect()
    });
    let calls = prop::collection::vec((text(), text()), 0..3);
    (question, prop::option::of(text()), calls)
}

/// The required response format: schemas, from the smallest to one with properties.
fn format() -> impl Strategy<Value = Format> {
    let city = json!({ "type": "object", "properties": { "city": { "type": "string", "enum": ["Oslo", "Rome"] } },
        "required": ["city"], "additionalProperties": false });
    let several = json!({ "type": "object", "properties": { "cities": { "type": "array", "items": city },
        "note": { "type": ["string", "null"], "description": "a \"note\"" } } });
    let schema = select(vec![json!({ "type": "object" }), city, several]);
    schema.prop_map(|schema| Format::JsonSchema {
        name: None,
        description: None,
        schema,
        schema_at: JsonPointer::default(),
        strict: None,
    })
}

/// Conversations that every protocol can express, plus a response format, stop sequences and an effort.
fn conversations_with_settings() -> impl Strategy<Value = Conversation> {
    let stop = prop::collection::vec("[a-z \n]{1,3}", 0..7);
    let effort = prop::option::of(select(vec!["low", "medium", "high"]));
    (conversations(), prop::option::of(format()), stop, effort).prop_map(
        |(conversation, format, stop, effort)| {
            let given = |(index, text)| Located::new(text, format!("{STOP}{index}"));
            Conversation {
                format: format.map(|format| Located::new(format, "/format")),
                stop: stop.into_iter().enumerate().map(given).collect(),
                reasoning: Reasoning {
                    effort: effort.map(|effort| Located::new(effort.to_owned(), EFFORT)),
                    ..Reasoning::default()
                },
                ..conversation
            }
        },
    )
}

/// Closes all objects of a schema.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            if members.get("type") == Some(&json!("object")) {
                members.insert("additionalProperties".to_owned(), false.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// The places of the settings that a protocol can't express.
fn expected_losses(conversation: &Conversation, protocol: Protocol) -> Vec<JsonPointer> {
    let Conversation { stop, reasoning, tool_choice, .. } = conversation;
    let of_stop = |is_lost: fn(usize, &str) -> bool| {
        let stop = stop.iter().enumerate().filter(move |(index, stop)| is_lost(*index, &stop.value));
        stop.map(|(_, stop)| stop.at.clone()).collect::<Vec<_>>()
    };
    match protocol {
        // Its providers accept four.
        Protocol::Chat => of_stop(|index, _| index >= 4),
        // The gateway searches the answer for them.
        Protocol::Responses => Vec::new(),
        Protocol::Messages => {
            // Its providers reject thinking with a forced call or after calls whose thoughts are missing, and
            // whitespace-only stop sequences.
            let is_forced = tool_choice.as_ref().is_some_and(|choice| choice.value == ToolChoice::Required);
            let answered = conversation.turns.iter().rposition(|turn| turn.role == Role::Assistant);
            let is_result = |part: &Part| matches!(part.kind, PartKind::Result(_));
            let called = answered.is_some_and(|last| {
                conversation.turns[last..].iter().any(|turn| turn.parts.iter().any(is_result))
            });
            let effort = reasoning.effort.iter().filter(|_| is_forced || called);
            let effort = effort.map(|effort| effort.at.clone());
            effort.chain(of_stop(|_, text| text.trim().is_empty())).collect()
        }
        // Its providers accept five.
        Protocol::Native => of_stop(|index, _| index >= 5),
        Protocol::Converse => of_stop(|_, text| text.trim().is_empty()),
        Protocol::External(_) => unreachable!("these are the protocols of this crate"),
    }
}

/// Conversations that every protocol can express.
fn conversations() -> impl Strategy<Value = Conversation> {
    let exchanges = prop::collection::vec(exchange(), 0..4);
    let choice = prop::option::of(select(vec![ToolChoice::Auto, ToolChoice::Required, ToolChoice::None]));
    (prop::option::of(text()), exchanges, text(), choice, 16..5000_u64).prop_map(
        |(system, exchanges, last, choice, most)| {
            let mut turns = Vec::new();
            turns.extend(system.map(|text| turn(Role::System, vec![some(PartKind::Text(text))])));
            let mut count = 0;
            for (question, answer, calls) in exchanges {
                turns.push(turn(Role::User, question));
                let mut answer: Vec<Part> = answer.map(PartKind::Text).map(some).into_iter().collect();
                let mut results = Vec::new();
                for (city, weather) in calls {
                    count += 1;
                    let (id, name) = (format!("c{count}"), "weather".to_owned());
                    let input = Input::Json(json!({ "city": city }).to_string());
                    let call = ToolCall { id: id.clone(), name: name.clone(), input, signature: None };
                    answer.push(some(PartKind::Call(call)));
                    let parts = vec![some(PartKind::Text(weather))];
                    let name = Some(name);
                    let result = ToolResult { call_id: id, name, parts, failed: None, custom: false };
                    results.push(some(PartKind::Result(result)));
                }
                if !answer.is_empty() {
                    turns.push(turn(Role::Assistant, answer));
                }
                turns.extend(results.into_iter().map(|result| turn(Role::Tool, vec![result])));
            }
            turns.push(turn(Role::User, vec![some(PartKind::Text(last))]));
            let kind = ToolKind::Function {
                name: "weather".to_owned(),
                description: Some("Tells it.".to_owned()),
                parameters: Some(json!({ "type": "object", "properties": {} })),
                strict: None,
            };
            Conversation {
                model: "m".to_owned(),
                turns,
                tools: vec![Tool {
                    at: JsonPointer::default(),
                    kind,
                    schema_at: JsonPointer::default(),
                    cache: None,
                }],
                tool_choice: choice.map(|choice| Located::new(choice, "")),
                max_tokens: Some(Located::new(most, "")),
                ..Conversation::default()
            }
        },
    )
}

/// Runs a test for each protocol with many conversations.
fn every_conversation(
    conversations: &impl Strategy<Value = Conversation>,
    test: impl Fn(Protocol, Conversation) -> Result<(), TestCaseError>,
) {
    for (protocol, folder) in PROTOCOLS {
        let config = ProptestConfig {
            cases: tries(CONVERSATIONS),
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        // The same conversations in every run.
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let mut runner = TestRunner::new_with_rng(config, random);
        if let Err(error) = runner.run(conversations, |conversation| test(protocol, conversation)) {
            panic!("{folder}: {error}");
        }
    }
}

/// Reads back what was written.
fn read(protocol: Protocol, body: &Value) -> Result<Conversation, TestCaseError> {
    let back = protocol.request_in(body.clone(), "m", false);
    back.map_err(|malformed| TestCaseError::fail(format!("{malformed}: {body}")))
}

#[test]
fn supported_settings_round_trip_in_every_protocol() {
    // With a token budget, half of the tokens are reserved for the answer: this is for models that take an effort level.
    let defaults = Defaults { thinking: Thinking::Adaptive, ..DEFAULTS };
    every_conversation(&conversations_with_settings(), |protocol, mut conversation| {
        // Pretend another protocol: its own would also get back what its providers reject.
        let is_chat = protocol == Protocol::Chat;
        conversation.source = if is_chat { Protocol::Native } else { Protocol::Chat };
        let EncodedRequest { body, mut dropped } = protocol.request_out(&conversation, defaults);
        dropped.sort();
        prop_assert_eq!(&dropped, &expected_losses(&conversation, protocol), "{:#}", body);
        let back = read(protocol, &body)?;
        let schema = |format: Option<Located<Format>>| match format.map(|format| format.value) {
            Some(Format::JsonSchema { schema, .. }) => Some(schema),
            _ => None,
        };
        // Its providers enforce closed objects.
        let expected = schema(conversation.format).map(|mut schema| {
            if protocol == Protocol::Messages {
                close(&mut schema);
            }
            schema
        });
        prop_assert_eq!(schema(back.format), expected, "{:#}", body);
        let is_kept = |place: &JsonPointer| !dropped.contains(place);
        let stop: Vec<&str> = back.stop.iter().map(|stop| &*stop.value).collect();
        let is_written = protocol != Protocol::Responses;
        let expected = conversation.stop.iter().filter(|stop| is_written && is_kept(&stop.at));
        prop_assert_eq!(stop, expected.map(|stop| &*stop.value).collect::<Vec<_>>(), "{:#}", body);
        let expected = conversation.reasoning.effort.filter(|effort| is_kept(&effort.at));
        // A token budget stands for an effort level.
        let effort = match (back.reasoning.effort, back.reasoning.budget) {
            (None, Some(Located { value: ThinkingBudget::Tokens(tokens), .. })) => {
                Some(effort_of(tokens).to_owned())
            }
            (effort, _) => effort.map(|effort| effort.value),
        };
        prop_assert_eq!(effort, expected.map(|effort| effort.value), "{:#}", body);
        Ok(())
    });
}

#[test]
fn any_conversation_is_equivalent_in_every_protocol() {
    every_conversation(&conversations(), |protocol, conversation| {
        // Omitting a part shifts what is next to it: whitespace-only texts have tests of their own.
        let is_blank = |part: &Part| matches!(&part.kind, PartKind::Text(text) if !text.is_empty() && text.trim().is_empty());
        let has_blank = |part: &Part| match &part.kind {
            PartKind::Result(result) => result.parts.iter().any(is_blank),
            _ => is_blank(part),
        };
        if conversation.turns.iter().any(|turn| turn.parts.iter().any(has_blank)) {
            return Ok(());
        }
        let EncodedRequest { body, dropped } = protocol.request_out(&conversation, DEFAULTS);
        prop_assert!(dropped.is_empty(), "{:?}", dropped);
        let back = read(protocol, &body)?;
        let expected = role_contents(&conversation);
        // An empty conversation gets a placeholder text.
        if !expected.is_empty() {
            prop_assert_eq!(role_contents(&back), expected, "{:#}", body);
        }
        let value = |given: Option<Located<ToolChoice>>| given.map(|given| given.value);
        prop_assert_eq!(value(back.tool_choice), value(conversation.tool_choice), "{:#}", body);
        let most = back.max_tokens.map(|given| given.value);
        prop_assert_eq!(most, conversation.max_tokens.map(|given| given.value));
        prop_assert_eq!(tools(back.tools), tools(conversation.tools));
        Ok(())
    });
}
