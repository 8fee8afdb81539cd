//! The examples of `new` of request types: a value is built, and a field has the given value.

use std::collections::BTreeSet;

use serde_json::Value;
use syn::{Field, ItemStruct};

use super::{COLUMNS, Examples, laid_out, variable};
use crate::emit::rust::fields::wire_name;
use crate::emit::samples::written;
use crate::emit::shown_code;

impl Examples<'_> {
    /// The example of `new`, as comment lines; none if a required member cannot be expressed in Rust.
    pub(in crate::emit::rust) fn of_new(&self, item: &ItemStruct) -> Option<String> {
        let name = item.ident.to_string();
        self.named.replace(BTreeSet::new());
        let mut members = self.samples.object(&name);
        let given = |wire: &String| {
            item.fields.iter().any(|field| !self.known.spare(field) && wire_of(field).as_ref() == Some(wire))
        };
        members.retain(|wire, _| given(wire));
        let variable = variable(&name);
        let statement = laid_out(&format!("let {variable} = {};", self.constructed(&name, &members)?))?;
        let check = self.check(&variable, &name, &members, 0).map(|check| check + "\n");
        let check = check.or_else(|| Some(self.kind_check(&variable, &name, &members)? + "\n"));
        let check = check.or_else(|| {
            let (wire, value) = members.iter().next()?;
            Some(on_the_wire(&variable, wire, value))
        });
        Some(self.lines(&(statement + &check?)))
    }

    fn lines(&self, body: &str) -> String {
        let error = if body.contains(")?") { "serde_json::Error" } else { "" };
        shown_code(&self.program(body, error), "    /// ")
    }
}

/// An assertion about a member of the JSON that is sent: the complete member if it is short, otherwise one of its texts or numbers.
fn on_the_wire(holder: &str, wire: &str, value: &Value) -> String {
    let json = compared(value);
    let mut place = format!("[{wire:?}]");
    let whole = format!("let json = serde_json::to_value(&{holder})?;\nassert_eq!(json{place}, {json});\n");
    let short = format!("assert_eq!(serde_json::to_value(&{holder})?{place}, {json});\n");
    if short.len() <= COLUMNS {
        return short;
    }
    if whole.lines().all(|line| line.len() <= COLUMNS) {
        return whole;
    }
    let mut inner = value;
    while let Some((step, next)) = within(inner) {
        place += &step;
        inner = next;
    }
    format!("let json = serde_json::to_value(&{holder})?;\nassert_eq!(json{place}, {});\n", compared(inner))
}

/// The expression that JSON is compared with.
fn compared(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => format!("serde_json::json!({})", written(value, 0, usize::MAX)),
    }
}

/// The step into a value, and the value there: a member other than the kind, if there is one.
fn within(value: &Value) -> Option<(String, &Value)> {
    match value {
        Value::Array(items) => items.first().map(|item| ("[0]".to_owned(), item)),
        Value::Object(members) => {
            let other = members.iter().find(|(name, _)| *name != "type");
            other.or_else(|| members.iter().next()).map(|(name, value)| (format!("[{name:?}]"), value))
        }
        _ => None,
    }
}

fn wire_of(field: &Field) -> Option<String> {
    field.ident.as_ref().map(|ident| wire_name(&field.attrs, ident))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_values_are_compared_by_one_text() {
        let short = on_the_wire("pen", "inks", &json!(["red"]));
        assert_eq!(
            short,
            "assert_eq!(serde_json::to_value(&pen)?[\"inks\"], serde_json::json!([\"red\"]));\n"
        );
        let name = "assert_eq!(json[\"inks\"][0][\"colour\"][\"name\"], \"red\");";
        let many = json!([{ "type": "liquid", "colour": { "name": "red" }, "about": "x".repeat(COLUMNS) }]);
        assert_eq!(on_the_wire("pen", "inks", &many).lines().last(), Some(name));
    }
}
