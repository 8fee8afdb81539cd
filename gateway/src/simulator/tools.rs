//! Simulated tool calls.

use serde_json::{Value, json};

use super::budget::{Budget, Exceeded};
use super::question::Question;
use super::{Prompt, Tool, ToolCall, ToolChoice, schema};

/// The calls a prompt leads to; none when it is to be answered by text.
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
        // Results are answered, not asked for again; what is to be repeated needs no tool.
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

/// The tools a question names, as `get_weather` or `get weather`.
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
        // Arguments are an object whatever the schema says or leaves out.
        _ => json!({}),
    })
}
