//! The allowed responses of an operation: one kind of success, which is JSON, text, bytes (of one or several media types) or nothing.
//! Events may stand beside each, and text beside JSON where a member of the body asks for it.

use serde_json::Value;

use super::Problems;
use crate::document::{Document, child, members_of, responses};
use crate::schema::{is_null, types, variants};

/// Media types of bytes, and their prefixes.
const BYTES: &[&str] = &[
    "application/gzip",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
    "audio/",
    "font/",
    "image/",
    "video/",
];

/// Reports problems with the successful responses of an operation.
pub(super) fn lint_success(document: &Document, operation: &Value, at: &str, problems: &mut Problems) {
    let at = child(at, "responses");
    let successes: Vec<(&String, &Value)> =
        responses(operation).filter(|(status, _)| status.starts_with('2')).collect();
    let [(status, response)] = successes.as_slice() else {
        let message = if successes.is_empty() {
            "no 2xx response; add one, such as \"200\" or \"204\"".to_owned()
        } else {
            let statuses: Vec<&str> = successes.iter().map(|(status, _)| status.as_str()).collect();
            format!("only one 2xx response is supported; keep one of {}", statuses.join(", "))
        };
        return problems.report(&at, message);
    };
    let at = child(&at, status);
    let Ok(response) = document.follow(response) else {
        return problems.report(&at, "the reference points at nothing; correct it");
    };
    let at = child(&at, "content");
    let content: Vec<(&String, &Value)> = members_of(response, "content").collect();
    let mut report = |at: &str, message: String| problems.report(at, message);
    if ["204", "205"].contains(&status.as_str()) && !content.is_empty() {
        report(&at, format!("{status} has no content; remove it, or answer with 200"));
    }
    let is_asked_for = |media: &Value| media.get("x-when").is_some();
    let plain = content.iter().filter(|(kind, media)| *kind != "text/event-stream" && !is_asked_for(media));
    let plain: Vec<&str> = plain.map(|(kind, _)| kind.as_str()).collect();
    if plain.len() > 1
        && !plain.iter().all(|kind| is_bytes(kind))
        && let Some(other) = plain.iter().find(|kind| **kind != "application/json")
    {
        report(
            &at,
            format!(
                "{other} stands beside another answer; keep one, make two operations of it, or, if a member of the body asks \
                 for a text, name it in x-when"
            ),
        );
    }
    if let Some((kind, _)) = content.iter().find(|(kind, media)| {
        is_asked_for(media)
            && (!kind.starts_with("text/") || *kind == "text/event-stream" || plain != ["application/json"])
    }) {
        report(
            &child(&child(&at, kind), "x-when"),
            "only a text beside application/json has x-when; remove it".to_owned(),
        );
    }
    if content.iter().filter(|(_, media)| is_asked_for(media)).count() > 1 {
        report(&at, "x-when stands at two texts; one media type has all values".to_owned());
    }
    let always = operation.pointer("/x-stream/always") == Some(&Value::Bool(true));
    for (kind, media) in content {
        let at = child(&at, kind);
        let schema = media.get("schema").cloned().unwrap_or_default();
        match kind.as_str() {
            "text/event-stream" => {}
            "application/json" if always => {
                report(&at, "an operation that always streams has no other answer; remove it".to_owned());
            }
            "application/json" => {
                if container(document, &schema).is_none() {
                    report(
                        &child(&at, "schema"),
                        "JSON that is an answer is an object or an array, and never null; put the value into an object"
                            .to_owned(),
                    );
                }
            }
            kind if kind.contains(';') => {
                report(&at, "a media type has no parameters here, and text is UTF-8; remove them".to_owned());
            }
            kind if !kind.starts_with("text/") && !is_bytes(kind) => {
                report(
                    &at,
                    "no such answer is generated; make it application/json, text/…, or bytes: application/octet-stream, \
                     image/…, audio/…, video/…"
                        .to_owned(),
                );
            }
            kind if kind.contains('*') => {
                report(&at, "a range is no media type; name one, or application/octet-stream".to_owned());
            }
            _ => {
                if !schema.is_null() && schema.get("type") != Some(&Value::from("string")) {
                    let message = "text and bytes are of {type: string}; structured data is application/json";
                    report(&child(&at, "schema"), message.to_owned());
                }
            }
        }
    }
}

fn is_bytes(kind: &str) -> bool {
    BYTES.iter().any(|bytes| kind.starts_with(bytes))
}

/// `object` or `array`, if a schema allows nothing else.
fn container<'doc>(document: &'doc Document, schema: &'doc Value) -> Option<&'doc str> {
    let schema = document.follow(schema).ok()?;
    if schema.get("oneOf").is_some() {
        let mut containers = variants(schema)
            .map(|variant| if is_null(variant) { None } else { container(document, variant) });
        let first = containers.next()??;
        return containers.all(|container| container == Some(first)).then_some(first);
    }
    if schema.get("properties").is_some() || schema.get("allOf").is_some() {
        return (!types(schema).ok()?.1).then_some("object");
    }
    match types(schema).ok()? {
        (names, false) => match names.as_slice() {
            [name @ ("object" | "array")] => Some(name),
            _ => None,
        },
        _ => None,
    }
}
