//! Runs `tests/vectors/report-forms/*.json`, which Python and Node read too; see `tests/vectors/README.md`.

use std::path::Path;

use gatewright_report::{Diff, Lines, Thresholds, Validator};
use serde_json::{Map, Value, json};

use crate::bases;

fn cases(topic: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/report-forms").join(topic);
    let text = std::fs::read_to_string(file.with_extension("json")).expect("the vectors are there");
    let vectors: Value = serde_json::from_str(&text).expect("JSON");
    vectors["cases"].as_array().expect("cases").clone()
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
            for (pointer, value) in edits.as_object().expect("edits") {
                let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
                full.pointer_mut(parent).expect("the parent is there")[name] = value.clone();
            }
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
