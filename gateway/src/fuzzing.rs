//! What the fuzz targets call. No part of the API: it changes without notice.

use serde_json::Value;

use crate::simulator::budget::{Budget, Exceeded};
use crate::simulator::client_schema::ClientSchema;
use crate::simulator::{self, Content, Format, Prompt, Tool, ToolChoice, Turn};

/// What answering took.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Steps, at most those allowed.
    pub steps: usize,
    /// Bytes, at most those allowed.
    pub bytes: usize,
    /// Bytes of the texts and arguments of the answers; none if the budget did not suffice.
    pub answered: Option<usize>,
}

/// Lets the simulator answer a question in the form of a client's schema, and call a tool that has it, `choices` times
/// with this budget each. None if the schema is out of bounds.
pub fn answer_by_schema(
    schema: &Value,
    question: &str,
    choices: usize,
    (steps, bytes): (usize, usize),
) -> Option<[Spent; 2]> {
    let schema = ClientSchema::read(schema, "").ok()?;
    let turns = vec![Turn::User(question.to_owned())];
    let tool = Tool { name: "tool".to_owned(), parameters: schema.clone() };
    let in_form = Prompt { turns: turns.clone(), format: Format::JsonSchema(schema), ..Prompt::default() };
    let calling = Prompt { turns, tools: vec![tool], tool_choice: ToolChoice::Required, ..Prompt::default() };
    Some([in_form, calling].map(|prompt| {
        let budget = Budget::of(steps, bytes);
        let answered = simulator::replies(&prompt, choices, &budget);
        let answered = match answered {
            Ok(replies) => Some(replies.iter().map(|reply| length(&reply.content)).sum()),
            Err(Exceeded::Steps(_) | Exceeded::Bytes(_)) => None,
            Err(Exceeded::ClientGone) => unreachable!("nobody left"),
        };
        Spent { steps: budget.worked(), bytes: budget.made(), answered }
    }))
}

fn length(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::ToolCalls(calls) => calls.iter().map(|call| call.arguments.len()).sum(),
    }
}
