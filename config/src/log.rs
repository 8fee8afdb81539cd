//! The log and the traces, as set in a configuration file. The program sets them up, not the gateway.

use schemars::JsonSchema;
use serde::Deserialize;

/// The log on standard error, and the traces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Log {
    /// What it logs.
    pub level: LogLevel,
    /// Its format.
    pub format: LogFormat,
    /// Address of a trace collector.
    pub otlp_endpoint: Option<String>,
}

/// Level of the log; each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Problems that need attention.
    #[default]
    Warn,
    /// A line for each request.
    Info,
    /// Connection events.
    Debug,
    /// Everything.
    Trace,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}
