//! Runs `tests/vectors/report/*.json`; the format is described in `tests/vectors/README.md`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use gatewright_report::{Validator, Violation};
use serde_json::{Map, Value};

/// One case, with its document built.
pub(crate) struct Case {
    /// File and name.
    pub(crate) name: String,
    pub(crate) document: Vec<u8>,
    pub(crate) options: Map<String, Value>,
    pub(crate) valid: bool,
    violations: Vec<Value>,
    advisories: Vec<Value>,
    /// The number of findings of each kind that are counted and not listed.
    more: [usize; 2],
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/report")
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("a vector file is readable");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All cases of all files, in order of file names.
pub(crate) fn cases() -> Vec<Case> {
    let entries = std::fs::read_dir(folder()).expect("the folder of vectors is there");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder entry is readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in &files {
        let vectors = read(file);
        assert_eq!(vectors["section"], "2.12", "{}", file.display());
        for case in vectors["cases"].as_array().expect("cases is an array") {
            let stem = file.file_stem().expect("a file has a name").to_string_lossy();
            let name = format!("{stem}/{}", case["name"].as_str().expect("a case has a name"));
            let list = |key: &str| case[key].as_array().cloned().unwrap_or_default();
            cases.push(Case {
                document: document(case, &name),
                name,
                options: case["options"].as_object().cloned().unwrap_or_default(),
                valid: case["valid"].as_bool().expect("a case has a verdict"),
                violations: list("violations"),
                advisories: list("advisories"),
                more: ["more_violations", "more_advisories"]
                    .map(|key| case[key].as_u64().and_then(|more| usize::try_from(more).ok()).unwrap_or(0)),
            });
        }
    }
    cases
}

/// The bytes of a case: `base64`, `text`, or a JSON document with its edits.
fn document(case: &Value, name: &str) -> Vec<u8> {
    if let Some(encoded) = case["base64"].as_str() {
        return base64::engine::general_purpose::STANDARD.decode(encoded).expect("base64 is well-formed");
    }
    match &case["text"] {
        Value::String(text) => return text.clone().into_bytes(),
        Value::Array(lines) => {
            let lines: Vec<&str> = lines.iter().map(|line| line.as_str().expect("a line")).collect();
            return lines.join("\n").into_bytes();
        }
        _ => {}
    }
    let base = || {
        let base = case["base"].as_str().unwrap_or_else(|| panic!("{name} has no document"));
        read(&folder().join("bases").join(base).with_extension("json"))
    };
    let mut document = case.get("document").cloned().unwrap_or_else(base);
    for (pointer, value) in entries(case, "set") {
        set(&mut document, &pointer, value, name);
    }
    for pointer in case["remove"].as_array().into_iter().flatten() {
        let (parent, step) = split(pointer.as_str().expect("a pointer"));
        match document.pointer_mut(&parent) {
            Some(Value::Object(members)) => drop(members.shift_remove(&step).expect("there to remove")),
            Some(Value::Array(items)) => drop(items.remove(step.parse().expect("an index"))),
            _ => panic!("{name}: nothing at {parent}"),
        }
    }
    for (pointer, value) in entries(case, "fill") {
        let times = usize::try_from(value[1].as_u64().expect("a count")).expect("a small count");
        let filled = value[0].as_str().expect("a string").repeat(times);
        set(&mut document, &pointer, filled.into(), name);
    }
    let raw = entries(case, "raw");
    for (index, (pointer, _)) in raw.iter().enumerate() {
        set(&mut document, pointer, format!("@raw {index}@").into(), name);
    }
    let mut text = document.to_string();
    for (index, (_, value)) in raw.iter().enumerate() {
        text = text.replace(&format!("\"@raw {index}@\""), value.as_str().expect("raw is text"));
    }
    text.into_bytes()
}

fn entries(case: &Value, key: &str) -> Vec<(String, Value)> {
    let object = case[key].as_object().into_iter().flatten();
    object.map(|(pointer, value)| (pointer.clone(), value.clone())).collect()
}

fn split(pointer: &str) -> (String, String) {
    let (parent, step) = pointer.rsplit_once('/').expect("a pointer below the root");
    (parent.to_owned(), step.replace("~1", "/").replace("~0", "~"))
}

fn set(document: &mut Value, pointer: &str, value: Value, name: &str) {
    let (parent, step) = split(pointer);
    match document.pointer_mut(&parent) {
        Some(Value::Object(members)) => {
            members.insert(step, value);
        }
        Some(Value::Array(items)) => {
            let index: usize = step.parse().expect("an index");
            if index == items.len() { items.push(value) } else { items[index] = value }
        }
        _ => panic!("{name}: nothing at {parent}"),
    }
}

/// The validator that a case asks for.
pub(crate) fn validator(options: &Map<String, Value>) -> Validator {
    if options.is_empty() {
        return Validator::default();
    }
    let mut builder = Validator::builder();
    for (option, value) in options {
        builder = match option.as_str() {
            "models" => builder.models(value.as_array().expect("ids").iter().filter_map(Value::as_str)),
            "kit_name" => builder.kit_name(value.as_str().expect("a name")),
            "own_names" => builder.own_names(value.as_bool().expect("a boolean")),
            "strict" => builder.strict(value.as_bool().expect("a boolean")),
            "max_bytes" => {
                builder.max_bytes(usize::try_from(value.as_u64().expect("a size")).expect("small"))
            }
            "max_findings" => {
                builder.max_findings(usize::try_from(value.as_u64().expect("a number")).expect("small"))
            }
            other => panic!("unknown option {other}"),
        };
    }
    builder.build()
}

/// What differs between the expected and actual findings: every key that a vector gives must match.
fn difference(expected: &[Value], found: &[Violation]) -> Option<String> {
    let found: Vec<Value> =
        found.iter().map(|finding| serde_json::to_value(finding).expect("findings serialize")).collect();
    let same = expected.len() == found.len()
        && expected.iter().zip(&found).all(|(expected, found)| {
            expected.as_object().expect("a finding").iter().all(|(key, value)| found.get(key) == Some(value))
        });
    (!same).then(|| format!("expected {}\n     found {}", Value::from(expected), Value::from(found)))
}

#[test]
fn every_vector_gets_the_expected_verdict() {
    let cases = cases();
    assert!(cases.len() > 600, "only {} cases were found", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let outcome = validator(&case.options).validate(&case.document);
        if outcome.valid != case.valid {
            wrong.push(format!("{}: valid is {}", case.name, outcome.valid));
        }
        if let Some(difference) = difference(&case.violations, &outcome.violations) {
            wrong.push(format!("{}: violations:\n  {difference}", case.name));
        }
        if let Some(difference) = difference(&case.advisories, &outcome.advisories) {
            wrong.push(format!("{}: advisories:\n  {difference}", case.name));
        }
        assert_eq!([outcome.more_violations, outcome.more_advisories], case.more, "{}", case.name);
        assert_eq!(outcome.report.is_some(), outcome.violations.is_empty(), "{}", case.name);
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn check_agrees_with_validate_and_builds_no_report() {
    let validator = Validator::default();
    for case in cases() {
        let (checked, validated) = (validator.check(&case.document), validator.validate(&case.document));
        assert_eq!(checked.to_json(), validated.to_json(), "{}", case.name);
        assert_eq!(checked.report, None, "{}", case.name);
    }
}
