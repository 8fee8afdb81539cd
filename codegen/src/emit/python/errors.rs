//! `errors.py`: an exception class for each kind of error. What all of them hold is written by hand, in `_failure.py`.

use std::fmt::Write as _;

use super::docstring;
use crate::errors::Errors;

pub(super) fn module(errors: &Errors) -> String {
    let mut out = String::from(
        "\"\"\"The exceptions: one class for each kind of failure, all with the same attributes.\"\"\"\n\n\
         from gatewright._failure import Failure\n\n",
    );
    let bases = errors.bases.iter().map(|base| base.class.as_str());
    let classes: Vec<&str> = bases.chain(errors.kinds.iter().map(|kind| kind.class.as_str())).collect();
    out.push_str("__all__ = [\n");
    for class in &classes {
        let _ = writeln!(out, "    \"{class}\",");
    }
    out.push_str("]\n");
    let mut written: Vec<&str> = Vec::new();
    let class = |out: &mut String, name: &str, parent: Option<&str>, doc: &str, body: &str| {
        let _ = write!(out, "\n\nclass {name}({}):\n", parent.unwrap_or("Failure"));
        out.push_str(&docstring(&[doc.to_owned()], "    "));
        out.push_str(body);
    };
    for base in &errors.bases {
        class(&mut out, &base.class, base.parent.as_deref(), &base.meaning, MEMBER);
        written.push(&base.class);
    }
    // A kind may come before its parent in the file: write in rounds until all parents are there.
    let mut waiting: Vec<_> = errors.kinds.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|kind| {
            if !written.contains(&kind.parent.as_str()) {
                return true;
            }
            let body = format!(
                "{MEMBER}    kind = \"{}\"\n    retryable = {}\n",
                kind.name,
                if kind.retryable { "True" } else { "False" }
            );
            class(&mut out, &kind.class, Some(&kind.parent), &kind.meaning, &body);
            written.push(&kind.class);
            false
        });
        assert!(waiting.len() < before, "the parent of {} is no class of spec/errors.json", waiting[0].class);
    }
    out
}

const MEMBER: &str = "\n    __module__ = \"gatewright\"\n";
