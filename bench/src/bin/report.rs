//! Validates a report: `report WAY FILE COUNT SCHEMA`. An invalid one has `invalid` in its name.

use std::fs;
use std::hint::black_box;

use anyhow::{Result, bail, ensure};
use gatewright_bench::measured::Task;
use gatewright_report::Validator;
use serde_json::Value;

/// Returns whether a document is valid.
type Judge = Box<dyn Fn(&[u8]) -> Result<bool>>;

fn main() -> Result<()> {
    let mut task = Task::from_arguments()?;
    task.one_thread = true;
    let document = fs::read(&task.model)?;
    let schema: Value = serde_json::from_slice(&fs::read(&task.host)?)?;
    let expected = !task.model.contains("invalid");
    let judge: Judge = match &*task.work {
        "ours" => {
            let validator = Validator::default();
            Box::new(move |document| {
                let outcome = validator.check(document);
                // All findings, with their places.
                let places: Vec<_> =
                    outcome.violations.iter().map(|found| (found.line, found.column)).collect();
                Ok(outcome.valid && black_box(places).is_empty())
            })
        }
        "jsonschema" => {
            let validator =
                jsonschema::draft202012::options().should_validate_formats(true).build(&schema)?;
            Box::new(move |document| Ok(validator.validate(&serde_json::from_slice(document)?).is_ok()))
        }
        "serde_json" => Box::new(move |document| {
            black_box(serde_json::from_slice::<Value>(document)?);
            Ok(expected)
        }),
        other => bail!("no such way: {other}"),
    };
    let bytes = document.len();
    task.block_on(task.measure_bytes(bytes, async || {
        ensure!(judge(black_box(&document))? == expected, "{} was judged wrongly", task.model);
        Ok(1)
    }))
}
