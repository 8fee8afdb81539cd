//! Simulated tool calls.

use serde_json::{Value, json};

use super::question::Question;
use super::schema;
use crate::bounds::budget::{Budget, Exceeded};
use crate::simulator::conversation::{Prompt, Tool, ToolCall, ToolChoice};

/// The calls for a prompt; none if the answer is a text.
pub(super) fn calls(
    prompt: &Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<ToolCall>, Exceeded> {
    let mut chosen: Vec<&Tool> = match &prompt.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Named(name) => prompt.tools.iter().filter(|tool| tool.name == *name).take(1).collect(),
        ToolChoice::Required => {
            let named = named(prompt, question, budget)?;
            if named.is_empty() { prompt.tools.first().into_iter().collect() } else { named }
        }
        // New tool results are answered, not requested again; repeating a text needs no tool.
        ToolChoice::Auto if prompt.fresh_results().next().is_some() => Vec::new(),
        ToolChoice::Auto if question.requested.is_some() => Vec::new(),
        ToolChoice::Auto => named(prompt, question, budget)?,
    };
    if !prompt.parallel_tool_calls {
        chosen.truncate(1);
    }
    chosen
        .into_iter()
        .map(|tool| {
            let call = ToolCall {
                name: tool.name.clone(),
                arguments: arguments(tool, question, budget)?.to_string(),
            };
            budget.make(call.bytes())?;
            Ok(call)
        })
        .collect()
}

/// The tools that a question names, such as `get_weather` or `get weather`.
fn named<'a>(
    prompt: &'a Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<&'a Tool>, Exceeded> {
    let mut named = Vec::new();
    for tool in &prompt.tools {
        if question.mentions(&tool.name, budget)? {
            named.push(tool);
        }
    }
    Ok(named)
}

fn arguments(tool: &Tool, question: &Question<'_>, budget: &Budget) -> Result<Value, Exceeded> {
    Ok(match schema::fit(&tool.parameters, question, budget)? {
        arguments @ Value::Object(_) => arguments,
        // Arguments are always an object, whatever the schema says.
        _ => json!({}),
    })
}
