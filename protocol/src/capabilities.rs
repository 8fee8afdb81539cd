//! What an upstream's server supports. Servers of one protocol differ: some know only its older members, others only the
//! newer ones.

use schemars::JsonSchema;
use serde::Deserialize;

/// What an upstream's server supports, as far as servers of its protocol differ. The default is what most of them
/// support.
#[expect(clippy::struct_excessive_bools, reason = "servers differ in each of these")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Where system messages may be, and whether there is a role for developers.
    pub roles: Roles,
    /// The member that limits the tokens of a response.
    pub token_limit: TokenLimit,
    /// Whether it supports tools with text input. If not, they are sent as functions.
    pub custom_tools: bool,
    /// Which ids of tool calls it accepts.
    pub call_ids: CallIdForm,
    /// Whether the user may speak directly after the result of a tool.
    pub user_after_tool: bool,
    /// Whether it accepts the reasoning of earlier responses.
    pub reasoning_content: bool,
    /// Whether it supports `stream_options`, with which the gateway requests the usage of a stream.
    pub stream_options: bool,
    /// Whether it has `/files` and `/batches`.
    pub files: bool,
    /// Whether clients may name objects in buckets (`s3://`), which the server reads with the operator's rights (converse).
    pub bucket_urls: bool,
}

impl Capabilities {
    /// What most servers support.
    pub const MOST: Self = Self {
        roles: Roles::Any,
        token_limit: TokenLimit::MaxTokens,
        custom_tools: true,
        call_ids: CallIdForm::Any,
        user_after_tool: true,
        reasoning_content: true,
        stream_options: true,
        files: false,
        bucket_urls: false,
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
    /// `max_tokens`, which all servers support except those of newer models.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which reasoning models require.
    MaxCompletionTokens,
}

/// The ids of tool calls in a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallIdForm {
    /// As clients and other servers write them.
    #[default]
    Any,
    /// Nine ASCII letters and digits.
    NineAlphanumeric,
}

/// How the messages protocol tells a model to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Thinking {
    /// With a token budget; an effort is translated into one.
    #[default]
    Budget,
    /// With only an effort; a token budget is translated into one. For models that decide themselves how much they think.
    Adaptive,
}
