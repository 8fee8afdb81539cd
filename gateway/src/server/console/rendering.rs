//! Renders reports for the page, as `gatewright report html` and `diff --format html` do.

use gatewright::report::{Diff, Outcome, Report, Thresholds, Validator};
use serde::Deserialize;
use serde_json::json;

/// The request: documents as text, so that errors are reported with lines and columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RenderRequest {
    /// A report, or additional checks.
    report: String,
    /// An earlier report to compare it with.
    #[serde(default)]
    before: Option<String>,
}

/// The response, as JSON: the page, or the verdict for each invalid document.
pub(super) fn rendered(request: &RenderRequest) -> Vec<u8> {
    let validator = Validator::builder().own_names(true).build();
    let read = |document: &str| -> Result<Report, Box<Outcome>> { validator.read(document.as_bytes()) };
    let answer = match &request.before {
        None => match validator.html(request.report.as_bytes(), &[], None) {
            Ok(page) => json!({ "html": page }),
            Err(outcome) => json!({ "report": outcome, "before": null }),
        },
        Some(before) => match (read(&request.report), read(before)) {
            (Ok(report), Ok(before)) => {
                json!({ "html": Diff::of(&before, &report, Thresholds::default()).to_html() })
            }
            (report, before) => json!({ "report": report.err(), "before": before.err() }),
        },
    };
    serde_json::to_vec(&answer).expect("answers are made of plain values")
}
