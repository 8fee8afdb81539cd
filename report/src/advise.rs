//! Advisories: suspicious content that section 2.12 allows.
//!
//! They never make a report invalid, except with `strict`. Every document that parses is checked for them. Missing or
//! mistyped values are skipped here, since they are violations of their own.

use std::collections::{HashMap, HashSet};

use crate::fast_path::ValidatedObjects;
use crate::finding::{Finding, excerpt, quoted};
use crate::findings::Findings;
use crate::model::Status;
use crate::path::Path;
use crate::read;
use crate::tree::{Member, Node, Number, Value};

/// Largest integer that every JSON parser represents exactly: 2^53 − 1.
const SAFE_INTEGER: u128 = (1 << 53) - 1;

/// Maximum number of checks, other than those that the checker has read, that are compared with all others one by one. If
/// there are more, all cells are compared through a table.
const FEW_CHECKS: usize = 4;

/// Collects the advisories for a document with the tree `root`. `sure`: the checker's findings about objects without a tree.
pub(crate) fn advise(
    root: &Node<'_>,
    document: &[u8],
    sure: &ValidatedObjects<'_>,
    mut findings: Findings,
) -> Findings {
    userinfo(root, &mut findings);
    if let Some(checks) = root.get("checks")
        && matches!(checks.value, Value::Array(_))
    {
        layers(checks, &mut findings);
        if may_repeat(checks, sure) {
            duplicate_cells(checks, sure, &mut findings);
        }
        model_access(root, document, checks, sure, &mut findings);
        tally(root, checks, sure, &mut findings);
    }
    unsafe_integers(root, &Path::Root, &mut findings);
    findings
}

/// Finds credentials in the endpoint: reports may be shared.
fn userinfo(root: &Node<'_>, findings: &mut Findings) {
    let Some(endpoint) = root.get("endpoint") else { return };
    let Some(uri) = endpoint.as_str() else { return };
    let Some((_, rest)) = uri.split_once("://") else { return };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        findings.note(endpoint.start(), || {
            let message = "the endpoint contains a user name or password".to_owned();
            Finding::new("/endpoint".to_owned(), "userinfo", message)
        });
    }
}

/// The agent's check belongs to the layer `agent`, all others to `api`.
fn layers(checks: &Node<'_>, findings: &mut Findings) {
    for (index, check) in checks.items().iter().enumerate() {
        let Some(id) = check.get("id").and_then(Node::as_str) else { continue };
        let Some(layer) = check.get("layer") else { continue };
        let due = if id == "agent_cli_smoke" { "agent" } else { "api" };
        if let Some(name @ ("api" | "agent")) = layer.as_str()
            && name != due
        {
            findings.note(layer.start(), || {
                let message = format!("check {} belongs to layer \"{due}\", not \"{name}\"", quoted(id));
                let finding = Finding::new(format!("/checks/{index}/layer"), "layer", message);
                finding.expected(format!("\"{due}\"")).found(format!("\"{name}\""))
            });
        }
    }
}

/// Id and model of a check; a null model is `None`.
fn cell<'a>(check: &'a Node<'_>, sure: &'a ValidatedObjects<'_>) -> Option<(&'a str, Option<&'a str>)> {
    if let Value::Sound(cell) = check.value {
        return sure.cell(cell);
    }
    let id = check.get("id")?.as_str()?;
    match &check.get("model")?.value {
        Value::Null => Some((id, None)),
        Value::String(model) => Some((id, Some(model))),
        _ => None,
    }
}

/// Whether a cell may occur twice. The checks that the checker has read differ from each other.
fn may_repeat(checks: &Node<'_>, sure: &ValidatedObjects<'_>) -> bool {
    let others =
        || checks.items().iter().enumerate().filter(|(_, check)| !matches!(check.value, Value::Sound(_)));
    others().nth(FEW_CHECKS).is_some()
        || others().filter_map(|(index, check)| Some((index, cell(check, sure)?))).any(|(index, one)| {
            let mut all = checks.items().iter().enumerate();
            all.any(|(other, check)| other != index && cell(check, sure) == Some(one))
        })
}

fn duplicate_cells(checks: &Node<'_>, sure: &ValidatedObjects<'_>, findings: &mut Findings) {
    let mut seen = HashMap::new();
    for (index, check) in checks.items().iter().enumerate() {
        let Some(cell @ (id, model)) = cell(check, sure) else { continue };
        let first = *seen.entry(cell).or_insert(index);
        if first != index {
            findings.note(check.start(), || {
                let model = model.map_or_else(|| "no model".to_owned(), quoted);
                let message = format!("check {} of {model} is already at /checks/{first}", quoted(id));
                Finding::new(format!("/checks/{index}"), "duplicate_cell", message)
            });
        }
    }
}

/// Every model under test has a model_access check. A second one is a duplicate cell.
fn model_access(
    root: &Node<'_>,
    document: &[u8],
    checks: &Node<'_>,
    sure: &ValidatedObjects<'_>,
    findings: &mut Findings,
) {
    let Some(configuration) = root.get("configuration") else { return };
    let others = checks.items().iter().filter(|check| !matches!(check.value, Value::Sound(_)));
    let reached: HashSet<&str> = others
        .filter_map(|check| cell(check, sure))
        .filter(|(id, _)| *id == "model_access")
        .filter_map(|(_, model)| model)
        .collect();
    let (start, tree);
    let read = if matches!(configuration.value, Value::Sound(_)) {
        if sure.is_each_reached(&reached) {
            return;
        }
        // Only now the positions of its models are needed.
        let text = &document[configuration.start()..configuration.end()];
        tree = read::read(text, text.len(), Findings::new(1));
        start = configuration.start();
        let Ok(tree) = &tree else { return };
        tree
    } else {
        start = 0;
        configuration
    };
    for (index, model) in read.get("models").map_or(&[][..], Node::items).iter().enumerate() {
        if let Some(id) = model.as_str()
            && !sure.is_reached(id)
            && !reached.contains(id)
        {
            findings.note(start + model.start(), || {
                let message = format!("model {} has no model_access check", quoted(id));
                Finding::new(format!("/configuration/models/{index}"), "model_access", message)
            });
        }
    }
}

/// The summary counts the checks.
fn tally(root: &Node<'_>, checks: &Node<'_>, sure: &ValidatedObjects<'_>, findings: &mut Findings) {
    let Some(summary) = root.get("summary") else { return };
    for (property, of) in [("passed", Status::Pass), ("failed", Status::Fail), ("skipped", Status::Skip)] {
        let status = of.name();
        let statuses = checks.items().iter().map(|check| check.get("status").and_then(Node::as_str));
        let counted = statuses.filter(|found| *found == Some(status)).count() + sure.counted(of);
        let Some(node) = summary.get(property) else { continue };
        let Some(stated) = node.as_count() else { continue };
        if u64::try_from(counted) != Ok(stated) {
            findings.note(node.start(), || {
                let message =
                    format!("{property} is {stated}, but the checks with status \"{status}\" are {counted}");
                let finding = Finding::new(format!("/summary/{property}"), "tally", message);
                finding.expected(counted.to_string()).found(stated.to_string())
            });
        }
    }
}

/// Whether a number is an integer that changes in a parser that uses doubles. A short one made of digits does
/// not.
fn is_unsafe(number: Number<'_>) -> bool {
    let is_short = number.text().len() <= 15 && number.is_plain();
    !is_short && number.is_integer() && number.saturating().unsigned_abs() > SAFE_INTEGER
}

/// Finds integers that change in a parser that uses doubles.
fn unsafe_integers(node: &Node<'_>, path: &Path<'_>, findings: &mut Findings) {
    match &node.value {
        Value::Number(number) if is_unsafe(*number) => {
            findings.note(node.start(), || {
                let message = format!("the integer {} is over 2^53 - 1", excerpt(number.text()));
                Finding::new(path.pointer(), "unsafe_integer", message)
            });
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unsafe_integers(item, &Path::Item(path, index), findings);
            }
        }
        Value::Object(members) => {
            for Member { name, node, .. } in members {
                unsafe_integers(node, &Path::Member(path, name), findings);
            }
        }
        _ => {}
    }
}
