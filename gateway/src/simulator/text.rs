//! Simulated text answers.

use serde_json::{Value, json};

use super::seed::Seed;
use super::{Prompt, echo};

/// `count to N` goes no further than this.
const HIGHEST_COUNT: u64 = 10_000;
/// Longest part of a tool's result that is quoted in an answer, in characters.
const RESULT_QUOTED: usize = 2_000;

const OPENINGS: &[&str] = &[
    "Let us look at {topic}.",
    "Here is a short answer about {topic}.",
    "There are several ways to think about {topic}.",
    "The question of {topic} has a simple core.",
    "A good place to start with {topic} is the plain facts.",
];
const MIDDLES: &[&str] = &[
    "First, {word} matters more than it seems, because everything else builds upon it.",
    "Most people who work with {word} begin small and measure before they change anything.",
    "It helps to separate {word} from the parts that merely surround it.",
    "In practice {word} is easier to explain with an example than with a definition.",
    "Seen from a distance, {word} follows the same pattern again and again.",
    "What looks like an exception to {word} usually turns out to be a special case of it.",
];
const CLOSINGS: &[&str] = &[
    "This answer was made by the simulated provider.",
    "That is all the simulated provider knows about it.",
    "Ask a real model for more; this one is simulated.",
];
/// Words that say nothing about a prompt's topic.
const COMMON: &[&str] = &[
    "about", "answer", "could", "does", "explain", "from", "give", "have", "into", "like", "make", "please",
    "short", "should", "sentence", "some", "tell", "that", "their", "them", "then", "there", "they", "this",
    "what", "when", "where", "which", "with", "would", "write", "your",
];

/// A text answer.
pub(crate) fn answer(prompt: &Prompt, choice: usize) -> String {
    let question = prompt.question();
    if let Some(text) = echo::requested(question) {
        return text;
    }
    let results: Vec<String> = prompt
        .fresh_results()
        .map(|(name, output)| {
            let output: String = output.chars().take(RESULT_QUOTED).collect();
            format!("{} returned: {output}", name.unwrap_or("The tool"))
        })
        .collect();
    if !results.is_empty() {
        return results.join("\n");
    }
    count(question).unwrap_or_else(|| essay(question, choice))
}

/// A JSON object: the one asked for, or one that holds the answer.
pub(crate) fn json_object(prompt: &Prompt, choice: usize) -> String {
    let answer = answer(prompt, choice);
    match serde_json::from_str(&answer) {
        Ok(Value::Object(_)) => answer,
        _ => json!({ "answer": answer }).to_string(),
    }
}

/// `Count from 3 to 7`.
fn count(question: &str) -> Option<String> {
    let lower = question.to_lowercase();
    let words: Vec<&str> =
        lower.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let after = words.iter().position(|word| *word == "count")? + 1;
    let words = &words[after..];
    let to = words.iter().position(|word| matches!(*word, "to" | "until"))?;
    let end: u64 = words.get(to + 1)?.parse().ok()?;
    let start = words[..to].last().and_then(|word| word.parse().ok()).unwrap_or(1);
    let numbers: Vec<String> = (start..=end.min(HIGHEST_COUNT)).map(|number| number.to_string()).collect();
    Some(numbers.join(", "))
}

fn essay(question: &str, choice: usize) -> String {
    let mut seed = Seed::of(&format!("{choice}:{question}"));
    let topic: Vec<&str> = question
        .split(|character: char| !(character.is_alphanumeric() || character == '-'))
        .filter(|word| word.chars().count() > 3 && !COMMON.contains(&word.to_lowercase().as_str()))
        .take(6)
        .collect();
    let word = |index: usize| topic.get(index % topic.len().max(1)).copied().unwrap_or("it");
    let mut sentences = vec![
        OPENINGS[seed.below(OPENINGS.len())]
            .replace("{topic}", if topic.is_empty() { "this" } else { topic[0] }),
    ];
    let mentioned: Vec<&str> = echo::tokens(question).chain(echo::quoted(question)).collect();
    if !mentioned.is_empty() {
        sentences.push(format!("You mentioned {}.", mentioned.join(" and ")));
    }
    let first = seed.below(MIDDLES.len());
    for step in 0..3 {
        sentences.push(MIDDLES[(first + step) % MIDDLES.len()].replace("{word}", word(step + 1)));
    }
    sentences.push(CLOSINGS[seed.below(CLOSINGS.len())].to_owned());
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::{Prompt, Turn};
    use super::*;

    fn ask(question: &str) -> String {
        answer(&Prompt { turns: vec![Turn::User(question.to_owned())], ..Prompt::default() }, 0)
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
