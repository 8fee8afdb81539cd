//! Checks that docs/reference/environment.md names exactly the variables that the sources name.

use std::collections::BTreeSet;

use crate::process::{command, output, root};

const PAGE: &str = "docs/reference/environment.md";
/// A name that only stands for mistakes, in a test and in a comment.
const MISSPELT: &str = "GATEWRIGHT_BASEURL";

/// The names in a text that begin like our variables. A name that ends with an underscore is only a prefix.
fn names_in(text: &str) -> BTreeSet<&str> {
    let is_part = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    text.split(|letter| !is_part(letter))
        .filter(|word| word.starts_with("GATEWRIGHT_") && !word.ends_with('_'))
        .collect()
}

#[test]
fn environment_page_lists_the_variables_in_the_sources() {
    let mut git = command("git");
    git.args(["grep", "-hoE", "--untracked", "GATEWRIGHT_[A-Z0-9_]+", "--", ":!*.md", ":!docs"]);
    let listed = output(&mut git).expect("git finds some");
    let mut sources = names_in(&listed);
    sources.remove(MISSPELT);
    let text = std::fs::read_to_string(root().join(PAGE)).expect("the page");
    let page = names_in(&text);
    let missing: Vec<_> = sources.difference(&page).collect();
    let stale: Vec<_> = page.difference(&sources).collect();
    assert!(missing.is_empty() && stale.is_empty(), "{PAGE} lacks {missing:?}; no source names {stale:?}");
}

#[test]
fn variable_prefix_is_not_a_variable() {
    assert_eq!(names_in("`GATEWRIGHT_SERVE_…` and (GATEWRIGHT_LOG)"), ["GATEWRIGHT_LOG"].into());
}
