//! What a schema's checker consists of, and which schemas cannot have one.

use serde_json::{Value, json};

use super::super::super::emit;
use super::{Condition, Is, beginning, checker};

/// A schema with one of everything.
fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["pen", "count"],
        "additionalProperties": false,
        "properties": {
            "pen": {"$ref": "#/$defs/pen"},
            "count": {"$ref": "#/$defs/count"},
            "inks": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "string", "minLength": 1}},
            "dried": {"type": ["boolean", "null"]},
            "note": {"type": "string", "maxLength": 9},
        },
        "allOf": [{
            "if": {"properties": {"pen": {"const": "soft"}}, "required": ["pen"]},
            "then": {
                "properties": {"count": {"properties": {"lines": {"minimum": 1}}}},
                "anyOf": [{"required": ["note"]}, {"required": ["inks"]}],
            },
        }],
        "$defs": {
            "pen": {"title": "Pen", "enum": ["soft", "hard", null]},
            "count": {
                "type": "object",
                "properties": {"lines": {"type": ["integer", "null"], "maximum": -5}, "kit": {"x-configured": true, "const": "a kit"}},
            },
        },
    })
}

/// The schema with the value at a pointer replaced or added.
fn with(pointer: &str, value: Value) -> Value {
    let mut schema = schema();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    schema.pointer_mut(parent).expect("the place exists")[key] = value;
    schema
}

#[test]
fn schema_lowers_to_objects_lists_enums_and_conditions() {
    let checker = checker(&schema()).expect("it can be decided");
    assert_eq!(checker.objects.keys().collect::<Vec<_>>(), ["count", "report"]);
    assert_eq!(checker.lists.keys().collect::<Vec<_>>(), ["report_inks"]);
    assert_eq!(checker.enums["pen"].values, ["soft", "hard"]);
    assert_eq!(checker.configured["count_kit"], "/$defs/count/properties/kit");
    let report = &checker.objects["report"];
    let tests: Vec<&Is> = report.tests.iter().map(|test| &test.is).collect();
    assert_eq!(tests, [&Is::EnumValue(0), &Is::Passing(0)]);
    assert_eq!(checker.objects["count"].tests[0].is, Is::AtLeast(1));
    let has = |name: &str| Condition::Has(name.to_owned());
    let condition = Condition::All(vec![Condition::Passes(0), has("pen")]);
    let then = Condition::All(vec![Condition::Passes(1), Condition::Any(vec![has("note"), has("inks")])]);
    assert_eq!(report.conditions, [Condition::If(Box::new((condition, then)))]);
}

#[test]
fn checker_is_emitted_with_a_branch_for_each_member() {
    let code = emit::checker::of_report(&checker(&schema()).expect("it can be decided")).contents;
    insta::assert_snapshot!(code.split_once("impl<W: Watch>").expect("the methods").1);
}

#[test]
fn undecidable_schema_is_rejected_with_its_pointer() {
    for (pointer, value, message) in [
        (
            "/properties/note/contentEncoding",
            json!("base64"),
            "#/properties/note/contentEncoding: the checker",
        ),
        ("/not", json!({}), "#/not: the checker"),
        ("/patternProperties", json!({}), "#/patternProperties: the checker"),
        (
            "/properties/note/format",
            json!("email"),
            "#/properties/note/format: the checker does not know email",
        ),
        ("/properties/note/pattern", json!("a$"), "#/properties/note/pattern: the checker knows `^`"),
        ("/properties/note/type", json!(["string", "integer"]), "values of one type"),
        (
            "/properties/note/type",
            json!("number"),
            "#/properties/note/type: the checker does not know number",
        ),
        (
            "/properties/inks/items",
            json!({"type": "boolean"}),
            "uniqueItems: the checker compares strings only",
        ),
        ("/properties/pen", json!({"$ref": "#/$defs/lost"}), "#/$defs/lost is no place of this schema"),
        ("/properties/pen/minLength", json!(1), "#/properties/pen/minLength: the checker"),
        ("/properties/note", json!({"enum": ["é"]}), "is not of ASCII alone"),
        ("/required", json!(["lost"]), "lost is not among the properties"),
        ("/$defs/count/properties/self", json!({"$ref": "#/$defs/count"}), "an object is in itself"),
        ("/allOf/0/else", json!({}), "#/allOf/0/else: the checker"),
        ("/allOf/0/if/properties/pen/const", json!("blunt"), "pen never has this value"),
        ("/allOf/0/if/properties/note", json!({"const": "x"}), "cannot decide this of note"),
        ("/allOf/0/then/properties/count/const", json!({}), "count/const: the checker"),
        ("/$defs/pen/const", json!("soft"), "#/$defs/pen/const: the checker"),
        ("/properties/note/maxLength", json!(9.5), "#/properties/note/maxLength: 9.5 is no count"),
        ("/allOf/0/then/properties/count/required", json!(["lines"]), "count/required: the checker"),
    ] {
        let error = checker(&with(pointer, value)).expect_err(pointer);
        assert!(format!("{error:#}").contains(message), "{pointer}: {error:#}");
    }
}

#[test]
fn only_prefix_patterns_are_supported() {
    assert_eq!(beginning("^/"), Some(vec![(b'/', b'/', false)]));
    assert_eq!(beginning("^v[0-9]+"), Some(vec![(b'v', b'v', false), (b'0', b'9', true)]));
    for pattern in ["v", "^v$", "^v?", "^[^a]", "^[9-0]", "^[0-9a-f]", "^\\d", "^a|b", "^[A-\\]", "^.", "^a*"]
    {
        assert_eq!(beginning(pattern), None, "{pattern}");
    }
}
