//! Operations of other APIs, whose clients the generator makes. The bindings name an operation by its id, which is the name of
//! the API, a slash, and the id there; the table of operations is ours.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use serde::Deserialize;

use crate::api::operation::{
    ErrorStyle, FormMember, Method, Operation, Protocol, ResponseBody, StreamMode, TextForm,
};

static OPERATIONS: RwLock<BTreeMap<&'static str, Rows>> = RwLock::new(BTreeMap::new());

/// The rows of an operation.
#[derive(Clone, Copy)]
struct Rows {
    operation: &'static Operation,
    /// The same with a response that is text, if a member of the body may ask for it.
    as_text: Option<&'static Operation>,
}

/// A row, as the generator writes it to JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    method: Method,
    path: String,
    path_parameters: Vec<String>,
    slashed_parameters: Vec<String>,
    query_parameters: Vec<String>,
    joined_query: Vec<String>,
    header_parameters: Vec<String>,
    fixed_query: Vec<(String, String)>,
    has_body: bool,
    form: Vec<FormRow>,
    response: BodyKind,
    text_form: Option<TextRow>,
    stream: StreamKind,
    terminator: Option<String>,
    last_events: Vec<String>,
    resource: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormRow {
    name: String,
    field: String,
    is_file: bool,
    is_list: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum StreamKind {
    Never,
    Always,
    Parameter(String),
    Word(String, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextRow {
    parameter: String,
    values: Vec<String>,
    media_type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum BodyKind {
    Object,
    Array,
    Nothing,
    Text(String),
    Bytes(String),
}

/// Adds operations for the rest of the process. Errors: what is wrong with the JSON.
pub fn register(json: &str) -> Result<(), String> {
    let rows: Vec<Row> = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let mut operations = OPERATIONS.write().unwrap_or_else(PoisonError::into_inner);
    for row in rows {
        let operation = leaked_operation(row);
        let as_text = operation.text_form.map(|form| -> &'static Operation {
            Box::leak(Box::new(Operation { response: ResponseBody::Text(form.media_type), ..*operation }))
        });
        operations.insert(operation.id, Rows { operation, as_text });
    }
    Ok(())
}

/// An operation that was added.
pub(crate) fn by_id(id: &str) -> Option<&'static Operation> {
    rows(id).map(|rows| rows.operation)
}

/// The row of an operation that was added, with a response that is text.
pub(crate) fn as_text(id: &str) -> Option<&'static Operation> {
    rows(id)?.as_text
}

fn rows(id: &str) -> Option<Rows> {
    OPERATIONS.read().unwrap_or_else(PoisonError::into_inner).get(id).copied()
}

fn leaked_operation(row: Row) -> &'static Operation {
    Box::leak(Box::new(Operation {
        id: text(row.id),
        method: row.method,
        path: text(row.path),
        path_parameters: texts(row.path_parameters),
        slashed_parameters: texts(row.slashed_parameters),
        query_parameters: texts(row.query_parameters),
        joined_query: texts(row.joined_query),
        header_parameters: texts(row.header_parameters),
        fixed_query: row
            .fixed_query
            .into_iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect::<Vec<_>>()
            .leak(),
        has_body: row.has_body,
        form: row.form.into_iter().map(form_member).collect::<Vec<_>>().leak(),
        response: match row.response {
            BodyKind::Object => ResponseBody::Object,
            BodyKind::Array => ResponseBody::Array,
            BodyKind::Nothing => ResponseBody::Nothing,
            BodyKind::Text(media_type) => ResponseBody::Text(text(media_type)),
            BodyKind::Bytes(media_type) => ResponseBody::Bytes(text(media_type)),
        },
        text_form: row.text_form.map(|TextRow { parameter, values, media_type }| TextForm {
            parameter: text(parameter),
            values: texts(values),
            media_type: text(media_type),
        }),
        stream: match row.stream {
            StreamKind::Never => StreamMode::Never,
            StreamKind::Always => StreamMode::Always,
            StreamKind::Parameter(name) => StreamMode::Parameter(text(name)),
            StreamKind::Word(name, word) => StreamMode::Word(text(name), text(word)),
        },
        terminator: row.terminator.map(text),
        protocol: Protocol::Models,
        error_style: ErrorStyle::Standard,
        last_events: texts(row.last_events),
        models: None,
        conversation: None,
        webhook_url: None,
        inference: None,
        iterable: None,
        resource: text(row.resource),
        name: text(row.name),
        source: "ours",
    }))
}

fn form_member(row: FormRow) -> FormMember {
    let FormRow { name, field, is_file, is_list } = row;
    FormMember { name: text(name), field: text(field), is_file, is_list }
}

fn text(owned: String) -> &'static str {
    owned.leak()
}

fn texts(owned: Vec<String>) -> &'static [&'static str] {
    owned.into_iter().map(text).collect::<Vec<_>>().leak()
}
