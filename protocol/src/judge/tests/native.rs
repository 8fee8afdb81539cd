use serde_json::{Value, json};

use super::{Case, every_rule_refuses_and_takes};
use crate::conversation::Protocol;

fn content(role: &str, parts: &[Value]) -> Value {
    json!({ "role": role, "parts": parts })
}

fn user() -> Value {
    content("user", &[json!({ "text": "Hi" })])
}

fn call(name: &str) -> Value {
    json!({ "functionCall": { "name": name, "args": {} } })
}

fn response(name: &str) -> Value {
    json!({ "functionResponse": { "name": name, "response": { "output": "noon" } } })
}

fn contents(contents: &[Value]) -> Value {
    json!({ "contents": contents })
}

/// A question, parts by the model, and parts of the next turn.
fn turns(of_model: &[Value], of_user: &[Value]) -> Value {
    contents(&[user(), content("model", of_model), content("user", of_user)])
}

fn part(part: Value) -> Value {
    contents(&[content("user", &[part])])
}

fn config(config: Value) -> Value {
    json!({ "generationConfig": config })
}

fn declared(functions: &[Value]) -> Value {
    json!({ "tools": [{ "functionDeclarations": functions }] })
}

fn chosen(config: Value) -> Value {
    let mut request = declared(&[json!({ "name": "now" })]);
    request["toolConfig"] = json!({ "functionCallingConfig": config });
    request
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn every_native_rule_rejects_and_accepts() {
    let now = |parameters: Value| declared(&[json!({ "name": "now", "parameters": parameters })]);
    let inline = |kind: &str, data: &str| part(json!({ "inlineData": { "mimeType": kind, "data": data } }));
    let file = |uri: &str| part(json!({ "fileData": { "mimeType": "image/png", "fileUri": uri } }));
    let responded = |response: Value| {
        turns(&[call("now")], &[json!({ "functionResponse": { "name": "now", "response": response } })])
    };
    let with_id = |mut part: Value, member: &str, id: &str| {
        part[member]["id"] = id.into();
        part
    };
    let stops = |count: usize| config(json!({ "stopSequences": vec!["a"; count] }));
    let thinking = |thinking: Value| config(json!({ "thinkingConfig": thinking }));
    let schema = json!({ "type": "OBJECT" });
    let cases: Vec<Case> = vec![
        ("contents_are_there", json!({ "contents": [] }), json!({})),
        ("contents_are_there", contents(&[content("user", &[])]), contents(&[user()])),
        (
            "texts_are_not_empty",
            part(json!({ "text": "" })),
            turns(&[json!({ "text": "", "thoughtSignature": "AA==" })], &[json!({ "text": " " })]),
        ),
        (
            "roles_are_known",
            contents(&[content("assistant", &[json!({ "text": "x" })])]),
            contents(&[user()]),
        ),
        (
            "roles_are_known",
            contents(&[user(), content("model", &[call("now")]), content("tools", &[response("now")])]),
            contents(&[user(), content("model", &[call("now")]), content("tool", &[response("now")])]),
        ),
        (
            "results_follow_their_calls",
            turns(&[call("now")], &[json!({ "text": "x" })]),
            turns(&[call("now")], &[response("now")]),
        ),
        (
            "results_follow_their_calls",
            contents(&[user(), content("model", &[call("now")])]),
            contents(&[user()]),
        ),
        (
            "results_follow_their_calls",
            turns(&[call("now"), call("then")], &[response("now"), response("now")]),
            turns(&[call("now"), call("then")], &[response("then"), json!({ "text": "x" }), response("now")]),
        ),
        (
            "results_follow_their_calls",
            turns(
                &[with_id(call("now"), "functionCall", "1")],
                &[with_id(response("now"), "functionResponse", "2")],
            ),
            turns(
                &[with_id(call("now"), "functionCall", "1")],
                &[with_id(response("now"), "functionResponse", "1")],
            ),
        ),
        (
            "calls_follow_the_user",
            contents(&[
                user(),
                content("model", &[json!({ "text": "x" })]),
                content("model", &[call("now")]),
                content("user", &[response("now")]),
            ]),
            turns(&[json!({ "text": "x" }), call("now")], &[response("now")]),
        ),
        (
            "calls_follow_the_user",
            contents(&[content("model", &[call("now")]), content("user", &[response("now")])]),
            turns(&[call("now")], &[response("now")]),
        ),
        ("names_of_tools", declared(&[json!({ "name": "0a" })]), declared(&[json!({ "name": "_a.b:c-d" })])),
        (
            "names_of_tools",
            turns(&[call(&"x".repeat(65))], &[response(&"x".repeat(65))]),
            turns(&[call(&"x".repeat(64))], &[response(&"x".repeat(64))]),
        ),
        (
            "names_of_tools_are_unique",
            declared(&[json!({ "name": "a" }), json!({ "name": "a" })]),
            declared(&[json!({ "name": "a" })]),
        ),
        (
            "arguments_and_results_are_objects",
            responded(json!("noon")),
            responded(json!({ "output": "noon" })),
        ),
        (
            "arguments_and_results_are_objects",
            responded(json!({ "a": { "$ref": "x" } })),
            responded(json!({ "output": "{\"$ref\":\"x\"}" })),
        ),
        (
            "arguments_and_results_are_objects",
            turns(&[json!({ "functionCall": { "name": "now", "args": "{}" } })], &[response("now")]),
            turns(&[json!({ "functionCall": { "name": "now" } })], &[response("now")]),
        ),
        (
            "proofs_are_base64",
            turns(&[json!({ "text": "x", "thoughtSignature": "s|1" })], &[json!({ "text": "y" })]),
            turns(&[json!({ "text": "x", "thoughtSignature": "CgYB" })], &[json!({ "text": "y" })]),
        ),
        (
            "thoughts_are_of_the_model",
            part(json!({ "text": "x", "thoughtSignature": "CgYB" })),
            turns(&[json!({ "text": "x", "thought": true })], &[json!({ "text": "y" })]),
        ),
        ("parts_say_one_thing", part(json!({ "thoughtSignature": "CgYB" })), part(json!({ "text": "x" }))),
        ("media_have_their_form", inline("image/png;charset=x", "AAAA"), inline("image/svg+xml", "AAAA")),
        ("media_have_their_form", inline("image/png", "AA AA"), inline("image/png", "AA==")),
        ("media_have_their_form", file("data:image/png;base64,AAAA"), file("gs://bucket/i.png")),
        (
            "instructions_are_texts",
            json!({ "systemInstruction": { "parts": [] } }),
            json!({ "systemInstruction": { "parts": [{ "text": "x" }] } }),
        ),
        (
            "parameters_are_objects",
            declared(&[json!({ "name": "a", "parametersJsonSchema": { "type": ["string"] } })]),
            now(json!({ "type": "OBJECT", "properties": {} })),
        ),
        (
            "one_form_of_schema",
            declared(&[json!({ "name": "a", "parameters": schema, "parametersJsonSchema": {} })]),
            declared(&[json!({ "name": "a", "parametersJsonSchema": { "$defs": {} } })]),
        ),
        (
            "references_stand_alone",
            declared(&[
                json!({ "name": "a", "parametersJsonSchema": { "$ref": "#/$defs/A", "title": "a" } }),
            ]),
            declared(&[
                json!({ "name": "a", "parametersJsonSchema": { "$ref": "#/$defs/A", "default": 1 } }),
            ]),
        ),
        (
            "references_stand_alone",
            json!({ "generationConfig": { "responseMimeType": "application/json",
                "responseJsonSchema": { "items": { "$ref": "#/$defs/A", "minItems": 1 } } } }),
            json!({ "generationConfig": { "responseMimeType": "application/json",
                "responseJsonSchema": { "items": { "$ref": "#/$defs/A", "description": "a" } } } }),
        ),
        (
            "older_schemas",
            now(json!({ "type": "OBJECT", "additionalProperties": false })),
            now(json!({ "type": "OBJECT", "properties": { "const": { "type": "STRING" } } })),
        ),
        (
            "older_schemas",
            now(json!({ "type": ["OBJECT", "NULL"] })),
            now(json!({ "type": "OBJECT", "nullable": true })),
        ),
        (
            "a_choice_has_its_tools",
            json!({ "toolConfig": { "functionCallingConfig": { "mode": "AUTO" } } }),
            chosen(json!({ "mode": "AUTO" })),
        ),
        (
            "a_choice_has_its_tools",
            chosen(json!({ "mode": "AUTO", "allowedFunctionNames": ["now"] })),
            chosen(json!({ "mode": "ANY", "allowedFunctionNames": ["now"] })),
        ),
        (
            "a_choice_has_its_tools",
            chosen(json!({ "mode": "ANY", "allowedFunctionNames": ["then"] })),
            chosen(json!({ "mode": "NONE" })),
        ),
        ("five_stops", stops(6), stops(5)),
        (
            "a_schema_has_its_media_type",
            config(json!({ "responseSchema": schema })),
            config(json!({ "responseSchema": schema, "responseMimeType": "application/json" })),
        ),
        (
            "a_schema_has_its_media_type",
            config(json!({ "responseSchema": { "enum": ["a"] }, "responseMimeType": "text/plain" })),
            config(json!({ "responseSchema": { "enum": ["a"] }, "responseMimeType": "text/x.enum" })),
        ),
        (
            "one_way_to_think",
            thinking(json!({ "thinkingBudget": 1, "thinkingLevel": "low" })),
            thinking(json!({ "thinkingBudget": -1 })),
        ),
        (
            "one_way_to_think",
            thinking(json!({ "thinkingLevel": "max" })),
            thinking(json!({ "thinkingLevel": "HIGH" })),
        ),
        ("numbers_are_in_range", config(json!({ "temperature": 2.5 })), config(json!({ "temperature": 2 }))),
        ("members_are_known", json!({ "stream": true }), json!({ "labels": {} })),
        (
            "members_are_known",
            part(json!({ "text": "x", "cache_control": {} })),
            part(json!({ "text": "x", "partMetadata": {} })),
        ),
        (
            "members_are_known",
            part(json!({ "toolResult": {} })),
            part(json!({ "toolResponse": { "toolType": "GOOGLE_SEARCH_WEB", "response": {} } })),
        ),
        (
            "calls_have_proofs",
            turns(&[call("now")], &[response("now")]),
            turns(
                &[json!({ "functionCall": { "name": "now", "args": {} }, "thoughtSignature": "AA==" })],
                &[response("now")],
            ),
        ),
    ];
    every_rule_refuses_and_takes(Protocol::Native, &contents(&[user()]), &cases);
}
