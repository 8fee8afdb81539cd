//! `gatewright report validate`.

use std::io::Write as _;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::Value;
use serde_sarif::sarif::Sarif;

use super::{base, minimal};
use crate::{gatewright, run, run_with_input, transcript};

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

/// The example of the house style: place, problem, section.
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
        serde_json::json!({"file": file, "valid": true, "violations": [], "advisories": [], "more_violations": 0, "more_advisories": 0})
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
        ("message", r#"/schema_version: "1.1" is not "1.0""#.into()),
    ] {
        assert_eq!(violation[key], value, "{key}");
    }
}

#[test]
fn unparsable_document_is_invalid_and_the_rule_explains_why() {
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
fn unreadable_file_exits_with_2_and_the_others_are_validated() {
    let output = run_with_input(&["report", "validate", "missing.json", "-"], b"[]");
    assert_snapshot!(transcript(&output));
    let folder = run(&["report", "validate", concat!(env!("CARGO_MANIFEST_DIR"), "/src")]);
    assert_eq!(folder.status.code(), Some(2), "a folder is not a file");
}

/// `gatewright report validate … | head -1` must not end in a panic or a message.
#[test]
fn closed_pipe_exits_quietly() {
    let mut child = gatewright()
        .args(["report", "validate", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    // Dropped at once: the program waits for its input, and its output pipe is closed when it has it.
    drop(child.stdin.take());
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(output.stderr, b"");
}

/// A folder with a report of each kind: valid, broken, in a subfolder, several in one file, and a file that is not a report.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let line: Value = serde_json::from_str(&minimal()).expect("JSON");
    std::fs::create_dir(folder.path().join("deep")).expect("a folder");
    write("b-broken.json", &minimal().replacen("\"1.0\"", "\"1.1\"", 1));
    write("a.json", &minimal());
    write("deep/c.json", &minimal());
    write("lines.ndjson", &format!("{line}\n\n{{}}\r\n{line}"));
    write("notes.txt", "no report");
    folder
}

/// The output with the folder's name removed.
fn without(folder: &tempfile::TempDir, text: &str) -> String {
    text.replace(&*folder.path().to_string_lossy(), "FOLDER")
}

#[test]
fn folder_expands_to_the_reports_below_it_in_order() {
    let folder = folder();
    for jobs in ["1", "8"] {
        let path = folder.path().to_string_lossy();
        let output = run(&["report", "validate", "--format=json", "--jobs", jobs, &path]);
        assert_eq!(output.status.code(), Some(1));
        let found: Vec<(String, Value, bool)> = lines(&output.stdout)
            .iter()
            .map(|line| {
                let file = without(&folder, line["file"].as_str().expect("a name"));
                (file, line["line"].clone(), line["valid"].as_bool().expect("a verdict"))
            })
            .collect();
        let line = |number: u64| Value::from(number);
        let expected = [
            ("FOLDER/a.json", Value::Null, true),
            ("FOLDER/b-broken.json", Value::Null, false),
            ("FOLDER/deep/c.json", Value::Null, true),
            ("FOLDER/lines.ndjson", line(1), true),
            ("FOLDER/lines.ndjson", line(3), false),
            ("FOLDER/lines.ndjson", line(4), true),
        ];
        assert_eq!(found, expected.map(|(file, line, valid)| (file.to_owned(), line, valid)));
    }
}

#[test]
fn findings_in_ndjson_have_the_files_line_number() {
    let folder = folder();
    let file = folder.path().join("lines.ndjson");
    let output = run(&["report", "validate", "--quiet", file.to_str().expect("a path")]);
    let text = String::from_utf8(output.stdout).expect("output is UTF-8");
    assert!(without(&folder, &text).starts_with("FOLDER/lines.ndjson:3:1: error[required]: "), "{text}");
    assert!(text.ends_with("lines.ndjson:3: invalid (9 violations)\n"), "{text}");
}

#[test]
fn standard_input_may_contain_one_report_per_line() {
    let input = format!("{{}}\n{}\n", minimal().replace('\n', " "));
    let output = run_with_input(
        &["report", "validate", "--ndjson", "--quiet", "--format=json", "-"],
        input.as_bytes(),
    );
    let lines = lines(&output.stdout);
    assert_eq!((lines.len(), &lines[0]["line"], &lines[0]["file"]), (1, &Value::from(1), &Value::from("-")));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn pattern_expands_to_the_matching_files() {
    let folder = folder();
    let pattern = |pattern: &str| format!("{}/{pattern}", folder.path().display());
    let output = run(&["report", "validate", &pattern("[a]*.json"), &pattern("**/c.json")]);
    assert_eq!(output.status.code(), Some(0));
    let text = without(&folder, &String::from_utf8(output.stdout).expect("UTF-8"));
    assert_eq!(text, "FOLDER/a.json: valid\nFOLDER/deep/c.json: valid\n");
    let nothing = run(&["report", "validate", &pattern("x*.json")]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no file matches this pattern"));
}

#[test]
fn sarif_of_many_documents_is_one_log() {
    let folder = folder();
    let output = run(&["report", "validate", "--format", "sarif", &folder.path().to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    let log: Sarif = serde_json::from_slice(&output.stdout).expect("the types of SARIF hold it");
    let results = log.runs[0].results.as_ref().expect("results");
    assert_eq!(results.len(), 10, "one of the broken file, nine of the line");
    let nothing = run(&["report", "validate", "--format=sarif", base("minimal").to_str().expect("a path")]);
    let log: Sarif = serde_json::from_slice(&nothing.stdout).expect("the types of SARIF hold it");
    assert_eq!(log.runs[0].results.as_ref().map(Vec::len), Some(0));
}

#[test]
fn github_format_annotates_the_locations() {
    let broken = minimal().replacen("\"1.0\"", "\"1.1\"", 1);
    let output = run_with_input(&["report", "validate", "--format=github", "-"], broken.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let expected =
        "::error file=<stdin>,line=2,col=21,title=const::/schema_version: \"1.1\" is not \"1.0\"\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn profile_sets_the_kit_name_and_the_models() {
    let mut profile = tempfile::NamedTempFile::new().expect("a file");
    write!(profile, r#"{{"kit_name": "our-kit", "models": ["a"]}}"#).expect("written");
    let ours = minimal().replace("gatewright-checkkit", "our-kit").replace("model-sol", "a");
    let path = profile.path().to_string_lossy();
    let output = run_with_input(&["report", "validate", "--profile", &path, "-"], ours.as_bytes());
    assert_eq!(output.stdout, b"<stdin>: valid\n");
    let output = run_with_input(&["report", "validate", "--profile", &path, "-"], minimal().as_bytes());
    assert_eq!(output.status.code(), Some(1));
    let nonsense = run_with_input(&["report", "validate", "--profile", "-", "-"], b"[1]");
    assert_eq!(nonsense.status.code(), Some(2));
}

/// 4,000 documents through a window of a few: all of them are printed, in order.
#[test]
fn long_ndjson_is_validated_completely_and_in_order() {
    let line = minimal().replace('\n', " ") + "\n";
    let mut input = line.repeat(999);
    input.push_str("[]\n");
    let input = input.repeat(4);
    let output = run_with_input(
        &["report", "validate", "--ndjson", "--quiet", "--format=json", "-"],
        input.as_bytes(),
    );
    let found: Vec<u64> =
        lines(&output.stdout).iter().map(|line| line["line"].as_u64().expect("a line")).collect();
    assert_eq!(found, [1000, 2000, 3000, 4000]);
}

/// In every format, the number of unlisted findings is reported.
#[test]
fn every_format_reports_the_number_of_unlisted_findings() {
    let document = b"{\"checks\": [0, 0, 0]}";
    let validate = |format: &str| {
        let arguments = ["report", "validate", "--max-findings", "2", "--format", format, "-"];
        let output = run_with_input(&arguments, document);
        assert_eq!(output.status.code(), Some(1), "{format}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let words = "not listed: 9 violations";
    let text = validate("text");
    assert!(text.ends_with(&format!("<stdin>: {words}\n<stdin>: invalid (11 violations)\n")), "{text}");
    assert_eq!(lines(validate("json").as_bytes())[0]["more_violations"], 9);
    let github = validate("github");
    assert!(github.ends_with(&format!("\n::error file=<stdin>,line=1::{words}\n")), "{github}");
    let log: Sarif = serde_json::from_str(&validate("sarif")).expect("SARIF 2.1.0");
    let results = log.runs[0].results.as_ref().expect("results");
    assert_eq!(results.len(), 3);
    assert_eq!(results[2].message.text.as_deref(), Some(words));
    assert_eq!(results[2].rule_id, None);
}

#[test]
fn number_of_listed_findings_is_limited() {
    for number in ["0", "100001", "-1"] {
        let output = run_with_input(&["report", "validate", "--max-findings", number, "-"], b"{}");
        assert_eq!(output.status.code(), Some(2), "{number}");
    }
}
