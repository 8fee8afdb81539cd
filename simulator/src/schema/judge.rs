//! Validates candidates for a string or number with the JSON Schema library, using only keywords of known cost.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value, json};

use super::layers::Layers;
use super::pattern::{self, Pattern};
use crate::budget::{Budget, BudgetExceeded};

/// Steps to create a validator for candidates.
const JUDGE: usize = 10_000;
/// Steps to add a value of a schema to the validator.
const JUDGE_LOOK: usize = 512;
/// Steps to validate one candidate.
const TRY: usize = 64;
/// Steps to validate a byte of a candidate, without the pattern.
const TRY_BYTE: usize = 8;
/// Keywords that validate a string or number without further schemas.
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
/// Keywords that validate a value against further schemas.
const COMPOSED: &[&str] = &["not", "if", "then", "else", "anyOf", "oneOf"];

/// Validates candidates for a string or number.
pub(super) struct Judge {
    /// `None` if the schema is malformed.
    validator: Option<Validator>,
    /// Steps to match a text of this many bytes against the pattern.
    pattern: usize,
}

impl Judge {
    pub(super) fn of(
        layers: &Layers<'_>,
        pattern: Option<(&str, &Pattern)>,
        budget: &Budget,
    ) -> Result<Self, BudgetExceeded> {
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

    /// The first candidate that the schema accepts; the last one if the schema accepts none or is malformed.
    pub(super) fn first_fitting(
        &self,
        candidates: impl Iterator<Item = Value>,
        budget: &Budget,
    ) -> Result<Value, BudgetExceeded> {
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

/// Whether a keyword's value is cheap to validate with on its own: it has no references, expressions or formats.
fn stands_alone(value: &Value, budget: &Budget) -> Result<bool, BudgetExceeded> {
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

/// Whether a condition holds for all items; stops when the budget is exhausted.
fn all<T>(
    values: impl IntoIterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool, BudgetExceeded>,
) -> Result<bool, BudgetExceeded> {
    for value in values {
        if !holds(value)? {
            return Ok(false);
        }
    }
    Ok(true)
}
