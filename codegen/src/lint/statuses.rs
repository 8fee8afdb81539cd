//! The statuses of errors are listed by operation, as `spec/errors.json` gives them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Problem;
use crate::error_statuses::statuses;
use crate::load::{Document, child};
use crate::model::Api;

/// Operations whose errors have one form but whose statuses differ from those in `errors.json`.
pub(crate) fn lint_statuses(document: &Document, api: &Api) -> Vec<Problem> {
    let mut problems = Vec::new();
    for operation in &api.operations {
        let at = child(&child("/paths", &operation.path), &operation.method.upper().to_lowercase());
        let Some(responses) =
            document.0.pointer(&at).and_then(|node| node.get("responses")).and_then(Value::as_object)
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
                problems.push(Problem {
                    place: format!("spec/openapi.yaml#{}", child(&at, "responses")),
                    message: format!("{what}: {statuses:?}, by the codes of spec/errors.json"),
                });
            }
        };
        report(
            sent.difference(&listed).collect(),
            "add the statuses of errors that are missing, as `default` is",
        );
        report(listed.difference(&sent).collect(), "remove the statuses of errors that no code has here");
    }
    problems
}
