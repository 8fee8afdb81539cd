//! What the server of an upstream takes. Servers that speak one protocol differ: some know only the older members of it,
//! others only the newer ones.

use schemars::JsonSchema;
use serde::Deserialize;

/// What the server of an upstream takes, where servers of its protocol differ. The default is what most of them take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Where system messages may be, and whether there is a role for developers.
    pub roles: Roles,
    /// The member that limits the tokens of an answer.
    pub token_limit: TokenLimit,
    /// Whether it takes tools whose input is text. If not, they are sent as functions.
    pub custom_tools: bool,
    /// Whether it takes the reasoning of earlier answers.
    pub reasoning_content: bool,
    /// Whether it takes `stream_options`, by which the gateway asks for the usage of a stream.
    pub stream_options: bool,
}

impl Capabilities {
    /// What most servers take.
    pub(crate) const MOST: Self = Self {
        roles: Roles::Any,
        token_limit: TokenLimit::MaxTokens,
        custom_tools: true,
        reasoning_content: true,
        stream_options: true,
    };
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::MOST
    }
}

/// Where the messages of a chat request may hold instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Roles {
    /// Anywhere, with the roles system and developer.
    #[default]
    Any,
    /// In one system message at the beginning.
    SystemFirst,
}

/// The member of a chat request that limits the tokens of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenLimit {
    /// `max_tokens`, which all servers but those of newer models know.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which models that reason want.
    MaxCompletionTokens,
}
