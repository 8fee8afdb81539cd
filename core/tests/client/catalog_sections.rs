//! A violation of a model's limit cites the section that states the limit; limits that the catalog marks as ours are
//! reported as ours.

use gatewright::{limits, operations};
use serde_json::{Value, json};

fn sections(operation: &gatewright::Operation, body: &Value) -> Vec<(String, String)> {
    let violations = limits::check(operation, body);
    violations.into_iter().map(|one| (one.pointer, one.section)).collect()
}

#[test]
fn image_limits_cite_2_8_and_2_10_and_model_prompt_limits_are_ours() {
    let long = "a".repeat(4001);
    let body = json!({ "model": "image_model_1", "prompt": long, "n": 2, "size": "512x512" });
    let found = sections(&operations::CREATE_IMAGE, &body);
    let expected = [("/prompt", "ours"), ("/n", "2.8"), ("/size", "2.8")];
    assert_eq!(found, expected.map(|(pointer, section)| (pointer.to_owned(), section.to_owned())));
    let body = json!({ "model": "image_model_4", "prompt": "a kite", "size": "2048x2048", "style": "vivid" });
    let found = sections(&operations::CREATE_IMAGE, &body);
    let expected = [("/size", "2.10"), ("/style", "2.8")];
    assert_eq!(found, expected.map(|(pointer, section)| (pointer.to_owned(), section.to_owned())));
}

#[test]
fn video_limits_cite_2_9() {
    let body = json!({ "model": "video_model_4", "prompt": "a kite", "duration": 6 });
    assert_eq!(sections(&operations::CREATE_VIDEO, &body), [("/duration".to_owned(), "2.9".to_owned())]);
}
