//! The page of the catalog: a table for each of its lists, with the members that its schema describes.

use std::fmt::Write as _;

use serde_json::Value;

use super::{cell, sentence};
use crate::model::{Api, Field, Kind, Type};

pub(super) fn page(api: &Api) -> String {
    let mut out = "# Model catalog\n\nWhat the specification does not state is not stated here, and never guessed. `x-ours` \
                   names the members whose value this gateway chose, in whole or in part; [gaps](../../spec/gaps.md) says why.\n"
        .to_owned();
    let data = serde_json::to_value(&api.catalog).expect("it was read from JSON");
    let form = api.catalog_types.values().next().expect("a schema describes the catalog");
    for field in members(api, &form.name) {
        let rows = match &data[&field.name] {
            Value::Array(rows) => rows.as_slice(),
            row @ Value::Object(_) => std::slice::from_ref(row),
            // `$schema` and `$comment`, for readers of the file.
            _ => continue,
        };
        let (Type::Ref(row), description) = (row_type(&field.ty), field.description.as_str()) else {
            continue;
        };
        let columns = members(api, row);
        let name = sentence(&field.name.replace('_', " "));
        _ = write!(out, "\n## {name}\n\n{description}\n\n");
        for column in columns.iter().filter(|column| !column.description.is_empty()) {
            let meaning = column.description.replace("`None`", "not stated");
            _ = writeln!(out, "- `{}`: {meaning}", column.name);
        }
        table(&mut out, columns, rows);
    }
    out
}

fn table(out: &mut String, columns: &[Field], rows: &[Value]) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push('\n');
    *out += &line(columns.iter().map(|column| format!("`{}`", column.name)).collect());
    *out += &line(columns.iter().map(|_| "---".to_owned()).collect());
    for row in rows {
        *out += &line(columns.iter().map(|column| cell(&shown(&row[&column.name]))).collect());
    }
}

/// The members of an object of the catalog.
fn members<'a>(api: &'a Api, name: &str) -> &'a [Field] {
    match &api.catalog_types[name].kind {
        Kind::Object(object) => &object.fields,
        _ => &[],
    }
}

fn row_type(ty: &Type) -> &Type {
    if let Type::Array(row) = ty { row } else { ty }
}

/// Whether a text is an id and not for a person.
fn is_word(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_lowercase()) && !text.contains(char::is_whitespace)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "not stated".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) if is_word(text) => format!("`{text}`"),
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let texts = values.iter().map(|value| value.as_str().map_or_else(|| shown(value), str::to_owned));
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
