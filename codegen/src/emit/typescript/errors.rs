//! `errors.ts`: a class for each error kind and for each group of kinds. The root of them, which holds the
//! members, is hand-written.

use std::fmt::Write as _;

use super::{doc, member, quoted};
use crate::errors::{ErrorKind, Errors};

pub(super) fn emit(errors: &Errors) -> String {
    let classes = errors.classes();
    let roots: Vec<&str> =
        classes.iter().filter(|(_, parent, _)| parent.is_none()).map(|(class, ..)| *class).collect();
    let mut out = format!("import {{ type ErrorDetails, {} }} from \"../error\";\n", roots.join(", "));
    for (class, parent, meaning) in &classes {
        let Some(parent) = parent else { continue };
        out.push('\n');
        out.push_str(&declaration(class, parent, meaning, errors));
    }
    out.push_str("\n/** Name of an error kind, as in `error.kind`. */\nexport type ErrorKind =");
    for kind in &errors.kinds {
        let _ = write!(out, "\n  | {}", quoted(&kind.name));
    }
    out.push_str(";\n\n/** The class of each error kind. */\nexport const errorClasses = {\n");
    for kind in &errors.kinds {
        let _ = writeln!(out, "  {}: {},", member(&kind.name), kind.class);
    }
    let _ = writeln!(
        out,
        "}} as const satisfies Record<ErrorKind, new (details: ErrorDetails) => {}>;",
        roots.join(" | ")
    );
    out
}

fn declaration(class: &str, parent: &str, meaning: &str, errors: &Errors) -> String {
    let facts = errors.kinds.iter().find(|kind| kind.class == class).map_or_else(String::new, facts);
    let kinds: Vec<String> = errors
        .kinds
        .iter()
        .filter(|kind| descends(&kind.class, class, errors))
        .map(|kind| quoted(&kind.name))
        .collect();
    let mut out = doc("", &[meaning, &facts]);
    let _ = writeln!(out, "export class {class} extends {parent} {{");
    // The literals keep classes apart for the compiler, which compares by structure.
    let _ = writeln!(out, "  declare readonly kind: {};", kinds.join(" | "));
    out.push_str("}\n");
    out
}

/// `HTTP status 429. The client retries it.`
fn facts(kind: &ErrorKind) -> String {
    let statuses: Vec<String> = kind.status.iter().map(u16::to_string).collect();
    let statuses =
        if statuses.is_empty() { String::new() } else { format!("HTTP status {}.", statuses.join(", ")) };
    let retried = if kind.retryable { "The client retries it." } else { "" };
    [statuses.as_str(), retried].join(" ")
}

/// Whether `class` is `ancestor` or extends it, at any distance.
fn descends(class: &str, ancestor: &str, errors: &Errors) -> bool {
    class == ancestor
        || errors.classes().iter().any(|(name, parent, _)| {
            *name == class && parent.is_some_and(|parent| descends(parent, ancestor, errors))
        })
}
