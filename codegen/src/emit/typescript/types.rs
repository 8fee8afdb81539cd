//! `types.ts`: one interface or type alias for each schema.

use std::fmt::Write as _;

use serde_json::Value;

use super::{doc, enumeration, expression, member};
use crate::emit::{member_origin, type_origin};
use crate::model::{Additional, Api, Constraints, Field, Kind, Object, Schema, Type};

pub(super) fn emit(api: &Api) -> String {
    let declarations: Vec<String> = api.schemas.values().map(declaration).collect();
    let import = if api.has_files() {
        format!("import type {{ FileArgument }} from \"{}\";\n\n", api.target.node_module("FileArgument"))
    } else {
        String::new()
    };
    import + &declarations.join("\n")
}

pub(super) fn declaration(schema: &Schema) -> String {
    let own = constraints(&schema.constraints);
    let mut out = doc("", &[&schema.description, &own, &type_origin(schema)]);
    let name = &schema.name;
    match &schema.kind {
        Kind::Object(object) => interface(&mut out, schema, object),
        Kind::Enum(string_enum) => alias(&mut out, name, &enumeration(string_enum)),
        Kind::Union(union) => alias(&mut out, name, &expression(&Type::Union(union.clone()))),
        Kind::Alias(ty) => alias(&mut out, name, &expression(ty)),
    }
    out
}

fn alias(out: &mut String, name: &str, ty: &str) {
    let _ = writeln!(out, "export type {name} = {ty};");
}

fn interface(out: &mut String, schema: &Schema, object: &Object) {
    let _ = writeln!(out, "export interface {} {{", schema.name);
    for field in &object.fields {
        out.push_str(&property(field, &schema.source));
    }
    out.push_str(&conveniences(object));
    match &object.additional {
        // Unknown members are kept but not declared: an index signature would accept every misspelt name.
        Additional::Keep if object.fields.is_empty() => out.push_str("  [key: string]: unknown;\n"),
        Additional::Keep | Additional::Deny => {}
        // Beside fields, the signature must cover their types too.
        Additional::Map(value) if object.fields.is_empty() => {
            let _ = writeln!(out, "  [key: string]: {};", expression(value));
        }
        Additional::Map(_) => out.push_str("  [key: string]: unknown;\n"),
    }
    out.push_str("}\n");
}

/// The members that clients add to an object of a response.
fn conveniences(object: &Object) -> String {
    let mut out = String::new();
    if let Some(text) = &object.text {
        out.push_str(&doc(
            "  ",
            &[&text.description, "Added by the client: not enumerable, and not on the wire."],
        ));
        let _ = writeln!(out, "  readonly {}: string;", member(&text.name));
    }
    if let Some(name) = &object.iterable
        && let Some(Field { ty: Type::Array(item), .. }) =
            object.fields.iter().find(|field| field.name == *name)
    {
        out.push_str(&doc("  ", &[&format!("The items of `{name}`. Added by the client.")]));
        let _ = writeln!(out, "  [Symbol.iterator](): IterableIterator<{}>;", expression(item));
    }
    out
}

/// One member with its comment, which names the section if it differs from that of the interface.
pub(super) fn property(field: &Field, section: &str) -> String {
    let origin = member_origin(field, section);
    let facts = [constraints(&field.constraints), assumed(field.default.as_ref()), origin];
    let mut out = comment(&field.description, &facts, field.deprecated);
    let optional = if field.required { "" } else { "?" };
    let _ = writeln!(out, "  {}{optional}: {};", member(&field.name), expression(&field.ty));
    out
}

/// The tag by which editors strike a name out.
pub(super) const DEPRECATED: &str = "@deprecated The specification marks it as deprecated.";

/// The comment of a member in one line: its description, then its constraints.
pub(super) fn comment(description: &str, facts: &[String], deprecated: bool) -> String {
    let facts: Vec<&str> = facts.iter().map(String::as_str).filter(|fact| !fact.is_empty()).collect();
    let deprecation = if deprecated { DEPRECATED } else { "" };
    doc("  ", &[description, &facts.join(" "), deprecation])
}

/// `0 to 2.`, a sentence of the value's constraints.
pub(super) fn constraints(constraints: &Constraints) -> String {
    let text = constraints.in_words();
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), chars.as_str()),
        None => text,
    }
}

/// The value that the gateway assumes if the member is missing; the client never sends it.
pub(super) fn assumed(default: Option<&Value>) -> String {
    default.map_or_else(String::new, |value| format!("Default: `{value}`."))
}
