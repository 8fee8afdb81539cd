//! The report as typed values. Field names and meanings: section 2.12 of the specification.
//!
//! The types hold what a valid report can hold; whether a document is valid is decided by `validate.rs`.
//! A field that may be absent is an `Option`; one that may be absent or null is an `Option<Option<_>>`, so that
//! a report written out again is the report that was read.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// A compatibility report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the document format: `1.0`.
    pub schema_version: String,
    /// The check kit that made the report.
    pub kit: Kit,
    /// When the report was made, RFC 3339, as written.
    pub generated_at: String,
    /// Absolute URI of the tested service.
    pub endpoint: String,
    /// What the kit was told to do.
    pub configuration: Configuration,
    /// Where the kit ran.
    pub environment: Environment,
    /// One entry per cell of check and model; never empty.
    pub checks: Vec<Check>,
    /// How many checks had which result.
    pub summary: Summary,
    /// `Pass` when no check failed.
    pub overall_status: OverallStatus,
}

/// The check kit that made a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kit {
    /// Name of the kit.
    pub name: String,
    /// Version of the kit; not empty.
    pub version: String,
}

/// What the kit was told to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Path under the endpoint; starts with `/`.
    pub base_path: String,
    /// Time limit of an agent's run, 5000 to 300000 ms.
    pub agent_timeout_ms: u64,
    /// Which models the agent check runs on.
    pub agent_mode: AgentMode,
    /// Whether every check runs on every model.
    pub full: bool,
    /// Models under test, in order; never empty, no id twice.
    pub models: Vec<String>,
    /// How often requests are repeated: never.
    pub retries: Retries,
    /// Time limit of a whole request, 1000 to 120000 ms.
    pub timeout_ms: u64,
}

/// Which models the agent check runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMode {
    /// On none.
    Skipped,
    /// On the first.
    OneModel,
    /// On all.
    AllModels,
}

/// How often requests are repeated; each is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retries {
    /// Requests of the kit.
    pub api: u64,
    /// Requests of the agent.
    pub agent_request: u64,
    /// Streams of the agent.
    pub agent_stream: u64,
}

/// Where the kit ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Processor architecture; not empty.
    pub architecture: String,
    /// Names of the environment variables handed on to the agent.
    pub agent_passthrough_env: Vec<String>,
    /// Version of the agent, if there is one.
    pub agent_version: Option<String>,
    /// Version of the runtime: `v`, digits, anything.
    pub runtime_version: String,
    /// Operating system; not empty.
    pub platform: String,
}

/// Result of one check on one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Which check this is.
    pub id: CheckId,
    /// Whether the API was called or an agent was run.
    pub layer: Layer,
    /// Model under test, if the check is of a particular one.
    pub model: Option<String>,
    /// Result.
    pub status: Status,
    /// Why the check was skipped or failed; not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the check took, in milliseconds. Larger than `u64` reads as `u64::MAX`; so do all counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// HTTP status of the response, 100 to 599.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u64>,
    /// Model id the service reported.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub reported_model: Option<Option<String>>,
    /// Headers of the response, from the list of 2.12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_headers: Option<BTreeMap<String, String>>,
    /// Id of the response, as reported.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Option<String>>,
    /// Tokens used, as reported.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Option<Usage>>,
    /// The output held what was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_verified: Option<bool>,
    /// The reported model is the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_verified: Option<bool>,
    /// The content type is the one the protocol wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type_verified: Option<bool>,
    /// The stream had a completed event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_event: Option<bool>,
    /// The completed event was the stream's last and only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal_completed_event: Option<bool>,
    /// The function call had the name asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_name_verified: Option<bool>,
    /// The function call had the arguments asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_verified: Option<bool>,
    /// Content type of the response.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub content_type: Option<Option<String>>,
    /// Events of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_count: Option<u64>,
    /// Text delta events of the stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_event_count: Option<u64>,
    /// Version of the agent that ran.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Option<String>>,
    /// Exit code of the agent; null when a signal ended it. Outside `i64`, the nearest that fits.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<Option<i64>>,
    /// Signal that ended the agent.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub signal: Option<Option<String>>,
    /// The agent was stopped at its time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<bool>,
    /// The agent did something it was not asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexpected_item_detected: Option<bool>,
    /// What went wrong first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CheckError>,
}

/// The six checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the ids of 2.12")]
pub enum CheckId {
    ModelsEndpoint,
    ModelAccess,
    ResponsesText,
    ResponsesStream,
    ResponsesFunctionTool,
    AgentCliSmoke,
}

/// What a check exercises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The API, by requests of the kit.
    Api,
    /// The API, by an agent's program.
    Agent,
}

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It went as it should.
    Pass,
    /// It did not.
    Fail,
    /// It was not run.
    Skip,
}

/// Result of all checks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverallStatus {
    /// No check failed.
    Pass,
    /// A check failed.
    Fail,
}

/// Tokens a check used; a part the service did not report is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of 2.12")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
}

/// What went wrong first in a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckError {
    /// Kind of failure; not empty.
    pub category: String,
    /// Error code, as reported.
    pub code: Option<String>,
    /// What happened: 1 to 2000 code points.
    pub message: String,
    /// Parameter at fault, as reported.
    pub param: Option<String>,
    /// Error type, as reported.
    #[serde(rename = "type")]
    pub error_type: Option<String>,
}

/// How many checks had which result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of 2.12")]
pub struct Summary {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

/// Reads a field that is there, null or not; an absent one takes its default, `None`.
#[expect(clippy::option_option, reason = "absent, null and a value are three things in 2.12")]
fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}

impl CheckId {
    /// All of them, in the order of 2.12, which is the order a kit runs them in.
    pub const ALL: [Self; 6] = [
        Self::ModelsEndpoint,
        Self::ModelAccess,
        Self::ResponsesText,
        Self::ResponsesStream,
        Self::ResponsesFunctionTool,
        Self::AgentCliSmoke,
    ];

    /// Its id in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ModelsEndpoint => "models_endpoint",
            Self::ModelAccess => "model_access",
            Self::ResponsesText => "responses_text",
            Self::ResponsesStream => "responses_stream",
            Self::ResponsesFunctionTool => "responses_function_tool",
            Self::AgentCliSmoke => "agent_cli_smoke",
        }
    }
}

impl Layer {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Agent => "agent",
        }
    }
}

impl Status {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}

impl OverallStatus {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }
}

impl AgentMode {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::OneModel => "one-model",
            Self::AllModels => "all-models",
        }
    }
}

macro_rules! display_by_name {
    ($($type:ty),*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

display_by_name!(CheckId, Layer, Status, OverallStatus, AgentMode);

impl Check {
    /// What is wrong with the check or why it was not run, in one line: the error's category, code and
    /// message, or else the reason.
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
