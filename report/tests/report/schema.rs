//! The report schema: sound, complete, and every keyword of it covered by a vector.

use std::collections::BTreeSet;

use gatewright_report::SCHEMA;
use serde_json::Value;

use crate::vectors;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("the schema is JSON")
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, jsonschema::ValidationError<'static>> {
    jsonschema::draft202012::options().should_validate_formats(true).build(schema)
}

#[test]
fn schema_passes_its_meta_schema() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    if let Err(error) = jsonschema::draft202012::meta::validate(&schema) {
        panic!("{}: {error}", error.instance_path());
    }
}

#[test]
fn model_ids_match_with_and_without_null() {
    let schema = schema();
    let mut ids = schema["$defs"]["model_id"]["enum"].as_array().expect("an enum").clone();
    ids.push(Value::Null);
    assert_eq!(schema["$defs"]["model_id_or_null"]["enum"], Value::Array(ids));
}

/// Pointers into the schema at which one thing can be left out: a keyword, a required name, a listed value, a property, a branch.
fn removable(node: &Value, pointer: &str, out: &mut Vec<String>) {
    match node {
        Value::Object(members) => {
            for (name, value) in members {
                let here = format!("{pointer}/{name}");
                match name.as_str() {
                    "title" | "description" | "examples" | "x-source" | "x-configured" | "x-meanings"
                    | "$schema" | "$id" | "$ref" => {}
                    "properties" | "$defs" => {
                        for (property, value) in value.as_object().expect("an object of schemas") {
                            let property = format!("{here}/{}", property.replace('/', "~1"));
                            // A definition cannot be removed, only its contents.
                            if name == "properties" {
                                out.push(property.clone());
                            }
                            removable(value, &property, out);
                        }
                    }
                    "required" | "enum" | "type" if value.is_array() => {
                        let items = value.as_array().expect("an array").len();
                        out.extend((0..items).map(|index| format!("{here}/{index}")));
                    }
                    "allOf" | "anyOf" => {
                        for (index, value) in value.as_array().expect("an array").iter().enumerate() {
                            let branch = format!("{here}/{index}");
                            out.push(branch.clone());
                            removable(value, &branch, out);
                        }
                    }
                    _ => {
                        out.push(here.clone());
                        removable(value, &here, out);
                    }
                }
            }
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn without(schema: &Value, pointer: &str) -> Value {
    let mut mutant = schema.clone();
    let (parent, step) = pointer.rsplit_once('/').expect("a pointer below the root");
    let step = step.replace("~1", "/");
    match mutant.pointer_mut(parent).expect("the parent is there") {
        Value::Object(members) => drop(members.shift_remove(&step).expect("the keyword is there")),
        Value::Array(items) => drop(items.remove(step.parse().expect("an index"))),
        _ => panic!("{pointer} is in no container"),
    }
    mutant
}

/// 2.12, every row and rule: leaving out any one thing of the schema changes the findings of some vector.
#[test]
fn every_schema_keyword_is_covered_by_a_vector() {
    let schema = schema();
    let documents: Vec<Value> = vectors::cases()
        .iter()
        .filter(|case| case.options.is_empty())
        .filter_map(|case| serde_json::from_slice(&case.document).ok())
        .collect();
    let findings = |validator: &jsonschema::Validator, document: &Value| -> BTreeSet<String> {
        let errors = validator.iter_errors(document);
        errors.map(|error| format!("{} {error}", error.instance_path())).collect()
    };
    let original = compile(&schema).expect("the schema compiles");
    let mut cases: Vec<(&Value, BTreeSet<String>)> =
        documents.iter().map(|document| (document, findings(&original, document))).collect();
    let mut places = Vec::new();
    removable(&schema, "", &mut places);
    assert!(places.len() > 250, "only {} places", places.len());
    let mut uncovered = Vec::new();
    for place in &places {
        let Ok(mutated) = compile(&without(&schema, place)) else { continue };
        match cases.iter().position(|(document, found)| findings(&mutated, document) != *found) {
            // It probably notices the absence of the next one, too.
            Some(noticing) => cases.swap(0, noticing),
            None => uncovered.push(place),
        }
    }
    assert!(uncovered.is_empty(), "no vector notices the absence of these: {uncovered:#?}");
}
