//! The document of the additional checks, on chat completions, messages and native generate-content. It is ours, and
//! accompanies the report of section 2.12, which it doesn't change: `spec/protocols.schema.json` describes it.

use std::fmt::Write as _;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::evidence::Assertion;
use crate::matrix::{duration, participle};
use crate::model::{CheckError, Kit, OverallStatus, Status, Summary};
use crate::words::{of_category, of_reason};
use gatewright_safe::visible::visible;

/// The JSON Schema of the document, as published in `spec/`.
pub(crate) const PROTOCOLS_SCHEMA: &str = include_str!("protocols.schema.json");

/// The results of the additional checks of a run.
///
/// ```
/// use gatewright_report::ProtocolReport;
///
/// /// The protocols that every check passed.
/// fn compatible(document: &ProtocolReport) -> Vec<&str> {
///     document.protocols().into_iter().filter(|(_, passed)| *passed).map(|(name, _)| name).collect()
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolReport {
    /// Version of the form of the document.
    pub schema_version: String,
    /// What made it.
    pub kit: Kit,
    /// When, in RFC 3339.
    pub generated_at: String,
    /// Address of the service, without the base path.
    pub endpoint: String,
    /// Base path of the API; native generate-content is below `/v1beta` instead of `/v1`.
    pub base_path: String,
    /// The models that were tested.
    pub models: Vec<String>,
    /// The results, by protocol, model and check.
    pub checks: Vec<ProtocolCheck>,
    /// How many checks have which result.
    pub summary: Summary,
    /// `pass` if no check failed.
    pub overall_status: OverallStatus,
}

/// The result of an additional check.
///
/// ```
/// use gatewright_report::{ProtocolCheck, Status};
///
/// fn failed(check: &ProtocolCheck) -> bool {
///     check.status == Status::Fail
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolCheck {
    /// The check: the protocol and the kind of request, such as `chat_tool_stream`.
    pub id: String,
    /// The protocol: `chat`, `messages` or `native`.
    pub protocol: String,
    /// The model under test.
    pub model: String,
    /// Its result.
    pub status: Status,
    /// Why it was not run.
    pub reason: Option<String>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Status of the answer.
    pub http_status: Option<u64>,
    /// Why it failed.
    pub error: Option<CheckError>,
    /// The assertions that don't hold, of which `error` is the first.
    pub broken: Vec<Assertion>,
}

impl ProtocolCheck {
    /// Why the check failed or was not run, in readable words.
    ///
    /// ```
    /// fn print(check: &gatewright_report::ProtocolCheck) {
    ///     println!("{}: {}", check.id, check.in_words().unwrap_or_default());
    /// }
    /// ```
    pub fn in_words(&self) -> Option<String> {
        let reason = || self.reason.as_deref().map(|reason| of_reason(reason).into_owned());
        let Some(CheckError { category, code, message, .. }) = &self.error else { return reason() };
        let category = of_category(category);
        Some(match code {
            Some(code) => format!("{category} ({code}): {message}"),
            None => format!("{category}: {message}"),
        })
    }
}

impl ProtocolReport {
    /// The version that this crate writes.
    ///
    /// ```
    /// assert_eq!(gatewright_report::ProtocolReport::VERSION, "1.0");
    /// ```
    pub const VERSION: &str = "1.0";

    /// Whether a document has the members of additional checks, and not those of a report. It may be invalid all the same:
    /// [`Validator::read_protocols`](crate::Validator::read_protocols) tells.
    ///
    /// ```
    /// use gatewright_report::ProtocolReport;
    ///
    /// assert!(ProtocolReport::recognizes(br#"{ "base_path": "/v1", "models": [], "checks": [] }"#));
    /// assert!(!ProtocolReport::recognizes(br#"{ "configuration": {}, "checks": [] }"#));
    /// ```
    pub fn recognizes(document: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct RecognizedMembers {
            base_path: Option<IgnoredAny>,
            models: Option<IgnoredAny>,
            configuration: Option<IgnoredAny>,
        }

        serde_json::from_slice::<RecognizedMembers>(document).is_ok_and(|members| {
            members.base_path.is_some() && members.models.is_some() && members.configuration.is_none()
        })
    }

    /// Whether no check failed.
    ///
    /// ```
    /// fn verdict(document: &gatewright_report::ProtocolReport) -> &'static str {
    ///     if document.passed() { "compatible" } else { "incompatible" }
    /// }
    /// ```
    pub fn passed(&self) -> bool {
        self.overall_status == OverallStatus::Pass
    }

    /// Each protocol, and whether all its checks passed.
    ///
    /// ```
    /// fn speaks_chat(document: &gatewright_report::ProtocolReport) -> bool {
    ///     document.protocols().contains(&("chat", true))
    /// }
    /// ```
    pub fn protocols(&self) -> Vec<(&str, bool)> {
        let mut protocols: Vec<(&str, bool)> = Vec::new();
        for check in &self.checks {
            let passed = check.status == Status::Pass;
            match protocols.iter_mut().find(|(name, _)| *name == check.protocol) {
                Some((_, all)) => *all &= passed,
                None => protocols.push((&check.protocol, passed)),
            }
        }
        protocols
    }

    /// The verdict on one line, without control characters:
    /// `pass  https://gateway.example.com  15 passed, 0 failed, 0 skipped`.
    ///
    /// ```
    /// fn print(document: &gatewright_report::ProtocolReport) {
    ///     println!("{}", document.headline());
    /// }
    /// ```
    pub fn headline(&self) -> String {
        let counts = self.tally().map(|(status, count)| format!("{count} {}", participle(status)));
        format!("{}  {}  {}", self.overall_status, visible(&self.endpoint), counts.join(", "))
    }

    /// The results, counted from the checks, not from the summary.
    pub(crate) fn tally(&self) -> [(Status, usize); 3] {
        [Status::Pass, Status::Fail, Status::Skip]
            .map(|status| (status, self.checks.iter().filter(|check| check.status == status).count()))
    }

    /// The document as JSON text: two spaces per level, and a newline at the end.
    ///
    /// ```
    /// fn write(document: &gatewright_report::ProtocolReport) -> std::io::Result<()> {
    ///     std::fs::write("report.protocols.json", document.to_json())
    /// }
    /// ```
    #[expect(clippy::missing_panics_doc, reason = "strings and numbers always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("strings and numbers serialize") + "\n"
    }

    /// The document as text for a terminal: a line for each check, and below a failed one why. colour: whether to add terminal
    /// escapes; the text contains no other control characters.
    ///
    /// ```
    /// fn show(document: &gatewright_report::ProtocolReport) {
    ///     print!("{}", document.to_text(true));
    /// }
    /// ```
    pub fn to_text(&self, colour: bool) -> String {
        let word = |status| match (status, colour) {
            (Status::Pass, true) => "\x1b[32mpass\x1b[0m",
            (Status::Pass, false) => "pass",
            (Status::Fail, true) => "\x1b[1;31mFAIL\x1b[0m",
            (Status::Fail, false) => "FAIL",
            (Status::Skip, _) => "skip",
        };
        let mut text = String::from("Additional checks, which the report does not contain:\n");
        let width = self.checks.iter().map(|check| check.id.len()).max().unwrap_or_default();
        for check in &self.checks {
            let time = check.duration_ms.map(duration).unwrap_or_default();
            let (id, model) = (visible(&check.id), visible(&check.model));
            let line = format!("{}  {id:width$}  {model}  {time}", word(check.status));
            writeln!(text, "{}", line.trim_end()).expect("writing to a string succeeds");
            if let Some(why) = check.in_words() {
                writeln!(text, "      {}", visible(&why)).expect("writing to a string succeeds");
            }
        }
        text
    }
}
