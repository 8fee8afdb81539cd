//! `resources.py` and its stub: a class for each resource, a method for each operation, each twice: for
//! `Client` and, as `async def`, for `AsyncClient`.

use std::fmt::Write as _;

use serde_json::Value;

use super::streams::{self, ClientVariant};
use super::{
    Direction, PythonTypes, argument, described, docstring, facts, file_import, member, sent_field_doc,
    wrapped,
};
use crate::emit::operation_docs::{EXAMPLE_FILE_BYTES, example_content};
use crate::emit::{origin, own_origin};
use crate::model::{
    AnswerKind, Api, Location, MemberCondition, NonJsonBody, Operation, Parameter, Resource, Type,
};
use crate::names::pascal;

/// One argument of a method.
pub(super) struct MethodArgument<'a> {
    /// As Python spells it.
    pub(super) name: String,
    /// On the wire.
    pub(super) wire: &'a str,
    pub(super) place: ArgumentLocation,
    pub(super) required: bool,
    pub(super) ty: &'a Type,
    /// `x-accepts-type`.
    pub(super) accepts_type: bool,
    /// The content of the file in an example, if the specification has one.
    pub(super) content: Option<&'a str>,
    pub(super) doc: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentLocation {
    Path,
    Query,
    Header,
    Body,
}

/// Arguments in the order of the signature: path, then required ones, then optional ones.
pub(super) fn arguments<'a>(api: &'a Api, operation: &'a Operation) -> Vec<MethodArgument<'a>> {
    let parameter = |parameter: &'a Parameter, place| MethodArgument {
        name: argument(api, &parameter.name),
        wire: &parameter.name,
        place,
        required: parameter.required,
        ty: &parameter.ty,
        accepts_type: false,
        content: None,
        doc: {
            let origin = own_origin(&parameter.source, &operation.source);
            described(
                &parameter.description,
                &facts(&parameter.constraints, parameter.default.as_ref(), &origin),
            )
        },
    };
    let mut arguments: Vec<_> =
        operation.path_parameters().map(|path| parameter(path, ArgumentLocation::Path)).collect();
    let owner = operation.request.as_ref().map_or("", |name| api.schemas[name].source.as_str());
    let mut keywords: Vec<_> = api
        .request_fields(operation)
        .iter()
        .map(|field| MethodArgument {
            name: argument(api, &field.name),
            wire: &field.name,
            place: ArgumentLocation::Body,
            required: field.required,
            ty: &field.ty,
            accepts_type: field.accepts_type,
            content: example_content(field),
            doc: sent_field_doc(field, owner),
        })
        .collect();
    keywords.extend(operation.free_parameters().map(|free| {
        parameter(
            free,
            if free.location == Location::Header {
                ArgumentLocation::Header
            } else {
                ArgumentLocation::Query
            },
        )
    }));
    keywords.sort_by_key(|keyword| !keyword.required);
    arguments.extend(keywords);
    arguments
}

pub(super) fn module(api: &Api) -> String {
    let mut out = String::from(
        "\"\"\"The resources: a method for each operation of the specification. Types are in the stub.\"\"\"\n\n\
         from gatewright._engine import NOT_GIVEN\n",
    );
    out.push_str(&streams::imports(api));
    for face in ClientVariant::BOTH {
        classes(&api.resources(), &mut |resource| {
            let _ = write!(out, "\n\nclass {}:\n", class_name(face, resource));
            out.push_str(&class_doc(resource));
            let is_root = resource.path.is_empty();
            if !is_root {
                out.push_str("\n    __slots__ = (\"_client\",)\n");
                out.push_str("\n    def __init__(self, client):\n        self._client = client\n");
            }
            let client = if is_root { "self" } else { "self._client" };
            for child in &resource.children {
                let name = property(child);
                let class = class_name(face, child);
                let _ = write!(out, "\n    @property\n    def {name}(self):\n");
                let _ =
                    write!(out, "        \"\"\"{}.\"\"\"\n        return {class}({client})\n", title(child));
            }
            for operation in &resource.operations {
                out.push_str(&method(api, operation, face));
            }
        });
    }
    out
}

/// Calls `write` for each resource, children first, the root last.
fn classes(resource: &Resource<'_>, write: &mut impl FnMut(&Resource<'_>)) {
    for child in &resource.children {
        classes(child, write);
    }
    write(resource);
}

/// `AsyncChatCompletions`; of the root, `AsyncResources`.
fn class_name(face: ClientVariant, resource: &Resource<'_>) -> String {
    let name =
        if resource.path.is_empty() { "Resources".to_owned() } else { pascal(&resource.path.join("_")) };
    format!("{}{name}", face.prefix())
}

/// `client.chat.completions`.
fn title(resource: &Resource<'_>) -> String {
    format!("client.{}", spelled_path(&resource.path))
}

/// The property that holds a resource.
fn property(resource: &Resource<'_>) -> String {
    resource.path.last().map_or_else(String::new, |name| member(name))
}

/// `chat.completions`, each name as Python spells it.
pub(super) fn spelled_path(path: &[String]) -> String {
    path.iter().map(|name| member(name)).collect::<Vec<_>>().join(".")
}

fn class_doc(resource: &Resource<'_>) -> String {
    let text = if resource.path.is_empty() {
        "Everything that hangs on a client.".to_owned()
    } else {
        format!("{}.", title(resource))
    };
    docstring(&[text], "    ")
}

fn method(api: &Api, operation: &Operation, face: ClientVariant) -> String {
    let arguments = arguments(api, operation);
    let mut out = format!("\n    {} {}(\n        self,\n", face.def(), member(&operation.name));
    for path in arguments.iter().filter(|argument| argument.place == ArgumentLocation::Path) {
        let _ = writeln!(out, "        {},", path.name);
    }
    if arguments.iter().any(|argument| argument.place != ArgumentLocation::Path) {
        out.push_str("        *,\n");
    }
    for keyword in arguments.iter().filter(|argument| argument.place != ArgumentLocation::Path) {
        let default = if keyword.required { "" } else { "=NOT_GIVEN" };
        let _ = writeln!(out, "        {}{default},", keyword.name);
    }
    out.push_str("        **options,\n    ):\n");
    out.push_str(&method_doc(operation, &arguments, face));
    let dict = |place: ArgumentLocation| {
        let pairs: Vec<String> = arguments
            .iter()
            .filter(|argument| argument.place == place)
            .map(|argument| format!("{:?}: {}", argument.wire, argument.name))
            .collect();
        if pairs.is_empty() { "None".to_owned() } else { format!("{{{}}}", pairs.join(", ")) }
    };
    // An argument may have the name of a local variable of the method.
    let fresh = |name: &str| {
        let is_taken = arguments.iter().any(|argument| argument.name == name);
        if is_taken { format!("{name}_") } else { name.to_owned() }
    };
    let (parameters, body) = (fresh("parameters"), fresh("body"));
    let _ = writeln!(
        out,
        "        {parameters} = ({}, {}, {})",
        dict(ArgumentLocation::Path),
        dict(ArgumentLocation::Query),
        dict(ArgumentLocation::Header)
    );
    if operation.request.is_some() {
        let _ = writeln!(out, "        {body} = {{");
        for member in arguments.iter().filter(|argument| argument.place == ArgumentLocation::Body) {
            let _ = writeln!(out, "            {:?}: {},", member.wire, member.name);
        }
        out.push_str("        }\n");
    } else {
        let _ = writeln!(out, "        {body} = None");
    }
    let call = format!("({:?}, {parameters}, {body}, options", api.call_id(operation));
    let begin = format!("return {}self._client", face.awaits());
    if let Some(stream) = &operation.stream {
        let class = streams::class_name(face, operation, stream);
        let open = format!("{begin}._open{call}, {class})");
        let Some(switch) = operation.stream_switch() else {
            let _ = writeln!(out, "        {open}");
            return out;
        };
        let test = switch.word.as_ref().map_or_else(|| "is True".to_owned(), |word| format!("== {word:?}"));
        let _ = writeln!(out, "        if {} {test}:\n            {open}", argument(api, &switch.parameter));
    }
    let _ = writeln!(out, "        {begin}._call{call})");
    out
}

fn method_doc(operation: &Operation, arguments: &[MethodArgument<'_>], face: ClientVariant) -> String {
    let indent = "        ";
    let mut list = String::from("Args:\n");
    for argument in arguments {
        let text = format!("{}: {}", argument.name, argument.doc);
        list.push_str(&wrapped(&text, "    ", "        "));
    }
    list.push_str("    options: timeout, max_retries, extra_headers, …: see `gatewright.CallOptions`.\n");
    // Tests run the examples unchanged, so `await` needs a function around it.
    if face == ClientVariant::Sync {
        list.push_str(&example(operation, arguments));
    }
    let summary = format!("{}.", operation.summary.trim_end_matches('.'));
    let source = origin(&operation.source);
    let doc = docstring(&[summary, operation.description.clone(), "@ARGUMENTS@".to_owned(), source], indent);
    // Already wrapped and indented below its heading; wrapping it again would undo that.
    let list: String =
        list.lines().flat_map(|line| [if line.is_empty() { "" } else { indent }, line, "\n"]).collect();
    doc.replace(
        &format!("{indent}@ARGUMENTS@\n"),
        &list.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\""),
    )
}

/// An example call for the documentation; none if the specification has no value for a required argument, or takes it from another
/// call.
fn example(operation: &Operation, arguments: &[MethodArgument<'_>]) -> String {
    if operation.prerequisite.is_some() {
        return String::new();
    }
    let mut given = Vec::new();
    for argument in arguments {
        match operation.example.get(argument.wire) {
            Some(value) => {
                let value = argument_expression(value, argument.ty.is_file(), argument.content);
                given.push(format!("{}={value}", argument.name));
            }
            None if argument.required => return String::new(),
            None => {}
        }
    }
    let call = format!("client.{}.{}", spelled_path(&operation.resource), member(&operation.name));
    if given.is_empty() {
        return format!("\n>>> answer = {call}()\n");
    }
    let lines: String = given.iter().flat_map(|argument| ["...     ", argument, ",\n"]).collect();
    format!("\n>>> answer = {call}(\n{lines}... )\n")
}

/// The value of an argument as a Python expression; of a file, the value is its name.
/// `content`: of the file, if the specification has an example of it.
pub(super) fn argument_expression(value: &Value, is_file: bool, content: Option<&str>) -> String {
    let value = value_expression(value);
    match content {
        _ if !is_file => value,
        Some(content) => format!("({value}, {}.encode())", value_expression(&content.into())),
        None => format!("({value}, bytes({EXAMPLE_FILE_BYTES}))"),
    }
}

/// A JSON value as a Python expression.
fn value_expression(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        // Escapes of JSON mean the same in Python, except surrogates, which the specification does not contain.
        Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(value_expression).collect();
            format!("[{}]", elements.join(", "))
        }
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{name:?}: {}", value_expression(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

pub(super) fn stub(api: &Api) -> String {
    let mut out = format!(
        "import builtins\n\
         from collections.abc import Mapping, Sequence\n\
         from typing import Any, Literal, overload\n\n\
         from gatewright._engine import NotGiven, Record\n{}\
         from gatewright._options import CallOptions\n\
         from {} import types\n",
        file_import(api),
        api.target.python_package
    );
    out.push_str(&streams::imports(api));
    let deprecated =
        if api.operations.iter().any(|operation| operation.deprecated) { ", deprecated" } else { "" };
    let _ = writeln!(out, "from typing_extensions import Unpack{deprecated}");
    for face in ClientVariant::BOTH {
        classes(&api.resources(), &mut |resource| {
            let _ = write!(out, "\nclass {}:\n", class_name(face, resource));
            out.push_str(&class_doc(resource));
            if !resource.path.is_empty() {
                out.push_str("    _client: Any\n    def __init__(self, client: Any) -> None: ...\n");
            }
            for child in &resource.children {
                let name = property(child);
                let class = class_name(face, child);
                let _ = writeln!(out, "    @property\n    def {name}(self) -> {class}:");
                let _ = writeln!(out, "        \"\"\"{}.\"\"\"", title(child));
            }
            for operation in &resource.operations {
                out.push_str(&signatures(api, operation, face));
            }
        });
    }
    out
}

/// The method's signature; overloads if members of the body decide what the answer is.
fn signatures(api: &Api, operation: &Operation, face: ClientVariant) -> String {
    // A method may hide a builtin: `list` does.
    let received =
        PythonTypes { api, direction: Direction::Response, builtins: "builtins.", schemas: "types." };
    let stream =
        operation.stream.as_ref().map(|stream| streams::annotation(received, face, operation, stream));
    let document = match &operation.non_json {
        Some(NonJsonBody::Nothing) => Some("None".to_owned()),
        Some(NonJsonBody::Text(_)) => Some("builtins.str".to_owned()),
        Some(NonJsonBody::Bytes(_)) => Some("builtins.bytes".to_owned()),
        None => operation.response.as_ref().map(|ty| received.expression(ty)),
    };
    let variants = api.call_variants(operation);
    if variants.is_empty() {
        return signature(
            api,
            operation,
            face,
            &[],
            &stream.or(document).unwrap_or_else(|| "None".to_owned()),
        );
    }
    let text = operation.text_form.as_ref().map(|_| "builtins.str".to_owned());
    let all: Vec<String> = [document.clone(), text, stream.clone()].into_iter().flatten().collect();
    let any = all.join(" | ");
    let mut out = String::new();
    for variant in variants {
        let result = match variant.answer {
            AnswerKind::Document => document.as_deref().unwrap_or("None"),
            AnswerKind::Text => "builtins.str",
            AnswerKind::Stream => stream.as_deref().unwrap_or_default(),
            AnswerKind::Unknown => &any,
        };
        out.push_str("    @overload\n");
        out.push_str(&signature(api, operation, face, &variant.members, result));
    }
    out
}

/// `Literal["text", "srt"]`.
fn literal(values: &[Value]) -> String {
    let values: Vec<String> = values.iter().map(value_expression).collect();
    format!("Literal[{}]", values.join(", "))
}

/// The signature of a method. members: what those are that decide what the answer is.
pub(super) fn signature(
    api: &Api,
    operation: &Operation,
    face: ClientVariant,
    members: &[(String, MemberCondition)],
    result: &str,
) -> String {
    let sent = PythonTypes { api, direction: Direction::Request, builtins: "", schemas: "types." };
    let arguments = arguments(api, operation);
    let mut out = String::new();
    if operation.deprecated {
        out.push_str("    @deprecated(\"The specification marks it as deprecated.\", category=None)\n");
    }
    let _ = write!(out, "    {} {}(\n        self,\n", face.def(), member(&operation.name));
    for path in arguments.iter().filter(|argument| argument.place == ArgumentLocation::Path) {
        let _ = writeln!(out, "        {}: {},", path.name, sent.expression(path.ty));
    }
    if arguments.iter().any(|argument| argument.place != ArgumentLocation::Path) {
        out.push_str("        *,\n");
    }
    for keyword in arguments.iter().filter(|argument| argument.place != ArgumentLocation::Path) {
        let condition = members.iter().find(|(name, _)| name == keyword.wire);
        let ty = match condition {
            Some((_, MemberCondition::OneOf(values))) => literal(values),
            Some((_, MemberCondition::AtMost(values))) => {
                format!("{} | NotGiven | None = ...", literal(values))
            }
            None => {
                let end = if keyword.required { "" } else { " | NotGiven = ..." };
                sent.sent(keyword.ty, keyword.accepts_type) + end
            }
        };
        let _ = writeln!(out, "        {}: {ty},", keyword.name);
    }
    let _ = write!(out, "        **options: Unpack[CallOptions],\n    ) -> {result}: ...\n");
    out
}
