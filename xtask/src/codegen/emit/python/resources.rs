//! `resources.py` and its stub: a class for each resource, a method for each operation, each twice: for
//! `Client` and, as `async def`, for `AsyncClient`.

use std::fmt::Write as _;

use super::{Direction, Types, argument, described, docstring, facts, wrapped};
use crate::codegen::model::{Api, Location, Operation, Parameter, Resource, Type};
use crate::codegen::names::pascal;

/// The two faces of the package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Sync,
    Async,
}

impl Face {
    const BOTH: [Self; 2] = [Self::Sync, Self::Async];

    fn class_prefix(self) -> &'static str {
        if self == Self::Async { "Async" } else { "" }
    }

    fn def(self) -> &'static str {
        if self == Self::Async { "async def" } else { "def" }
    }

    fn awaits(self) -> &'static str {
        if self == Self::Async { "await " } else { "" }
    }

    fn stream(self, item: &str) -> String {
        format!("{}Stream[{item}]", self.class_prefix())
    }

    /// `AsyncChatCompletions`; of the root, `AsyncResources`.
    fn class_name(self, resource: &Resource<'_>) -> String {
        let name =
            if resource.path.is_empty() { "Resources".to_owned() } else { pascal(&resource.path.join("_")) };
        format!("{}{name}", self.class_prefix())
    }
}

/// One argument of a method.
struct Argument<'a> {
    /// As Python spells it.
    name: String,
    /// On the wire.
    wire: &'a str,
    place: Place,
    required: bool,
    ty: &'a Type,
    doc: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Header,
    Body,
}

/// Arguments in the order of the signature: path, then what is required, then the rest.
fn arguments<'a>(api: &'a Api, operation: &'a Operation) -> Vec<Argument<'a>> {
    let parameter = |parameter: &'a Parameter, place| Argument {
        name: argument(&parameter.name),
        wire: &parameter.name,
        place,
        required: parameter.required,
        ty: &parameter.ty,
        doc: {
            let source = (parameter.source != operation.source).then_some(parameter.source.as_str());
            described(
                &parameter.description,
                &facts(&parameter.constraints, parameter.default.as_ref(), source),
            )
        },
    };
    let mut arguments: Vec<_> =
        operation.path_parameters().map(|path| parameter(path, Place::Path)).collect();
    let owner = operation.request.as_ref().map_or("", |name| api.schemas[name].source.as_str());
    let mut keywords: Vec<_> = api
        .request_fields(operation)
        .iter()
        .map(|field| Argument {
            name: argument(&field.name),
            wire: &field.name,
            place: Place::Body,
            required: field.required,
            ty: &field.ty,
            doc: {
                let source = (field.source != owner).then_some(field.source.as_str());
                described(&field.description, &facts(&field.constraints, field.default.as_ref(), source))
            },
        })
        .collect();
    keywords.extend(operation.free_parameters().map(|free| {
        parameter(free, if free.location == Location::Header { Place::Header } else { Place::Query })
    }));
    keywords.sort_by_key(|keyword| !keyword.required);
    arguments.extend(keywords);
    arguments
}

pub(super) fn module(api: &Api) -> String {
    let mut out = String::from(
        "\"\"\"The resources: a method for each operation of the specification. Types are in the stub.\"\"\"\n\n\
         from gatewright._native import NOT_GIVEN\n",
    );
    for face in Face::BOTH {
        classes(&api.resources(), &mut |resource| {
            let _ = write!(out, "\n\nclass {}:\n", face.class_name(resource));
            out.push_str(&class_doc(resource));
            let is_root = resource.path.is_empty();
            if !is_root {
                out.push_str("\n    __slots__ = (\"_client\",)\n");
                out.push_str("\n    def __init__(self, client):\n        self._client = client\n");
            }
            let client = if is_root { "self" } else { "self._client" };
            for child in &resource.children {
                let name = child.path.last().map_or("", String::as_str);
                let class = face.class_name(child);
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

/// `client.chat.completions`.
fn title(resource: &Resource<'_>) -> String {
    format!("client.{}", resource.path.join("."))
}

fn class_doc(resource: &Resource<'_>) -> String {
    let text = if resource.path.is_empty() {
        "Everything that hangs on a client.".to_owned()
    } else {
        format!("{}.", title(resource))
    };
    docstring(&[text], "    ")
}

fn method(api: &Api, operation: &Operation, face: Face) -> String {
    let arguments = arguments(api, operation);
    let mut out = format!("\n    {} {}(\n        self,\n", face.def(), operation.name);
    for path in arguments.iter().filter(|argument| argument.place == Place::Path) {
        let _ = writeln!(out, "        {},", path.name);
    }
    out.push_str("        *,\n");
    for keyword in arguments.iter().filter(|argument| argument.place != Place::Path) {
        let default = if keyword.required { "" } else { "=NOT_GIVEN" };
        let _ = writeln!(out, "        {}{default},", keyword.name);
    }
    out.push_str(
        "        extra_headers=None,\n        extra_query=None,\n        extra_body=None,\n        \
         timeout=None,\n        max_retries=None,\n    ):\n",
    );
    out.push_str(&method_doc(operation, &arguments));
    let dict = |place: Place| {
        let pairs: Vec<String> = arguments
            .iter()
            .filter(|argument| argument.place == place)
            .map(|argument| format!("{:?}: {}", argument.wire, argument.name))
            .collect();
        if pairs.is_empty() { "None".to_owned() } else { format!("{{{}}}", pairs.join(", ")) }
    };
    let _ = writeln!(
        out,
        "        parameters = ({}, {}, {})",
        dict(Place::Path),
        dict(Place::Query),
        dict(Place::Header)
    );
    if operation.request.is_some() {
        out.push_str("        body = {\n");
        for member in arguments.iter().filter(|argument| argument.place == Place::Body) {
            let _ = writeln!(out, "            {:?}: {},", member.wire, member.name);
        }
        out.push_str("        }\n");
    } else {
        out.push_str("        body = None\n");
    }
    out.push_str("        options = (extra_headers, extra_query, extra_body, timeout, max_retries)\n");
    let awaits = face.awaits();
    let call =
        |how: &str| format!("{awaits}self._client.{how}({:?}, parameters, body, options)", operation.id);
    if let Some(switch) = operation.stream_parameter() {
        let _ = writeln!(out, "        if {} is True:", argument(switch));
        let _ = writeln!(out, "            return {}", call("_open"));
    }
    let how = if operation.always_streams() { "_open" } else { "_call" };
    let _ = writeln!(out, "        return {}", call(how));
    out
}

fn method_doc(operation: &Operation, arguments: &[Argument<'_>]) -> String {
    let indent = "        ";
    let mut list = String::from("Args:\n");
    for argument in arguments {
        let text = format!("{}: {}", argument.name, argument.doc);
        list.push_str(&wrapped(&text, "    ", "        "));
    }
    list.push_str("    extra_headers: Headers to send beside the client's own.\n");
    list.push_str("    extra_query: Query parameters to send beside the operation's own.\n");
    list.push_str(
        "    extra_body: Members to send in the body; one of the same name replaces an argument.\n",
    );
    list.push_str("    timeout: Seconds for the whole call, all attempts together.\n");
    list.push_str("    max_retries: Attempts after the first.\n");
    let summary = format!("{}.", operation.summary.trim_end_matches('.'));
    let source = if operation.source == "ours" {
        "Not shown in the source specification (ours).".to_owned()
    } else {
        format!("Source: specification {}.", operation.source)
    };
    let doc = docstring(&[summary, operation.description.clone(), "@ARGUMENTS@".to_owned(), source], indent);
    // Already wrapped and indented below its own heading; wrapping it again would undo that.
    let list: String = list.lines().flat_map(|line| [indent, line, "\n"]).collect();
    doc.replace(
        &format!("{indent}@ARGUMENTS@\n"),
        &list.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\""),
    )
}

pub(super) fn stub(api: &Api) -> String {
    let mut out = String::from(
        "import builtins\n\
         from collections.abc import Mapping, Sequence\n\
         from typing import Any, Literal, overload\n\n\
         from gatewright._native import NotGiven, Record\n\
         from gatewright._streams import AsyncStream, Stream\n\
         from gatewright.generated import types\n",
    );
    for face in Face::BOTH {
        classes(&api.resources(), &mut |resource| {
            let _ = write!(out, "\nclass {}:\n", face.class_name(resource));
            out.push_str(&class_doc(resource));
            if !resource.path.is_empty() {
                out.push_str("    _client: Any\n    def __init__(self, client: Any) -> None: ...\n");
            }
            for child in &resource.children {
                let name = child.path.last().map_or("", String::as_str);
                let class = face.class_name(child);
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

/// The method's signature; overloads by the switch where one decides between a document and a stream.
fn signatures(api: &Api, operation: &Operation, face: Face) -> String {
    // A method may hide a builtin: `list` does.
    let received = Types { api, direction: Direction::Response, builtins: "builtins.", schemas: "types." };
    let stream = operation.stream.as_ref().map(|stream| face.stream(&received.expression(&stream.item)));
    let document = operation.response.as_ref().map(|ty| received.expression(ty));
    match (operation.stream_parameter(), stream, document) {
        (Some(switch), Some(stream), Some(document)) => {
            let either = format!("{document} | {stream}");
            let mut out = String::new();
            for (ty, result) in [
                ("Literal[False] | NotGiven | None = ...", &document),
                ("Literal[True]", &stream),
                ("bool | NotGiven | None = ...", &either),
            ] {
                out.push_str("    @overload\n");
                out.push_str(&signature(api, operation, face, Some((switch, ty)), result));
            }
            out
        }
        (_, Some(stream), None) => signature(api, operation, face, None, &stream),
        (_, _, Some(document)) => signature(api, operation, face, None, &document),
        (_, _, None) => signature(api, operation, face, None, "None"),
    }
}

fn signature(
    api: &Api,
    operation: &Operation,
    face: Face,
    switch: Option<(&str, &str)>,
    result: &str,
) -> String {
    let sent = Types { api, direction: Direction::Request, builtins: "", schemas: "types." };
    let arguments = arguments(api, operation);
    let mut out = format!("    {} {}(\n        self,\n", face.def(), operation.name);
    for path in arguments.iter().filter(|argument| argument.place == Place::Path) {
        let _ = writeln!(out, "        {}: {},", path.name, sent.expression(path.ty));
    }
    out.push_str("        *,\n");
    for keyword in arguments.iter().filter(|argument| argument.place != Place::Path) {
        let _ = match switch.filter(|(name, _)| *name == keyword.wire) {
            Some((_, ty)) => writeln!(out, "        {}: {ty},", keyword.name),
            None if keyword.required => {
                writeln!(out, "        {}: {},", keyword.name, sent.expression(keyword.ty))
            }
            None => {
                writeln!(out, "        {}: {} | NotGiven = ...,", keyword.name, sent.expression(keyword.ty))
            }
        };
    }
    let _ = write!(
        out,
        "        extra_headers: Mapping[str, str] | None = ...,\n        \
         extra_query: Mapping[str, object] | None = ...,\n        \
         extra_body: Mapping[str, object] | None = ...,\n        \
         timeout: float | None = ...,\n        \
         max_retries: int | None = ...,\n    \
         ) -> {result}: ...\n"
    );
    out
}
