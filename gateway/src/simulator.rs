//! The embedded provider: answers every request offline and deterministically.
//!
//! Its behavior (ours; no section of the specification describes it):
//! - if the prompt asks it to repeat, say or reply with something, it answers with exactly that; it echoes a quoted
//!   string or a token such as `COMPAT-1a2b3c` from any other prompt; it counts for `count to N`; otherwise it writes a
//!   few sentences about the words of the prompt;
//! - `max_tokens`, `stop` and the index of the choice work as with a real provider; a token is as [`tokens`] defines it;
//! - the arguments of forced tool calls match their schema, and so do JSON answers; if it may choose, it calls the tools
//!   that the prompt names; a call that the prompt writes out, such as `get_weather({"city": "Paris"})`, is made exactly
//!   as written;
//! - it really draws images and encodes videos;
//! - an answer never costs more than the [`Budget`] of its request.

pub(crate) mod conversation;
mod echo;
mod h264;
pub(crate) mod image;
mod mp4;
mod palette;
mod prompt;
pub(crate) mod protocols;
mod question;
mod schema;
pub(crate) mod seed;
mod text;
pub(crate) mod tokens;
mod tools;
pub(crate) mod video;

use serde_json::Value;

use self::question::Question;
use self::text::Essay;
use self::tokens::counted;
use crate::bounds::budget::{Budget, BudgetExceeded};
use crate::models::LONGEST_ANSWER;
use crate::simulator::conversation::{Finish, Prompt, Reply, ReplyContent, ReplyFormat, ReplyUsage};

/// The content of an answer, before truncation.
enum Draft<'a> {
    /// The same for each choice.
    Settled(ReplyContent),
    /// Different for each choice.
    Essay(Essay<'a>),
}

/// Answers a prompt `n` times; the answers differ unless the prompt determines them.
pub(crate) fn replies(prompt: &Prompt, n: usize, budget: &Budget) -> Result<Vec<Reply>, BudgetExceeded> {
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

/// Answers a prompt once.
pub(crate) fn reply(prompt: &Prompt, budget: &Budget) -> Result<Reply, BudgetExceeded> {
    let mut replies = replies(prompt, 1, budget)?;
    Ok(replies.swap_remove(0))
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
    Ok(Reply { content: ReplyContent::Text(text), finish, usage: ReplyUsage { input, output } })
}

#[cfg(test)]
mod tests {
    use super::prompt::LONGEST_QUESTION;
    use super::*;
    use crate::bounds::client_schema::ClientSchema;
    use crate::simulator::conversation::{FunctionTool, PromptTurn};

    fn prompt(question: &str) -> Prompt {
        Prompt { turns: vec![PromptTurn::User(question.to_owned())], ..Prompt::default() }
    }

    #[test]
    fn all_choices_together_have_one_budget() {
        // 128 choices with the longest text of a question, each searched for 16 stop sequences.
        let text = format!("Say {}", "xy".repeat(LONGEST_QUESTION / 2));
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
    fn essays_of_all_choices_differ_and_are_charged() {
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
    fn many_tools_do_not_read_the_question_again_each() {
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
        match reply(&prompt(question), &Budget::new()).expect("within the budget").content {
            ReplyContent::Text(text) => text,
            ReplyContent::ToolCalls(calls) => panic!("{calls:?}"),
        }
    }

    #[test]
    fn equal_prompts_get_equal_answers_and_others_do_not() {
        assert_eq!(ask("Why is the sky blue?"), ask("Why is the sky blue?"));
        assert_ne!(ask("Why is the sky blue?"), ask("Why is grass green?"));
    }

    #[test]
    fn quoted_strings_and_tokens_come_back() {
        let text = ask("What do \"blue moon\" and COMPAT-77aa12 mean?");
        assert!(text.contains("blue moon") && text.contains("COMPAT-77aa12"), "{text}");
    }

    #[test]
    fn counting_counts() {
        assert_eq!(ask("Count from 3 to 6."), "3, 4, 5, 6");
        assert_eq!(ask("Please count to 3"), "1, 2, 3");
    }
}
