//! The form of each member (type, values, whether it is required) that the source states, against the specification: a
//! member with another form is marked by `x-added` and listed in gaps.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::gaps;
use crate::document::text;
use crate::fixture::own_sources;
use crate::load::Sources;
use crate::schema::{is_null, types, variants};

/// Every member that the source lists (2.1 to 2.8, 2.11), with the form that it states there.
const STATED: &[(&str, &[(&str, &str)])] = &[
    (
        "ChatCompletionRequest",
        &[
            ("model", "required string"),
            ("messages", "required array of ChatMessage"),
            ("temperature", "number"),
            ("max_tokens", "integer"),
            ("stream", "boolean"),
            ("top_p", "number"),
            ("frequency_penalty", "number"),
            ("presence_penalty", "number"),
            ("stop", "string or array of string"),
            ("n", "integer"),
        ],
    ),
    ("ChatMessage", &[("role", "required system, user, assistant"), ("content", "required string")]),
    (
        "ChatCompletion",
        &[
            ("id", "required string"),
            ("object", "required \"chat.completion\""),
            ("created", "required integer"),
            ("model", "required string"),
            ("choices", "required array of ChatChoice"),
            ("usage", "required ChatUsage"),
        ],
    ),
    (
        "ChatChoice",
        &[
            ("index", "required integer"),
            ("message", "required ChatCompletionMessage"),
            ("finish_reason", "required string"),
        ],
    ),
    ("ChatCompletionMessage", &[("role", "required assistant"), ("content", "required string")]),
    (
        "ChatUsage",
        &[
            ("prompt_tokens", "required integer"),
            ("completion_tokens", "required integer"),
            ("total_tokens", "required integer"),
        ],
    ),
    (
        "ChatCompletionChunk",
        &[
            ("id", "required string"),
            ("object", "required \"chat.completion.chunk\""),
            ("choices", "required array of ChatChunkChoice"),
        ],
    ),
    (
        "ChatChunkChoice",
        &[
            ("index", "required integer"),
            ("delta", "required ChatDelta"),
            ("finish_reason", "required stop or null"),
        ],
    ),
    ("ChatDelta", &[("content", "string")]),
    ("ResponseRequest", &[("model", "required string"), ("input", "required string")]),
    ("GenerateContentRequest", &[("contents", "required array of NativeContent")]),
    ("NativeContent", &[("parts", "required array of NativePart")]),
    ("NativePart", &[("text", "required string")]),
    (
        "VideoGenerationRequest",
        &[
            ("model", "required string"),
            ("prompt", "required string"),
            ("duration", "integer"),
            ("resolution", "720p, 1080p"),
            ("aspect_ratio", "16:9, 9:16, 1:1"),
            ("webhook_url", "string"),
        ],
    ),
    (
        "VideoTask",
        &[
            ("id", "required string"),
            ("status", "required pending, processing, completed, failed"),
            ("created", "required integer"),
            ("model", "required string"),
            ("estimated_time", "integer"),
            ("output", "VideoOutput"),
            ("error", "VideoError"),
        ],
    ),
    (
        "VideoOutput",
        &[
            ("url", "required string"),
            ("duration", "required integer"),
            ("resolution", "required string"),
            ("format", "required string"),
        ],
    ),
    ("VideoError", &[("message", "required string")]),
    (
        "ImageGenerationRequest",
        &[
            ("model", "required string"),
            ("prompt", "required string"),
            ("n", "integer"),
            ("size", "string"),
            ("quality", "standard, hd"),
            ("style", "vivid, natural"),
            ("response_format", "url, b64_json"),
        ],
    ),
    ("ImageGenerationResponse", &[("created", "required integer"), ("data", "required array of Image")]),
    ("Image", &[("url", "string"), ("revised_prompt", "string"), ("b64_json", "string")]),
];

/// The form of a schema in words, without null if `takes_null` indicates that null means absence.
fn form(node: &Value, takes_null: bool) -> String {
    let null = if takes_null { "" } else { " or null" };
    if let Some(name) = text(node, "$ref").strip_prefix("#/components/schemas/") {
        return name.to_owned();
    }
    if let Some(value) = node.get("const") {
        return value.to_string();
    }
    let (names, is_nullable) =
        types(node).expect("the specification states types as the generator reads them");
    let words = |key: &str| {
        let values = node.get(key)?.as_array()?.iter().filter_map(Value::as_str);
        Some(values.collect::<Vec<_>>().join(", "))
    };
    let all: Vec<&Value> = variants(node).collect();
    let form = if let Some(values) = words("enum") {
        values
    } else if let Some(values) = words("x-extensible-enum") {
        format!("{values}, …")
    } else if node.get("oneOf").is_some() {
        let forms: Vec<String> =
            all.iter().filter(|form| !is_null(form)).map(|inner| form(inner, false)).collect();
        forms.join(" or ")
    } else if let Some(items) = node.get("items") {
        format!("array of {}", form(items, false))
    } else {
        names.join(" or ")
    };
    let is_nullable = is_nullable || all.iter().any(|form| is_null(form));
    if is_nullable { form + null } else { form }
}

/// Member → its form, and our additions to it; without members that are entirely ours.
fn members(sources: &Sources) -> BTreeMap<(String, String), (String, String)> {
    let mut found = BTreeMap::new();
    for (name, schema) in sources.openapi.members("/components/schemas") {
        if text(schema, "x-source") == "ours" {
            continue;
        }
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (member, node) in schema["properties"].as_object().into_iter().flatten() {
            if text(node, "x-source") == "ours" {
                continue;
            }
            let is_required = required.contains(&member.as_str());
            // Every optional request member accepts null (gaps.md), but no response member does.
            let stated = if is_required { "required " } else { "" };
            let is_request = name.ends_with("Request") || name.starts_with("Native");
            let form = format!("{stated}{}", form(node, !is_required && is_request));
            found.insert((name.to_owned(), member.clone()), (form, text(node, "x-added").to_owned()));
        }
    }
    found
}

#[test]
fn unmarked_member_types_match_the_source() {
    let sources = own_sources();
    let found = members(&sources);
    let stated: BTreeMap<(String, String), &str> = STATED
        .iter()
        .flat_map(|(owner, members)| {
            members.iter().map(|(name, form)| (((*owner).to_owned(), (*name).to_owned()), *form))
        })
        .collect();
    let names = |map: Vec<&(String, String)>| map.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(
        names(found.keys().collect()),
        names(stated.keys().collect()),
        "a member that the source lacks has x-source: ours"
    );
    for (member, (form, added)) in &found {
        let stated = stated[member];
        assert!(
            form == stated || !added.is_empty(),
            "{member:?} is {form:?}, but the source states {stated:?}; mark the difference by x-added"
        );
    }
}

#[test]
fn our_member_additions_are_listed_in_gaps() {
    let listed = gaps("Members whose form is partly ours");
    let sources = own_sources();
    let marked: BTreeSet<(String, String)> = members(&sources)
        .into_iter()
        .filter(|(_, (_, added))| !added.is_empty())
        .map(|((owner, member), (_, added))| (format!("{owner}.{member}"), added))
        .collect();
    assert_eq!(listed, marked, "spec/gaps.md lists what x-added of spec/openapi.yaml says");
}
