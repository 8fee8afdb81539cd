//! Diagnostics as people read them.

use gatewright_report::{Validator, validate};
use insta::assert_snapshot;

const BROKEN: &str = r#"{
  "schema_version": 1.0,
  "kit": {"name": "gatewright-checkkit", "version": "", "licence": "none"},
  "generated_at": "2026-01-31 12:00",
  "endpoint": "https://user:secret@gateway.example.com",
  "configuration": {
    "base_path": "v1",
    "agent_timeout_ms": 4999,
    "agent_mode": "all",
    "full": "yes",
    "models": ["model-sol", "model-sol", "model-mars"],
    "retries": {"api": 0, "agent_request": 1, "agent_stream": false},
    "timeout_ms": 120001
  },
  "environment": {
    "architecture": "x86_64",
    "agent_passthrough_env": [],
    "agent_version": 3,
    "runtime_version": "1.95",
    "platform": "linux"
  },
  "checks": [
    {"id": "models_endpoint", "layer": "agent", "model": null, "status": "pass", "http_status": null},
    {"id": "model_access", "layer": "api", "model": "model-sol", "status": "skip"},
    {"id": "responses_text", "layer": "api", "model": "model-sol", "status": "fail"}
  ],
  "summary": {"passed": 1, "failed": 1, "skipped": 0},
  "overall_status": "pass"
}
"#;

#[test]
fn every_kind_of_violation_reads_well() {
    let outcome = validate(BROKEN.as_bytes());
    assert_snapshot!(outcome.to_text("report.json", BROKEN.as_bytes(), false));
}

#[test]
fn colors_are_added_only_on_request() {
    let document = b"{\"a\": 1, }";
    let outcome = validate(document);
    assert_snapshot!(outcome.to_text("report.json", document, true).replace('\x1b', "ESC"));
    assert!(!outcome.to_text("report.json", document, false).contains('\x1b'));
}

/// A report on one long line: an excerpt around the place is shown, not the line.
#[test]
fn long_lines_are_cut_around_the_location() {
    let document = format!("[{}x, {}]", "1, ".repeat(200), "2, ".repeat(200));
    let outcome = validate(document.as_bytes());
    assert_snapshot!(outcome.to_text("long.json", document.as_bytes(), false));
}

/// Text from the document must not affect the terminal: no escapes, no reordering.
#[test]
fn control_and_bidi_characters_are_shown_as_escapes() {
    let document = "{\"\\u001b[31m\": 1, \"\u{202e}evil\": 2, \"\u{9b}2J\": 3}";
    let outcome = validate(document.as_bytes());
    let text = outcome.to_text("\u{1b}[2J.json", document.as_bytes(), false);
    assert_snapshot!(
        text.lines().filter(|line| line.contains("additionalProperties")).collect::<Vec<_>>().join("\n")
    );
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']));
}

#[test]
fn json_form_has_all_fields() {
    let outcome = Validator::builder().strict(true).build().validate(b"{\"checks\": [], \"checks\": []}");
    assert_snapshot!(outcome.to_json());
}
