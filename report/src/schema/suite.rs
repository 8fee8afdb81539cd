//! The public test suite of JSON Schema, for the keywords that the compiler supports; see
//! `tests/json-schema-suite`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path as FilePath;

use serde_json::Value as Json;

use super::Schema;
use crate::findings::Findings;
use crate::read;

/// Features that are rejected in the tests: other keywords, an `$id` below the root, references to other documents and
/// anchors, and schemas of additional properties.
const REFUSED: &[&str] = &[
    "$id",
    "$ref",
    "additionalProperties",
    "dependentSchemas",
    "else",
    "exclusiveMaximum",
    "maxItems",
    "multipleOf",
    "patternProperties",
    "prefixItems",
    "propertyNames",
    "unevaluatedProperties",
];

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    /// The keywords of rejected schemas, or the unsupported part of a supported one.
    refused: BTreeSet<String>,
    refusals: usize,
}

fn judged(schema: &Schema, instance: &Json) -> bool {
    let text = instance.to_string();
    let root = read::read(text.as_bytes(), usize::MAX, Findings::new(1)).expect("serde_json writes JSON");
    let mut valid = true;
    schema.walk(&root, &mut |_| valid = false);
    valid
}

fn run(folder: &FilePath, tally: &mut Tally) {
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the suite is here").map(|file| file.expect("a file").path()).collect();
    files.sort();
    for file in files {
        if file.is_dir() {
            run(&file, tally);
            continue;
        }
        let groups: Json = serde_json::from_slice(&fs::read(&file).expect("readable")).expect("JSON");
        for group in groups.as_array().expect("groups") {
            let schema = match Schema::compile(&group["schema"]) {
                Ok(schema) => schema,
                Err(why) => {
                    tally.refusals += 1;
                    let place = why.split(": ").next().unwrap_or_default();
                    tally.refused.insert(place.rsplit('/').next().unwrap_or_default().to_owned());
                    continue;
                }
            };
            for test in group["tests"].as_array().expect("tests") {
                if judged(&schema, &test["data"]) == test["valid"] {
                    tally.passed += 1;
                } else {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    tally.failed.push(format!("{name}: {}: {}", group["description"], test["description"]));
                }
            }
        }
    }
}

#[test]
fn compiler_passes_the_suite_except_recorded_rejections() {
    let mut tally = Tally::default();
    run(FilePath::new("../tests/json-schema-suite/tests"), &mut tally);
    assert!(tally.failed.is_empty(), "{:#?}", tally.failed);
    let refused: Vec<&str> = tally.refused.iter().map(String::as_str).collect();
    assert_eq!(refused, REFUSED, "{} schemas refused, {} tests passed", tally.refusals, tally.passed);
    assert!(tally.passed > 450, "only {} tests", tally.passed);
}
