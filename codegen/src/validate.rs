//! Data of `spec/` against the schema that stands beside it.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Fails with every place of `data` that is not as the schema says.
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
