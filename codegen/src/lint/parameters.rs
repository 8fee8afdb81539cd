//! The parameters of an operation, including those of its path, and the body sent with them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Problems;
use crate::document::{
    Document, FORM, METHODS, OperationNode, ParameterPlace, child, is_true, items_of, placeholders,
    request_media, text,
};
use crate::model::HttpMethod;
use crate::names;
use crate::schema::merge_all_of;
use crate::vocabulary::TRANSPORT_HEADERS;

/// Reports problems with the parameters of an operation as a whole, and with its body.
pub(super) fn lint_operation(document: &Document, operation: OperationNode<'_>, problems: &mut Problems) {
    let (at, at_path) = (operation.pointer(), operation.path_pointer());
    let parameters = document.parameters(operation);
    let place = |place: ParameterPlace| match place {
        ParameterPlace::Path(index) => format!("{at_path}/parameters/{index}"),
        ParameterPlace::Operation(index) => format!("{at}/parameters/{index}"),
    };
    let body = document.request_body(operation.node);
    let merged = body.and_then(|body| merge_all_of(document, body).ok());
    let members = || merged.as_ref().and_then(|body| body["properties"].as_object()).into_iter().flatten();
    let mut arguments: BTreeMap<String, &str> = BTreeMap::new();
    for (from, parameter) in &parameters {
        let name = text(parameter, "name");
        let argument = names::snake(name);
        let mut report = |message: String| problems.report(&place(*from), message);
        if argument.is_empty() {
            report(format!("`{name}` has no letter or digit to name an argument by; rename it"));
        }
        if let Some(first) = arguments.insert(argument.clone(), name) {
            report(format!("`{first}` and `{name}` become one argument; rename one"));
        }
        // Python and Node take parameters and members of the body side by side.
        if members().any(|(member, _)| names::snake(member) == argument) {
            report(format!("the request body has a `{name}` too; rename one"));
        }
        if body.is_some() && argument == "body" {
            report("in Rust the request body is the argument `body`; rename the parameter".to_owned());
        }
        let schema = &parameter["schema"];
        let location = text(parameter, "in");
        if schema.get("const").is_some() && location != "query" {
            report("a fixed value is sent in a query alone; remove const, or move it there".to_owned());
        }
        if location == "header" && TRANSPORT_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
            report(format!("{name} is set by the client; remove it"));
        }
        if location != "path" {
            continue;
        }
        if !is_true(parameter, "required") {
            report("a path is never without its parameter; add required: true".to_owned());
        }
        if !["string", "integer"].contains(&text(schema, "type")) {
            report("a parameter of a path is a string or an integer; make it one".to_owned());
        }
        if !operation.path.contains(&format!("{{{name}}}")) {
            report(format!("the path has no {{{name}}}; add it there, or remove the parameter"));
        }
    }
    for name in placeholders(operation.path) {
        let is_known =
            parameters.iter().any(|(_, known)| text(known, "in") == "path" && text(known, "name") == name);
        if !is_known {
            problems.report(&at, format!("no parameter describes {{{name}}} of the path; add it"));
        }
    }
    lint_body(operation, &child(&at, "requestBody"), problems);
}

/// Reports problems with a path itself, and parameters that are listed twice.
pub(super) fn lint_path(path: &str, item: &Value, at: &str, problems: &mut Problems) {
    for segment in path.split('/') {
        let count = |brace: char| segment.matches(brace).count();
        let is_named = match (segment.find('{'), segment.find('}')) {
            (Some(open), Some(close)) => open + 1 < close,
            (open, close) => open == close,
        };
        if count('{') > 1 {
            problems.report(at, "a segment of a path holds one parameter; split it");
        } else if count('{') != count('}') || !is_named {
            problems.report(at, "a segment of a path has braces around no name; write a parameter as {name}");
        }
    }
    let operations = METHODS.iter().filter_map(|method| Some((item.get(method)?, child(at, method))));
    for (node, at) in [(item, at.to_owned())].into_iter().chain(operations) {
        let mut seen = Vec::new();
        let list = items_of(node, "parameters");
        for (index, parameter) in list.enumerate() {
            let key = (text(parameter, "name"), text(parameter, "in"));
            if !key.0.is_empty() && seen.contains(&key) {
                problems.report(
                    &format!("{at}/parameters/{index}"),
                    format!("`{}` is listed twice; remove one", key.0),
                );
            }
            seen.push(key);
        }
    }
}

/// `at`: the pointer to the body.
fn lint_body(operation: OperationNode<'_>, at: &str, problems: &mut Problems) {
    let Some(body) = operation.node.get("requestBody") else { return };
    let mut report = |message: &str| problems.report(at, message);
    if operation.method == HttpMethod::Get {
        report("a GET has no body; make it a POST, or use parameters");
    }
    if body.get("$ref").is_some() {
        return report(
            "a reference to a body is not followed; write the body here, its schema may be a reference",
        );
    }
    if !is_true(body, "required") {
        report("a body is always sent; add required: true");
    }
    match request_media(operation.node) {
        Some((FORM, _)) => {}
        Some(_) if body["content"].get(FORM).is_some() => {
            report("a body is sent in one way; keep application/json or multipart/form-data");
        }
        Some(_) => {}
        // Another media type is reported where it is.
        None if body["content"].as_object().is_some_and(|content| !content.is_empty()) => {}
        None => {
            report("a body needs content; add application/json or multipart/form-data, or remove the body");
        }
    }
}
