//! The page of a report or of additional checks.

use super::report::{html, html_with_protocols};
use crate::evidence::EvidenceFile;
use crate::validate::{Outcome, Validator};

impl Validator {
    /// The page of a document: of a report, as [`html()`](crate::html) makes it, or of additional checks.
    ///
    /// evidence, protocols: what the page of a report also shows; `protocols` is the document of the additional checks beside it.
    ///
    /// Errors: one of the documents is invalid; the verdict on it says why.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report, Validator};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com").to_json();
    /// let page = Validator::default().html(report.as_bytes(), &[], None).unwrap();
    /// assert!(page.starts_with("<!DOCTYPE html>"));
    /// assert!(Validator::default().html(b"{}", &[], None).is_err());
    /// ```
    pub fn html(
        &self,
        document: &[u8],
        evidence: &[EvidenceFile],
        protocols: Option<&[u8]>,
    ) -> Result<String, Box<Outcome>> {
        if self.is_additional(document) {
            return Ok(self.read_protocols(document)?.to_html());
        }
        let report = self.read(document)?;
        Ok(match protocols {
            Some(protocols) => html_with_protocols(&report, evidence, &self.read_protocols(protocols)?),
            None => html(&report, evidence),
        })
    }
}
