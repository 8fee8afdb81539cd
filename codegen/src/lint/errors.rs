//! The rules of `spec/errors.json`.

use std::collections::{BTreeMap, HashSet};

use super::{Problem, Problems};
use crate::errors::Errors;

/// Broken rules of `spec/errors.json`: every class has one meaning and a known parent, every status one kind.
pub(super) fn lint_errors(errors: &Errors) -> Vec<Problem> {
    let mut problems = Problems::of("spec/errors.json");
    let classes =
        errors.bases.iter().map(|base| &base.class).chain(errors.kinds.iter().map(|kind| &kind.class));
    let known: Vec<&String> = classes.collect();
    let mut seen = HashSet::new();
    for class in &known {
        if !seen.insert(*class) {
            problems.report("/kinds", format!("the class {class} is defined twice; rename one"));
        }
    }
    let mut statuses: BTreeMap<u16, &str> = BTreeMap::new();
    for (index, kind) in errors.kinds.iter().enumerate() {
        if !known.contains(&&kind.parent) {
            problems.report(
                &format!("/kinds/{index}/parent"),
                format!("{} is no class here; add it or correct it", kind.parent),
            );
        }
        for status in &kind.status {
            if let Some(first) = statuses.insert(*status, &kind.name) {
                let name = &kind.name;
                problems.report(
                    &format!("/kinds/{index}/status"),
                    format!("{status} belongs to {first} and to {name}; remove one"),
                );
            }
        }
    }
    // ErrorKind::from_status needs a kind for a status that is not listed.
    let parent = errors.kinds.iter().find(|kind| !kind.status.is_empty()).map(|kind| &kind.parent);
    if parent.is_none_or(|parent| !errors.kinds.iter().any(|kind| kind.class == *parent)) {
        problems
            .report("/kinds", "no kind takes the other statuses; make the parent of those with a status one");
    }
    if errors.classes().len() < known.len() {
        problems.report("/kinds", "some classes extend each other in a circle; correct a parent");
    }
    problems.found
}
