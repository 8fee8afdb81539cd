//! Runs `tests/vectors/report-forms/*.json`, which Python and Node read too; see `tests/vectors/README.md`.

use std::path::Path;

use gatewright_report::{Diff, Lines, ProtocolReport, Thresholds, Validator};
use serde_json::{Map, Value, json};

use crate::bases;

fn vectors(topic: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/report-forms").join(topic);
    let text = std::fs::read_to_string(file.with_extension("json")).expect("the vectors are there");
    serde_json::from_str(&text).expect("JSON")
}

fn cases(topic: &str) -> Vec<Value> {
    vectors(topic)["cases"].as_array().expect("cases").clone()
}

/// Sets members of a document; their parents are there.
fn set(document: &mut Value, edits: &Value) {
    for (pointer, value) in edits.as_object().expect("edits") {
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        document.pointer_mut(parent).expect("the parent is there")[name] = value.clone();
    }
}

#[test]
fn canonical_vectors() {
    for case in cases("canonical") {
        let text = Validator::default().canonical(case["text"].as_str().expect("text").as_bytes());
        assert_eq!(text.ok().as_deref(), case["canonical"].as_str(), "{}", case["name"]);
    }
}

#[test]
fn refusal_vectors() {
    for case in cases("refused") {
        let mut document: Value = serde_json::from_str(&bases::text("full")).expect("JSON");
        for (pointer, value) in case["set"].as_object().expect("edits") {
            *document.pointer_mut(pointer).expect("the member is there") = value.clone();
        }
        let strict = case["strict"].as_bool().expect("a switch");
        let validator = Validator::builder().strict(strict).max_findings(1).build();
        let refused = validator.read(document.to_string().as_bytes()).expect_err("rejected");
        assert_eq!(refused.summary(), case["says"].as_str().expect("text"), "{}", case["name"]);
    }
}

#[test]
fn line_vectors() {
    let validator = Validator::default();
    for case in cases("lines") {
        let bytes = case["text"].as_str().map_or_else(|| hex(&case["hex"]), |text| text.as_bytes().to_vec());
        let found: Value = Lines::new(&bytes[..], validator.max_bytes())
            .map(|line| line.expect("memory can be read"))
            .map(|line| json!({"line": line.number, "rule": validator.check(&line.bytes).violations[0].rule}))
            .collect();
        assert_eq!(found, case["lines"], "{}", case["name"]);
    }
}

fn hex(text: &Value) -> Vec<u8> {
    let digits = text.as_str().expect("text or hex").as_bytes().chunks(2);
    digits
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .map(|byte| byte.expect("hexadecimal digits"))
        .collect()
}

#[test]
fn diff_vectors() {
    for case in cases("diff") {
        let report = |edits: &Value| {
            let mut full: Value = serde_json::from_str(&bases::text("full")).expect("JSON");
            set(&mut full, edits);
            Validator::default().read(full.to_string().as_bytes()).expect("valid after the edits")
        };
        let diff = Diff::of(&report(&case["old"]), &report(&case["new"]), Thresholds::default());
        let found: Value = serde_json::from_str(&diff.to_json()).expect("JSON");
        let lists: Map<String, Value> = found
            .as_object()
            .expect("an object")
            .iter()
            .filter(|(_, list)| list.as_array().is_some_and(|list| !list.is_empty()))
            .map(|(name, list)| (name.clone(), list.clone()))
            .collect();
        assert_eq!(Value::Object(lists), case["diff"], "{}", case["name"]);
    }
}

#[test]
fn protocol_vectors() {
    let vectors = vectors("protocols");
    let schema = include_str!("../../../spec/protocols.schema.json");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    let oracle =
        jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema");
    let validator = Validator::default();
    for case in vectors["cases"].as_array().expect("cases") {
        let mut document = vectors["document"].clone();
        set(&mut document, &case["set"]);
        let (is_valid, name) = (case["violations"] == json!([]), &case["name"]);
        assert_eq!(oracle.is_valid(&document), is_valid, "{name}");
        let text = document.to_string();
        let outcome = validator.validate(text.as_bytes());
        let found: Value = outcome
            .violations
            .iter()
            .map(|violation| json!({ "pointer": violation.pointer, "rule": violation.rule }))
            .collect();
        assert_eq!((&found, outcome.valid), (&case["violations"], is_valid), "{name}");
        assert!(outcome.violations.iter().all(|violation| violation.section == "ours"), "{name}");
        assert!(ProtocolReport::recognizes(text.as_bytes()), "{name}");
        assert_eq!(validator.read_protocols(text.as_bytes()).is_ok(), is_valid, "{name}");
    }
}

/// A document that is no report is never read as one, and the verdict says what it lacks.
#[test]
fn additional_checks_are_written_canonically_and_read_as_no_report() {
    let document = vectors("protocols")["document"].to_string();
    let validator = Validator::default();
    let typed = validator.read_protocols(document.as_bytes()).expect("valid");
    assert_eq!(validator.canonical(document.as_bytes()).expect("JSON"), typed.to_json());
    let outcome = validator.read(document.as_bytes()).expect_err("no report");
    assert!(!outcome.valid);
    assert!(outcome.violations.iter().any(|violation| violation.message == "configuration is missing"));
    assert_eq!(typed.headline(), "fail  https://gateway.example.com  1 passed, 1 failed, 1 skipped");
    assert_eq!(validator.annotations(document.as_bytes()).expect("valid"), typed.to_annotations());
    assert_eq!(validator.html(document.as_bytes(), &[], None).expect("valid"), typed.to_html());
    let report = bases::text("full");
    let page = validator.html(report.as_bytes(), &[], Some(document.as_bytes())).expect("valid");
    assert!(page.contains("Other protocols") && page.contains("Checks and models"));
    assert!(validator.html(report.as_bytes(), &[], Some(b"{}")).is_err());
    assert_eq!(
        typed.to_annotations(),
        "::error title=messages_text model-sol::HTTP status: status 404, not 200\n"
    );
}
