//! The embedded provider: answers every request offline and the same way each time.
//!
//! What it promises (ours, no section of the specification describes it):
//! - asked to repeat, say or reply with something, it answers with exactly that; a quoted string or a token such as
//!   `COMPAT-1a2b3c` in any other prompt comes back somewhere in the answer; `count to N` counts; else it writes a few
//!   sentences about the prompt's own words;
//! - `max_tokens`, `stop` and the choice's index act as they do at a real provider; a token is a [`tokens`] piece;
//! - forced tool calls come with arguments that fit their schema, and so do JSON answers; left the choice, it calls
//!   the tools that the prompt names;
//! - images and videos are really drawn and encoded.

pub(crate) mod echo;
mod h264;
pub(crate) mod image;
mod mp4;
mod palette;
pub(crate) mod schema;
mod seed;
pub(crate) mod text;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod video;

use serde_json::Value;

/// Most tokens of a text answer, whatever the request allows.
pub(crate) const LONGEST_ANSWER: usize = 32_768;
/// Most bytes of the user's last turn that are looked at for what to answer.
const LONGEST_QUESTION: usize = 256 * 1024;

/// A conversation to answer, whatever protocol it came by.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    pub(crate) turns: Vec<Turn>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) tool_choice: ToolChoice,
    /// Whether several tools may be called in one answer.
    pub(crate) parallel_tool_calls: bool,
    pub(crate) format: Format,
    /// Upper bound on the tokens of a text answer (2.1). Tool calls are never cut.
    pub(crate) max_tokens: Option<usize>,
    /// Texts that end the answer and are not part of it (2.1).
    pub(crate) stop: Vec<String>,
}

/// One turn of the conversation.
#[derive(Debug, Clone)]
pub(crate) enum Turn {
    /// From the system or the developer.
    Instruction(String),
    User(String),
    /// What the model said or called before; counts as input, nothing else.
    Assistant(String),
    /// What a compaction kept of turns that are gone.
    Summary(String),
    /// What a tool that the model called gave back.
    ToolResult {
        name: Option<String>,
        output: String,
    },
}

impl Turn {
    fn text(&self) -> &str {
        match self {
            Self::Instruction(text) | Self::User(text) | Self::Assistant(text) | Self::Summary(text) => text,
            Self::ToolResult { output, .. } => output,
        }
    }
}

/// A function the model may call.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// JSON Schema of the arguments.
    pub(crate) parameters: Value,
}

/// Which tools are to be called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ToolChoice {
    /// The model decides: the tools the prompt names.
    #[default]
    Auto,
    /// No tool.
    None,
    /// At least one tool.
    Required,
    /// This tool.
    Named(String),
}

/// The form of a text answer.
#[derive(Debug, Clone, Default)]
pub(crate) enum Format {
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that fits this schema.
    JsonSchema(Value),
}

/// What the model answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) content: Content,
    pub(crate) finish: Finish,
    pub(crate) usage: Usage,
}

/// Text, or calls of tools.
#[derive(Debug)]
pub(crate) enum Content {
    Text(String),
    ToolCalls(Vec<ToolCall>),
}

/// One call of a tool.
#[derive(Debug)]
pub(crate) struct ToolCall {
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

/// Tokens read and written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) input: usize,
    pub(crate) output: usize,
}

impl Prompt {
    /// The last thing the user said; empty when the user said nothing.
    pub(crate) fn question(&self) -> &str {
        let user = |turn: &Turn| matches!(turn, Turn::User(_));
        let question = self.turns.iter().rfind(|turn| user(turn)).map_or("", Turn::text);
        &question[..question.floor_char_boundary(LONGEST_QUESTION)]
    }

    /// Results of tools that came after the last thing the user said.
    fn fresh_results(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let start = self.turns.iter().rposition(|turn| matches!(turn, Turn::User(_))).map_or(0, |at| at + 1);
        self.turns[start..].iter().filter_map(|turn| match turn {
            Turn::ToolResult { name, output } => Some((name.as_deref(), output.as_str())),
            _ => None,
        })
    }

    /// Tokens of the whole prompt, tools included.
    pub(crate) fn tokens(&self) -> usize {
        let turns: usize = self.turns.iter().map(|turn| tokens::count(turn.text())).sum();
        let tools: usize = self
            .tools
            .iter()
            .map(|tool| tokens::count(&tool.name) + tokens::count(&tool.parameters.to_string()))
            .sum();
        turns + tools
    }
}

/// Answers a prompt `n` times; each answer differs where the prompt leaves room.
pub(crate) fn replies(prompt: &Prompt, n: usize) -> Vec<Reply> {
    let input = prompt.tokens();
    (0..n).map(|choice| one_reply(prompt, choice, input)).collect()
}

/// Answers a prompt once.
pub(crate) fn reply(prompt: &Prompt) -> Reply {
    one_reply(prompt, 0, prompt.tokens())
}

fn one_reply(prompt: &Prompt, choice: usize, input: usize) -> Reply {
    let calls = tools::calls(prompt);
    if !calls.is_empty() {
        let tokens = |call: &ToolCall| tokens::count(&call.name) + tokens::count(&call.arguments);
        let usage = Usage { input, output: calls.iter().map(tokens).sum() };
        return Reply { content: Content::ToolCalls(calls), finish: Finish::ToolCalls, usage };
    }
    let mut text = match &prompt.format {
        Format::Text => text::answer(prompt, choice),
        Format::JsonObject => text::json_object(prompt, choice),
        Format::JsonSchema(schema) => schema::fit(schema, prompt.question()).to_string(),
    };
    let stops = prompt.stop.iter().filter(|stop| !stop.is_empty());
    if let Some(end) = stops.filter_map(|stop| text.find(stop)).min() {
        text.truncate(end);
    }
    let limit = prompt.max_tokens.unwrap_or(LONGEST_ANSWER).min(LONGEST_ANSWER);
    let finish = if tokens::count(&text) > limit {
        let end = tokens::pieces(&text).take(limit).map(str::len).sum();
        text.truncate(end);
        Finish::Length
    } else {
        Finish::Stop
    };
    let usage = Usage { input, output: tokens::count(&text) };
    Reply { content: Content::Text(text), finish, usage }
}
