//! `operations.ts`: where the members of a call's parameters are sent, for each operation.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::quoted;
use crate::model::{Api, Kind, Location, NonJsonBody, Operation, Parameter, StreamMode, StreamSwitch, Type};
use crate::names::snake;

pub(super) fn emit(api: &Api) -> String {
    let mut out = format!(
        "import type {{ Operation }} from \"{}\";\n\n\
         /** Every operation by its id. */\nexport const operations = {{\n",
        api.target.node_module("Operation")
    );
    for operation in &api.operations {
        out.push_str(&entry(api, operation));
    }
    out.push_str("} as const satisfies Record<string, Operation>;\n");
    out
}

fn entry(api: &Api, operation: &Operation) -> String {
    let stream = match operation.stream.as_ref().map(|stream| &stream.mode) {
        None => "false".to_owned(),
        Some(StreamMode::Always) => "true".to_owned(),
        Some(StreamMode::Switched(StreamSwitch { parameter, word: None })) => quoted(parameter),
        Some(StreamMode::Switched(StreamSwitch { parameter, word: Some(word) })) => {
            format!("{{ parameter: {}, word: {} }}", quoted(parameter), quoted(word))
        }
    };
    let of =
        |location| names(operation.free_parameters().filter(move |parameter| parameter.location == location));
    let mut out = String::new();
    let _ = writeln!(out, "  {}: {{", operation.id);
    let _ = writeln!(out, "    id: {},", quoted(&api.call_id(operation)));
    let _ = writeln!(out, "    name: {},", quoted(&super::calls::call_path(operation)));
    let _ = writeln!(out, "    path: [{}],", names(operation.path_parameters()));
    let _ = writeln!(out, "    query: [{}],", of(Location::Query));
    let _ = writeln!(out, "    headers: [{}],", of(Location::Header));
    let _ = writeln!(out, "    body: {},", members(api, operation));
    let _ = writeln!(out, "    stream: {stream},");
    let answer = operation.non_json.as_ref().map(|plain| match plain {
        NonJsonBody::Nothing => "nothing",
        NonJsonBody::Text(_) => "text",
        NonJsonBody::Bytes(_) => "bytes",
    });
    if let Some(answer) = answer {
        let _ = writeln!(out, "    answer: {},", quoted(answer));
    }
    if let Some(form) = &operation.text_form {
        let values: Vec<String> = form.values.iter().map(|value| quoted(value)).collect();
        let _ = writeln!(
            out,
            "    textForm: {{ parameter: {}, values: [{}] }},",
            quoted(&form.parameter),
            values.join(", ")
        );
    }
    let files = api.request_fields(operation).iter().filter(|field| field.ty.is_file());
    let files: Vec<String> = files.map(|field| quoted(&field.name)).collect();
    if !files.is_empty() {
        let _ = writeln!(out, "    files: [{}],", files.join(", "));
    }
    let result = whole(operation).and_then(|ty| api.object(ty));
    if let Some(iterable) = result.and_then(|object| object.iterable.as_ref()) {
        let _ = writeln!(out, "    iterable: {},", quoted(iterable));
    }
    if let Some(text) = result.and_then(|object| object.text.as_ref()) {
        let path: Vec<String> = text.path.iter().map(|step| quoted(step)).collect();
        let _ = writeln!(
            out,
            "    text: {{ name: {}, path: [{}], type: {}, member: {}, events: [{}] }},",
            quoted(&text.name),
            path.join(", "),
            quoted(&text.kind),
            quoted(&text.member),
            holders(api, operation).into_iter().collect::<Vec<_>>().join(", ")
        );
    }
    out.push_str("  },\n");
    out
}

/// The members of the request body in every spelling, or null without one.
fn members(api: &Api, operation: &Operation) -> String {
    let Some(request) = &operation.request else { return "null".to_owned() };
    let mut names = Vec::new();
    let is_protobuf = matches!(&api.schemas[request].kind, Kind::Object(object) if object.protobuf);
    for field in api.request_fields(operation) {
        names.push(quoted(&field.name));
        let other = snake(&field.name);
        if is_protobuf && other != field.name {
            names.push(quoted(&other));
        }
    }
    format!("[{}]", names.join(", "))
}

/// The type of the whole document that the operation returns, at once or after its stream.
fn whole(operation: &Operation) -> Option<&Type> {
    let last = || operation.stream.as_ref()?.final_document.as_ref().map(|last| &last.ty);
    operation.response.as_ref().or_else(last)
}

/// Members of the operation's events whose type is that of the whole document.
fn holders(api: &Api, operation: &Operation) -> BTreeSet<String> {
    let (Some(document), Some(stream)) = (whole(operation), &operation.stream) else {
        return BTreeSet::new();
    };
    let schema = match &stream.item {
        Type::Ref(name) => api.schemas.get(name).map(|schema| &schema.kind),
        _ => None,
    };
    let variants = match schema {
        Some(Kind::Union(union)) => union.variants.as_slice(),
        _ => std::slice::from_ref(&stream.item),
    };
    let fields = variants.iter().filter_map(|variant| api.object(variant)).flat_map(|event| &event.fields);
    fields.filter(|field| field.ty == *document).map(|field| quoted(&field.name)).collect()
}

fn names<'api>(parameters: impl Iterator<Item = &'api Parameter>) -> String {
    let names: Vec<String> = parameters.map(|parameter| quoted(&parameter.name)).collect();
    names.join(", ")
}
