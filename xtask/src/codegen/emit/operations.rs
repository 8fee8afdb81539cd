//! Emits the table of operations: one row each, for the transport, the bindings and the gateway.

use std::fmt::Write as _;

use super::header;
use crate::codegen::model::{Api, File, Location, Operation, StreamMode};
use crate::codegen::names;

/// `core/src/generated/operations.rs`.
pub(crate) fn emit(api: &Api) -> Vec<File> {
    let mut code = format!(
        "// {}\n//! The operations of the specification, one constant each.\n\n\
         pub use crate::operation::{{ErrorStyle, Method, Operation, Protocol, StreamMode}};\n",
        header("spec/openapi.yaml")
    );
    for operation in &api.operations {
        code.push_str(&row(operation));
    }
    code.push_str(
        "\n/// All operations, in the order of the specification.\npub const ALL: &[&Operation] = &[\n",
    );
    for operation in &api.operations {
        _ = writeln!(code, "    &{},", names::constant(&operation.id));
    }
    code.push_str(
        "];\n\n/// Finds an operation by its id.\npub fn by_id(id: &str) -> Option<&'static Operation> {\n",
    );
    code.push_str("    match id {\n");
    for operation in &api.operations {
        _ = writeln!(code, "        {:?} => Some(&{}),", operation.id, names::constant(&operation.id));
    }
    code.push_str("        _ => None,\n    }\n}\n");
    vec![File { path: "core/src/generated/operations.rs".to_owned(), contents: code }]
}

fn row(operation: &Operation) -> String {
    let path_parameters: Vec<&str> = operation.path_parameters().map(|p| p.name.as_str()).collect();
    let slashed_parameters: Vec<&str> =
        operation.path_parameters().filter(|p| p.slashes).map(|p| p.name.as_str()).collect();
    let query_parameters: Vec<&str> = operation
        .free_parameters()
        .filter(|p| p.location == Location::Query)
        .map(|p| p.name.as_str())
        .collect();
    let fixed_query: Vec<(&str, &str)> = operation.fixed_parameters().collect();
    let stream = match operation.stream.as_ref().map(|stream| &stream.mode) {
        None => "StreamMode::Never".to_owned(),
        Some(StreamMode::Always) => "StreamMode::Always".to_owned(),
        Some(StreamMode::Parameter(name)) => format!("StreamMode::Parameter({name:?})"),
    };
    let terminator = operation.stream.as_ref().and_then(|stream| stream.terminator.as_deref());
    format!(
        "\n/// {summary} ({source}): `{method_upper} {path}`.\n\
         pub const {constant}: Operation = Operation {{\n\
         \x20   id: {id:?},\n\
         \x20   method: Method::{method},\n\
         \x20   path: {path:?},\n\
         \x20   path_parameters: &{path_parameters:?},\n\
         \x20   slashed_parameters: &{slashed_parameters:?},\n\
         \x20   query_parameters: &{query_parameters:?},\n\
         \x20   fixed_query: &{fixed_query:?},\n\
         \x20   has_body: {has_body},\n\
         \x20   stream: {stream},\n\
         \x20   terminator: {terminator:?},\n\
         \x20   protocol: Protocol::{protocol},\n\
         \x20   error_style: ErrorStyle::{style},\n\
         \x20   resource: {resource:?},\n\
         \x20   name: {name:?},\n\
         \x20   source: {source:?},\n\
         }};\n",
        summary = operation.summary,
        source = operation.source,
        method_upper = operation.method.upper(),
        path = operation.path,
        constant = names::constant(&operation.id),
        id = operation.id,
        method = operation.method.pascal(),
        has_body = operation.request.is_some(),
        protocol = operation.protocol.pascal(),
        style = operation.error_style.pascal(),
        resource = operation.resource.join("."),
        name = operation.name,
    )
}
