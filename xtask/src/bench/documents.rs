//! The documents for the validators, below target/bench/documents.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::installs::folder;
use crate::process::root;

/// Checks in the usual report, besides those of the vectors' base, which has every member.
const MODELS: [&str; 3] = ["model-sol", "model-terra", "model-luna"];
const CHECKS: [&str; 4] = ["model_access", "responses_text", "responses_stream", "responses_function_tool"];

const USUAL: &str = "usual.json";
const INVALID: &str = "invalid.json";

/// The schema that the peers compile.
pub(super) fn schema() -> PathBuf {
    root().join("spec/report.schema.json")
}

/// A report of the usual size, pretty-printed; the same with a violation; NDJSON lines and files of the usual
/// one.
pub(super) struct Documents {
    folder: PathBuf,
    line: String,
}

impl Documents {
    /// Writes them.
    pub(super) fn write() -> Result<Self> {
        let folder = folder().join("documents");
        fs::create_dir_all(&folder)?;
        let base = fs::read(root().join("tests/vectors/report/bases/full.json"))?;
        let usual = usual(serde_json::from_slice(&base)?)?;
        let mut invalid = usual.clone();
        invalid["checks"][1]["layer"] = json!("apis");
        fs::write(folder.join(USUAL), serde_json::to_vec_pretty(&usual)?)?;
        fs::write(folder.join(INVALID), serde_json::to_vec_pretty(&invalid)?)?;
        Ok(Self { folder, line: format!("{usual}\n") })
    }

    /// The file that a task names, if any.
    pub(super) fn of(&self, name: &str) -> Option<PathBuf> {
        [USUAL, INVALID].contains(&name).then(|| self.folder.join(name))
    }

    /// Bytes per line.
    pub(super) fn line_bytes(&self) -> f64 {
        f64::from(u32::try_from(self.line.len()).unwrap_or(u32::MAX))
    }

    /// An NDJSON file with this many reports.
    pub(super) fn lines(&self, count: u32) -> Result<PathBuf> {
        let path = self.folder.join(format!("{count}.ndjson"));
        let bytes = u64::from(count) * self.line.len() as u64;
        if fs::metadata(&path).is_ok_and(|file| file.len() == bytes) {
            return Ok(path);
        }
        let mut file = BufWriter::new(File::create(&path)?);
        for _ in 0..count {
            file.write_all(self.line.as_bytes())?;
        }
        file.flush()?;
        Ok(path)
    }

    /// A pattern matching this many files.
    pub(super) fn files(&self, count: u32) -> Result<PathBuf> {
        let folder = self.folder.join(format!("files-{count}"));
        fs::create_dir_all(&folder)?;
        for number in 0..count {
            fs::write(folder.join(format!("{number}.json")), &self.line)?;
        }
        Ok(folder.join("*.json"))
    }

    /// Where a program's verdicts go.
    pub(super) fn verdicts(&self) -> PathBuf {
        self.folder.join("verdicts")
    }

    /// The number of valid verdicts: our program and script write JSON, ajv-cli writes text.
    pub(super) fn count_valid(verdicts: &Path) -> Result<u64> {
        let text = fs::read_to_string(verdicts)?;
        let valid = |line: &&str| {
            let json = serde_json::from_str::<Value>(line);
            json.map_or_else(|_| line.ends_with(".json valid"), |verdict| verdict["valid"] == true)
        };
        Ok(text.lines().filter(valid).count() as u64)
    }
}

/// The report with a check for each model and kind.
fn usual(mut report: Value) -> Result<Value> {
    let checks = report["checks"].as_array_mut().context("a report has checks")?;
    for model in MODELS {
        for id in CHECKS {
            if !checks.iter().any(|check| check["id"] == id && check["model"] == model) {
                checks.push(check(id, model));
            }
        }
    }
    let of = |status: &str| checks.iter().filter(|check| check["status"] == status).count();
    let [passed, failed, skipped] = ["pass", "fail", "skip"].map(of);
    report["summary"]["passed"] = passed.into();
    report["summary"]["failed"] = failed.into();
    report["summary"]["skipped"] = skipped.into();
    report["overall_status"] = if failed > 0 { json!("fail") } else { json!("pass") };
    Ok(report)
}

fn check(id: &str, model: &str) -> Value {
    json!({
        "id": id, "layer": "api", "model": model, "status": "pass", "duration_ms": 1234, "http_status": 200,
        "reported_model": model, "response_id": "resp_0123456789abcdef", "output_verified": true,
        "usage": {"input_tokens": 12, "output_tokens": 34, "total_tokens": 46, "cached_tokens": null,
            "cache_write_tokens": null, "reasoning_tokens": 0},
    })
}
