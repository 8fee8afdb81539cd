//! GitHub Actions workflow commands: lines that the runner shows as annotations.
//!
//! Annotates the failed checks of a report, and the violations of an invalid document.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::finding::Violation;
use crate::matrix::model_name;
use crate::model::{Report, Status};
use crate::protocols::ProtocolReport;
use crate::validate::{Outcome, Validator};
use gatewright_safe::visible::visible;

const WRITES: &str = "writing to a string succeeds";

/// One `::error` line per failed check; empty if none failed.
///
/// ```
/// use gatewright_report::{Profile, Report, Status, annotations};
///
/// let mut report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// report.checks[0].status = Status::Fail;
/// assert!(annotations(&report).starts_with("::error title=models_endpoint"));
/// ```
pub fn annotations(report: &Report) -> String {
    let mut text = String::new();
    for check in report.checks.iter().filter(|check| check.status == Status::Fail) {
        let title = format!("{} {}", check.id, model_name(check.model.as_deref()));
        failed(&mut text, &title, check.in_words());
    }
    text
}

impl ProtocolReport {
    /// One `::error` line per failed check; empty if none failed.
    ///
    /// ```
    /// fn annotate(document: &gatewright_report::ProtocolReport) {
    ///     print!("{}", document.to_annotations());
    /// }
    /// ```
    pub fn to_annotations(&self) -> String {
        let mut text = String::new();
        for check in self.checks.iter().filter(|check| check.status == Status::Fail) {
            failed(&mut text, &format!("{} {}", check.id, check.model), check.in_words());
        }
        text
    }
}

fn failed(text: &mut String, title: &str, why: Option<String>) {
    let why = why.unwrap_or_default();
    writeln!(text, "::error title={}::{}", property(title), message(&why)).expect(WRITES);
}

impl Validator {
    /// One `::error` line per failed check of a document: of a report, or of additional checks.
    ///
    /// Errors: the document is invalid; the verdict says why.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com").to_json();
    /// assert_eq!(Validator::default().annotations(report.as_bytes()).unwrap(), "");
    /// ```
    pub fn annotations(&self, document: &[u8]) -> Result<String, Box<Outcome>> {
        if self.is_additional(document) {
            return Ok(self.read_protocols(document)?.to_annotations());
        }
        Ok(annotations(&self.read(document)?))
    }
}

impl Outcome {
    /// One line per finding, with its location in the file `name`, and a last line for findings that are only counted:
    /// `::error` for findings that make the document invalid, `::warning` for the rest.
    ///
    /// ```
    /// let outcome = gatewright_report::validate(b"{}");
    /// assert!(outcome.to_annotations("report.json").starts_with("::error file=report.json,line=1,col=1,"));
    /// ```
    pub fn to_annotations(&self, name: &str) -> String {
        let mut text = String::new();
        for (finding, counts) in self.graded() {
            let level = if counts { "error" } else { "warning" };
            let Violation { line, column, rule, message: what, .. } = finding;
            writeln!(
                text,
                "::{level} file={},line={line},col={column},title={rule}::{}",
                property(name),
                message(what),
            )
            .expect(WRITES);
        }
        if let Some(more) = self.more() {
            let level = if self.more_counts() { "error" } else { "warning" };
            writeln!(text, "::{level} file={},line={}::{more}", property(name), self.first_line)
                .expect(WRITES);
        }
        text
    }
}

/// The text of a command, always on one line.
fn message(text: &str) -> String {
    // `visible` has already replaced the line breaks; a percent sign would start an escape.
    visible(text).replace('%', "%25")
}

/// A property of a command ends at a comma or a colon.
fn property(text: &str) -> Cow<'_, str> {
    let text = message(text);
    Cow::Owned(text.replace(':', "%3A").replace(',', "%2C"))
}
