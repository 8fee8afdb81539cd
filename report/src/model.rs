//! Methods of a typed report. The types are generated from the schema of section 2.12.

pub use crate::generated::{
    AgentMode, Check, CheckError, CheckId, Configuration, Environment, Kit, Layer, OverallStatus, Report,
    Retries, Status, Summary, Usage,
};

impl Check {
    /// Why the check failed or was not run, in one line: category, code and message of the error, or else the reason.
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
}

impl Report {
    /// Address that was tested: endpoint and base path.
    pub fn address(&self) -> String {
        format!("{}{}", self.endpoint.trim_end_matches('/'), self.configuration.base_path)
    }

    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        self.overall_status == OverallStatus::Pass
    }
}
