//! `gatewright report validate`.

use std::path::PathBuf;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;

use crate::{gatewright, run, run_with_input, transcript};

fn base(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/vectors/report/bases")
        .join(name)
        .with_extension("json")
}

fn minimal() -> String {
    std::fs::read_to_string(base("minimal")).expect("the smallest report is there")
}

fn lines(stdout: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stdout).expect("output is UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is one JSON object")).collect()
}

#[test]
fn valid_reports_exit_with_0() {
    let (minimal, full) = (base("minimal"), base("full"));
    let files = [minimal.to_str().expect("a path"), full.to_str().expect("a path")];
    let output = run(&["report", "validate", files[0], files[1]]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, format!("{}: valid\n{}: valid\n", files[0], files[1]).as_bytes());
    assert_eq!(output.stderr, b"");
}

/// The example of the house style: place, what is wrong, section.
#[test]
fn invalid_report_on_standard_input_reads_like_a_compiler_s_diagnostics() {
    let broken = minimal().replacen(r#""status": "pass""#, r#""status": "skip""#, 1);
    let output = run_with_input(&["report", "validate", "-"], broken.as_bytes());
    assert_snapshot!(transcript(&output));
}

#[test]
fn json_format_prints_one_object_per_file() {
    let file = base("full");
    let file = file.to_str().expect("a path");
    let broken = minimal().replacen("\"1.0\"", "\"1.1\"", 1);
    let output = run_with_input(&["report", "validate", "--format", "json", file, "-"], broken.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let lines = lines(&output.stdout);
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[0],
        serde_json::json!({"file": file, "valid": true, "violations": [], "advisories": []})
    );
    assert_eq!(lines[1]["file"], "-");
    assert_eq!(lines[1]["valid"], false);
    let violation = &lines[1]["violations"][0];
    for (key, value) in [
        ("pointer", Value::from("/schema_version")),
        ("line", 2.into()),
        ("column", 21.into()),
        ("rule", "const".into()),
        ("property", Value::Null),
        ("message", r#"/schema_version: "1.1" is not "1.0" (2.12)"#.into()),
    ] {
        assert_eq!(violation[key], value, "{key}");
    }
}

#[test]
fn document_that_does_not_parse_is_invalid_and_the_rule_says_why() {
    let documents: [(&[u8], &str); 8] = [
        (b"", "empty"),
        (b"{", "syntax"),
        (b"{\"a\": 1, \"\\u0061\": 2}", "duplicate_key"),
        (b"\xef\xbb\xbf{}", "encoding"),
        (b"{\"a\": \"\xff\"}", "encoding"),
        (b"[1e999]", "number"),
        (b"{} {}", "trailing"),
        (&[b'['; 200], "depth"),
    ];
    for (document, rule) in documents {
        let output = run_with_input(&["report", "validate", "--format=json", "-"], document);
        assert_eq!(output.status.code(), Some(1), "{rule}");
        assert_eq!(lines(&output.stdout)[0]["violations"][0]["rule"], rule);
    }
}

#[test]
fn advisories_count_only_when_strict() {
    let odd = minimal().replacen("\"passed\": 2", "\"passed\": 3", 1);
    let lenient = run_with_input(&["report", "validate", "-"], odd.as_bytes());
    assert_snapshot!(transcript(&lenient));
    let strict = run_with_input(&["report", "validate", "--strict", "--format", "json", "-"], odd.as_bytes());
    assert_eq!(strict.status.code(), Some(1));
    let line = &lines(&strict.stdout)[0];
    assert_eq!((&line["valid"], &line["violations"]), (&Value::Bool(false), &Value::Array(Vec::new())));
    assert_eq!(line["advisories"][0]["rule"], "tally");
}

#[test]
fn unreadable_file_exits_with_2_and_the_others_are_judged() {
    let output = run_with_input(&["report", "validate", "missing.json", "-"], b"[]");
    assert_snapshot!(transcript(&output));
    let folder = run(&["report", "validate", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(folder.status.code(), Some(2), "a folder is no file");
}

/// `gatewright report validate … | head -1` must not end in a panic or a message.
#[test]
fn closed_pipe_is_taken_quietly() {
    let mut child = gatewright()
        .args(["report", "validate", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    // Dropped at once: the program waits for its input, and finds nobody to tell when it has it.
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(output.stderr, b"");
}
