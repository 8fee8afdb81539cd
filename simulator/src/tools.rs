//! Simulated tool calls.

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::question::Question;
use super::schema;
use crate::budget::{Budget, BudgetExceeded};
use crate::conversation::{FunctionTool, Prompt, SimulatedCall, SimulatedToolChoice};

/// Maximum number of calls that a question may write out.
const WRITTEN: usize = 64;

/// The calls for a prompt; none if the answer is text.
pub(super) fn calls(
    prompt: &Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<SimulatedCall>, BudgetExceeded> {
    let mut calls = match &prompt.tool_choice {
        SimulatedToolChoice::None => Vec::new(),
        // New tool results are answered, not requested again.
        SimulatedToolChoice::Auto if prompt.fresh_results().next().is_some() => Vec::new(),
        _ => written(prompt, question, budget)?,
    };
    if calls.is_empty() {
        for tool in chosen(prompt, question, budget)? {
            let arguments = arguments(tool, question, budget)?.to_string();
            calls.push(SimulatedCall { name: tool.name.clone(), arguments });
            budget.make(calls.last().map_or(0, SimulatedCall::bytes))?;
        }
    }
    if !prompt.parallel_tool_calls {
        calls.truncate(1);
    }
    Ok(calls)
}

/// The calls that a question writes out with their arguments, such as `get_weather({"city": "Paris"})`.
fn written(
    prompt: &Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<SimulatedCall>, BudgetExceeded> {
    let mut calls = Vec::new();
    if prompt.tools.is_empty() {
        return Ok(calls);
    }
    let mut rest = question.text;
    while let Some(at) = rest.find("({")
        && calls.len() < WRITTEN
    {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        rest = after;
        let named = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        let name = &before[before.trim_end_matches(named).len()..];
        budget.work(name.len() + prompt.tools.len())?;
        let called = |tool: &FunctionTool| tool.name == name;
        let wanted = match &prompt.tool_choice {
            SimulatedToolChoice::Named(only) => only == name && prompt.tools.iter().any(called),
            _ => prompt.tools.iter().any(called),
        };
        if !wanted {
            continue;
        }
        budget.work(after.len())?;
        let mut documents = serde_json::Deserializer::from_str(after).into_iter::<IgnoredAny>();
        if !matches!(documents.next(), Some(Ok(IgnoredAny))) {
            continue;
        }
        let (arguments, behind) = after.split_at(documents.byte_offset());
        if behind.trim_start().starts_with(')') {
            let call = SimulatedCall { name: name.to_owned(), arguments: arguments.to_owned() };
            budget.make(call.bytes())?;
            calls.push(call);
            rest = behind;
        }
    }
    Ok(calls)
}

/// The tools to call with generated arguments.
fn chosen<'a>(
    prompt: &'a Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<&'a FunctionTool>, BudgetExceeded> {
    let mut chosen: Vec<&FunctionTool> = match &prompt.tool_choice {
        SimulatedToolChoice::None => Vec::new(),
        SimulatedToolChoice::Named(name) => {
            prompt.tools.iter().filter(|tool| tool.name == *name).take(1).collect()
        }
        SimulatedToolChoice::Required => {
            let named = named(prompt, question, budget)?;
            if named.is_empty() { prompt.tools.first().into_iter().collect() } else { named }
        }
        SimulatedToolChoice::Auto if prompt.fresh_results().next().is_some() => Vec::new(),
        // Repeating a text needs no tool.
        SimulatedToolChoice::Auto if question.requested.is_some() => Vec::new(),
        SimulatedToolChoice::Auto => named(prompt, question, budget)?,
    };
    if !prompt.parallel_tool_calls {
        chosen.truncate(1);
    }
    Ok(chosen)
}

/// The tools that a question names, such as `get_weather` or `get weather`.
fn named<'a>(
    prompt: &'a Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Vec<&'a FunctionTool>, BudgetExceeded> {
    let mut named = Vec::new();
    for tool in &prompt.tools {
        if question.mentions(&tool.name, budget)? {
            named.push(tool);
        }
    }
    Ok(named)
}

fn arguments(tool: &FunctionTool, question: &Question<'_>, budget: &Budget) -> Result<Value, BudgetExceeded> {
    Ok(match schema::fit(&tool.parameters, question, budget)? {
        arguments @ Value::Object(_) => arguments,
        // Arguments are always an object, whatever the schema says.
        _ => json!({}),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_schema::ClientSchema;
    use crate::conversation::PromptTurn;

    fn prompt(text: &str) -> Prompt {
        let tool = |name: &str| FunctionTool { name: name.to_owned(), parameters: ClientSchema::default() };
        Prompt {
            turns: vec![PromptTurn::User(text.to_owned())],
            tools: vec![tool("Read"), tool("write_file")],
            parallel_tool_calls: true,
            ..Prompt::default()
        }
    }

    fn called(prompt: &Prompt) -> Vec<(String, String)> {
        let budget = Budget::new();
        let question = Question::read(prompt.question(), &budget).expect("within the budget");
        let calls = calls(prompt, &question, &budget).expect("within the budget");
        calls.into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    fn call(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn calls_written_in_the_question_are_made_verbatim() {
        let text = r#"Call Read({"file_path": "a({b"}), then `write_file({"path":"c", "n": 1.0} )`."#;
        let both =
            [call("Read", r#"{"file_path": "a({b"}"#), call("write_file", r#"{"path":"c", "n": 1.0}"#)];
        assert_eq!(called(&prompt(text)), both);
        assert_eq!(called(&Prompt { parallel_tool_calls: false, ..prompt(text) }), both[..1]);
        let named = SimulatedToolChoice::Named("write_file".to_owned());
        assert_eq!(called(&Prompt { tool_choice: named, ..prompt(text) }), both[1..]);
        assert_eq!(called(&Prompt { tool_choice: SimulatedToolChoice::None, ..prompt(text) }), []);
    }

    #[test]
    fn unknown_or_malformed_written_calls_are_ignored() {
        for text in [
            r#"Call unknown({"a": 1})"#,
            r#"Call unwrite_file({"a": 1})"#,
            r#"write_file({"a": 1"#,
            r#"write_file({"a": 1};"#,
            "write_file({a: 1})",
        ] {
            let calls = called(&prompt(text));
            assert!(calls.iter().all(|(_, arguments)| arguments == "{}"), "{text}: {calls:?}");
        }
    }

    #[test]
    fn question_full_of_call_prefixes_is_bounded() {
        let prompt = prompt(&"Read({\"".repeat(60_000));
        let budget = Budget::new();
        let question = Question::read(prompt.question(), &budget).expect("within the budget");
        assert!(matches!(calls(&prompt, &question, &budget), Err(BudgetExceeded::Steps(_))));
        let many = self::prompt(&"Read({})".repeat(10_000));
        assert_eq!(called(&many).len(), WRITTEN);
    }
}
