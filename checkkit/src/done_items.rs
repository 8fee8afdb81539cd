//! Compares the finished items of a stream with those of the final response: a coding agent acts on each item when it
//! is done, and never reads the final response.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::cell::Cell;
use crate::failure::{Category, Failure};
use crate::response_object::brief;

/// Members that an agent acts on, by the kind of item; for all other kinds, only the type.
const ACTED_ON: &[(&str, &[&str])] = &[
    ("function_call", &["call_id", "name", "arguments"]),
    ("custom_tool_call", &["call_id", "name", "input"]),
    ("local_shell_call", &["call_id", "action"]),
];

/// Items of `response.output_item.done`, by their position in the output.
#[derive(Default)]
pub(crate) struct DoneItems(BTreeMap<u64, Vec<Value>>);

impl DoneItems {
    /// Adds an event. An event without a position gets the next one.
    pub(crate) fn take(&mut self, event: &Value) {
        let next = self.0.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
        self.0.entry(event["output_index"].as_u64().unwrap_or(next)).or_default().push(event["item"].clone());
    }

    /// In the order of the output.
    pub(crate) fn items(&self) -> Vec<Value> {
        self.0.values().flatten().cloned().collect()
    }

    /// Asserts that each item of the final response was finished once, with the same content.
    pub(crate) fn judge(&self, cell: &mut Cell, output: &Value) {
        for (place, item) in (0..).zip(output.as_array().into_iter().flatten()) {
            let done = self.0.get(&place).map_or(&[][..], Vec::as_slice);
            let what = format!("response.output_item.done of item {place}, a {}", brief(&item["type"]));
            let [done] = done else {
                cell.assert(Category::Protocol, &what, "exactly 1", done.len().to_string(), false);
                continue;
            };
            let (expected, found) = (content(item), content(done));
            let held = expected == found;
            let (wanted, shown) = (format!("{expected}, as in the final answer"), found.to_string());
            if held {
                cell.assert(Category::Verification, &what, wanted, shown, true);
            } else {
                // The items themselves are in the evidence.
                let members = [&expected, &found].into_iter().filter_map(Value::as_object).flatten();
                let differing: BTreeSet<&str> = members
                    .filter(|(name, _)| expected.get(name) != found.get(name))
                    .map(|(name, _)| name.as_str())
                    .collect();
                let names: Vec<&str> = differing.into_iter().collect();
                let message = format!("{what}: it differs from the final answer in its {}", names.join(", "));
                cell.fail(&what, wanted, shown, Failure::new(Category::Verification, message));
            }
        }
    }
}

/// The members of an item that an agent acts on.
fn content(item: &Value) -> Value {
    let mut content = json!({ "type": item["type"] });
    let kind = item["type"].as_str().unwrap_or_default();
    if kind == "message" {
        let parts = item["content"].as_array().into_iter().flatten();
        content["content"] = parts
            .map(|part| {
                let text = if part["type"] == "refusal" { &part["refusal"] } else { &part["text"] };
                json!([part["type"], text])
            })
            .collect();
    }
    let members = ACTED_ON.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, members)| members);
    for member in members {
        content[*member] = item[*member].clone();
    }
    content
}
