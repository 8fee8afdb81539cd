//! The protocols with additional checks.

use gatewright_protocol::conversation::Protocol;
use serde::Deserialize;

/// The name of all protocols together, where options are read from names.
pub(crate) const ALL_PROTOCOLS: &str = "all";

/// A protocol with additional checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbedProtocol {
    /// Chat completions.
    Chat,
    /// Messages.
    Messages,
    /// Native generate-content.
    Native,
}

impl ProbedProtocol {
    /// All of them, in the order of the document.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Messages, Self::Native];

    /// The name in options, in the document, and in the ids of its checks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Native => "native",
        }
    }

    pub(crate) const fn protocol(self) -> Protocol {
        match self {
            Self::Chat => Protocol::Chat,
            Self::Messages => Protocol::Messages,
            Self::Native => Protocol::Native,
        }
    }
}
