//! Simulated text answers.

use serde_json::{Value, json};

use super::question::Question;
use super::seed::Seed;
use crate::budget::{Budget, BudgetExceeded};
use crate::conversation::Prompt;

/// Maximum `N` of `count to N`.
const MAX_COUNT: u64 = 10_000;
/// Maximum length of a quote from a tool result in an answer, in characters.
const RESULT_QUOTED: usize = 2_000;

const OPENINGS: &[&str] = &[
    "Let us look at {word}.",
    "Here is a short answer about {word}.",
    "There are several ways to think about {word}.",
    "The question of {word} has a simple core.",
    "A good place to start with {word} is the plain facts.",
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
/// Words that are not about the topic of a prompt.
const COMMON: &[&str] = &[
    "about", "answer", "could", "does", "explain", "from", "give", "have", "into", "like", "make", "please",
    "short", "should", "sentence", "some", "tell", "that", "their", "them", "then", "there", "they", "this",
    "what", "when", "where", "which", "with", "would", "write", "your",
];

/// The text answer if the prompt determines it: the text to repeat, the number of images, the tool results, or a count.
pub(super) fn settled(
    prompt: &Prompt,
    question: &Question<'_>,
    budget: &Budget,
) -> Result<Option<String>, BudgetExceeded> {
    if let Some(text) = &question.requested {
        budget.make(text.len())?;
        return Ok(Some(text.clone()));
    }
    // Even if a tool has just returned one.
    let pictures = prompt.media.pictures;
    if pictures > 0 && question.mentions("how many pictures", budget)? {
        let pictures = if pictures == 1 { "1 picture".to_owned() } else { format!("{pictures} pictures") };
        return Ok(Some(pictures));
    }
    let mut results = Vec::new();
    for (name, output) in prompt.fresh_results() {
        let end = output.char_indices().nth(RESULT_QUOTED).map_or(output.len(), |(at, _)| at);
        let line = format!("{} returned: {}", name.unwrap_or("The tool"), &output[..end]);
        budget.make(line.len())?;
        results.push(line);
    }
    if !results.is_empty() {
        return Ok(Some(results.join("\n")));
    }
    let count = count(question.text);
    budget.make(count.as_ref().map_or(0, String::len))?;
    Ok(count)
}

/// The text if it is a JSON object, else an object that contains it.
pub(super) fn in_object(text: String) -> String {
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => text,
        _ => json!({ "answer": text }).to_string(),
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
    let numbers: Vec<String> = (start..=end.min(MAX_COUNT)).map(|number| number.to_string()).collect();
    Some(numbers.join(", "))
}

/// A few sentences about the words of a question.
pub(super) struct Essay<'a> {
    question: &'a str,
    topic: Vec<&'a str>,
    mentioned: String,
}

impl<'a> Essay<'a> {
    pub(super) fn about(question: &Question<'a>, budget: &Budget) -> Result<Self, BudgetExceeded> {
        let topic = question
            .text
            .split(|character: char| !(character.is_alphanumeric() || character == '-'))
            .filter(|word| word.chars().count() > 3 && !COMMON.contains(&word.to_lowercase().as_str()))
            .take(6)
            .collect();
        let mentioned = question.mentioned.join(" and ");
        budget.make(mentioned.len())?;
        Ok(Self { question: question.text, topic, mentioned })
    }

    /// The essay of one choice.
    pub(super) fn write(&self, choice: usize, budget: &Budget) -> Result<String, BudgetExceeded> {
        budget.work(self.question.len())?;
        let mut seed = Seed::of(&format!("{choice}:{}", self.question));
        let topic = &self.topic;
        let word = |index: usize| topic.get(index % topic.len().max(1)).copied().unwrap_or("it");
        let say = |sentence: &str, word: &str| {
            budget.make(sentence.len() + word.len())?;
            Ok(sentence.replace("{word}", word))
        };
        let mut sentences =
            vec![say(OPENINGS[seed.below(OPENINGS.len())], topic.first().unwrap_or(&"this"))?];
        if !self.mentioned.is_empty() {
            sentences.push(say("You mentioned {word}.", &self.mentioned)?);
        }
        let first = seed.below(MIDDLES.len());
        for step in 0..3 {
            sentences.push(say(MIDDLES[(first + step) % MIDDLES.len()], word(step + 1))?);
        }
        sentences.push(say(CLOSINGS[seed.below(CLOSINGS.len())], "")?);
        Ok(sentences.join(" "))
    }
}
