//! `gatewright report show`, `html`, `diff`, `junit`, `sarif`, `trend`, `fmt`, `new`, `explain`.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use super::{base, minimal};
use crate::{gatewright, run, run_with_input, transcript};

fn full() -> String {
    base("full").to_str().expect("a path").to_owned()
}

#[test]
fn report_is_shown_as_a_matrix() {
    assert_snapshot!(transcript(&run(&["report", "show", &full()])));
    let output = run(&["report", "show", "--format", "github", &full()]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "one for each failure");
}

#[test]
fn report_is_shown_as_json_in_canonical_form() {
    let shown = run(&["report", "show", "--json", &full()]);
    assert_eq!(shown.status.code(), Some(0), "{}", transcript(&shown));
    let report = std::fs::read(full()).expect("the report");
    let [shown, report] =
        [shown.stdout, report].map(|text| serde_json::from_slice::<serde_json::Value>(&text).expect("JSON"));
    assert_eq!(shown, report);
}

#[test]
fn invalid_report_is_named_with_its_violations() {
    for command in ["show", "html", "junit", "sarif"] {
        let output = run_with_input(&["report", command, "-"], b"{\"kit\": 1}");
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert_eq!(output.stdout, b"");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            stderr.starts_with("gatewright: <stdin> is not a valid report\n<stdin>:1:1: error[required]"),
            "{stderr}"
        );
    }
}

#[test]
fn page_links_the_evidence_relative_to_its_location() {
    let folder = tempfile::tempdir().expect("a folder");
    let evidence = folder.path().join("run 1/evidence");
    std::fs::create_dir_all(&evidence).expect("a folder");
    let file = r#"{"id": "responses_text", "model": "model-sol", "assertions":
        [{"what": "HTTP status", "expected": "200", "observed": "<500>", "held": false}], "exchange": null}"#;
    std::fs::write(evidence.join("02-responses_text.json"), file).expect("written");
    std::fs::write(evidence.join("notes.txt"), "no evidence").expect("written");
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    let page = folder.path().join("pages.html");
    let output = run(&["report", "html", &full(), "--evidence", &path(&evidence), "--out", &path(&page)]);
    assert_eq!(transcript(&output), "exit code 0\n--- stdout\n--- stderr\n");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    assert!(text.contains("href=\"./run%201/evidence/02-responses_text.json\""), "{text}");
    assert!(text.contains("<code>&lt;500&gt;</code>"));
    std::fs::write(evidence.join("03.json"), "{}").expect("written");
    let output = run(&["report", "html", &full(), "--evidence", &path(&evidence)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("03.json: no evidence: "));
}

/// Its results are at the lines of the file, which here is on one line.
#[test]
fn sarif_log_has_the_failed_checks_at_their_places() {
    let output = run(&["report", "sarif", &full()]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let log: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let results = log["runs"][0]["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    let place = &results[0]["locations"][0]["physicalLocation"];
    assert!(
        place["artifactLocation"]["uri"].as_str().is_some_and(|uri| uri.ends_with("/full.json")),
        "{place}"
    );
    assert!(place["region"]["startLine"].as_u64() > Some(1), "{place}");
    let report = std::fs::read_to_string(full()).expect("readable").replace('\n', " ");
    let output = run_with_input(&["report", "sarif", "-"], report.as_bytes());
    let log: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let place = &log["runs"][0]["results"][1]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"report.json".into(), &1.into())
    );
}

/// Writes the full report with a change and compares the two.
fn diff(from: &str, to: &str, options: &[&str]) -> std::process::Output {
    let text = std::fs::read_to_string(full()).expect("readable");
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text);
    let old = full();
    let arguments: Vec<&str> = [&["report", "diff"], options, &[&old, "-"]].concat();
    run_with_input(&arguments, changed.as_bytes())
}

#[test]
fn diff_fails_on_the_selected_changes() {
    let slower = ("\"duration_ms\": 340", "\"duration_ms\": 840");
    let model = ("model-sol-2026-01-01", "model-luna");
    let code = |(from, to), options: &[&str]| diff(from, to, options).status.code();
    assert_eq!(code(slower, &[]), Some(0));
    assert_eq!(code(slower, &["--fail-on", "worse,slower"]), Some(1));
    assert_eq!(code(slower, &["--fail-on=slower", "--slower-percent=200"]), Some(0));
    assert_eq!(code(slower, &["--fail-on=slower", "--slower-ms=500"]), Some(0));
    assert_eq!(code(model, &["--fail-on=slower"]), Some(0));
    assert_eq!(code(model, &["--fail-on=model"]), Some(1));
    let worse =
        ("\"model-luna\",\n      \"status\": \"pass\"", "\"model-luna\",\n      \"status\": \"skip\"");
    assert_eq!(code(worse, &[]), Some(1));
    assert_eq!(code(worse, &["--fail-on=never"]), Some(0));
    assert_snapshot!(transcript(&diff(worse.0, worse.1, &[])));
    let json = diff(worse.0, worse.1, &["--json"]);
    assert_eq!(diff(worse.0, worse.1, &["--format=json"]).stdout, json.stdout, "the earlier spelling");
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["worse"][0]["id"], "model_access");
    let html = diff(worse.0, worse.1, &["--format=html"]);
    assert!(html.stdout.starts_with(b"<!DOCTYPE html><html lang=\"en\">"));
}

#[test]
fn trend_draws_valid_reports_and_names_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("1.json", &minimal());
    write("2.ndjson", &minimal().replace('\n', " "));
    write("3.json", "[]");
    let output = run(&["report", "trend", folder.path().to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(page.contains("2 reports, 1 address."));
    assert!(page.contains("Not shown: 1"));
    std::fs::remove_file(folder.path().join("1.json")).expect("removed");
    std::fs::remove_file(folder.path().join("2.ndjson")).expect("removed");
    let output = run(&["report", "trend", folder.path().to_str().expect("a path")]);
    assert_eq!(output.status.code(), Some(2), "nothing to draw");
}

#[test]
fn fmt_writes_the_canonical_form_and_check_only_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.json");
    std::fs::write(&file, minimal().replace('\n', "")).expect("written");
    let path = file.to_str().expect("a path");
    let output = run(&["report", "fmt", "--check", path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a.json is not in canonical form"));
    let json = || {
        let output = run(&["report", "fmt", "--check", "--json", path, "missing.json"]);
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let checked = json();
    assert_eq!(checked[0], serde_json::json!({ "file": path, "canonical": false, "error": null }));
    assert_eq!((&checked[1]["file"], &checked[1]["canonical"]), (&"missing.json".into(), &Value::Null));
    assert!(checked[1]["error"].as_str().is_some_and(|error| error.starts_with("cannot read missing.json")));
    assert_eq!(run(&["report", "fmt", "--json", path]).status.code(), Some(2), "only with --check");
    assert_eq!(run(&["report", "fmt", path]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), minimal());
    assert_eq!(run(&["report", "fmt", "--check", path]).status.code(), Some(0));
    assert_eq!(json()[0]["canonical"], true);
    let output = run_with_input(&["report", "fmt", "-"], b"{\"kit\": {}, \"schema_version\": 1e0}");
    assert_eq!(output.stdout, b"{\n  \"schema_version\": 1,\n  \"kit\": {}\n}\n");
}

#[test]
fn fmt_skips_a_file_that_is_not_json_and_writes_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let (broken, other) = (folder.path().join("a.json"), folder.path().join("b.json"));
    std::fs::write(&broken, "{,}").expect("written");
    std::fs::write(&other, "{ }").expect("written");
    let output = gatewright().args(["report", "fmt"]).args([&broken, &other]).output().expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&broken).expect("readable"), "{,}");
    assert_eq!(std::fs::read_to_string(&other).expect("readable"), "{}\n");
}

#[test]
fn new_report_is_valid_and_in_canonical_form() {
    let report = run(&["report", "new", "--endpoint", "http://127.0.0.1:8080"]);
    assert_eq!(report.status.code(), Some(0));
    let strict = run_with_input(&["report", "validate", "--strict", "-"], &report.stdout);
    assert_eq!(strict.stdout, b"<stdin>: valid\n");
    assert_eq!(run_with_input(&["report", "fmt", "--check", "-"], &report.stdout).status.code(), Some(0));
    let wrong = run(&["report", "new", "--base-url", "gateway"]);
    assert_eq!(
        transcript(&wrong),
        "exit code 2\n--- stdout\n--- stderr\ngatewright: /endpoint: \"gateway\" is not an absolute RFC 3986 URI\n"
    );
}

#[test]
fn schema_is_the_specifications_with_the_profiles_names() {
    let schema = |arguments: &[&str]| -> Value {
        let output = run(&[&["report", "schema"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let standard: Value = serde_json::from_str(gatewright::report::SCHEMA).expect("JSON");
    assert_eq!(schema(&[]), standard);
    assert_eq!(standard["$id"], "urn:gatewright:report:1.0");
    let profile = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(profile.path(), r#"{"models": ["a"]}"#).expect("written");
    let ours = schema(&["--profile", profile.path().to_str().expect("a path")]);
    assert_eq!(ours["$defs"]["model_id"]["enum"], serde_json::json!(["a"]));
}

/// Section 2.12 lists every member, and `$schema` is not among them: editors map the schema by the file's name.
#[test]
fn report_with_a_schema_member_is_invalid() {
    let report = minimal().replacen('{', r#"{"$schema": "urn:gatewright:report:1.0","#, 1);
    let output = run_with_input(&["report", "validate", "-"], report.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("unknown property \"$schema\""));
}

#[test]
fn rules_are_listed_and_explained() {
    assert_snapshot!(transcript(&run(&["report", "explain"])));
    assert_snapshot!(transcript(&run(&["report", "explain", "duplicate_key"])));
    assert_snapshot!(transcript(&run(&["report", "explain", "responses_stream"])));
    let json = |arguments: &[&str]| -> Value {
        let output = run(&[&["report", "explain", "--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let all = json(&[]);
    let named = |name: &str| all.as_array().expect("a list").iter().find(|one| one["name"] == name).cloned();
    for (name, kind) in [
        ("duplicate_key", "parsing"),
        ("const", "schema"),
        ("tally", "advisory"),
        ("responses_stream", "check"),
    ] {
        let one = json(&[name]);
        assert_eq!((Some(&one), &one["kind"]), (named(name).as_ref(), &kind.into()));
        let members: Vec<&str> = one.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(members, ["name", "kind", "section", "summary", "explanation", "example", "places"]);
    }
    for (given, suggestion) in
        [("requierd", Some("required")), ("responses_steam", Some("responses_stream")), ("banana", None)]
    {
        let output = run(&["report", "explain", given]);
        assert_eq!(output.status.code(), Some(2), "{given}");
        let message = String::from_utf8_lossy(&output.stderr);
        let offer = suggestion.map_or_else(String::new, |suggestion| format!("; did you mean {suggestion}?"));
        assert!(message.contains(&format!("no rule or check is named {given}{offer}\n")), "{message}");
    }
}
