//! Converts TOML to JSON for schema validation.

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

/// A table as JSON. Numbers that JSON can't represent become null, which no key accepts.
pub(super) fn table(table: &DeTable<'_>) -> Value {
    table.iter().map(|(name, entry)| (name.get_ref().to_string(), value(entry.get_ref()))).collect()
}

fn value(toml: &DeValue<'_>) -> Value {
    match toml {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(truth) => Value::from(*truth),
        DeValue::Datetime(time) => Value::from(time.to_string()),
        DeValue::Array(items) => items.iter().map(|item| value(item.get_ref())).collect(),
        DeValue::Table(entries) => table(entries),
    }
}
