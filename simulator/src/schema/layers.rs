//! The schemas of one value, combined.

use serde_json::{Map, Value};

/// All schemas that one value must match: the schema, the targets of its references, its parts, and a variant of each
/// union.
pub(super) struct Layers<'a> {
    pub(super) keywords: Vec<&'a Map<String, Value>>,
    /// Whether a reference was followed.
    pub(super) referred: bool,
}

impl<'a> Layers<'a> {
    /// The keyword's value in each layer that has it.
    pub(super) fn all(&self, keyword: &str) -> impl Iterator<Item = &'a Value> {
        self.keywords.iter().filter_map(move |keywords| keywords.get(keyword))
    }

    pub(super) fn first(&self, keyword: &str) -> Option<&'a Value> {
        self.all(keyword).next()
    }

    pub(super) fn has(&self, keyword: &str) -> bool {
        self.first(keyword).is_some()
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.all(keyword).find_map(Value::as_str)
    }

    pub(super) fn list(&self, keyword: &str) -> &'a [Value] {
        self.all(keyword).find_map(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The largest value of a lower bound.
    pub(super) fn least(&self, keyword: &str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::max)
    }

    /// The smallest value of an upper bound.
    pub(super) fn most(&self, keyword: &str) -> Option<f64> {
        self.all(keyword).filter_map(Value::as_f64).reduce(f64::min)
    }

    pub(super) fn least_count(&self, keyword: &str) -> usize {
        self.all(keyword).filter_map(count).max().unwrap_or(0)
    }

    pub(super) fn most_count(&self, keyword: &str) -> usize {
        self.all(keyword).filter_map(count).min().unwrap_or(usize::MAX)
    }

    pub(super) fn kind(&self) -> &'a str {
        match self.first("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds
                    .clone()
                    .find(|kind| *kind != "null")
                    .or_else(|| kinds.clone().next())
                    .unwrap_or("string")
            }
            _ if self.has("properties") || self.has("required") => "object",
            _ if self.has("items") || self.has("prefixItems") => "array",
            _ if ["minimum", "maximum", "multipleOf"].iter().any(|keyword| self.has(keyword)) => "number",
            _ => "string",
        }
    }
}

fn count(value: &Value) -> Option<usize> {
    value.as_u64().map(|count| usize::try_from(count).unwrap_or(usize::MAX))
}
