//! The canonical form.

use gatewright_report::{Profile, Report, Validator, validate};
use insta::assert_snapshot;
use serde_json::Value;

use crate::{bases, model, vectors};

fn canonical(document: &str) -> String {
    Validator::default().canonical(document.as_bytes()).expect("JSON")
}

#[test]
fn members_are_written_in_schema_order() {
    let shuffled = r#"{"summary": {"skipped": 0, "failed": 1.0, "passed": 2e1}, "odd": [], "kit": {}, "more": [null, {"b": -0, "a": 0.50}],
        "checks": [{"usage": {"total_tokens": 123456789012345678901234567890123, "input_tokens": null}, "id": "é\u0001\/\u00e9"}], "schema_version": "1.0"}"#;
    assert_snapshot!(canonical(shuffled));
}

#[test]
fn canonical_form_of_every_vector_is_equivalent_and_idempotent() {
    let mut compared = 0;
    for case in vectors::cases() {
        let validator = vectors::validator(&case.options);
        let Ok(text) = validator.canonical(&case.document) else {
            assert!(!validator.check(&case.document).valid, "{}", case.name);
            continue;
        };
        let again = validator.canonical(text.as_bytes()).expect("the canonical form is JSON");
        assert_eq!(again, text, "{}", case.name);
        // As far as a reader with doubles and a lower nesting limit can tell.
        let (before, after) = (serde_json::from_slice::<Value>(&case.document), serde_json::from_str(&text));
        let (Ok(before), Ok(after)) = (before, after) else { continue };
        assert!(model::integral(&before) == model::integral(&after), "{}", case.name);
        compared += 1;
    }
    assert!(compared > 500, "only {compared} documents were compared");
}

#[test]
fn invalid_json_has_no_canonical_form_and_the_verdict_gives_the_position() {
    let outcome = Validator::default().canonical(b"{\n  \"a\": 1,}").expect_err("not JSON");
    assert_eq!((outcome.violations[0].rule, outcome.violations[0].line), ("syntax", 2));
}

#[test]
fn skeleton_is_valid_and_canonical() {
    let text = Report::skeleton(&Profile::default(), "https://gateway.example.com").to_json();
    assert_eq!(canonical(&text), text);
    let outcome = validate(text.as_bytes());
    assert!(
        outcome.valid && outcome.advisories.is_empty(),
        "{:?} {:?}",
        outcome.violations,
        outcome.advisories
    );
    assert_eq!(outcome.report.expect("a report").checks.len(), 1 + 5 * 3);
}

#[test]
fn skeleton_of_a_profile_is_valid_for_that_profile() {
    let profile =
        Profile { kit_name: Some("our-kit".to_owned()), models: vec!["a".to_owned(), "b".to_owned()] };
    let text = Report::skeleton(&profile, "https://gateway.example.com").to_json();
    assert!(Validator::builder().profile(&profile).strict(true).build().check(text.as_bytes()).valid);
    assert!(!validate(text.as_bytes()).valid);
}

#[test]
fn report_is_written_in_canonical_form() {
    let report = bases::report("full");
    let text = report.to_json();
    assert_eq!(canonical(&text), text);
    assert_eq!(Validator::default().read(text.as_bytes()).expect("valid"), report);
}
