//! Writes a report as JUnit XML, the test result format of CI systems.
//!
//! One suite per column of the report's matrix: the service itself, then each model. A failure's type is the
//! error's category.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::finding::brief;
use crate::matrix::{Matrix, model_name};
use crate::model::{Check, Report, Status};
use gatewright_safe::visible::visible;

/// The report as a JUnit document. Never contains characters that XML 1.0 forbids.
///
/// ```
/// use gatewright_report::{Profile, Report, junit};
///
/// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// assert!(junit(&report).contains("<testsuite "));
/// ```
pub fn junit(report: &Report) -> String {
    let matrix = Matrix::of(report);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&Check> = report.checks.iter().collect();
    writeln!(xml, "<testsuites name=\"{}\" {}>", escaped(&report.kit.name), counts(&all)).expect(WRITES);
    for (column, model) in matrix.columns.iter().enumerate() {
        let cells = matrix.rows.iter().flat_map(|row| &row.cells[column]);
        let checks: Vec<&Check> = cells.map(|(_, check)| *check).collect();
        if checks.is_empty() {
            continue;
        }
        let name = escaped(model_name(*model)).into_owned();
        writeln!(
            xml,
            "  <testsuite name=\"{name}\" {} timestamp=\"{}\">\n    <properties>",
            counts(&checks),
            escaped(&brief(&report.generated_at)),
        )
        .expect(WRITES);
        for (property, value) in [
            ("endpoint", &report.endpoint),
            ("base_path", &report.configuration.base_path),
            ("kit_version", &report.kit.version),
        ] {
            writeln!(xml, "      <property name=\"{property}\" value=\"{}\"/>", escaped(&brief(value)))
                .expect(WRITES);
        }
        xml.push_str("    </properties>\n");
        for check in checks {
            case(&mut xml, check, &name);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

const WRITES: &str = "writing to a string succeeds";

fn case(xml: &mut String, check: &Check, suite: &str) {
    let time = seconds(check.duration_ms.unwrap_or(0));
    write!(xml, "    <testcase name=\"{}\" classname=\"{suite}\" time=\"{time}\"", check.id).expect(WRITES);
    let why = check.in_words().unwrap_or_default();
    let why = escaped(&why);
    match check.status {
        Status::Pass => xml.push_str("/>\n"),
        Status::Skip => {
            writeln!(xml, ">\n      <skipped message=\"{why}\"/>\n    </testcase>").expect(WRITES);
        }
        Status::Fail => {
            let category = check.error.as_ref().map_or("failure", |error| &error.category);
            let category = escaped(category);
            writeln!(
                xml,
                ">\n      <failure type=\"{category}\" message=\"{why}\">{why}</failure>\n    </testcase>"
            )
            .expect(WRITES);
        }
    }
}

fn counts(checks: &[&Check]) -> String {
    let with = |status| checks.iter().filter(|check| check.status == status).count();
    let time = checks.iter().fold(0_u64, |sum, check| sum.saturating_add(check.duration_ms.unwrap_or(0)));
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"{}\"",
        checks.len(),
        with(Status::Fail),
        with(Status::Skip),
        seconds(time),
    )
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Escapes a text for XML text and attributes. Characters that XML 1.0 forbids become visible escapes.
fn escaped(text: &str) -> Cow<'_, str> {
    let shown = visible(text);
    if !shown.contains(['&', '<', '>', '"', '\'']) {
        return shown;
    }
    let mut escaped = String::with_capacity(shown.len() + 16);
    for character in shown.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}
