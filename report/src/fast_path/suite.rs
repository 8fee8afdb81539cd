//! The public test suite of JSON Schema, for the checkers that the generator derives from its schemas:
//! `generated/suite.rs`.

use std::fs;

use serde_json::{Value as Json, json};

use crate::generated::suite::{CASES, Names, Object, Place, Watch, decide_object};

/// Decides nothing else.
struct Nothing;

impl Watch for Nothing {
    fn word(&mut self, _: Place, _: usize) -> Option<()> {
        Some(())
    }

    fn integer(&mut self, _: Place, _: i64) -> Option<()> {
        Some(())
    }

    fn null(&mut self, _: Place) -> Option<()> {
        Some(())
    }

    fn end(&mut self, _: Object, _: usize) -> Option<()> {
        Some(())
    }
}

/// Whether an instance has the type that its schema was given, if any.
fn is_of(kind: &str, instance: &Json) -> bool {
    match kind {
        "boolean" => instance.is_boolean(),
        "integer" => instance.is_i64() || instance.as_f64().is_some_and(|number| number.fract() == 0.0),
        "string" => instance.is_string(),
        "array" => instance.is_array(),
        "array of strings" => instance.as_array().is_some_and(|items| items.iter().all(Json::is_string)),
        "object" => instance.is_object(),
        _ => true,
    }
}

/// The checkers never accept an invalid instance, and accept most valid ones. They never accept an object with members
/// that the schema does not name, nor anything written in a rare way: long integers, URIs with a query, leap seconds.
#[test]
fn generated_checkers_accept_only_valid_instances() {
    let names = Names::of(&Json::Null).expect("no schema of the suite has words of a deployment");
    let (mut tests, mut invalid, mut valid, mut sure) = (0, 0, 0, 0);
    let mut wrong = Vec::new();
    for (file, group, kind, object) in CASES {
        let path = format!("../tests/json-schema-suite/tests/{file}");
        let groups: Json = serde_json::from_slice(&fs::read(path).expect("the suite is here")).expect("JSON");
        for test in groups[group]["tests"].as_array().expect("tests") {
            let instance = &test["data"];
            let is_valid = test["valid"] == true && is_of(kind, instance);
            let document = json!({"value": instance}).to_string();
            let is_sure =
                decide_object(document.as_bytes(), *object, &names, &mut Nothing) == Some(document.len());
            tests += 1;
            invalid += usize::from(!is_valid);
            valid += usize::from(is_valid);
            sure += usize::from(is_sure);
            if is_sure && !is_valid {
                wrong.push(format!(
                    "{file}: {}: {} {kind}",
                    groups[group]["description"], test["description"]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((CASES.len(), tests, invalid, valid, sure), (35, 213, 146, 67, 50));
}
