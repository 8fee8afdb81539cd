//! Methods of a typed report. The types are generated from the schema of section 2.12.

use crate::words;

pub use crate::generated::{
    AgentMode, Check, CheckError, CheckId, Configuration, Environment, Kit, Layer, OverallStatus, Report,
    Retries, Status, Summary, Usage,
};

impl Check {
    /// Why the check failed or was not run, in one line: category, code and message of the error, or else the reason.
    ///
    /// ```
    /// use gatewright_report::{Check, CheckId};
    ///
    /// let check = Check::skipped(CheckId::ModelsEndpoint, None, "not run");
    /// assert_eq!(check.explanation().as_deref(), Some("not run"));
    /// ```
    pub fn explanation(&self) -> Option<String> {
        match (&self.error, &self.reason) {
            (Some(CheckError { category, code, message, .. }), _) => Some(match code {
                Some(code) => format!("{category} ({code}): {message}"),
                None => format!("{category}: {message}"),
            }),
            (None, Some(reason)) => Some(reason.clone()),
            (None, None) => None,
        }
    }

    /// The explanation in readable words, without the codes of reasons and categories, which are for programs. A code
    /// that the service reported is preserved.
    ///
    /// ```
    /// use gatewright_report::{Check, CheckId};
    ///
    /// let check = Check::skipped(CheckId::AgentCliSmoke, None, "agent_mode: skipped");
    /// assert_eq!(check.in_words().as_deref(), Some("the coding agent runs only with --agent-mode"));
    /// ```
    pub fn in_words(&self) -> Option<String> {
        match (&self.error, &self.reason) {
            (Some(CheckError { category, code, message, .. }), _) => {
                let category = words::of_category(category);
                Some(match code {
                    Some(code) => format!("{category} ({code}): {message}"),
                    None => format!("{category}: {message}"),
                })
            }
            (None, Some(reason)) => Some(words::of_reason(reason).into_owned()),
            (None, None) => None,
        }
    }
}

impl Report {
    /// Address that was tested: endpoint and base path.
    ///
    /// ```
    /// use gatewright_report::{Profile, Report};
    ///
    /// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com/");
    /// assert_eq!(report.address(), "https://gateway.example.com/v1");
    /// ```
    pub fn address(&self) -> String {
        format!("{}{}", self.endpoint.trim_end_matches('/'), self.configuration.base_path)
    }

    /// Whether no check failed.
    ///
    /// ```
    /// use gatewright_report::{OverallStatus, Profile, Report};
    ///
    /// let mut report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
    /// report.overall_status = OverallStatus::Fail;
    /// assert!(!report.passed());
    /// ```
    pub fn passed(&self) -> bool {
        self.overall_status == OverallStatus::Pass
    }
}
