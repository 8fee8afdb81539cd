//! Validates data of `spec/` against the schema next to it.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Fails with every location in `data` that violates the schema.
pub(crate) fn validate(data: &Value, file: &str, schema: &Value, schema_file: &str) -> Result<()> {
    let validator = jsonschema::draft202012::new(schema).with_context(|| schema_file.to_owned())?;
    let problems: Vec<String> = validator
        .iter_errors(data)
        .map(|problem| format!("{file}#{}: {problem}; correct it", problem.instance_path()))
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}\n{schema_file} says what {file} may hold", problems.join("\n"))
}
