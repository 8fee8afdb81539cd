//! What the simulator uses of a conversation, and its answer.

use std::collections::HashSet;

use crate::client_schema::ClientSchema;

/// Maximum length of a tool name stored with its result, in bytes.
const MAX_NAME_CHARS: usize = 256;
/// Overhead of a tool call in memory and in a response, in bytes, besides its texts.
const CALL: usize = 512;

/// A conversation to answer.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    /// All turns in order.
    pub(crate) turns: Vec<PromptTurn>,
    /// The functions that it may call.
    pub(crate) tools: Vec<FunctionTool>,
    /// Which of them it may or must call.
    pub(crate) tool_choice: SimulatedToolChoice,
    /// Whether several tools may be called in one answer.
    pub(crate) parallel_tool_calls: bool,
    /// The format of a text answer.
    pub(crate) format: ReplyFormat,
    /// Maximum number of tokens of a text answer (2.1). Tool calls are never truncated.
    pub(crate) max_tokens: Option<usize>,
    /// Stop sequences: they end the answer and are not part of it (2.1).
    pub(crate) stop: Vec<String>,
    /// Its input other than text.
    pub(crate) media: MediaCount,
    /// Names of the tools that take text instead of JSON. To the simulator, each is a function with one argument.
    pub(crate) custom_tools: HashSet<String>,
}

/// Input other than text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MediaCount {
    /// Number of images.
    pub(crate) pictures: usize,
    /// Tokens of all media.
    pub(crate) tokens: usize,
}

/// One turn of the conversation.
#[derive(Debug, Clone)]
pub(crate) enum PromptTurn {
    /// A system or developer message.
    Instruction(String),
    /// A message of the user.
    User(String),
    /// An earlier answer or call of the model; only counted as input.
    Assistant(String),
    /// The result of a tool call.
    ToolResult {
        /// Name of the tool, if the conversation has the call.
        name: Option<String>,
        /// Its text.
        output: String,
    },
}

impl PromptTurn {
    /// The result of a tool call. A call may have many results, so each holds only the beginning of a long name.
    pub(crate) fn tool_result(name: Option<&str>, output: String) -> Self {
        let name = name.map(|name| name[..name.floor_char_boundary(MAX_NAME_CHARS)].to_owned());
        Self::ToolResult { name, output }
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Instruction(text) | Self::User(text) | Self::Assistant(text) => text,
            Self::ToolResult { output, .. } => output,
        }
    }
}

/// A function the model may call.
#[derive(Debug, Clone)]
pub(crate) struct FunctionTool {
    /// Name by which it is called.
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
    /// Any text.
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
    /// What it says or calls.
    pub(crate) content: ReplyContent,
    /// Why it ended.
    pub(crate) finish: Finish,
    /// The tokens of prompt and answer.
    pub(crate) usage: ReplyUsage,
}

/// Text or tool calls.
#[derive(Debug, Clone)]
pub(crate) enum ReplyContent {
    /// Text.
    Text(String),
    /// Tool calls.
    ToolCalls(Vec<SimulatedCall>),
}

/// A tool call.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedCall {
    /// Name of the called function.
    pub(crate) name: String,
    /// A JSON document.
    pub(crate) arguments: String,
}

/// Why the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// Complete.
    Stop,
    /// A stop sequence was reached: its index in the prompt.
    StopSequence(usize),
    /// `max_tokens` was reached.
    Length,
    /// It waits for the results of its calls.
    ToolCalls,
}

/// Input and output tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReplyUsage {
    /// Tokens of the prompt.
    pub(crate) input: usize,
    /// Tokens of the answer.
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
    /// Estimated memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        CALL + self.name.len() + self.arguments.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tool_name_is_truncated_in_results() {
        let turn = PromptTurn::tool_result(Some(&"n".repeat(100_000)), "done".to_owned());
        assert!(
            matches!(turn, PromptTurn::ToolResult { name: Some(name), .. } if name.len() == MAX_NAME_CHARS)
        );
    }
}
