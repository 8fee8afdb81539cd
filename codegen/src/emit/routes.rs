//! Emits the gateway's route table: a new operation is routed, and answered with 501, before anyone implements it.

use std::fmt::Write as _;

use anyhow::Result;

use super::{Input, file, filled, origin};
use crate::model::{Api, Encoding, File, Operation};
use crate::names;

/// `gateway/src/generated`.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let api = input.api;
    let module = "//! What the gateway takes from the specifications.\n\n#[rustfmt::skip]\npub mod admin;\n#[rustfmt::skip]\npub mod routes;\n";
    let mut code = "//! The paths of all operations, and the service that answers them. An operation nobody implements is routed\n\
         //! and answered with 501.\n\n\
         use std::future::Future;\n\nuse gatewright::operations;\n\nuse crate::wire::{Call, Response, Route, Segment, not_implemented};\n"
        .to_owned();
    table(&mut code, api);
    service(&mut code, api);
    let generated = |name: &str, body: &str| file(format!("gateway/src/generated/{name}"), &api.source, body);
    Ok(vec![generated("mod.rs", module), generated("routes.rs", &code)])
}

/// The table of routes. Its constants are in a module `operations`.
pub(super) fn table(code: &mut String, api: &Api) {
    let mut routes: Vec<(Vec<Segment<'_>>, &Operation)> =
        api.operations.iter().map(|operation| (segments(operation, api), operation)).collect();
    // Literal before parameter, longer fixed text first: the first that fits is the most specific.
    routes.sort_by_key(|(segments, _)| segments.iter().map(Segment::rank).collect::<Vec<_>>());
    code.push_str("\n/// The most specific first.\npub(crate) static ROUTES: &[Route] = &[\n");
    for (segments, operation) in &routes {
        let segments: Vec<String> = segments
            .iter()
            .map(|segment| match segment {
                Segment::Literal(text) => format!("Segment::Literal({text:?})"),
                Segment::Parameter { name, before, after, without } => {
                    format!("Segment::Parameter {{ name: {name:?}, before: {before:?}, after: {after:?}, without: {without:?} }}")
                }
            })
            .collect();
        _ = write!(
            code,
            "    Route {{\n        operation: &operations::{},\n        segments: &[\n{}        ],\n    }},\n",
            names::constant(&operation.id),
            filled("            ", &segments),
        );
    }
    code.push_str("];\n");
}

#[derive(Debug, PartialEq)]
enum Segment<'a> {
    Literal(&'a str),
    Parameter { name: &'a str, before: &'a str, after: &'a str, without: String },
}

impl Segment<'_> {
    /// Sorts the more specific first.
    fn rank(&self) -> (bool, std::cmp::Reverse<usize>, String) {
        match self {
            Self::Literal(text) => (false, std::cmp::Reverse(0), (*text).to_owned()),
            Self::Parameter { before, after, .. } => {
                (true, std::cmp::Reverse(before.len() + after.len()), (*after).to_owned())
            }
        }
    }
}

fn segments<'a>(operation: &'a Operation, api: &Api) -> Vec<Segment<'a>> {
    let slashes = |name| {
        operation.path_parameters().any(|known| known.name == name && known.encoding == Encoding::Slashes)
    };
    // Where other paths go on with `:method`, a colon is no part of the value.
    let method = format!("{}:", operation.path);
    let methods = api.operations.iter().any(|other| other.path.starts_with(&method));
    let split = |segment| -> Option<Segment<'_>> {
        let (before, rest): (&str, &str) = str::split_once(segment, '{')?;
        let (name, after) = rest.split_once('}')?;
        let without =
            ['/', ':'].into_iter().filter(|mark| if *mark == '/' { !slashes(name) } else { methods });
        Some(Segment::Parameter { name, before, after, without: without.collect() })
    };
    operation
        .path
        .trim_start_matches('/')
        .split('/')
        .map(|segment| split(segment).unwrap_or(Segment::Literal(segment)))
        .collect()
}

fn service(code: &mut String, api: &Api) {
    code.push_str("\n/// What answers the operations. Each is 501 until an implementation takes its place.\npub trait Service: Send + Sync {\n");
    let methods: Vec<String> = api
        .operations
        .iter()
        .map(|operation| {
            format!(
                "    /// {}: `{} {}`. {}\n    fn {}(&self, call: Call) -> impl Future<Output = Response> + Send {{\n        async move {{ not_implemented(call.operation) }}\n    }}\n",
                operation.summary, operation.method.upper(), operation.path, origin(&operation.source), operation.id,
            )
        })
        .collect();
    code.push_str(&methods.join("\n"));
    code.push_str(
        "}\n\n/// Hands a call to the method of its operation.\npub async fn dispatch(service: &impl Service, call: Call) -> Response {\n    match call.operation.id {\n",
    );
    for operation in &api.operations {
        _ = writeln!(code, "        {:?} => service.{}(call).await,", operation.id, operation.id);
    }
    code.push_str("        _ => not_implemented(call.operation),\n    }\n}\n");
}
