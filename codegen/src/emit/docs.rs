//! Emits the reference documentation: `docs/reference/*.md`.

mod catalog;

use std::fmt::Write as _;

use anyhow::Result;

use super::{Input, described, field_facts, file, origin, own_origin, type_origin};
use crate::model::{
    Additional, Api, Field, File, Kind, Location, Operation, Parameter, Schema, SpecEnum as _, StreamMode,
    Type,
};
use crate::names;

/// The files below `docs/reference`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let page =
        |name: &str, source: &str, body: String| file(format!("docs/reference/{name}.md"), source, &body);
    Ok(vec![
        page("operations", &api.source, operations(api)),
        page("types", &api.source, types(api)),
        page("errors", "spec/errors.json", errors(api)),
        page("catalog", "spec/catalog.json", catalog::page(api)),
        page("report", "spec/report.schema.json", report_page(api)),
    ])
}

/// What the sections are that texts name as their source.
pub(crate) const SOURCE: &str = "A source is a section of the document that this API follows, which is not part of this project: \
    [the rules by their numbers](../rules.md) describes each section, [spec/openapi.yaml](../../spec/openapi.yaml) marks the parts \
    that come from it (`x-source`), and [gaps](../../spec/gaps.md) lists what it leaves open, and what we chose.";

fn operations(api: &Api) -> String {
    let mut out = format!(
        "# Operations\n\n{} {}. {}\n\nA field or a parameter has the source of its operation, \
         unless its notes name another. {SOURCE}\n\n| Method | HTTP | What it does |\n|---|---|---|\n",
        api.title, api.version, api.description
    );
    for operation in &api.operations {
        let name = qualified(operation, str::to_owned);
        _ = writeln!(
            out,
            "| [`{name}`](#{}) | `{} {}` | {} |",
            name.replace('.', ""),
            operation.method.upper(),
            operation.path,
            operation.summary
        );
    }
    for operation in &api.operations {
        out.push_str(&section(api, operation));
    }
    for webhook in &api.webhooks {
        _ = write!(
            out,
            "\n## Webhook `{}`\n\n{}\n\n{}\n\n{}\n\nPayload: {}.\n",
            webhook.name,
            webhook.summary,
            webhook.description,
            origin(&webhook.source),
            link(&webhook.payload)
        );
    }
    out
}

/// The operation as a caller of a language knows it.
fn qualified(operation: &Operation, case: impl Fn(&str) -> String) -> String {
    let parts = operation.resource.iter().chain([&operation.name]);
    parts.map(|part| case(part)).collect::<Vec<_>>().join(".")
}

fn section(api: &Api, operation: &Operation) -> String {
    let rust: Vec<String> = operation.resource.iter().map(|part| format!("{part}()")).collect();
    let rust = format!("client.{}.{}", rust.join("."), operation.name);
    let python = qualified(operation, str::to_owned);
    let node = qualified(operation, names::camel);
    let mut out = format!(
        "\n## {python}\n\n{}\n\n{}\n\n{}\n\n- HTTP: `{} {}`\n- Rust: `{rust}(…)`\n- Python: `client.{python}(…)`\n- Node: `client.{node}(…)`\n",
        operation.summary,
        operation.description,
        origin(&operation.source),
        operation.method.upper(),
        operation.path,
    );
    if let Some(request) = &operation.request {
        _ = writeln!(out, "- Request: {}", link(&Type::Ref(request.clone())));
    }
    if let Some(response) = &operation.response {
        _ = writeln!(out, "- Response: {}", link(response));
    }
    if let Some(form) = &operation.text_form {
        let values: Vec<String> = form.values.iter().map(|value| format!("`{value}`")).collect();
        _ = writeln!(
            out,
            "- Text: when `{}` is {}, `{}`",
            form.parameter,
            values.join(" or "),
            form.media_type
        );
    }
    if let Some(stream) = &operation.stream {
        let how = match &stream.mode {
            StreamMode::Always => "always".to_owned(),
            StreamMode::Switched(switch) => match &switch.word {
                None => format!("when `{}` is true", switch.parameter),
                Some(word) => format!("when `{}` is `{word}`", switch.parameter),
            },
        };
        let end = stream.terminator.as_ref().map_or(String::new(), |data| format!(", ended by `{data}`"));
        _ = writeln!(out, "- Stream: {how}, events of {}{end}", link(&stream.item));
    }
    let statuses: Vec<String> = operation.error_statuses.iter().map(u16::to_string).collect();
    let statuses = if statuses.is_empty() { String::new() } else { format!("; {}", statuses.join(", ")) };
    _ = writeln!(out, "- Errors: {} form{statuses}", operation.error_style.name());
    out.push_str(&parameter_table(operation));
    let fields = api.request_fields(operation);
    if !fields.is_empty() {
        out.push('\n');
        let owner = operation.request.as_ref().map_or("", |name| api.schemas[name].source.as_str());
        out.push_str(&field_table(fields, owner));
    }
    out
}

/// The parameters of an operation, after an empty line; nothing if it has none.
pub(super) fn parameter_table(operation: &Operation) -> String {
    let rows: String =
        operation.parameters.iter().map(|parameter| parameter_row(parameter, &operation.source)).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("\n| Parameter | In | Type | Required | Notes |\n|---|---|---|---|---|\n{rows}")
}

fn parameter_row(parameter: &Parameter, owner: &str) -> String {
    let place = match parameter.location {
        Location::Path => "path",
        Location::Query => "query",
        Location::Header => "header",
    };
    let mut notes = parameter.description.clone();
    if let Some(value) = &parameter.fixed {
        _ = write!(notes, " Sent by the client itself, always `{value}`.");
    }
    let rules = parameter.constraints.in_words();
    if !rules.is_empty() {
        _ = write!(notes, " {}.", sentence(&rules));
    }
    notes = described(&notes, &own_origin(&parameter.source, owner));
    let required = if parameter.required { "yes" } else { "no" };
    format!("| `{}` | {place} | {} | {required} | {} |\n", parameter.name, link(&parameter.ty), cell(&notes))
}

/// owner: the section of what the fields belong to.
pub(super) fn field_table(fields: &[Field], owner: &str) -> String {
    let mut out = "| Field | Type | Required | Notes |\n|---|---|---|---|\n".to_owned();
    for field in fields {
        let notes = described(&field.description, &field_facts(field, owner));
        let required = if field.required { "yes" } else { "no" };
        _ = writeln!(out, "| `{}` | {} | {required} | {} |", field.name, link(&field.ty), cell(&notes));
    }
    out
}

fn types(api: &Api) -> String {
    let mut out = format!(
        "# Types\n\nObjects preserve unlisted members, unless their type is closed. A field \
         has the source of its type, unless its notes name another. {SOURCE}\n"
    );
    for schema in api.schemas.values() {
        let uses = match (schema.in_request, schema.in_response) {
            (true, true) => "In requests and responses.",
            (true, false) => "In requests.",
            (false, true) => "In responses.",
            (false, false) => "In no operation.",
        };
        let about = described(&schema.description, &type_origin(schema));
        _ = write!(out, "\n## {}\n\n{about} {uses}\n\n", schema.name);
        out.push_str(&definition(schema));
    }
    out
}

/// The members of an object, or what else a schema takes.
pub(super) fn definition(schema: &Schema) -> String {
    let mut out = String::new();
    match &schema.kind {
        Kind::Object(object) => {
            if !object.fields.is_empty() {
                out.push_str(&field_table(&object.fields, &schema.source));
            }
            if let Some(member) = &object.iterable {
                _ = writeln!(out, "\nIterating over it in Python and Node yields the items of `{member}`.");
            }
            if object.protobuf {
                out.push_str(
                    "\nRequests may use the JSON mapping of protocol buffers: members also in snake case, \
                     numbers as text, null for absence.\n",
                );
            }
            if let Some(text) = &object.text {
                _ = writeln!(
                    out,
                    "\nClients add `{}`, which is not on the wire: {}",
                    text.name, text.description
                );
            }
            match &object.additional {
                Additional::Keep => {}
                Additional::Deny => out.push_str("\nClosed: no other members.\n"),
                Additional::Map(value) => _ = writeln!(out, "\nOther members: {}.", link(value)),
            }
        }
        Kind::Enum(values) => _ = writeln!(out, "{}", link(&Type::Enum(values.clone()))),
        Kind::Union(union) => {
            let variants: Vec<String> = union.variants.iter().map(link).collect();
            let discriminator = union
                .discriminator
                .as_ref()
                .map_or(String::new(), |name| format!(", distinguished by `{name}`"));
            let open = if union.open { "; others pass through" } else { "" };
            _ = writeln!(out, "One of {}{discriminator}{open}.", variants.join(", "));
        }
        Kind::Alias(ty) => _ = writeln!(out, "{}", link(ty)),
    }
    out
}

fn errors(api: &Api) -> String {
    let mut out = "# Errors\n\nEvery failure of a client has one kind: `ErrorKind` in Rust, a class in Python and Node. The \
                   specification leaves errors open, so kinds and codes are additions of this gateway, unless their meaning \
                   names a [section](../rules.md).\n\nEach of an error's `violations` has a `section`: the number of the rule, \
                   such as `2.1` or `7 rule 3`, or `ours` for a rule of this gateway. To look a number up, find it on the page \
                   [The rules by their numbers](../rules.md) of this documentation, whose headings begin with the numbers; it \
                   says what `ours` means, too.\n\n\
                   | Kind | Class | Extends | Status | Retried | Meaning |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for base in &api.errors.bases {
        let parent = base.parent.as_ref().map_or(String::new(), |parent| format!("`{parent}`"));
        _ = writeln!(out, "| | `{}` | {parent} | | | {} |", base.class, cell(&base.meaning));
    }
    for kind in &api.errors.kinds {
        let status: Vec<String> = kind.status.iter().map(u16::to_string).collect();
        _ = writeln!(
            out,
            "| `{}` | `{}` | `{}` | {} | {} | {} |",
            kind.name,
            kind.class,
            kind.parent,
            status.join(", "),
            if kind.retryable { "yes" } else { "no" },
            cell(&described(&kind.meaning, &own_origin(&kind.x_source, "ours")))
        );
    }
    out.push_str(
        "\n## Codes\n\nThe codes in the gateway's error bodies, in the standard form (type, code, status), the native form and the messages form.\n\n\
         | Code | Type | Status | Native status | Native HTTP | Messages type | Meaning |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for code in &api.errors.codes {
        let reason = code.native_reason.as_ref().map_or(String::new(), |reason| format!(" (`{reason}`)"));
        _ = writeln!(
            out,
            "| `{}` | `{}` | {} | `{}`{reason} | {} | `{}` | {} |",
            code.code,
            code.type_,
            code.status,
            code.native_status,
            code.native_http,
            code.messages_type,
            cell(&described(&code.meaning, &own_origin(&code.x_source, "ours")))
        );
    }
    out
}

/// Every member of the report with its rules.
fn report_page(api: &Api) -> String {
    let description = api.report.values().next().map_or("", |report| &report.description);
    let mut out =
        format!("# Compatibility report\n\n{description}\n\n| Member | Rules | Meaning |\n|---|---|---|\n");
    for member in &api.report_members {
        _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            member.pointer,
            cell(&member.rules.join(", ")),
            cell(&member.meaning)
        );
    }
    out.push_str("\n## Conditions\n\n| Object | Rule |\n|---|---|\n");
    for condition in &api.report_conditions {
        let place = match condition.pointer.as_str() {
            "" => "the report".to_owned(),
            pointer => format!("`{pointer}`"),
        };
        _ = writeln!(out, "| {place} | {}. |", cell(&condition.rule));
    }
    out
}

/// A type in words, named types as links.
pub(super) fn link(ty: &Type) -> String {
    match ty {
        Type::Any => "any".to_owned(),
        Type::String => "string".to_owned(),
        Type::Integer => "integer".to_owned(),
        Type::Number => "number".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::File => "file".to_owned(),
        Type::Const(value) => format!("`{value}`"),
        Type::Enum(values) => {
            let mut all: Vec<String> = values.values.iter().map(|value| format!("`{value}`")).collect();
            if values.open {
                all.push("…".to_owned());
            }
            all.join(", ")
        }
        Type::Array(item) => format!("array of {}", link(item)),
        Type::Map(value) => format!("map of {}", link(value)),
        Type::Ref(name) => format!("[{name}](types.md#{})", name.to_lowercase()),
        Type::Union(union) => union.variants.iter().map(link).collect::<Vec<_>>().join(" or "),
        Type::Nullable(inner) => format!("{} or null", link(inner)),
    }
}

/// Text for a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// Words with a capital letter in front.
pub(crate) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}
