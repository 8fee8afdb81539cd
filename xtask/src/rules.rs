//! Checks that docs/rules.md explains every number that the specification cites as a source.

use std::collections::BTreeSet;

use crate::process::root;

const PAGE: &str = "docs/rules.md";
const SOURCES: [&str; 3] = ["spec/openapi.yaml", "spec/catalog.json", "spec/errors.json"];

/// The sections of each `x-source` in a YAML or JSON text, such as `2.1` and `4 rule 1`.
fn cited(text: &str) -> BTreeSet<&str> {
    let values = text.split("x-source").skip(1).filter_map(|rest| {
        let value = rest.trim_start_matches(['"', ':', ' ']);
        value.starts_with(|first: char| first.is_ascii_digit()).then(|| value.split('"').next()).flatten()
    });
    values.flat_map(|value| value.split(", ")).collect()
}

#[test]
fn every_section_that_the_specification_cites_is_explained() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("a file");
    let page = read(PAGE);
    let texts = SOURCES.map(read);
    let cited: BTreeSet<&str> = texts.iter().flat_map(|text| cited(text)).collect();
    assert!(cited.contains("2.1") && cited.contains("4 rule 1"), "{cited:?}");
    for section in cited {
        let (number, rule) = section.split_once(" rule ").unwrap_or((section, ""));
        let explained = page.split("\n## ").find_map(|part| part.strip_prefix(&format!("{number} ")));
        let explained = explained.unwrap_or_else(|| panic!("{PAGE} has no heading for section {number}"));
        let is_there = rule.is_empty() || explained.contains(&format!("**Rule {rule}**"));
        assert!(is_there, "section {number} of {PAGE} has no rule {rule}");
    }
}
