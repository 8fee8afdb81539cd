//! Families of models, and what their models inherit from them.

use super::{read, with, wrong};
use crate::Thinking;

#[test]
fn models_inherit_family_settings_and_may_override_them() {
    let text = r#"
        [families.family_two]
        name = "Family Two"
        default_max_tokens = 8192
        translate_responses = true
        strict = true
        thinking = "adaptive"
        [upstreams.two]
        kind = "messages"
        base_url = "https://two.example"
        [models.by-kind]
        targets = [{ upstream = "two" }]
        [models.by-name]
        family = "family_two"
        default_max_tokens = 7
        translate_responses = false
        strict = false
        thinking = "budget"
        targets = [{ upstream = "two" }]
        [models.of-another]
        family = "family_one"
        targets = [{ upstream = "two" }]
    "#;
    let read = read(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    let options: Vec<_> = read
        .config
        .models
        .iter()
        .map(|model| (model.owner.as_deref(), model.default_max_tokens, model.strict, model.thinking))
        .collect();
    assert_eq!(
        options,
        [
            (Some("Family Two"), 8192, true, Thinking::Adaptive),
            (Some("Family Two"), 7, false, Thinking::Budget),
            (None, 4096, false, Thinking::Budget),
        ]
    );
    let translates: Vec<bool> = read.config.models.iter().map(|model| model.translate_responses).collect();
    assert_eq!(translates, [true, false, false]);
}

#[test]
fn families_of_catalog_models_apply_without_models_in_the_file() {
    let config = read("[families.family_one]\nname = \"One\"").expect("right").config;
    let of_one = config.models.iter().filter(|model| model.family == "family_one");
    assert!(of_one.clone().count() > 0 && of_one.clone().all(|model| model.owner.as_deref() == Some("One")));
}

#[test]
fn misspelt_families_and_family_keys_are_reported() {
    let error = wrong(&with("", "family = \"my-famly\"\n[families.my-family]\nstrct = true"));
    assert!(error.contains("families.my-family.strct: unknown key; did you mean strict?"), "{error}");
    let error = wrong(&with("", "family = \"my-famly\"\n[families.my-family]\n[families.\"a b\"]"));
    assert!(error.contains("models.m.family: unknown family; did you mean my-family?"), "{error}");
    assert!(error.contains("families.\"a b\": the id must be letters"), "{error}");
    let error = wrong(&with("", "thinking = \"adaptiv\""));
    assert!(
        error.contains("models.m.thinking: must be one of budget, adaptive; did you mean adaptive?"),
        "{error}"
    );
    assert!(read(&with("", "family = \"local\"")).is_ok(), "without the table, a family is just a name");
}
