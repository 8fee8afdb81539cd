//! The comments of methods: what the reference of Node tells of an operation, as tags that editors show.

use std::fmt::Write as _;

use super::reference::{describe, example};
use super::types::DEPRECATED;
use super::{doc, expression};
use crate::emit::docs::sentence;
use crate::emit::operation_docs::{ArgumentDocs, errors_of};
use crate::emit::{closed, described, origin};
use crate::model::{Api, Operation};

/// What a method gives, by one of its overloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer<'a> {
    /// The type of a result.
    Document(&'a str),
    /// That of a stream.
    Stream(&'a str),
    /// Text in place of a result.
    Text,
    /// One of these, as the body decides: the type of a result, text if the operation has it, and that of a stream.
    Any(&'a str, &'a str),
}

/// The comment of a method.
pub(super) fn method(api: &Api, operation: &Operation, answer: Answer<'_>) -> String {
    let asked = match answer {
        Answer::Stream(_) => operation.stream_switch().map(|switch| (switch.parameter.as_str(), switch.on())),
        Answer::Text => operation
            .text_form
            .as_ref()
            .and_then(|form| Some((form.parameter.as_str(), form.values.first()?.as_str().into()))),
        Answer::Document(_) | Answer::Any(..) => None,
    };
    let code = example(api, operation, asked);
    let code = code.map_or_else(String::new, |code| format!("@example\n```js\n{code}```"));
    doc(
        "  ",
        &[
            &operation.summary,
            &operation.description,
            &origin(&operation.source),
            &tags(api, operation, answer),
            if operation.deprecated { DEPRECATED } else { "" },
            &code,
        ],
    )
}

fn tags(api: &Api, operation: &Operation, answer: Answer<'_>) -> String {
    let described = describe(api, operation);
    let (sent, positional): (Vec<&ArgumentDocs>, Vec<&ArgumentDocs>) =
        described.arguments.iter().partition(|argument| argument.name.starts_with("params."));
    let mut lines: Vec<String> = positional
        .iter()
        .map(|argument| format!("@param {} - {}", argument.name, explained(argument)))
        .collect();
    if !sent.is_empty() {
        let required: Vec<String> = sent
            .iter()
            .filter(|argument| argument.required)
            .map(|argument| format!("`{}`", argument.name.trim_start_matches("params.")))
            .collect();
        let required = if required.is_empty() {
            "No member is required".to_owned()
        } else {
            format!("Required: {}", required.join(", "))
        };
        lines.push(format!("@param params - Parameters of the request. {required}."));
    }
    lines.push("@param options - Options of this call: `signal`, `timeoutMs`, `maxRetries`, `extraHeaders` and others.".to_owned());
    lines.push(format!("@returns {}", result(operation, answer)));
    let errors = errors_of(api, operation, |kind| kind.class.clone());
    if !errors.is_empty() {
        lines.push(format!("@throws {errors}, in addition to the errors that every call may throw."));
    }
    lines.join("\n")
}

/// What an argument is, with its bounds.
fn explained(argument: &ArgumentDocs) -> String {
    let about = argument.about.split_whitespace().collect::<Vec<_>>().join(" ");
    let rules = argument.rules.join("; ");
    let rules = if rules.is_empty() { rules } else { format!(" {}.", sentence(&rules)) };
    described(&format!("{}{rules}", closed(&about)), &argument.origin)
}

fn result(operation: &Operation, answer: Answer<'_>) -> String {
    let item = operation.stream.as_ref().map_or_else(String::new, |stream| expression(&stream.item));
    match answer {
        Answer::Document("undefined") => "Nothing, once it is done.".to_owned(),
        Answer::Text => "The answer as text.".to_owned(),
        Answer::Document(ty) => format!("The answer: `{ty}`."),
        Answer::Stream(ty) => format!("The events as they arrive (`{item}`): `{ty}`."),
        Answer::Any(document, stream) => {
            let mut out = format!("The answer: `{document}`.");
            if let Some(form) = &operation.text_form {
                let values: Vec<String> = form.values.iter().map(|value| format!("`{value}`")).collect();
                _ = write!(out, " With `{}` {}, text: `string`.", form.parameter, values.join(" or "));
            }
            if let Some(switch) = operation.stream_switch() {
                _ = write!(
                    out,
                    " With `{}: {}`, the events as they arrive (`{item}`): `{stream}`.",
                    switch.parameter,
                    switch.on()
                );
            }
            out
        }
    }
}
