//! Emits a call of each operation by progenitor's client and by ours: `tests/oracle` compares the requests of both.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::rust::Signature;
use super::{Input, file};
use crate::model::{File, Operation};
use crate::names;

/// The calls. Streams aren't among them, since progenitor knows one form of an operation, nor are forms, which it sends as JSON.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let (api, signatures) = (input.api, &input.progenitor()?.signatures);
    let mut code =
        "//! A call of each operation by progenitor's client and by ours, with the same arguments.\n\n\
         #![allow(unused_variables, clippy::pedantic, reason = \"all calls have one form\")]\n\n\
         use gatewright::types;\n\nuse super::client;\nuse crate::Arguments;\n"
            .to_owned();
    let mut list = String::new();
    let compared = |operation: &&Operation| operation.response.is_some() && !operation.is_form;
    for operation in api.operations.iter().filter(compared) {
        let signature = signatures.get(&operation.id).context("progenitor has every operation")?;
        call(&mut code, operation, signature);
        let mut example = operation.example.clone();
        // Those that a call takes of an earlier answer.
        for parameter in operation.path_parameters() {
            example.entry(&parameter.name).or_insert_with(|| "one".into());
        }
        let example = serde_json::Value::Object(example).to_string();
        let texts: Vec<&str> = operation
            .path_parameters()
            .chain(operation.free_parameters())
            .map(|parameter| parameter.name.as_str())
            .collect();
        _ = writeln!(
            list,
            "    crate::Call {{ id: {:?}, parameters: &{texts:?}, example: r####\"{example}\"####, send: |theirs, ours, arguments| Box::pin({}(theirs, ours, arguments)) }},",
            operation.id, operation.id
        );
    }
    _ = write!(code, "\n/// All of them.\npub(crate) const CALLS: &[crate::Call] = &[\n{list}];\n");
    Ok(vec![file("tests/oracle/src/generated/calls.rs", &api.source, &code)])
}

fn call(code: &mut String, operation: &Operation, Signature { parameters, .. }: &Signature) {
    _ = write!(
        code,
        "\nasync fn {}(theirs: &client::Client, ours: &gatewright::Client, arguments: &Arguments) {{\n",
        operation.id
    );
    let mut given = Vec::new();
    for (name, ty) in parameters {
        let optional = ty.strip_prefix("Option<").and_then(|inner| inner.strip_suffix('>'));
        let bare = optional.unwrap_or(ty);
        let (owned, is_reference) = match bare.strip_prefix('&') {
            Some("str") => ("String".to_owned(), true),
            Some(list) if list.starts_with('[') => (format!("Vec<{}>", &list[1..list.len() - 1]), true),
            Some(inner) => (inner.to_owned(), true),
            None => (bare.to_owned(), false),
        };
        let wire = operation
            .path_parameters()
            .chain(operation.free_parameters())
            .find(|parameter| names::rust(&parameter.name) == *name);
        let read = match wire {
            Some(parameter) => format!("arguments.get({:?})", parameter.name),
            None => format!(
                "arguments.body(&{:?})",
                operation
                    .path_parameters()
                    .chain(operation.free_parameters())
                    .map(|parameter| parameter.name.as_str())
                    .collect::<Vec<_>>()
            ),
        };
        let local = format!("{}_argument", name.trim_start_matches("r#"));
        let declared = if optional.is_some() { format!("Option<{owned}>") } else { owned };
        _ = writeln!(code, "    let {local}: {declared} = {read};");
        given.push(match (optional.is_some(), is_reference) {
            (true, true) => format!("{local}.as_deref()"),
            (false, true) => format!("&{local}"),
            // These are numbers, switches and words, which are copied.
            (_, false) => local,
        });
    }
    let arguments = given.join(", ");
    let path =
        operation.resource.iter().fold(String::new(), |path, part| path + "." + &names::rust(part) + "()");
    _ = write!(
        code,
        "    _ = theirs.{}({arguments}).await;\n    _ = ours{path}.{}({arguments}).await;\n}}\n",
        operation.id,
        names::rust(&operation.name)
    );
}
