//! Calls of tools and their results.

use std::collections::HashMap;

use crate::conversation::{Input, PartKind, Turn};

/// The result of a call that has none.
pub(super) const NO_RESULT: &str = "The tool gave no result.";
/// What is said where a provider refuses to hear nothing.
pub(super) const NOTHING: &str = "…";

/// Tells each result the name and the kind of the tool that was called, as far as the conversation has the call.
pub(super) fn name_results(turns: &mut [Turn]) {
    let mut called: HashMap<String, (String, bool)> = HashMap::new();
    for part in turns.iter_mut().flat_map(|turn| &mut turn.parts) {
        match &mut part.kind {
            PartKind::Call(call) => {
                let is_custom = matches!(call.input, Input::Text(_));
                called.insert(call.id.clone(), (call.name.clone(), is_custom));
            }
            PartKind::Result(result) => {
                if let Some((name, is_custom)) = called.get(&result.call_id) {
                    result.name = Some(name.clone());
                    result.custom = *is_custom;
                }
            }
            _ => {}
        }
    }
}
