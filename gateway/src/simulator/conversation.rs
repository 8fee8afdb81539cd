//! A conversation and its answer, independent of the protocol.

use std::iter::Sum;

use crate::bounds::client_schema::ClientSchema;

/// Maximum length of a tool name stored with its result, in bytes.
const LONGEST_NAME: usize = 256;
/// Overhead of a tool call in memory and in a response, in bytes, besides its texts.
const CALL: usize = 512;

/// A conversation to answer.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) turns: Vec<PromptTurn>,
    pub(crate) tools: Vec<FunctionTool>,
    pub(crate) tool_choice: SimulatedToolChoice,
    /// Whether several tools may be called in one answer.
    pub(crate) parallel_tool_calls: bool,
    pub(crate) format: ReplyFormat,
    /// Maximum number of tokens of a text answer (2.1). Tool calls are never truncated.
    pub(crate) max_tokens: Option<usize>,
    /// Stop sequences: they end the answer and are not part of it (2.1).
    pub(crate) stop: Vec<String>,
    pub(crate) media: MediaCount,
}

/// Input other than text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MediaCount {
    pub(crate) pictures: usize,
    pub(crate) tokens: usize,
}

impl Sum for MediaCount {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            pictures: sum.pictures + one.pictures,
            tokens: sum.tokens + one.tokens,
        })
    }
}

/// One turn of the conversation.
#[derive(Debug, Clone)]
pub(crate) enum PromptTurn {
    /// A system or developer message.
    Instruction(String),
    User(String),
    /// An earlier answer or call of the model; only counted as input.
    Assistant(String),
    /// The summary that replaced compacted turns.
    Summary(String),
    /// The result of a tool call.
    ToolResult {
        name: Option<String>,
        output: String,
    },
}

impl PromptTurn {
    /// The result of a tool call. A call may have many results, so each holds only the beginning of a long name.
    pub(crate) fn tool_result(name: Option<&str>, output: String) -> Self {
        let name = name.map(|name| name[..name.floor_char_boundary(LONGEST_NAME)].to_owned());
        Self::ToolResult { name, output }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Instruction(text) | Self::User(text) | Self::Assistant(text) | Self::Summary(text) => text,
            Self::ToolResult { output, .. } => output,
        }
    }
}

/// A function the model may call.
#[derive(Debug, Clone)]
pub(crate) struct FunctionTool {
    pub(crate) name: String,
    /// JSON Schema of the arguments.
    pub(crate) parameters: ClientSchema,
}

/// The tool choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum SimulatedToolChoice {
    /// The model decides: it calls the tools that the prompt names.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Named(String),
}

/// The format of a text answer.
#[derive(Debug, Clone, Default)]
pub(crate) enum ReplyFormat {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that matches this schema.
    JsonSchema(ClientSchema),
    /// One of the words that this schema allows, without quotes.
    Word(ClientSchema),
}

/// The model's answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) content: ReplyContent,
    pub(crate) finish: Finish,
    pub(crate) usage: ReplyUsage,
}

/// Text or tool calls.
#[derive(Debug, Clone)]
pub(crate) enum ReplyContent {
    Text(String),
    ToolCalls(Vec<SimulatedCall>),
}

/// A tool call.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedCall {
    pub(crate) name: String,
    /// A JSON document.
    pub(crate) arguments: String,
}

/// Why the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Complete, or a stop sequence was reached.
    Stop,
    /// `max_tokens` was reached.
    Length,
    ToolCalls,
}

/// Input and output tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplyUsage {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

impl ReplyContent {
    /// Estimated memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::ToolCalls(calls) => calls.iter().map(SimulatedCall::bytes).sum(),
        }
    }
}

impl SimulatedCall {
    pub(crate) fn bytes(&self) -> usize {
        CALL + self.name.len() + self.arguments.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_not_told_whole_with_each_result() {
        let turn = PromptTurn::tool_result(Some(&"n".repeat(100_000)), "done".to_owned());
        assert!(
            matches!(turn, PromptTurn::ToolResult { name: Some(name), .. } if name.len() == LONGEST_NAME)
        );
    }
}
