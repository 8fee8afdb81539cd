//! The examples of the documentation, which are generated from `spec/report.schema.json`.

use gatewright_report as report;

/// The JSON of the first example above `pub struct Report`.
fn example() -> String {
    let generated = include_str!("../../src/generated/mod.rs");
    let (above, _) = generated.split_once("pub struct Report {").expect("the type is there");
    let (_, from) = above.split_once("let json = r#\"").expect("it has an example");
    let (json, _) = from.split_once("\"#;").expect("the example ends");
    json.lines().map(|line| line.trim_start_matches("///")).collect()
}

#[test]
fn documented_report_is_valid() {
    // Section 2.12.
    let verdict = report::validate(example().as_bytes());
    assert!(verdict.valid, "{verdict:?}");
}
