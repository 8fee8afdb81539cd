//! Entry points for the fuzz targets. Not part of the API; they change without notice.

use serde_json::Value;

use crate::bounds::budget::{Budget, Exceeded};
use crate::bounds::client_schema::ClientSchema;
use crate::conversation::{Content, Format, Prompt, Tool, ToolChoice, Turn};
use crate::simulator;

/// The cost of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// Steps spent, at most those allowed.
    pub steps: usize,
    /// Bytes produced, at most those allowed.
    pub bytes: usize,
    /// Bytes of the texts and arguments of the answers; `None` if the budget was too small.
    pub answered: Option<usize>,
}

/// Makes the simulator answer in the form of a client's schema, and call a tool with that schema, `choices` times with
/// this budget each. Returns `None` if the schema exceeds the limits.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_schemas_are_answered_or_refused_within_the_budget() {
        let vectors = include_str!("../../tests/vectors/simulator/schemas.json");
        let vectors: Value = serde_json::from_str(vectors).expect("JSON");
        for case in vectors["cases"].as_array().expect("cases") {
            let question = case["question"].as_str().expect("a question");
            let limits = (5_000_000, 1_600_000);
            let spent = answer_by_schema(&case["schema"], question, 2, limits).expect("within the bounds");
            for spent in spent {
                assert!(spent.steps <= limits.0 && spent.bytes <= limits.1, "{}: {spent:?}", case["name"]);
                assert!(spent.answered.unwrap_or(0) <= 6 * spent.bytes, "{}: {spent:?}", case["name"]);
            }
        }
    }
}
