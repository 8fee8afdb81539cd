//! The parameters of an operation, including those of its path, and the body sent with them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::load::{
    Document, FORM, METHODS, ParameterPlace, child, placeholders, request_media, request_schema, text,
};
use crate::names;
use crate::schema::merge_all_of;
use crate::vocabulary::OF_THE_TRANSPORT;

/// Problems with the parameters of an operation as a whole. `at_path`, `at`: the pointers to its path and to itself.
pub(super) fn of_operation(
    document: &Document,
    path: &str,
    (item, at_path): (&Value, &str),
    (operation, at): (&Value, &str),
) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let parameters = document.parameters(item, operation);
    let place = |place: ParameterPlace| match place {
        ParameterPlace::Path(index) => format!("{at_path}/parameters/{index}"),
        ParameterPlace::Operation(index) => format!("{at}/parameters/{index}"),
    };
    let body = request_schema(operation);
    let body = body.and_then(|schema| document.follow(schema).ok());
    let merged = body.and_then(|body| merge_all_of(document, body).ok());
    let members = || merged.as_ref().and_then(|body| body["properties"].as_object()).into_iter().flatten();
    let mut arguments: BTreeMap<String, &str> = BTreeMap::new();
    for (from, parameter) in &parameters {
        let name = text(parameter, "name");
        let argument = names::snake(name);
        let mut report = |message: String| problems.push((place(*from), message));
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
        if location == "header" && OF_THE_TRANSPORT.contains(&name.to_ascii_lowercase().as_str()) {
            report(format!("{name} is the transport's to set; remove it"));
        }
        if location != "path" {
            continue;
        }
        if parameter.get("required") != Some(&Value::Bool(true)) {
            report("a path is never without its parameter; add required: true".to_owned());
        }
        if !["string", "integer"].contains(&text(schema, "type")) {
            report("a parameter of a path is a string or an integer; make it one".to_owned());
        }
        if !path.contains(&format!("{{{name}}}")) {
            report(format!("the path has no {{{name}}}; add it there, or remove the parameter"));
        }
    }
    for name in placeholders(path) {
        let is_known =
            parameters.iter().any(|(_, known)| text(known, "in") == "path" && text(known, "name") == name);
        if !is_known {
            problems.push((at.to_owned(), format!("no parameter describes {{{name}}} of the path; add it")));
        }
    }
    problems.extend(body_rules(operation, at));
    problems
}

/// Problems with a path itself, and with the parameters shared by all its operations.
pub(super) fn of_path(path: &str, item: &Value, at: &str) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if path.split('/').any(|segment| segment.matches('{').count() > 1) {
        problems.push((at.to_owned(), "a segment of a path holds one parameter; split it".to_owned()));
    }
    for (node, at) in std::iter::once((item, at.to_owned())).chain(
        item.as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| METHODS.contains(&key.as_str()))
            .map(|(key, operation)| (operation, child(at, key))),
    ) {
        let mut seen = Vec::new();
        let list = node.get("parameters").and_then(Value::as_array).into_iter().flatten();
        for (index, parameter) in list.enumerate() {
            let key = (text(parameter, "name"), text(parameter, "in"));
            if !key.0.is_empty() && seen.contains(&key) {
                problems.push((
                    format!("{at}/parameters/{index}"),
                    format!("`{}` is listed twice; remove one", key.0),
                ));
            }
            seen.push(key);
        }
    }
    problems
}

fn body_rules(operation: &Value, at: &str) -> Vec<(String, String)> {
    let Some(body) = operation.get("requestBody") else { return Vec::new() };
    let at_body = child(at, "requestBody");
    let mut problems = Vec::new();
    let mut report = |message: &str| problems.push((at_body.clone(), message.to_owned()));
    if at.ends_with("/get") {
        report("a GET has no body; make it a POST, or use parameters");
    }
    if body.get("$ref").is_some() {
        report("a reference to a body is not followed; write the body here, its schema may be a reference");
        return problems;
    }
    if body.get("required") != Some(&Value::Bool(true)) {
        report("a body is always sent; add required: true");
    }
    match request_media(operation) {
        None => report(
            "only bodies of application/json and multipart/form-data are generated; add one, or remove the body",
        ),
        Some((FORM, _)) => {}
        Some(_) if body["content"].get(FORM).is_some() => {
            report("a body is sent in one way; keep application/json or multipart/form-data");
        }
        Some(_) => {}
    }
    problems
}
