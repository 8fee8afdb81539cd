//! What the types and the client in Rust look like.

use insta::assert_snapshot;
use serde_json::json;

use super::{Progenitor, emit};
use crate::build::build;
use crate::fixture::{edited, emitted, sources};
use crate::load::Sources;
use crate::lower::lower;

fn types(sources: &Sources) -> String {
    let files = emitted(emit, sources).expect("the fixture generates");
    files.into_iter().find(|file| file.path.ends_with("types.rs")).expect("the emitter writes it").contents
}

#[test]
fn types_have_public_fields_enums_and_setters() {
    assert_snapshot!(types(&sources()));
}

#[test]
fn only_request_types_get_new_and_setters() {
    let code = types(&sources());
    assert!(code.contains("\n    LineRequest: pub fn new(text: impl Into<LineRequestText>);\n"), "{code}");
    assert!(code.contains("with_weight(weight: f64)"), "{code}");
    assert!(!code.contains("setters! { Line {") && !code.contains("    Line: pub"), "{code}");
}

#[test]
fn every_new_has_an_example() {
    let code = types(&sources());
    let lines: Vec<&str> = code.lines().collect();
    let bare: Vec<&str> = lines
        .windows(2)
        .filter(|pair| pair[1].contains(": pub fn new(") && pair[0] != "    /// ```")
        .map(|pair| pair[1])
        .collect();
    assert!(bare.is_empty(), "{bare:?}");
    assert!(code.contains(": pub fn new("), "{code}");
}

#[test]
fn handwritten_new_makes_the_generated_one_crate_private() {
    let code = types(&edited("/components/schemas/LineRequest/x-new", json!("by hand")));
    assert!(code.contains("\n    LineRequest: pub(crate) fn required("), "{code}");
}

#[test]
fn schema_named_like_a_std_type_does_not_shadow_it() {
    let string = json!({ "description": "A thread.", "x-source": "ours", "type": "object", "properties": {
        "material": { "type": "string", "description": "Of what." },
    } });
    let code = types(&edited("/components/schemas/String", string));
    assert!(code.contains("pub struct String {"), "{code}");
    assert!(code.contains("pub material: Option<::std::string::String>,"), "{code}");
    assert!(!code.contains("Vec<String>"), "{code}");
}

#[test]
fn each_form_of_an_operation_has_a_signature() {
    let api = build(&sources()).expect("the fixture builds");
    let lowered = lower(&sources(), &api).expect("the fixture lowers");
    let progenitor = Progenitor::generate(&api, &lowered).expect("the fixture generates");
    let functions: Vec<&str> = progenitor.signatures.keys().map(String::as_str).collect();
    assert_eq!(functions, ["create_line", "create_line_stream", "retrieve_line", "stream_write"]);
}
