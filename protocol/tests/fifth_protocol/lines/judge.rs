//! What strict providers reject in a request.

use gatewright_protocol::judge::{Findings, Rule};
use serde_json::Value;

pub(super) const RULES: &[Rule] = &[Rule::new("texts_are_there", texts_are_there)];

fn texts_are_there(body: &Value, findings: &mut Findings) {
    let say = body["say"].as_array().map(Vec::as_slice).unwrap_or_default();
    if say.is_empty() || say.iter().any(|line| line["text"].as_str().is_none_or(str::is_empty)) {
        findings.report("/say", "needs a text in each line");
    }
}
