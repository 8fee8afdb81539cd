//! The verdict on one document.

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use crate::finding::Violation;
use crate::model::Report;

/// The verdict on one document.
///
/// ```
/// use gatewright_report::validate;
///
/// let outcome = validate(b"{}");
/// assert!(!outcome.valid && outcome.report.is_none());
/// println!("{}", outcome.summary());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the document is a valid report, or a valid [`ProtocolReport`](crate::ProtocolReport); with `strict`, also whether
    /// it has no advisories.
    pub valid: bool,
    /// Violations of the form of such documents, in document order: the first [`MAX_FINDINGS`](crate::MAX_FINDINGS), unless the
    /// validator has another limit.
    pub violations: Vec<Violation>,
    /// Suspicious content that the section allows, in document order, with the same limit. Empty if the document does
    /// not parse.
    pub advisories: Vec<Violation>,
    /// Number of further violations that are not listed.
    pub more_violations: usize,
    /// Number of further advisories that are not listed.
    pub more_advisories: usize,
    /// The report, if it is one, there are no violations and [`Validator::validate`](crate::Validator::validate) was called.
    pub report: Option<Report>,
    /// Line on which the document starts in its file; see [`Outcome::from_line`].
    pub(crate) first_line: usize,
}

impl Outcome {
    /// Whether there are no violations and no advisories: such a document needs no report.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, validate};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// assert!(validate(report.to_json().as_bytes()).is_clean());
    /// ```
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty() && self.advisories.is_empty()
    }

    /// Shifts the lines of the findings for a file in which the document starts on this line, as in NDJSON.
    ///
    /// ```
    /// let outcome = gatewright_report::validate(b"{}").from_line(7);
    /// assert_eq!(outcome.violations[0].line, 7);
    /// ```
    #[must_use]
    pub fn from_line(mut self, line: usize) -> Self {
        for finding in self.violations.iter_mut().chain(&mut self.advisories) {
            finding.line = finding.line - self.first_line + line;
        }
        self.first_line = line;
        self
    }

    /// All findings, each with whether it makes the document invalid: violations do; advisories do only if the document
    /// is invalid without any violations.
    pub(crate) fn graded(&self) -> impl Iterator<Item = (&Violation, bool)> {
        let advisories_count = self.advisories_count();
        let violations = self.violations.iter().map(|violation| (violation, true));
        violations.chain(self.advisories.iter().map(move |advisory| (advisory, advisories_count)))
    }

    /// Whether a finding that is only counted makes the document invalid, as in [`Self::graded`].
    pub(crate) fn more_counts(&self) -> bool {
        self.more_violations > 0 || self.advisories_count()
    }

    fn advisories_count(&self) -> bool {
        !self.valid && self.violations.is_empty()
    }

    /// Why the document is invalid, on one line: the first violation and the number of others; without violations,
    /// under `strict`, the same for advisories. Empty if the document is valid.
    ///
    /// ```
    /// let outcome = gatewright_report::validate(b"");
    /// assert!(!outcome.summary().is_empty());
    /// ```
    pub fn summary(&self) -> String {
        let (listed, more) = if self.advisories_count() {
            (&self.advisories, self.more_advisories)
        } else {
            (&self.violations, self.more_violations)
        };
        let Some((first, others)) = listed.split_first() else { return String::new() };
        match others.len() + more {
            0 => first.message.clone(),
            more => format!("{} (and {more} more)", first.message),
        }
    }

    /// The number of findings that are only counted, in words: `not listed: 4000 violations, 2 advisories`. `None` if
    /// there is nothing.
    ///
    /// ```
    /// let validator = gatewright_report::Validator::builder().max_findings(1).build();
    /// let more = validator.check(b"{}").more().unwrap();
    /// assert!(more.starts_with("not listed: "));
    /// ```
    pub fn more(&self) -> Option<String> {
        let counts = [
            (self.more_violations, "violation", "violations"),
            (self.more_advisories, "advisory", "advisories"),
        ];
        let words = |(count, one, many): (usize, &str, &str)| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            _ => Some(format!("{count} {many}")),
        };
        let parts: Vec<String> = counts.into_iter().filter_map(words).collect();
        (!parts.is_empty()).then(|| format!("not listed: {}", parts.join(", ")))
    }

    /// The verdict as JSON text, on one line:
    /// `{"valid","violations":[…],"advisories":[…],"more_violations","more_advisories"}`.
    ///
    /// ```
    /// let json = gatewright_report::validate(b"{}").to_json();
    /// assert!(json.starts_with(r#"{"valid":false,"violations":[{"pointer":"","#));
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "strings and numbers always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers serialize")
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut outcome = serializer.serialize_struct("Outcome", 5)?;
        outcome.serialize_field("valid", &self.valid)?;
        outcome.serialize_field("violations", &self.violations)?;
        outcome.serialize_field("advisories", &self.advisories)?;
        outcome.serialize_field("more_violations", &self.more_violations)?;
        outcome.serialize_field("more_advisories", &self.more_advisories)?;
        outcome.end()
    }
}
