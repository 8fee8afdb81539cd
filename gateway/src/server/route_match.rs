//! Finds the operation for a method and a path. The tables of routes are generated (`generated/routes.rs`, `generated/admin/routes.rs`).

use gatewright::operations::Operation;

use crate::generated::routes::ROUTES;
use crate::wire::{Route, Segment};

/// The result of routing a method and a path.
#[derive(Debug)]
pub enum Match<'path> {
    /// An operation, with its path parameters as they are in the path, still percent-encoded.
    Found {
        /// The operation called.
        operation: &'static Operation,
        /// Name and raw value.
        path: Vec<(&'static str, &'path str)>,
    },
    /// The path is known, but not the method: the operations of the path.
    MethodNotAllowed(Vec<&'static Operation>),
    /// No operation has this path.
    NotFound,
}

/// Finds the operation of a method and a path (without its query). Literal segments take precedence over parameters,
/// and the most specific matching path determines the allowed methods.
pub fn match_route<'path>(method: &http::Method, path: &'path str) -> Match<'path> {
    match_route_of(ROUTES, method, path)
}

/// The same in another table of routes, the most specific first.
pub(super) fn match_route_of<'path>(
    routes: &'static [Route],
    method: &http::Method,
    path: &'path str,
) -> Match<'path> {
    let mut others: Vec<&'static Operation> = Vec::new();
    for route in routes {
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

/// The methods of operations that share a path. HEAD is allowed wherever GET is.
pub(super) fn methods_of(operations: &[&Operation]) -> Vec<&'static str> {
    let mut methods: Vec<&str> = operations.iter().map(|operation| operation.method.as_str()).collect();
    if let Some(get) = methods.iter().position(|method| *method == "GET") {
        methods.insert(get + 1, "HEAD");
    }
    methods
}

/// The parameters of a path, if it matches these segments.
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
