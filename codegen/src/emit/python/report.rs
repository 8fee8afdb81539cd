//! `report.py`: the types of a report, as `TypedDict`s that exist at run time.

use std::fmt::Write as _;

use super::{described, docstring, facts, is_attribute, literal};
use crate::emit::type_origin;
use crate::model::{Api, Field, Kind, Object, Schema, Type};

pub(super) fn module(api: &Api) -> String {
    let mut out = String::from(
        "\"\"\"The types of a report.\"\"\"\n\n\
         from __future__ import annotations\n\n\
         from typing import Literal, TypeAlias, TypedDict\n\n\
         __all__ = [\n",
    );
    let mut names: Vec<&String> = api.report.keys().collect();
    names.sort();
    for name in names {
        let _ = writeln!(out, "    \"{name}\",");
    }
    out.push_str("]\n");
    // An alias is made when the module is read: after what it names.
    let (aliases, objects): (Vec<&Schema>, Vec<&Schema>) =
        api.report.values().partition(|schema| !matches!(schema.kind, Kind::Object(_)));
    for schema in aliases {
        let expression = match &schema.kind {
            Kind::Enum(string_enum) => expression(&Type::Enum(string_enum.clone())),
            Kind::Alias(ty) => expression(ty),
            Kind::Union(_) | Kind::Object(_) => continue,
        };
        let _ = write!(out, "\n{}: TypeAlias = {expression}\n", schema.name);
        out.push_str(&docstring(&[described(&schema.description, &about(schema))], ""));
    }
    for schema in objects {
        if let Kind::Object(object) = &schema.kind {
            out.push_str("\n\n");
            out.push_str(&class(schema, object));
        }
    }
    out
}

fn class(schema: &Schema, object: &Object) -> String {
    let doc = docstring(&[described(&schema.description, &about(schema))], "    ");
    if !object.fields.iter().all(|field| is_attribute(&field.name)) {
        let total = if object.fields.iter().all(|field| field.required) { "True" } else { "False" };
        let mut out = format!("{} = TypedDict(\n    \"{}\",\n    {{\n", schema.name, schema.name);
        for field in &object.fields {
            let _ = writeln!(out, "        {:?}: {:?},", field.name, expression(&field.ty));
        }
        let _ = write!(out, "    }},\n    total={total},\n)\n");
        out.push_str(&docstring(&[described(&schema.description, &about(schema))], ""));
        return out;
    }
    let (required, optional): (Vec<&Field>, Vec<&Field>) =
        object.fields.iter().partition(|field| field.required);
    let mut out = String::new();
    let base = if optional.is_empty() || required.is_empty() {
        "TypedDict".to_owned()
    } else {
        let base = format!("_Required{}", schema.name);
        let _ = write!(out, "class {base}(TypedDict):\n{}\n\n", members(&required));
        base
    };
    let own = if optional.is_empty() { &required } else { &optional };
    let total = if optional.is_empty() { "" } else { ", total=False" };
    let _ = write!(out, "class {}({base}{total}):\n{doc}\n{}", schema.name, members(own));
    out
}

fn members(fields: &[&Field]) -> String {
    let mut out = String::new();
    for field in fields {
        let _ = writeln!(out, "    {}: {}", field.name, expression(&field.ty));
        out.push_str(&docstring(
            &[described(&field.description, &facts(&field.constraints, None, ""))],
            "    ",
        ));
    }
    out
}

fn about(schema: &Schema) -> String {
    facts(&schema.constraints, None, &type_origin(schema))
}

/// The few kinds of types that a report has.
fn expression(ty: &Type) -> String {
    match ty {
        Type::String => "str".to_owned(),
        Type::Integer => "int".to_owned(),
        Type::Number => "float".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Const(value) => literal("Literal", std::slice::from_ref(value)),
        Type::Enum(string_enum) => {
            let known: Vec<_> = string_enum.values.iter().map(|word| word.as_str().into()).collect();
            if string_enum.open {
                format!("{} | str", literal("Literal", &known))
            } else {
                literal("Literal", &known)
            }
        }
        Type::Array(inner) => format!("list[{}]", expression(inner)),
        Type::Map(inner) => format!("dict[str, {}]", expression(inner)),
        Type::Ref(name) => name.clone(),
        Type::Nullable(inner) => format!("{} | None", expression(inner)),
        Type::Any | Type::File | Type::Union(_) => "object".to_owned(),
    }
}
