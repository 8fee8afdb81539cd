//! The examples of `new` and of the setters of the types that people send: a value is built, and a field is what was given.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use syn::{Field, ItemStruct, Type};

use super::{COLUMNS, Examples, FieldValue, chained, laid_out, plain_check, variable};
use crate::emit::rust::fields::{self, wire_name};
use crate::emit::rust::known::{TypeFacts, arguments, is_boxed_option, last};
use crate::emit::samples::written;
use crate::emit::shown_code;

impl Examples<'_> {
    /// The example of `new`, as the lines of a comment; none if a required member cannot be said in Rust.
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
            Some(on_the_wire(&variable, wire, value, false))
        });
        Some(self.lines(&(statement + &check?)))
    }

    /// The example of the setter of a field, as the lines of a comment; none if it or a required member cannot be said in
    /// Rust.
    pub(in crate::emit::rust) fn of_setter(&self, item: &ItemStruct, field: &Field) -> Option<String> {
        let name = item.ident.to_string();
        self.named.replace(BTreeSet::new());
        let wire = wire_of(field)?;
        // A union of objects has a kind of its own for some members.
        let holder = self.samples.holder(&name, &wire)?;
        let own = self.samples.fields(holder).iter().find(|own| own.name == wire)?;
        let whole = self.samples.object(holder);
        let mut required = whole.clone();
        required.retain(|member, _| {
            *member != wire
                && self.samples.fields(holder).iter().any(|own| own.required && own.name == *member)
        });
        let value = whole.get(&wire).cloned().unwrap_or_else(|| self.samples.member(own));
        let (start, value) =
            match self.constructed(&name, &required).or_else(|| self.without(&name, &whole, &wire)) {
                Some(start) => (start, self.filled(field, value)),
                // Its `new` is written by hand, and sets this field.
                None => (self.constructed(&name, &whole)?, self.another(field)?),
            };
        let variable = variable(&name);
        let statement = set(&variable, &start, field, &self.argument(field, &value)?)?;
        let place = format!("{variable}.{}", fields::name(field));
        let held = FieldValue { place, wire, ty: &field.ty, value: &value };
        let check = plain_check(&held).or_else(|| self.word(&held)).map(|check| check + "\n");
        let check =
            check.unwrap_or_else(|| on_the_wire(&variable, &held.wire, &value, self.is_sparse(&field.ty)));
        Some(self.lines(&(statement + &check)))
    }

    /// A value of a type whose `new` is written by hand, if the example of the type has not the member.
    fn without(&self, name: &str, whole: &Map<String, Value>, member: &str) -> Option<String> {
        if whole.contains_key(member) { None } else { self.constructed(name, whole) }
    }

    /// A value of the last form of a field that is a union.
    fn another(&self, field: &Field) -> Option<Value> {
        let union = last(TypeFacts::parameter_type(field))?;
        let (_, form) = self.unions.get(&union)?.last()?;
        self.sample(form, &union)
    }

    /// A value that says something: an object without required members gets one that is optional.
    fn filled(&self, field: &Field, mut value: Value) -> Value {
        if let (Some(members), Some(ty)) = (value.as_object_mut(), last(TypeFacts::parameter_type(field)))
            && members.is_empty()
        {
            self.add_optional(&ty, members);
        }
        value
    }

    /// Whether objects of a type are sent with members that nobody set.
    fn is_sparse(&self, ty: &Type) -> bool {
        if let Some(inner) = arguments(ty).last() {
            return self.is_sparse(inner);
        }
        let item = last(ty).and_then(|name| self.structs.get(&name));
        item.is_some_and(|item| item.fields.iter().any(|field| is_boxed_option(&field.ty)))
    }

    fn lines(&self, body: &str) -> String {
        let error = if body.contains(")?") { "serde_json::Error" } else { "" };
        shown_code(&self.program(body, error), "    /// ")
    }
}

/// The statement that makes a value and sets a field of it, or two if that is too long for one.
fn set(variable: &str, start: &str, field: &Field, argument: &str) -> Option<String> {
    let setter = fields::setter(field);
    let whole = format!("let {variable} = {start}.{setter}({argument});");
    if whole.len() <= COLUMNS {
        return Some(whole + "\n");
    }
    if let Some(lines) = chained(&whole) {
        return Some(lines);
    }
    let own = fields::name(field);
    let own = own.trim_end_matches('_');
    let first = laid_out(&format!("let {variable} = {start};"))?;
    let second = format!(".{setter}({argument});\n");
    let is_long = first.lines().count() > 1 && second.len() <= COLUMNS;
    if is_long || own == variable || syn::parse_str::<syn::Ident>(own).is_err() {
        return Some(format!("{}\n{second}", first.trim_end().trim_end_matches(';')));
    }
    let value = laid_out(&format!("let {own} = {argument};"))?;
    Some(format!("{value}{}", set(variable, start, field, own)?))
}

/// A statement about a member of the JSON that is sent: all of it if that is short, else one of its texts or numbers.
/// is_sparse: whether the JSON that is sent has more than `value`.
fn on_the_wire(holder: &str, wire: &str, value: &Value, is_sparse: bool) -> String {
    let json = compared(value);
    let mut place = format!("[{wire:?}]");
    let whole = format!("let json = serde_json::to_value(&{holder})?;\nassert_eq!(json{place}, {json});\n");
    let short = format!("assert_eq!(serde_json::to_value(&{holder})?{place}, {json});\n");
    if !is_sparse && short.len() <= COLUMNS {
        return short;
    }
    if !is_sparse && whole.lines().all(|line| line.len() <= COLUMNS) {
        return whole;
    }
    let mut inner = value;
    while let Some((step, next)) = within(inner) {
        place += &step;
        inner = next;
    }
    format!("let json = serde_json::to_value(&{holder})?;\nassert_eq!(json{place}, {});\n", compared(inner))
}

/// What JSON is compared with.
fn compared(value: &Value) -> String {
    match value {
        Value::String(_) | Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => format!("serde_json::json!({})", written(value, 0, usize::MAX)),
    }
}

/// The step into a value, and what is there: a member that says more than a kind does, if there is one.
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
    fn a_long_value_and_one_with_members_that_nobody_set_are_compared_by_one_of_their_texts() {
        let short = on_the_wire("pen", "inks", &json!(["red"]), false);
        assert_eq!(
            short,
            "assert_eq!(serde_json::to_value(&pen)?[\"inks\"], serde_json::json!([\"red\"]));\n"
        );
        let last = |value: &Value, is_sparse| {
            on_the_wire("pen", "inks", value, is_sparse).lines().last().map(str::to_owned)
        };
        let ink = json!([{ "type": "liquid", "colour": { "name": "red" } }]);
        let name = "assert_eq!(json[\"inks\"][0][\"colour\"][\"name\"], \"red\");";
        assert_eq!(last(&ink, true).as_deref(), Some(name));
        let many = json!([{ "type": "liquid", "colour": { "name": "red" }, "about": "x".repeat(COLUMNS) }]);
        assert_eq!(last(&many, false).as_deref(), Some(name));
        let empty = "assert_eq!(json[\"inks\"], serde_json::json!({}));";
        assert_eq!(last(&json!({}), true).as_deref(), Some(empty));
    }

    #[test]
    fn a_statement_that_is_too_long_has_its_setters_or_its_argument_in_lines_of_their_own() {
        let field: Field = syn::parse_quote!(pub ink: Option<String>);
        let set = |start: &str, argument: &str| set("pen", start, &field, argument).expect("it is Rust");
        assert_eq!(set("Pen::new()", "\"red\""), "let pen = Pen::new().with_ink(\"red\");\n");
        let long = format!("Pen::new({:?})", "x".repeat(60));
        let chain = format!(
            "let pen = {long}\n    .with_width(vec![Width::new().with_unit(1)])\n    .with_ink(2);\n"
        );
        assert_eq!(set(&format!("{long}.with_width(vec![Width::new().with_unit(1)])"), "2"), chain);
        let ink = format!("ink({:?})", "x".repeat(80));
        assert_eq!(
            set("Pen::new()", &ink),
            format!("let ink = {ink};\nlet pen = Pen::new().with_ink(ink);\n")
        );
    }
}
