//! SECURITY.md names a test for each threat. A test that is renamed or gone would leave the row a claim.

use std::collections::BTreeSet;

use crate::process::{command, output, root};

/// Shorter words in backquotes are values and flags.
const SHORTEST_NAME: usize = 15;

#[test]
fn every_test_that_the_table_of_threats_names_is_there() {
    let is_name = |word: &&str| {
        word.len() >= SHORTEST_NAME
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let listed = ["grep", "-hoE", r"(fn|def) [a-z0-9_]{15,}", "--", "*.rs", "*.py"];
    let listed = output(command("git").current_dir(root()).args(listed)).expect("git");
    let there: BTreeSet<&str> = listed.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    let text = std::fs::read_to_string(root().join("SECURITY.md")).expect("the file");
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let named: BTreeSet<&str> = rows.flat_map(|row| row.split('`')).filter(is_name).collect();
    assert!(named.len() > 200, "{} names are found", named.len());
    let gone: Vec<_> = named.difference(&there).collect();
    assert!(gone.is_empty(), "no test has these names: {gone:?}");
}
