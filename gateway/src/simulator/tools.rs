//! Simulated tool calls.

use serde_json::{Value, json};

use super::{Prompt, Tool, ToolCall, ToolChoice, echo, schema};

/// The calls a prompt leads to; none when it is to be answered by text.
pub(crate) fn calls(prompt: &Prompt) -> Vec<ToolCall> {
    let question = prompt.question();
    let mut chosen: Vec<&Tool> = match &prompt.tool_choice {
        ToolChoice::None => Vec::new(),
        ToolChoice::Named(name) => prompt.tools.iter().filter(|tool| tool.name == *name).take(1).collect(),
        ToolChoice::Required => {
            let named = named(prompt, question);
            if named.is_empty() { prompt.tools.first().into_iter().collect() } else { named }
        }
        // Results are answered, not asked for again; what is to be repeated needs no tool.
        ToolChoice::Auto if prompt.fresh_results().next().is_some() => Vec::new(),
        ToolChoice::Auto if echo::requested(question).is_some() => Vec::new(),
        ToolChoice::Auto => named(prompt, question),
    };
    if !prompt.parallel_tool_calls {
        chosen.truncate(1);
    }
    chosen
        .into_iter()
        .map(|tool| ToolCall { name: tool.name.clone(), arguments: arguments(tool, question).to_string() })
        .collect()
}

/// The tools a question names, as `get_weather` or `get weather`.
fn named<'a>(prompt: &'a Prompt, question: &str) -> Vec<&'a Tool> {
    prompt.tools.iter().filter(|tool| echo::mentions(question, &tool.name)).collect()
}

fn arguments(tool: &Tool, question: &str) -> Value {
    match schema::fit(&tool.parameters, question) {
        arguments @ Value::Object(_) => arguments,
        // Arguments are an object whatever the schema says or leaves out.
        _ => json!({}),
    }
}
