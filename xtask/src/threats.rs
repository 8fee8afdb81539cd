//! SECURITY.md names a test for each threat. A test that is renamed or gone would leave the row a claim.

use std::collections::BTreeSet;

use crate::process::{command, output, root};

/// Shorter words in backquotes are values and flags.
const SHORTEST_NAME: usize = 15;
const HEAD: &str = "| threat | defence | test that holds it |";

fn listed(program: &[&str]) -> BTreeSet<String> {
    let mut git = command("git");
    let listed = output(git.current_dir(root()).args(program)).expect("git");
    listed.lines().map(str::to_owned).collect()
}

/// Names of the functions of tests, in Rust and Python.
fn functions() -> BTreeSet<String> {
    let found = listed(&["grep", "-hoE", r"(fn|def) [a-z0-9_]{15,}", "--", "*.rs", "*.py"]);
    found.iter().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
}

/// Names of the files of tests in JavaScript, and the titles in them.
fn scripts() -> BTreeSet<String> {
    let files = listed(&["ls-files", "*.test.mjs"]);
    let names = files.iter().filter_map(|path| path.rsplit('/').next()).map(str::to_owned);
    let titles = listed(&["grep", "-hoE", "(test|it)\\([\"'`][^\"'`]+", "--", "*.test.mjs"]);
    let titles = titles.iter().filter_map(|line| line.split_once(['"', '\'', '`']));
    names.chain(titles.map(|(_, title)| title.to_owned())).collect()
}

fn table() -> String {
    std::fs::read_to_string(root().join("SECURITY.md")).expect("the file")
}

/// The words in backquotes of a row's last cell.
fn named(row: &str) -> impl Iterator<Item = &str> {
    let cell = row.trim_end_matches(['|', ' ']).rsplit(" | ").next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
}

/// The rows of threats, of all tables.
fn threats(text: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut is_threats = false;
    for line in text.lines() {
        is_threats = line == HEAD || (is_threats && line.starts_with('|'));
        if is_threats && line != HEAD && !line.starts_with("|---") {
            rows.push(line);
        }
    }
    rows
}

#[test]
fn every_test_that_the_table_of_threats_names_is_there() {
    let is_name = |word: &&str| {
        word.len() >= SHORTEST_NAME
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let (text, there) = (table(), functions());
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let named: BTreeSet<&str> = rows.flat_map(|row| row.split('`')).filter(is_name).collect();
    assert!(named.len() > 200, "{} names are found", named.len());
    let gone: Vec<_> = named.iter().filter(|name| !there.contains(**name)).collect();
    assert!(gone.is_empty(), "no test has these names: {gone:?}");
}

#[test]
fn every_threat_names_a_test_a_file_of_tests_or_a_step_that_is_there() {
    let (text, functions, scripts) = (table(), functions(), scripts());
    let is_there = |name: &str| {
        functions.contains(name)
            || scripts.contains(name)
            || name.starts_with("cargo xtask ")
            || (name.contains('/') && root().join(name).exists())
    };
    let rows = threats(&text);
    assert!(rows.len() > 100, "{} threats are found", rows.len());
    let claims: Vec<_> = rows.iter().filter(|row| !named(row).any(is_there)).collect();
    assert!(claims.is_empty(), "no test holds these: {claims:#?}");
    let files = rows.iter().flat_map(|row| named(row)).filter(|name| name.ends_with(".test.mjs"));
    let gone: Vec<_> = files.filter(|name| !scripts.contains(*name)).collect();
    assert!(gone.is_empty(), "no file of tests has these names: {gone:?}");
}
