//! `types.pyi`: the types of requests and responses. `types.py`: the same names at run time, where every response
//! object is a `Record` and every request object a dict.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{
    Direction, PythonTypes, described, docstring, facts, field_doc, file_import, import_list, is_attribute,
    schema_name, sent_field_doc,
};
use crate::emit::type_origin;
use crate::model::{Additional, Api, Field, Kind, Object, Schema, Type};

/// Members of `Record` that a field of the same name does not hide: such a field is read by item.
const RECORD_MEMBERS: &[&str] = &["get", "items", "keys", "values", "to_dict", "to_json", "from_json"];

/// Builtins the stubs use, which a field of the same name would hide in its class.
const BUILTINS: &[&str] = &["bool", "float", "int", "list", "property", "str"];

/// Those of a field that also accepts a type.
const BUILTINS_OF_TYPES: &[&str] = &["object", "type"];

/// The prefix of builtins in a class with these fields. Each: its name, and whether it also accepts a type.
pub(super) fn builtins_beside<'a>(fields: impl Iterator<Item = (&'a str, bool)> + Clone) -> &'static str {
    let accepts_type = fields.clone().any(|(_, accepts_type)| accepts_type);
    let hides = |name: &str| BUILTINS.contains(&name) || (accepts_type && BUILTINS_OF_TYPES.contains(&name));
    if fields.map(|(name, _)| name).any(hides) { "builtins." } else { "" }
}

/// A type of the module, and its form at run time.
fn offered(api: &Api) -> BTreeMap<String, &'static str> {
    let mut names = BTreeMap::new();
    for schema in api.schemas.values() {
        for (direction, used, object) in directions(schema) {
            if used {
                let stands_for = if matches!(schema.kind, Kind::Object(_)) { object } else { "alias" };
                names.insert(schema_name(api, schema, direction), stands_for);
            }
        }
    }
    names
}

fn directions(schema: &Schema) -> [(Direction, bool, &'static str); 2] {
    [(Direction::Response, schema.in_response, "record"), (Direction::Request, schema.in_request, "dict")]
}

pub(super) fn module(api: &Api) -> String {
    let names = offered(api);
    let list = |wanted: &str| {
        let mut out = String::from("frozenset(\n    {\n");
        for (name, _) in names.iter().filter(|(_, stands_for)| **stands_for == wanted) {
            let _ = writeln!(out, "        \"{name}\",");
        }
        out.push_str("    }\n)\n");
        out
    };
    format!(
        "\"\"\"The types of requests and responses, for annotations; their shapes are in the stub.\n\n\
         At run time every response type is `Record` and every request type `dict`: no class is made per schema.\n\
         \"\"\"\n\n\
         from gatewright._types import stand_ins\n\n\
         _RECORDS = {}_DICTS = {}_ALIASES = {}\n\
         __all__ = [*_RECORDS, *_DICTS, *_ALIASES]  # pyright: ignore[reportUnsupportedDunderAll]\n\n\
         __getattr__ = stand_ins(__name__, _RECORDS, _DICTS, _ALIASES)\n",
        list("record"),
        list("dict"),
        list("alias"),
    )
}

pub(super) fn stub(api: &Api) -> String {
    let mut out = format!(
        "\"\"\"The types of requests and responses.\"\"\"\n\n\
         import builtins\n\
         from collections.abc import {}\n\
         from typing import {}\n\n\
         from gatewright._engine import {}\n{}\
         from typing_extensions import {}\n\n\
         __all__ = [\n",
        import_list(api, &["Iterator", "Mapping", "Sequence"]),
        import_list(api, &["Any", "Literal"]),
        import_list(api, &["Record"]),
        file_import(api),
        import_list(api, &["Required", "TypeAlias", "TypedDict"]),
    );
    for name in offered(api).keys() {
        let _ = writeln!(out, "    \"{name}\",");
    }
    out.push_str("]\n");
    for schema in api.schemas.values() {
        let mut written = None;
        for (direction, used, _) in directions(schema) {
            let name = schema_name(api, schema, direction);
            if used && written.as_ref() != Some(&name) {
                out.push('\n');
                out.push_str(&definition(api, schema, &name, direction));
                written = Some(name);
            }
        }
    }
    out
}

fn definition(api: &Api, schema: &Schema, name: &str, direction: Direction) -> String {
    let types = PythonTypes { api, direction, builtins: "", schemas: "" };
    let expression = match &schema.kind {
        Kind::Object(object) if object.fields.is_empty() => dictionary(object, types),
        Kind::Object(object) => return class(schema, object, name, types),
        Kind::Enum(values) => types.enumeration(values),
        Kind::Union(union) => types.union(union),
        Kind::Alias(ty) => types.expression(ty),
    };
    format!(
        "{name}: {} = {expression}\n{}",
        types.imported("TypeAlias"),
        docstring(&[described(&schema.description, &about(schema))], "")
    )
}

fn about(schema: &Schema) -> String {
    facts(&schema.constraints, None, &type_origin(schema))
}

/// An object without fields of its own.
fn dictionary(object: &Object, types: PythonTypes<'_>) -> String {
    match (&object.additional, types.direction) {
        (Additional::Map(ty), _) => {
            format!("{}[str, {}]", types.imported("Mapping"), types.expression(ty))
        }
        (_, Direction::Request) => format!("{}[str, object]", types.imported("Mapping")),
        (_, Direction::Response) => types.imported("Record"),
    }
}

fn class(schema: &Schema, object: &Object, name: &str, types: PythonTypes<'_>) -> String {
    let builtins =
        builtins_beside(object.fields.iter().map(|field| (field.name.as_str(), field.accepts_type)));
    let types = PythonTypes { builtins, ..types };
    let doc = docstring(&[described(&schema.description, &about(schema))], "    ");
    match types.direction {
        Direction::Response => {
            let mut out = format!("class {name}({}):\n{doc}", types.imported("Record"));
            for field in &object.fields {
                out.push_str(&attribute(schema, field, types));
            }
            out.push_str(&conveniences(object, types));
            out
        }
        Direction::Request if object.fields.iter().all(|field| is_attribute(&field.name)) => {
            let base = types.imported("TypedDict");
            let mut out = format!("class {name}({base}, total=False):\n{doc}");
            for field in &object.fields {
                let _ = writeln!(out, "    {}: {}", field.name, key(field, types));
                out.push_str(&docstring(&[sent_field_doc(field, &schema.source)], "    "));
            }
            out
        }
        Direction::Request => {
            let base = types.imported("TypedDict");
            let mut out = format!("{name} = {base}(\n    \"{name}\",\n    {{\n");
            for field in &object.fields {
                let _ = writeln!(out, "        {:?}: {},", field.name, key(field, types));
            }
            out + "    },\n    total=False,\n)\n"
                + &docstring(&[described(&schema.description, &about(schema))], "")
        }
    }
}

fn attribute(schema: &Schema, field: &Field, types: PythonTypes<'_>) -> String {
    let name = &field.name;
    if !is_attribute(name) || RECORD_MEMBERS.contains(&name.as_str()) {
        return format!("    # {name:?} is read by item.\n");
    }
    let ty = if field.required { types.expression(&field.ty) } else { types.optional(&field.ty) };
    format!(
        "    @{}property\n    def {name}(self) -> {ty}:\n{}",
        types.builtins,
        docstring(&[field_doc(field, &schema.source)], "        ")
    )
}

/// `x-iterable` and `x-text`, which the engine adds.
fn conveniences(object: &Object, types: PythonTypes<'_>) -> String {
    let mut out = String::new();
    let items = object.fields.iter().find(|field| Some(&field.name) == object.iterable.as_ref());
    if let Some(Type::Array(element)) = items.map(|field| &field.ty) {
        let _ = writeln!(
            out,
            "    def __iter__(self) -> {}[{}]:  # type: ignore[override]",
            types.imported("Iterator"),
            types.expression(element)
        );
        let name = object.iterable.as_deref().unwrap_or_default();
        out.push_str(&docstring(
            &[format!("The elements of `{name}`, not the names of the members.")],
            "        ",
        ));
    }
    if let Some(text) = &object.text {
        let _ = write!(out, "    @{0}property\n    def {1}(self) -> {0}str:\n", types.builtins, text.name);
        out.push_str(&docstring(std::slice::from_ref(&text.description), "        "));
    }
    out
}

fn key(field: &Field, types: PythonTypes<'_>) -> String {
    let ty = types.sent(&field.ty, field.accepts_type);
    if field.required { format!("{}[{ty}]", types.imported("Required")) } else { ty }
}
