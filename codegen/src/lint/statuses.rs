//! The statuses of errors are listed by operation, as `spec/errors.json` gives them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Problem, Problems};
use crate::document::{Document, child, operation_pointer};
use crate::error_statuses::statuses;
use crate::model::Api;

/// Operations whose errors have one shape but whose statuses differ from those in `errors.json`.
pub(super) fn lint_statuses(document: &Document, api: &Api) -> Vec<Problem> {
    let mut problems = Problems::of(&document.name);
    for operation in &api.operations {
        let at = operation_pointer(&operation.path, operation.method);
        let Some(responses) =
            document.root.pointer(&at).and_then(|node| node.get("responses")).and_then(Value::as_object)
        else {
            continue;
        };
        if !responses.contains_key("default") {
            continue;
        }
        let sent = statuses(&api.errors, operation.error_style, operation.request.is_some());
        let listed: BTreeSet<u16> = operation.error_statuses.iter().copied().collect();
        let mut report = |statuses: Vec<&u16>, what: &str| {
            if !statuses.is_empty() {
                problems.report(
                    &child(&at, "responses"),
                    format!("{what}: {statuses:?}, by the codes of spec/errors.json"),
                );
            }
        };
        report(
            sent.difference(&listed).collect(),
            "add the statuses of errors that are missing, as `default` is",
        );
        report(listed.difference(&sent).collect(), "remove the statuses of errors that no code has here");
    }
    problems.found
}
