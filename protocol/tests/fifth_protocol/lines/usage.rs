//! Token counts.

use gatewright_protocol::conversation::Usage;
use serde_json::{Value, json};

/// Reads them. `None`: there are none.
pub(super) fn read(tokens: &Value) -> Option<Usage> {
    let tokens = tokens.as_array()?;
    let count = |place: usize| tokens.get(place).and_then(Value::as_u64);
    Some(Usage { input: count(0), output: count(1), ..Usage::default() })
}

/// Writes them.
pub(super) fn write(usage: Option<Usage>) -> Value {
    usage.map_or(Value::Null, |usage| json!([usage.input, usage.output]))
}
