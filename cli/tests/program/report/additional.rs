//! `gatewright report` with additional checks, the document that `check --protocols` writes beside a report.

use serde_json::Value;

use super::base;
use crate::{run, run_with_input, transcript};

/// The document of the vectors that all languages read.
fn document() -> Value {
    let vectors = include_str!("../../../../tests/vectors/report-forms/protocols.json");
    serde_json::from_str::<Value>(vectors).expect("JSON")["document"].clone()
}

fn text() -> String {
    format!("{:#}\n", document())
}

#[test]
fn additional_checks_are_shown_with_verdict_and_reasons() {
    let shown = run_with_input(&["report", "show", "-"], text().as_bytes());
    assert_eq!(
        transcript(&shown),
        "exit code 0\n--- stdout\n\
         fail  https://gateway.example.com  1 passed, 1 failed, 1 skipped\n\
         \n\
         Additional checks, which the report does not contain:\n\
         pass  chat_text      model-sol  120 ms\n\
         FAIL  messages_text  model-sol  80 ms\n      HTTP status: status 404, not 200\n\
         skip  native_text    model-sol\n      the run was interrupted\n\
         --- stderr\n"
    );
    let json = run_with_input(&["report", "show", "--json", "-"], text().as_bytes());
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).expect("JSON"), document());
    let annotated = run_with_input(&["report", "show", "--format", "github", "-"], text().as_bytes());
    assert!(annotated.stdout.starts_with(b"::error title=messages_text model-sol::HTTP status"));
}

#[test]
fn additional_checks_are_validated_by_their_own_schema() {
    let validated = run_with_input(&["report", "validate", "--strict", "--json", "-"], text().as_bytes());
    assert_eq!(validated.status.code(), Some(0), "{}", transcript(&validated));
    assert_eq!(run_with_input(&["report", "fmt", "--check", "-"], text().as_bytes()).status.code(), Some(0));
    let mut wrong = document();
    wrong["checks"][0]["protocol"] = "telex".into();
    let wrong = format!("{wrong:#}");
    let validated = run_with_input(&["report", "validate", "-"], wrong.as_bytes());
    assert_eq!(validated.status.code(), Some(1));
    let found = String::from_utf8_lossy(&validated.stdout).into_owned();
    assert!(found.contains("/checks/0/protocol: \"telex\" is not one of"), "{found}");
    let shown = run_with_input(&["report", "show", "-"], wrong.as_bytes());
    assert_eq!(shown.status.code(), Some(2), "{}", transcript(&shown));
}

/// A page of their own, or a section of the report's.
#[test]
fn additional_checks_become_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.protocols.json");
    std::fs::write(&file, text()).expect("written");
    let (file, report) = (file.to_str().expect("a path"), base("full"));
    let report = report.to_str().expect("a path");
    let page = |arguments: &[&str]| {
        let output = run(&[&["report", "html"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
        String::from_utf8(output.stdout).expect("text")
    };
    let own = page(&[file]);
    assert!(own.contains("Other protocols") && own.contains("1 passed, 1 failed, 1 skipped"));
    let section = page(&[report, "--protocols", file]);
    assert!(section.contains("Other protocols") && section.contains("Checks and models"));
    assert!(!page(&[report]).contains("Other protocols"));
    let output = run(&["report", "html", file, "--protocols", file]);
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
}

#[test]
fn commands_that_need_a_report_say_so() {
    for command in ["junit", "sarif"] {
        let output = run_with_input(&["report", command, "-"], text().as_bytes());
        assert_eq!(output.status.code(), Some(2), "{command}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.starts_with("gatewright: <stdin> contains additional checks, not a report"), "{error}");
    }
}
