//! How a method is called: its name, its arguments, and which parameters are members of `params`.

use super::{KEYWORDS, expression};
use crate::model::{Operation, Parameter};
use crate::names::{camel, pascal};

/// `chat.completions.create`, as a caller writes it.
pub(super) fn call_path(operation: &Operation) -> String {
    let mut parts: Vec<String> = operation.resource.iter().map(|part| camel(part)).collect();
    parts.push(camel(&operation.name));
    parts.join(".")
}

/// Parameters that are members of `params`: all of them if there is a body, else those outside the path.
pub(super) fn named(operation: &Operation) -> Vec<&Parameter> {
    let in_path = operation.path_parameters().filter(|_| operation.request.is_some());
    in_path.chain(operation.free_parameters()).collect()
}

/// The type of `params`: that of the body, or an interface of this operation if it has further members.
pub(super) fn params_type(operation: &Operation) -> Option<String> {
    if named(operation).is_empty() {
        operation.request.clone()
    } else {
        Some(format!("{}Params", pascal(&operation.id)))
    }
}

/// The arguments of an operation's method: its path's parameters where it has no body, `params`, and the options.
pub(super) fn arguments(operation: &Operation, params: Option<String>, options: &str) -> Vec<String> {
    let mut arguments: Vec<String> = match operation.request {
        Some(_) => Vec::new(),
        None => operation
            .path_parameters()
            .map(|parameter| format!("{}: {}", argument(&parameter.name), expression(&parameter.ty)))
            .collect(),
    };
    let optional =
        operation.request.is_none() && named(operation).iter().all(|parameter| !parameter.required);
    let mark = if optional { "?" } else { "" };
    arguments.extend(params.map(|ty| format!("params{mark}: {ty}")));
    arguments.push(format!("options?: {options}"));
    arguments
}

/// A path parameter as a positional argument.
pub(super) fn argument(name: &str) -> String {
    let spelled = camel(name);
    let is_taken = KEYWORDS.contains(&spelled.as_str()) || ["params", "options"].contains(&spelled.as_str());
    if is_taken { spelled + "_" } else { spelled }
}
