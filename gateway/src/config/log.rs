//! The log and the traces, as set in a configuration file. The program sets them up, not the gateway.

use schemars::JsonSchema;
use serde::Deserialize;

/// The log on standard error, and the traces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Log {
    /// What it logs.
    pub level: LogLevel,
    /// Its format.
    pub format: LogFormat,
    /// Address of a trace collector.
    pub otlp_endpoint: Option<String>,
}

/// What the log tells; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogLevel {
    /// What failed.
    Error,
    /// What needs someone's attention.
    #[default]
    Warn,
    /// A line for each request.
    Info,
    /// What happens to connections.
    Debug,
    /// Everything.
    Trace,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}
