//! Checks that SECURITY.md names a test for each threat. If a test were renamed or removed, the row would be
//! a mere claim.

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

/// Names of tests, in Rust and Python. Helper functions don't count: nothing would ensure that they are called.
fn functions() -> BTreeSet<String> {
    let files = listed(&["ls-files", "*.rs"]);
    let texts = files.iter().map(|path| std::fs::read_to_string(root().join(path)).expect("a file"));
    let in_rust = texts.flat_map(|text| tests_of(&text));
    let in_python = listed(&["grep", "-hoE", r"def test_[a-z0-9_]+", "--", "*.py"]);
    in_rust.chain(in_python.iter().filter_map(|line| line.split(' ').nth(1)).map(str::to_owned)).collect()
}

/// What makes a Rust function a test: an attribute, or a macro that turns each listed name into a test for every store.
const ATTRIBUTES: [&str; 3] = ["#[test]", "#[tokio::test]", "#[tokio::test("];
const LIST: &str = "in_every_store! {";

/// Names of the tests in a Rust file.
fn tests_of(text: &str) -> Vec<String> {
    let (mut names, mut is_test, mut is_list) = (Vec::new(), false, false);
    for line in text.lines().map(str::trim) {
        if is_list && !line.contains('$') {
            is_list = !line.contains('}');
            let listed = line.trim_end_matches('}').split_whitespace();
            names.extend(listed.filter(|name| is_name(name)).map(str::to_owned));
        } else if line.starts_with(LIST) {
            is_list = !line.ends_with('}');
        } else if let Some((_, named)) = line.split_once("fn ").filter(|_| is_test) {
            let name = named.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').next();
            names.extend(name.map(str::to_owned));
            is_test = false;
        }
        is_test |= ATTRIBUTES.iter().any(|attribute| line.starts_with(attribute));
    }
    names
}

fn is_name(word: &str) -> bool {
    word.len() >= SHORTEST_NAME
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Names of JavaScript test files, and the titles in them.
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

/// The rows with threats, of all tables.
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
fn tests_are_found_by_attribute_or_in_every_store_lists() {
    let text = "
        #[test]
        #[expect(clippy::too_many_lines, reason = \"a\")]
        fn one_with_an_attribute() {
            fn a_helper_within_a_test() {}
        }
        async fn expect_nothing_of_it(test: u8) {}
        in_every_store! {
            a_test_of_every_store
            another_of_every_store
        }
        #[tokio::test(flavor = \"multi_thread\", worker_threads = 4)]
        async fn one_with_threads() {}
        fn a_helper_behind_tests() {}
    ";
    let expected =
        ["one_with_an_attribute", "a_test_of_every_store", "another_of_every_store", "one_with_threads"];
    assert_eq!(tests_of(text), expected);
}

#[test]
fn tests_named_in_the_threat_table_exist() {
    let (text, there) = (table(), functions());
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let named: BTreeSet<&str> = rows.flat_map(|row| row.split('`')).filter(|word| is_name(word)).collect();
    assert!(named.len() > 200, "{} names are found", named.len());
    let gone: Vec<_> = named.iter().filter(|name| !there.contains(**name)).collect();
    assert!(gone.is_empty(), "no test has these names: {gone:?}");
}

#[test]
fn every_threat_names_an_existing_test_file_or_step() {
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
