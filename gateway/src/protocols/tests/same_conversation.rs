//! One conversation in the words of each protocol is one conversation.

use serde_json::{Value, json};

use super::{DEFAULTS, PROTOCOLS};
use crate::conversation::{
    Conversation, Given, Input, Part, PartKind, Place, Protocol, Source, ToolKind, Turn,
};

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
            "name": "weather", "description": "Tells it.", "parameters": { "type": "object" } } }],
        "tool_choice": "auto",
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.9,
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
            "type": "function", "name": "weather", "description": "Tells it.", "parameters": { "type": "object" } }],
        "tool_choice": "auto",
        "max_output_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.9,
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
        "tools": [{ "name": "weather", "description": "Tells it.", "input_schema": { "type": "object" } }],
        "tool_choice": { "type": "auto" },
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.9,
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
            { "name": "weather", "description": "Tells it.", "parametersJsonSchema": { "type": "object" } }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } },
        "generationConfig": { "maxOutputTokens": 64, "temperature": 0.5, "topP": 0.9 },
    })
}

fn nowhere<T>(given: &mut Given<T>) {
    given.at = Place::default();
}

/// The conversation without the places and the protocol.
fn bare(mut conversation: Conversation) -> Conversation {
    conversation.source = Protocol::Chat;
    conversation.own.clear();
    conversation.turns.iter_mut().for_each(bare_turn);
    for tool in &mut conversation.tools {
        tool.at = Place::default();
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
    turn.at = Place::default();
    turn.parts.iter_mut().for_each(bare_part);
}

fn bare_part(part: &mut Part) {
    part.at = Place::default();
    match &mut part.kind {
        PartKind::Result(result) => result.parts.iter_mut().for_each(bare_part),
        PartKind::Call(call) => assert!(matches!(call.input, Input::Json(_))),
        PartKind::Image(image) => assert!(matches!(image.source, Source::Inline(_))),
        _ => {}
    }
}

#[test]
fn the_same_conversation_in_every_protocol_is_the_same_neutral_conversation() {
    let [(_, first), rest @ ..] = requests();
    let first = bare(Protocol::Chat.request_in(first, "m", true).expect("a good request"));
    for (protocol, request) in rest {
        let other = bare(protocol.request_in(request, "m", true).expect("a good request"));
        assert_eq!(other, first, "{protocol:?}");
    }
}

#[test]
fn the_same_conversation_reaches_a_provider_in_the_same_words() {
    for (target, folder) in PROTOCOLS {
        let written: Vec<Value> = requests()
            .into_iter()
            .filter(|(source, _)| *source != target)
            .map(|(source, request)| {
                let conversation = source.request_in(request, "m", true).expect("a good request");
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
