//! Emits the gateway's route table: a new operation is routed, and answered with 501, before anyone implements it.

use std::fmt::Write as _;

use super::header;
use crate::codegen::model::{Api, File, Operation};
use crate::codegen::names;

/// The matching, which does not depend on the specification.
const MATCHING: &str = r"
/// One operation and the segments of its path.
struct Route {
    operation: &'static Operation,
    segments: &'static [Segment],
}

/// A piece of a path between two `/`.
enum Segment {
    Literal(&'static str),
    /// Any text that is not empty, between what stands before and after it in the segment, and has none of the
    /// characters of `without`. Where that may be a slash, it goes over all segments that are left.
    Parameter { name: &'static str, before: &'static str, after: &'static str, without: &'static str },
}

/// What a method and a path lead to.
#[derive(Debug)]
pub enum Match<'path> {
    /// An operation; path parameters as they stand in the path, still percent-encoded.
    Found {
        /// The operation called.
        operation: &'static Operation,
        /// Name and raw value.
        path: Vec<(&'static str, &'path str)>,
    },
    /// The path is known, the method is not: the operations it has.
    MethodNotAllowed(Vec<&'static Operation>),
    /// No operation has this path.
    NotFound,
}

/// Finds the operation of a method and a path (without its query). Literal segments go before parameters, and the
/// most specific path that fits has the say about methods.
pub fn match_route<'path>(method: &http::Method, path: &'path str) -> Match<'path> {
    let mut others: Vec<&'static Operation> = Vec::new();
    for route in ROUTES {
        if others.first().is_some_and(|other| other.path != route.operation.path) {
            continue;
        }
        let Some(parameters) = parameters(route.segments, path) else { continue };
        if route.operation.method.as_str() == method.as_str() {
            return Match::Found { operation: route.operation, path: parameters };
        }
        others.push(route.operation);
    }
    if others.is_empty() { Match::NotFound } else { Match::MethodNotAllowed(others) }
}

/// The parameters of a path that has these segments.
fn parameters<'path>(expected: &[Segment], path: &'path str) -> Option<Vec<(&'static str, &'path str)>> {
    let mut parameters = Vec::new();
    let mut rest = Some(path.strip_prefix('/').unwrap_or(path));
    for segment in expected {
        let (found, after) = match (segment, rest?.split_once('/')) {
            (Segment::Parameter { without, .. }, _) if !without.contains('/') => (rest?, None),
            (_, None) => (rest?, None),
            (_, Some((found, after))) => (found, Some(after)),
        };
        rest = after;
        match segment {
            Segment::Literal(text) if *text == found => {}
            Segment::Literal(_) => return None,
            Segment::Parameter { name, before, after, without } => {
                let value = found.strip_prefix(before)?.strip_suffix(after)?;
                if value.is_empty() || value.contains(|character| without.contains(character)) {
                    return None;
                }
                parameters.push((*name, value));
            }
        }
    }
    rest.is_none().then_some(parameters)
}
";

/// `gateway/src/generated`.
pub(crate) fn emit(api: &Api) -> Vec<File> {
    let source = header("spec/openapi.yaml");
    let module = format!(
        "// {source}\n//! What the gateway takes from the specification.\n\n#[rustfmt::skip]\npub mod routes;\n"
    );
    let mut code = format!(
        "// {source}\n//! Which operation a request calls, and the service that answers it. An operation nobody implements is\n\
         //! routed and answered with 501.\n\n\
         use std::future::Future;\n\nuse gatewright::operations::{{self, Operation}};\n\nuse crate::{{Call, Response, not_implemented}};\n"
    );
    code.push_str(MATCHING);
    table(&mut code, api);
    service(&mut code, api);
    let file = |name: &str, contents| File { path: format!("gateway/src/generated/{name}"), contents };
    vec![file("mod.rs", module), file("routes.rs", code)]
}

fn table(code: &mut String, api: &Api) {
    let mut routes: Vec<(Vec<Segment<'_>>, &Operation)> =
        api.operations.iter().map(|operation| (segments(operation, api), operation)).collect();
    // Literal before parameter, longer fixed text first: the first that fits is the most specific.
    routes.sort_by_key(|(segments, _)| segments.iter().map(Segment::rank).collect::<Vec<_>>());
    code.push_str("\nstatic ROUTES: &[Route] = &[\n");
    for (segments, operation) in &routes {
        _ = writeln!(
            code,
            "    Route {{\n        operation: &operations::{},\n        segments: &[",
            names::constant(&operation.id)
        );
        for segment in segments {
            _ = match segment {
                Segment::Literal(text) => writeln!(code, "            Segment::Literal({text:?}),"),
                Segment::Parameter { name, before, after, without } => writeln!(
                    code,
                    "            Segment::Parameter {{ name: {name:?}, before: {before:?}, after: {after:?}, without: {without:?} }},"
                ),
            };
        }
        code.push_str("        ],\n    },\n");
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
    let slashes = |name| operation.path_parameters().any(|known| known.name == name && known.slashes);
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
                "    /// {} ({}): `{} {}`.\n    fn {}(&self, call: Call) -> impl Future<Output = Response> + Send {{\n        async move {{ not_implemented(call.operation) }}\n    }}\n",
                operation.summary, operation.source, operation.method.upper(), operation.path, operation.id,
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
