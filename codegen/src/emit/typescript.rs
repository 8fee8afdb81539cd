//! Emits the TypeScript of the Node package: types, operation table, resource classes and error
//! classes. Nothing here knows an operation or a type by name.
//!
//! An operation becomes a method (`operations.rs`, `resources.rs`, `calls.rs`):
//! - without a request body, path parameters are positional, in path order: `retrieve(taskId, options?)`;
//!   query and header parameters are members of a `params` object: `list({ pageSize: 5 }, options?)`;
//! - with a request body, path, query and header parameters are members of `params`, together with those of the
//!   body: `generateContent({ model, contents }, options?)`;
//! - method and resource names are camelCase; members keep their wire names.

mod calls;
mod errors;
mod operations;
mod reference;
mod report;
mod resources;

mod streams;
mod tsdoc;
mod types;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;

use crate::emit::{self, Input, client_file};
use crate::model::{Api, File, StringEnum, Type};
use crate::target::OWN_NODE;

/// Reserved words, which cannot name an argument.
const KEYWORDS: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

pub(super) use self::reference::describe;

/// Files of our own Node package.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let own = |name: &str, source: &str, body: &str| {
        emit::file(format!("{}/{name}", api.target.node), source, &format!("\n{body}"))
    };
    let mut files = clients(input)?;
    files.push(own("errors.ts", "spec/errors.json", &errors::emit(&api.errors)));
    files.push(own("report.ts", "spec/report.schema.json", &report::emit(api)));
    files.push(own("runtime.ts", "codegen/src/target.rs", &runtime()));
    Ok(files)
}

/// `runtime.ts`: what the clients of other specifications use of our package.
fn runtime() -> String {
    let head = "/** For generated clients of other specifications; not stable. */\n\n".to_owned();
    OWN_NODE.iter().fold(head, |mut out, (name, module, is_type)| {
        let export = if *is_type { "export type" } else { "export" };
        _ = writeln!(out, "{export} {{ {name} }} from \"{module}\";");
        out
    })
}

/// Files of a Node package that follow from the API alone: types, operations, resources, streams.
pub(super) fn clients(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    Ok(vec![
        types(api),
        client(api, "operations.ts", &operations::emit(api)),
        client(api, "resources.ts", &resources::emit(api)),
        client(api, "streams.ts", &streams::emit(api)),
    ])
}

/// The types of the API.
pub(super) fn types(api: &Api) -> File {
    client(api, "types.ts", &types::emit(api))
}

fn client(api: &Api, name: &str, body: &str) -> File {
    client_file(api, format!("{}/{name}", api.target.node), &format!("\n{body}"))
}

/// A type as a TypeScript expression.
fn expression(ty: &Type) -> String {
    match ty {
        Type::Any => "unknown".to_owned(),
        Type::String => "string".to_owned(),
        Type::Integer | Type::Number => "number".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::File => "FileArgument".to_owned(),
        Type::Const(value) => value.to_string(),
        Type::Enum(string_enum) => enumeration(string_enum),
        Type::Array(item) => format!("{}[]", operand(item)),
        Type::Map(value) => format!("{{ [key: string]: {} }}", expression(value)),
        Type::Ref(name) => name.clone(),
        Type::Union(union) => {
            let variants: Vec<String> = union.variants.iter().map(expression).collect();
            variants.join(" | ")
        }
        Type::Nullable(inner) => format!("{} | null", expression(inner)),
    }
}

/// A type as an operand of `[]`: in parentheses if it is a union.
fn operand(ty: &Type) -> String {
    let text = expression(ty);
    match ty {
        Type::Enum(_) | Type::Union(_) | Type::Nullable(_) => format!("({text})"),
        _ => text,
    }
}

/// `"a" | "b"`; an open list also takes any other string, without losing completion for the known ones.
fn enumeration(string_enum: &StringEnum) -> String {
    let mut alternatives: Vec<String> = string_enum.values.iter().map(|value| quoted(value)).collect();
    if string_enum.open {
        alternatives.push("(string & {})".to_owned());
    }
    alternatives.join(" | ")
}

/// The name of an import from the hand-written half in a module: another one if a schema has the same name.
fn imported(api: &Api, name: &str) -> String {
    if api.schemas.contains_key(name) { format!("Client{name}") } else { name.to_owned() }
}

/// A name as it follows `import {`, renamed if a schema has the same name.
fn import(api: &Api, name: &str) -> String {
    match imported(api, name) {
        own if own == name => own,
        other => format!("{name} as {other}"),
    }
}

/// A string literal.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A member name: bare if it is an identifier, else quoted.
fn member(name: &str) -> String {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$');
    if starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$') {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// Collects the names of schemas a type refers to.
fn references(ty: &Type, into: &mut BTreeSet<String>) {
    match ty {
        Type::Ref(name) => {
            into.insert(name.clone());
        }
        Type::Array(inner) | Type::Map(inner) | Type::Nullable(inner) => references(inner, into),
        Type::Union(union) => union.variants.iter().for_each(|variant| references(variant, into)),
        _ => {}
    }
}

/// A TSDoc comment of the given paragraphs (empty ones left out), or nothing.
fn doc(indent: &str, paragraphs: &[&str]) -> String {
    let text: Vec<String> =
        paragraphs.iter().map(|p| p.trim().replace("*/", "*\\/")).filter(|p| !p.is_empty()).collect();
    let lines: Vec<&str> = text.iter().enumerate().fold(Vec::new(), |mut lines, (index, paragraph)| {
        if index > 0 {
            lines.push("");
        }
        lines.extend(paragraph.lines().map(str::trim_end));
        lines
    });
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let mut out = format!("{indent}/**\n");
            for line in lines {
                let _ = writeln!(out, "{}", format!("{indent} * {line}").trim_end());
            }
            out + indent + " */\n"
        }
    }
}

#[cfg(test)]
mod tests;
