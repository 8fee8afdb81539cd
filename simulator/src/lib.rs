//! The simulated provider: answers conversations offline and deterministically, draws images and encodes videos. It is
//! the part of the gateway that stands in for a provider: it reads the neutral conversation of `gatewright-protocol`, answers
//! in the neutral form, and knows nothing of wire protocols, HTTP, keys or configuration.
//!
//! Its behavior (ours; no section of the specification describes it):
//! - if the prompt asks it to repeat, say or reply with something, it answers with exactly that; it echoes a quoted
//!   string or a token such as `COMPAT-1a2b3c` from any other prompt; it counts for `count to N`; otherwise it writes a
//!   few sentences about the words of the prompt;
//! - `max_tokens`, `stop` and the index of the choice work as with a real provider; a token is as [`tokens`] defines it;
//! - the arguments of forced tool calls match their schema, and so do JSON answers; if it may choose, it calls the tools
//!   that the prompt names; a call that the prompt writes out, such as `get_weather({"city": "Paris"})`, is made exactly
//!   as written;
//! - vectors of texts that share words point in similar directions, and documents rank by the words of the query that they have;
//! - verdicts about content depend on a short list of words;
//! - speech is a tone, whose pitch depends on the voice, and a transcript is a few words that depend on the bytes of the file;
//! - it really draws images and encodes videos;
//! - an answer never costs more than the [`Budget`] of its request.
//!
//! The crate does no I/O. It has no stable interface: it is a part of the crate `gatewright-gateway`.

mod answer;
pub mod budget;
pub mod client_schema;
mod conversation;
mod echo;
pub mod embedding;
mod h264;
pub mod image;
mod logprobs;
pub mod moderation;
mod mp4;
mod palette;
mod prompt;
mod question;
pub mod ranking;
mod reading;
mod schema;
mod seed;
pub mod speech;
mod text;
pub mod tokens;
mod tools;
pub mod transcript;
pub mod video;

use gatewright_protocol::conversation::{Answer, Choice, Conversation, JsonPointer, Part, PartKind};
use serde_json::Value;

pub use self::answer::SimulatedAnswer;
use self::budget::{Budget, BudgetExceeded};
use self::client_schema::OutOfBounds;
use self::conversation::{Finish, Prompt, PromptTurn, Reply, ReplyContent, ReplyFormat, ReplyUsage};
use self::logprobs::Logprobs;
use self::question::Question;
use self::text::Essay;
use self::tokens::counted;

/// Maximum number of tokens of a text answer, whatever the request allows.
pub const MAX_ANSWER_TOKENS: usize = 32_768;
/// Maximum length of a summary, in characters.
const MAX_SUMMARY: usize = 4_000;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It would cost too much, or it is no longer needed.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// A schema of the client exceeds the limits.
    #[error(transparent)]
    Schema(#[from] OutOfBounds),
    /// Members of the request contradict each other, or say what the simulator doesn't know.
    #[error("{message}")]
    Request {
        /// What is wrong, and how to change it.
        message: String,
        /// Where the client wrote it.
        at: JsonPointer,
    },
}

/// Answers a conversation. Errors: its tools contradict its tool choice, or the budget is too small.
pub fn answer(conversation: Conversation, budget: &Budget) -> Result<SimulatedAnswer, Refusal> {
    let choices = conversation.choices.as_ref().map_or(1, |choices| choices.value);
    let logprobs = conversation.logprobs.as_ref().map(|top| Logprobs::new(top.value));
    let tier = conversation.service_tier.as_ref().map(|tier| served(&tier.value).to_owned());
    let prompt = Prompt::read(conversation)?;
    let replies = replies(&prompt, usize::try_from(choices).unwrap_or(usize::MAX), budget)?;
    let answer = SimulatedAnswer::new(replies, &prompt, logprobs, tier);
    answer.charge_logprobs(1, budget)?;
    Ok(answer)
}

/// Summarizes a conversation: the user's texts. Errors: as [`answer()`].
pub fn summary(conversation: Conversation, budget: &Budget) -> Result<Answer, Refusal> {
    let prompt = Prompt::read(conversation)?;
    let user_texts = prompt.turns.iter().filter_map(|turn| match turn {
        PromptTurn::User(text) => Some(text.as_str()),
        _ => None,
    });
    let text: String = user_texts.collect::<Vec<_>>().join("\n").chars().take(MAX_SUMMARY).collect();
    let usage = answer::usage(prompt.tokens(budget)?, tokens::count(&text));
    let part = Part { at: "".into(), kind: PartKind::Text(text), cache: None };
    let choice = Choice { parts: vec![part], ..Choice::default() };
    Ok(Answer { source: answer::SOURCE, choices: vec![choice], usage: Some(usage), ..Answer::default() })
}

/// Number of tokens of a conversation, including tools and media. Errors: as [`answer()`].
pub fn count_tokens(conversation: Conversation, budget: &Budget) -> Result<usize, Refusal> {
    Ok(Prompt::read(conversation)?.tokens(budget)?)
}

/// The tier that serves a request: the simulator treats all tiers alike, and `auto` becomes `default` (ours).
fn served(tier: &str) -> &str {
    if tier == "auto" { "default" } else { tier }
}

/// The content of an answer, before truncation.
enum Draft<'a> {
    /// The same for each choice.
    Settled(ReplyContent),
    /// Different for each choice.
    Essay(Essay<'a>),
}

/// Answers a prompt `n` times; the answers differ unless the prompt determines them.
fn replies(prompt: &Prompt, n: usize, budget: &Budget) -> Result<Vec<Reply>, BudgetExceeded> {
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
                let text = if matches!(prompt.format, ReplyFormat::JsonObject) {
                    text::in_object(text)
                } else {
                    text
                };
                finished(prompt, ReplyContent::Text(text), input, budget)
            })
            .collect(),
    }
}

fn draft<'a>(prompt: &Prompt, question: &Question<'a>, budget: &Budget) -> Result<Draft<'a>, BudgetExceeded> {
    let calls = tools::calls(prompt, question, budget)?;
    if !calls.is_empty() {
        return Ok(Draft::Settled(ReplyContent::ToolCalls(calls)));
    }
    if let ReplyFormat::JsonSchema(schema) = &prompt.format {
        let value = schema::fit(schema, question, budget)?;
        return Ok(Draft::Settled(ReplyContent::Text(value.to_string())));
    }
    if let ReplyFormat::Word(schema) = &prompt.format {
        let word = match schema::fit(schema, question, budget)? {
            Value::String(word) => word,
            other => other.to_string(),
        };
        return Ok(Draft::Settled(ReplyContent::Text(word)));
    }
    Ok(match text::settled(prompt, question, budget)? {
        Some(text) if matches!(prompt.format, ReplyFormat::JsonObject) => {
            Draft::Settled(ReplyContent::Text(text::in_object(text)))
        }
        Some(text) => Draft::Settled(ReplyContent::Text(text)),
        None => Draft::Essay(Essay::about(question, budget)?),
    })
}

/// Turns content into a reply: truncates it at the stop sequences and at the token limit (2.1).
fn finished(
    prompt: &Prompt,
    content: ReplyContent,
    input: usize,
    budget: &Budget,
) -> Result<Reply, BudgetExceeded> {
    let mut text = match content {
        ReplyContent::Text(text) => text,
        ReplyContent::ToolCalls(calls) => {
            let mut output = 0;
            for call in &calls {
                output += counted(&call.name, budget)? + counted(&call.arguments, budget)?;
            }
            let usage = ReplyUsage { input, output };
            return Ok(Reply { content: ReplyContent::ToolCalls(calls), finish: Finish::ToolCalls, usage });
        }
    };
    let (mut end, mut finish) = (text.len(), Finish::Stop);
    for (index, stop) in prompt.stop.iter().enumerate().filter(|(_, stop)| !stop.is_empty()) {
        budget.work(text.len() + stop.len())?;
        if let Some(at) = text.find(stop).filter(|at| *at < end) {
            (end, finish) = (at, Finish::StopSequence(index));
        }
    }
    text.truncate(end);
    let limit = prompt.max_tokens.unwrap_or(MAX_ANSWER_TOKENS).min(MAX_ANSWER_TOKENS);
    let mut output = counted(&text, budget)?;
    if output > limit {
        let end = tokens::pieces(&text).take(limit).map(str::len).sum();
        text.truncate(end);
        (output, finish) = (limit, Finish::Length);
    }
    Ok(Reply { content: ReplyContent::Text(text), finish, usage: ReplyUsage { input, output } })
}

#[cfg(test)]
mod tests {
    use super::prompt::MAX_QUESTION_BYTES;
    use super::*;
    use crate::client_schema::ClientSchema;
    use crate::conversation::{FunctionTool, PromptTurn};

    fn prompt(question: &str) -> Prompt {
        Prompt { turns: vec![PromptTurn::User(question.to_owned())], ..Prompt::default() }
    }

    #[test]
    fn all_choices_share_one_budget() {
        // 128 choices with the longest text of a question, each searched for 16 stop sequences.
        let text = format!("Say {}", "xy".repeat(MAX_QUESTION_BYTES / 2));
        let stop = (0..16).map(|number| format!("never {number}")).collect();
        let prompt = Prompt { stop, ..prompt(&text) };
        let budget = Budget::of(80_000_000, 4_000_000);
        let answered = replies(&prompt, 128, &budget).map(|replies| replies.len());
        assert_eq!(answered, Err(BudgetExceeded::Bytes(4_000_000)));
        assert!(budget.worked() < 40_000_000, "{} steps", budget.worked());
        // The search runs once, not once per choice.
        let budget = Budget::new();
        assert_eq!(replies(&prompt, 8, &budget).map(|replies| replies.len()), Ok(8));
        assert!(budget.worked() < 40_000_000, "{} steps", budget.worked());
    }

    #[test]
    fn essays_differ_per_choice_and_are_charged() {
        let budget = Budget::new();
        let replies = replies(&prompt("Tell me about rivers"), 3, &budget).expect("within the budget");
        let texts: Vec<&str> = replies
            .iter()
            .map(|reply| match &reply.content {
                ReplyContent::Text(text) => text.as_str(),
                ReplyContent::ToolCalls(_) => "",
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
    fn many_tools_do_not_rescan_the_question() {
        let question = "some word ".repeat(20_000);
        let tool =
            |number| FunctionTool { name: format!("tool_{number}"), parameters: ClientSchema::default() };
        let spent = |tools: Vec<FunctionTool>| {
            let budget = Budget::of(usize::MAX, usize::MAX);
            let prompt = Prompt { tools, parallel_tool_calls: true, ..prompt(&question) };
            replies(&prompt, 1, &budget).expect("within the budget");
            budget.worked()
        };
        let many = spent((0..2_000).map(tool).collect()) - spent(Vec::new());
        assert!(many < 4_000_000, "{many} steps");
    }

    fn ask(question: &str) -> String {
        let mut replies = replies(&prompt(question), 1, &Budget::new()).expect("within the budget");
        match replies.swap_remove(0).content {
            ReplyContent::Text(text) => text,
            ReplyContent::ToolCalls(calls) => panic!("{calls:?}"),
        }
    }

    #[test]
    fn equal_prompts_get_equal_answers() {
        assert_eq!(ask("Why is the sky blue?"), ask("Why is the sky blue?"));
        assert_ne!(ask("Why is the sky blue?"), ask("Why is grass green?"));
    }

    #[test]
    fn quoted_strings_and_tokens_are_echoed() {
        let text = ask("What do \"blue moon\" and COMPAT-77aa12 mean?");
        assert!(text.contains("blue moon") && text.contains("COMPAT-77aa12"), "{text}");
    }

    #[test]
    fn count_prompt_is_answered_with_numbers() {
        assert_eq!(ask("Count from 3 to 6."), "3, 4, 5, 6");
        assert_eq!(ask("Please count to 3"), "1, 2, 3");
    }
}
