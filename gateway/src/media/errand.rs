//! What is left to do for a task, as the store keeps it: enough for another process to go on.

use serde::{Deserialize, Serialize};

use super::wanted::Wanted;
use crate::relay::RemoteRecord;

/// See the module.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Errand {
    pub(super) wanted: Wanted,
    /// Scheme, host and port of the file URL.
    pub(super) public: String,
    /// Who is told when the task has ended.
    pub(super) webhook: Option<String>,
    /// In milliseconds since 1970.
    pub(super) deadline: u64,
    pub(super) maker: Maker,
}

/// Who makes the video.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Maker {
    Simulator { prompt: String },
    Upstream(RemoteRecord),
}
