//! What judges the candidates for a string or number: the JSON Schema library, given only what it does at a known cost.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::Layers;
use super::pattern::{self, Pattern};
use crate::simulator::budget::{Budget, Exceeded};

/// Steps of making what judges the candidates for a string or number.
const JUDGE: usize = 10_000;
/// Steps of taking a value of a schema into it.
const JUDGE_LOOK: usize = 512;
/// Steps of judging one candidate.
const TRY: usize = 64;
/// Steps of judging a byte of it, beside the pattern.
const TRY_BYTE: usize = 8;
/// Keywords that judge a string or number by themselves.
const PLAIN: &[&str] = &[
    "type",
    "minLength",
    "maxLength",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
/// Keywords that judge a value by further schemas.
const COMPOSED: &[&str] = &["not", "if", "then", "else", "anyOf", "oneOf"];

/// Judges the candidates for a string or number.
pub(super) struct Judge {
    /// None if the schema is malformed.
    validator: Option<Validator>,
    /// Steps of judging a text of so many bytes by the pattern.
    pattern: usize,
}

impl Judge {
    pub(super) fn of(
        layers: &Layers<'_>,
        pattern: Option<(&str, &Pattern)>,
        budget: &Budget,
    ) -> Result<Self, Exceeded> {
        budget.work(JUDGE)?;
        let mut parts = Vec::new();
        for keywords in &layers.keywords {
            let mut own = Map::new();
            for keyword in PLAIN.iter().chain(COMPOSED) {
                if let Some(value) = keywords.get(*keyword)
                    && stands_alone(value, budget)?
                {
                    own.insert((*keyword).to_owned(), value.clone());
                }
            }
            parts.push(Value::Object(own));
        }
        let pattern = pattern.filter(|(_, pattern)| pattern.compiles());
        if let Some((source, pattern)) = pattern {
            budget.work(pattern.compiling())?;
            parts.push(json!({ "pattern": source }));
        }
        let engine = PatternOptions::fancy_regex();
        let engine = engine.backtrack_limit(pattern::BACKTRACKS).size_limit(pattern::COMPILED);
        let options = jsonschema::options().should_validate_formats(true).with_pattern_options(engine);
        let validator = options.build(&json!({ "allOf": parts })).ok();
        Ok(Self { validator, pattern: pattern.map_or(0, |(_, pattern)| pattern.matching()) })
    }

    /// The first candidate that its schema accepts; the last one if it accepts none or is itself malformed.
    pub(super) fn first_fitting(
        &self,
        candidates: impl Iterator<Item = Value>,
        budget: &Budget,
    ) -> Result<Value, Exceeded> {
        let mut last = Value::Null;
        for candidate in candidates {
            let bytes = candidate.as_str().map_or(0, str::len) + 1;
            budget.work(TRY + bytes.saturating_mul(TRY_BYTE + self.pattern))?;
            let fits = self.validator.as_ref().is_some_and(|validator| validator.is_valid(&candidate));
            last = candidate;
            if fits {
                break;
            }
        }
        budget.make(last.as_str().map_or(0, str::len))?;
        Ok(last)
    }
}

/// Whether a keyword's value can judge by itself and cheaply: it refers to nothing and holds no expressions or formats.
fn stands_alone(value: &Value, budget: &Budget) -> Result<bool, Exceeded> {
    budget.work(JUDGE_LOOK)?;
    match value {
        Value::String(text) => budget.work(text.len()).map(|()| true),
        Value::Array(values) => all(values, |value| stands_alone(value, budget)),
        Value::Object(members) => all(members, |(name, value)| {
            budget.work(name.len())?;
            let costly =
                name.starts_with('$') || ["pattern", "patternProperties", "format"].contains(&name.as_str());
            Ok(!costly && stands_alone(value, budget)?)
        }),
        _ => Ok(true),
    }
}

/// Whether a condition holds for all, as far as the budget reaches.
fn all<T>(
    values: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, Exceeded>,
) -> Result<bool, Exceeded> {
    for value in values {
        if !holds(value)? {
            return Ok(false);
        }
    }
    Ok(true)
}
