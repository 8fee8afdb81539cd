//! Findings as SARIF 2.1.0, the format of code scanning services: the violations of documents, and the failed checks of a
//! report.
//!
//! A log of violations is written piece by piece, so that its size does not matter: [`sarif_head`], the results of each document
//! with commas between them, [`SARIF_FOOT`].

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::{Value as Json, json};

use crate::finding::{Violation, lines};
use crate::findings::Findings;
use crate::matrix::model_name;
use crate::model::{CheckId, Report, Status};
use crate::read;
use crate::rules::{RULES, Rule, RuleKind};
use crate::tree::Node;
use crate::validate::{MAX_BYTES_LIMIT, Outcome, Validator};
use gatewright_safe::visible::visible;

/// Characters to escape in the path of a URI; `/` separates, and `:` could be mistaken for the end of a scheme.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The end of a log.
///
/// ```
/// use gatewright_report::{SARIF_FOOT, sarif_head};
///
/// let log: serde_json::Value = serde_json::from_str(&format!("{}{SARIF_FOOT}", sarif_head()))?;
/// assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub const SARIF_FOOT: &str = "]}]}\n";

/// The beginning of a log, up to its list of results.
///
/// ```
/// use gatewright_report::{SARIF_FOOT, sarif_head, validate};
///
/// let results = validate(b"{}").to_sarif("report.json");
/// let log = format!("{}{results}{SARIF_FOOT}", sarif_head());
/// let log: serde_json::Value = serde_json::from_str(&log)?;
/// assert_eq!(log["version"], "2.1.0");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn sarif_head() -> String {
    let rules: Vec<Json> = RULES.iter().map(described).collect();
    let driver = json!({
        "name": "gatewright",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    format!(
        "{{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\",\"version\":\"2.1.0\",\
         \"runs\":[{{\"tool\":{},\"columnKind\":\"unicodeCodePoints\",\"results\":[",
        json!({ "driver": driver }),
    )
}

/// The failed checks of a report as a whole SARIF log: one result each, at the place where the check is in the report's file.
///
/// path: the file, which has the report in canonical form; absolute, or relative to the source root of the log's reader.
///
/// ```
/// use gatewright_report::{Profile, Report, Status, sarif};
///
/// let mut report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// report.checks[0].status = Status::Fail;
/// let log: serde_json::Value = serde_json::from_str(&sarif(&report, "report.json"))?;
/// assert_eq!(log["runs"][0]["results"][0]["ruleId"], "models_endpoint");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn sarif(report: &Report, path: &str) -> String {
    log_of_checks(report, report.to_json().as_bytes(), path)
}

impl Validator {
    /// Like [`sarif()`], with the places of the checks in this document, whatever its form.
    ///
    /// Errors: it is not a valid report; the verdict says why.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Status, Validator};
    ///
    /// let mut report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// report.checks[0].status = Status::Fail;
    /// let on_one_line = serde_json::to_vec(&report)?;
    /// let log = Validator::default().sarif(&on_one_line, "report.json").unwrap();
    /// assert!(log.contains("\"startLine\": 1"));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn sarif(&self, document: &[u8], path: &str) -> Result<String, Box<Outcome>> {
        Ok(log_of_checks(&self.read(document)?, document, path))
    }
}

/// document: that of the report, in which the checks have their places.
fn log_of_checks(report: &Report, document: &[u8], path: &str) -> String {
    let uri = uri(path);
    let rules: Vec<Json> = CheckId::ALL
        .into_iter()
        .map(|id| json!({ "id": id.name(), "shortDescription": { "text": id.meaning() } }))
        .collect();
    let lines = check_lines(document);
    let failed = report.checks.iter().enumerate().filter(|(_, check)| check.status == Status::Fail);
    let results: Vec<Json> = failed
        .map(|(index, check)| {
            let why = check.in_words().unwrap_or_default();
            let what = format!("{} {}: {why}", check.id, model_name(check.model.as_deref()));
            let line = lines.get(index).copied().unwrap_or(1);
            json!({
                "ruleId": check.id.name(),
                "ruleIndex": check.id as usize,
                "level": "error",
                "message": { "text": visible(&what) },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": uri },
                        "region": { "startLine": line },
                    },
                    "logicalLocations": [{ "fullyQualifiedName": format!("/checks/{index}"), "kind": "value" }],
                }],
            })
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": { "name": "gatewright", "version": env!("CARGO_PKG_VERSION"), "rules": rules },
            },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log:#}\n")
}

/// The line of each check in the document of a report.
fn check_lines(document: &[u8]) -> Vec<usize> {
    let Ok(root) = read::read(document, MAX_BYTES_LIMIT, Findings::new(1)) else { return Vec::new() };
    let checks = root.get("checks").map(Node::items).unwrap_or_default();
    lines(document, checks.iter().map(Node::start))
}

fn described(rule: &Rule) -> Json {
    let level = match rule.kind {
        RuleKind::Reading | RuleKind::Schema => "error",
        RuleKind::Advisory => "warning",
    };
    json!({
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.to_text()},
        "defaultConfiguration": {"level": level},
    })
}

impl Outcome {
    /// The findings as SARIF results, as JSON objects separated by commas, and a last result without a rule for
    /// findings that are only counted; empty if there are none.
    ///
    /// path: the file of the document; absolute, or relative to the source root of the log's reader.
    ///
    /// ```
    /// use gatewright_report::{SARIF_FOOT, sarif_head, validate};
    ///
    /// let log = format!("{}{}{SARIF_FOOT}", sarif_head(), validate(b"{}").to_sarif("report.json"));
    /// assert!(log.contains(r#""ruleId":"required""#));
    /// ```
    pub fn to_sarif(&self, path: &str) -> String {
        let uri = uri(path);
        let level = |counts| if counts { "error" } else { "warning" };
        let mut results: Vec<String> =
            self.graded().map(|(finding, counts)| result(finding, level(counts), &uri)).collect();
        if let Some(more) = self.more() {
            results.push(
                json!({
                    "level": level(self.more_counts()),
                    "message": {"text": more},
                    "locations": [{
                        "physicalLocation": {
                            "artifactLocation": {"uri": uri},
                            "region": {"startLine": self.first_line},
                        },
                    }],
                })
                .to_string(),
            );
        }
        results.join(",\n")
    }
}

fn result(finding: &Violation, level: &str, uri: &str) -> String {
    let Violation { pointer, line, column, rule, message, .. } = finding;
    let index = RULES.iter().position(|known| known.name == *rule);
    let mut result = json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": message},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri},
                "region": {"startLine": line, "startColumn": column},
            },
            "logicalLocations": [{"fullyQualifiedName": pointer, "kind": "value"}],
        }],
    });
    if let Some(index) = index {
        result["ruleIndex"] = index.into();
    }
    result.to_string()
}

fn uri(path: &str) -> String {
    let encoded = utf8_percent_encode(path, PATH);
    if path.starts_with('/') { format!("file://{encoded}") } else { encoded.to_string() }
}
