//! The embedded provider: answers every request offline and the same way each time.
//!
//! What it promises (ours, no section of the specification describes it):
//! - asked to repeat, say or reply with something, it answers with exactly that; a quoted string or a token such as
//!   `COMPAT-1a2b3c` in any other prompt comes back somewhere in the answer; `count to N` counts; else it writes a few
//!   sentences about the prompt's own words;
//! - `max_tokens`, `stop` and the choice's index act as they do at a real provider; a token is a [`tokens`] piece;
//! - forced tool calls come with arguments that fit their schema, and so do JSON answers; left the choice, it calls
//!   the tools that the prompt names;
//! - images and videos are really drawn and encoded;
//! - an answer costs at most its request's [`Budget`], whatever the request holds.

pub(crate) mod budget;
pub(crate) mod client_schema;
mod echo;
mod h264;
pub(crate) mod image;
mod mp4;
mod palette;
mod question;
mod schema;
pub(crate) mod seed;
mod text;
pub(crate) mod tokens;
mod tools;
pub(crate) mod video;

use serde_json::Value;

use self::budget::{Budget, Exceeded};
use self::client_schema::ClientSchema;
use self::question::Question;
use self::text::Essay;

/// Most tokens of a text answer, whatever the request allows.
pub(crate) const LONGEST_ANSWER: usize = 32_768;
/// Most bytes of the user's last turn that are looked at for what to answer.
const LONGEST_QUESTION: usize = 256 * 1024;
/// Longest name of a tool that is told with its result, in bytes.
const LONGEST_NAME: usize = 256;
/// Steps of counting the tokens of a byte of text.
const COUNT: usize = 4;
/// Bytes of a tool call beside its texts: what it takes in memory, and in an answer.
const CALL: usize = 512;

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
    /// Tokens of what is no text, such as images.
    pub(crate) media_tokens: usize,
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
    /// What the tool gave back. A call and its name may have many results: of a long name each tells the beginning.
    pub(crate) fn tool_result(name: Option<&str>, output: String) -> Self {
        let name = name.map(|name| name[..name.floor_char_boundary(LONGEST_NAME)].to_owned());
        Self::ToolResult { name, output }
    }

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
    pub(crate) parameters: ClientSchema,
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
    JsonSchema(ClientSchema),
    /// One of the words that this schema allows, bare.
    Word(ClientSchema),
}

/// What the model answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) content: Content,
    pub(crate) finish: Finish,
    pub(crate) usage: Usage,
}

/// Text, or calls of tools.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Text(String),
    ToolCalls(Vec<ToolCall>),
}

/// One call of a tool.
#[derive(Debug, Clone)]
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

    /// Tokens of the whole prompt, tools and images included.
    pub(crate) fn tokens(&self, budget: &Budget) -> Result<usize, Exceeded> {
        let mut tokens = self.media_tokens;
        for turn in &self.turns {
            tokens += counted(turn.text(), budget)?;
        }
        for tool in &self.tools {
            let parameters = tool.parameters.value().to_string();
            tokens += counted(&tool.name, budget)? + counted(&parameters, budget)?;
        }
        Ok(tokens)
    }
}

/// What an answer is, before it is cut.
enum Draft<'a> {
    /// The same for each choice.
    Settled(Content),
    /// Differs from choice to choice.
    Essay(Essay<'a>),
}

/// Answers a prompt `n` times; each answer differs where the prompt leaves room.
pub(crate) fn replies(prompt: &Prompt, n: usize, budget: &Budget) -> Result<Vec<Reply>, Exceeded> {
    let input = prompt.tokens(budget)?;
    let question = Question::read(prompt.question(), budget)?;
    match draft(prompt, &question, budget)? {
        Draft::Settled(content) => {
            let reply = finished(prompt, content, input, budget)?;
            let mut replies = Vec::new();
            for _ in 1..n {
                budget.make(reply.content.bytes())?;
                replies.push(Reply { content: reply.content.clone(), ..reply });
            }
            replies.push(reply);
            Ok(replies)
        }
        Draft::Essay(essay) => (0..n)
            .map(|choice| {
                let text = essay.write(choice, budget)?;
                let text =
                    if matches!(prompt.format, Format::JsonObject) { text::in_object(text) } else { text };
                finished(prompt, Content::Text(text), input, budget)
            })
            .collect(),
    }
}

/// Answers a prompt once.
pub(crate) fn reply(prompt: &Prompt, budget: &Budget) -> Result<Reply, Exceeded> {
    let mut replies = replies(prompt, 1, budget)?;
    Ok(replies.swap_remove(0))
}

fn draft<'a>(prompt: &Prompt, question: &Question<'a>, budget: &Budget) -> Result<Draft<'a>, Exceeded> {
    let calls = tools::calls(prompt, question, budget)?;
    if !calls.is_empty() {
        return Ok(Draft::Settled(Content::ToolCalls(calls)));
    }
    if let Format::JsonSchema(schema) = &prompt.format {
        let value = schema::fit(schema, question, budget)?;
        return Ok(Draft::Settled(Content::Text(value.to_string())));
    }
    if let Format::Word(schema) = &prompt.format {
        let word = match schema::fit(schema, question, budget)? {
            Value::String(word) => word,
            other => other.to_string(),
        };
        return Ok(Draft::Settled(Content::Text(word)));
    }
    Ok(match text::settled(prompt, question, budget)? {
        Some(text) if matches!(prompt.format, Format::JsonObject) => {
            Draft::Settled(Content::Text(text::in_object(text)))
        }
        Some(text) => Draft::Settled(Content::Text(text)),
        None => Draft::Essay(Essay::about(question, budget)?),
    })
}

/// The reply of a content: ended by the stop sequences and by the bound on tokens (2.1).
fn finished(prompt: &Prompt, content: Content, input: usize, budget: &Budget) -> Result<Reply, Exceeded> {
    let mut text = match content {
        Content::Text(text) => text,
        Content::ToolCalls(calls) => {
            let mut output = 0;
            for call in &calls {
                output += counted(&call.name, budget)? + counted(&call.arguments, budget)?;
            }
            let usage = Usage { input, output };
            return Ok(Reply { content: Content::ToolCalls(calls), finish: Finish::ToolCalls, usage });
        }
    };
    let mut end = text.len();
    for stop in prompt.stop.iter().filter(|stop| !stop.is_empty()) {
        budget.work(text.len() + stop.len())?;
        end = text.find(stop).unwrap_or(end).min(end);
    }
    text.truncate(end);
    let limit = prompt.max_tokens.unwrap_or(LONGEST_ANSWER).min(LONGEST_ANSWER);
    let mut output = counted(&text, budget)?;
    let mut finish = Finish::Stop;
    if output > limit {
        let end = tokens::pieces(&text).take(limit).map(str::len).sum();
        text.truncate(end);
        (output, finish) = (limit, Finish::Length);
    }
    Ok(Reply { content: Content::Text(text), finish, usage: Usage { input, output } })
}

fn counted(text: &str, budget: &Budget) -> Result<usize, Exceeded> {
    budget.work(text.len().saturating_mul(COUNT))?;
    Ok(tokens::count(text))
}

impl Content {
    /// About how much memory it takes.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::ToolCalls(calls) => calls.iter().map(ToolCall::bytes).sum(),
        }
    }
}

impl ToolCall {
    fn bytes(&self) -> usize {
        CALL + self.name.len() + self.arguments.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(question: &str) -> Prompt {
        Prompt { turns: vec![Turn::User(question.to_owned())], ..Prompt::default() }
    }

    #[test]
    fn all_choices_together_have_one_budget() {
        // 128 choices of as much text as a question may hold, each searched for 16 stop sequences.
        let text = format!("Say {}", "xy".repeat(LONGEST_QUESTION / 2));
        let stop = (0..16).map(|number| format!("never {number}")).collect();
        let prompt = Prompt { stop, ..prompt(&text) };
        let budget = Budget::of(80_000_000, 4_000_000);
        let answered = replies(&prompt, 128, &budget).map(|replies| replies.len());
        assert_eq!(answered, Err(Exceeded::Bytes(4_000_000)));
        assert!(budget.worked() < 40_000_000, "{} steps", budget.worked());
        // The search is made once, not once a choice.
        let budget = Budget::new();
        assert_eq!(replies(&prompt, 8, &budget).map(|replies| replies.len()), Ok(8));
        assert!(budget.worked() < 40_000_000, "{} steps", budget.worked());
    }

    #[test]
    fn essays_of_all_choices_differ_and_are_charged() {
        let budget = Budget::new();
        let replies = replies(&prompt("Tell me about rivers"), 3, &budget).expect("within the budget");
        let texts: Vec<&str> = replies
            .iter()
            .map(|reply| match &reply.content {
                Content::Text(text) => text.as_str(),
                Content::ToolCalls(_) => "",
            })
            .collect();
        assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
        assert!(
            budget.made() >= texts.iter().map(|text| text.len() - "     ".len()).sum(),
            "{} bytes",
            budget.made()
        );
    }

    #[test]
    fn many_tools_do_not_read_the_question_again_each() {
        let question = "some word ".repeat(20_000);
        let tool = |number| Tool { name: format!("tool_{number}"), parameters: ClientSchema::default() };
        let spent = |tools: Vec<Tool>| {
            let budget = Budget::of(usize::MAX, usize::MAX);
            let prompt = Prompt { tools, parallel_tool_calls: true, ..prompt(&question) };
            replies(&prompt, 1, &budget).expect("within the budget");
            budget.worked()
        };
        let many = spent((0..2_000).map(tool).collect()) - spent(Vec::new());
        assert!(many < 4_000_000, "{many} steps");
    }

    #[test]
    fn a_long_name_is_not_told_whole_with_each_result() {
        let turn = Turn::tool_result(Some(&"n".repeat(100_000)), "done".to_owned());
        assert!(matches!(turn, Turn::ToolResult { name: Some(name), .. } if name.len() == LONGEST_NAME));
    }
}
