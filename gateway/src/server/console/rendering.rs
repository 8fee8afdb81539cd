//! Renders reports for the page, as `gatewright report html` and `diff --format html` do.

use gatewright::report::{Diff, Outcome, Report, Thresholds, Validator, html};
use serde::Deserialize;
use serde_json::json;

/// The request: documents as text, so that errors are reported with lines and columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RenderRequest {
    /// A report.
    report: String,
    /// An earlier report to compare it with.
    #[serde(default)]
    before: Option<String>,
}

/// The response, as JSON: the page, or the verdict for each invalid document.
pub(super) fn rendered(request: &RenderRequest) -> Vec<u8> {
    let validator = Validator::builder().own_names(true).build();
    let read = |document: &str| -> Result<Report, Box<Outcome>> { validator.read(document.as_bytes()) };
    let answer = match (read(&request.report), request.before.as_deref().map(read)) {
        (Ok(report), None) => json!({ "html": html(&report, &[]) }),
        (Ok(report), Some(Ok(before))) => {
            json!({ "html": Diff::of(&before, &report, Thresholds::default()).to_html() })
        }
        (report, before) => json!({
            "report": report.err(),
            "before": before.and_then(Result::err),
        }),
    };
    serde_json::to_vec(&answer).expect("answers are made of plain values")
}
