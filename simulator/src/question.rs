//! The user's last turn, analyzed once for all parts of the answer.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::Number;

use super::echo;
use crate::budget::{Budget, BudgetExceeded};

/// Steps per byte of the question, for all the analysis that an answer needs.
const READ: usize = 64;
/// Maximum number of tokens to try as values; likewise for quoted strings, names and numbers.
const HINTS: usize = 64;

/// The question of a prompt.
pub(crate) struct Question<'a> {
    pub(crate) text: &'a str,
    /// The text to repeat exactly.
    pub(crate) requested: Option<String>,
    /// Tokens, then quoted strings, in order.
    pub(crate) mentioned: Vec<&'a str>,
    words: OnceCell<Words>,
    hints: OnceCell<Hints>,
}

/// The values that a question offers.
pub(crate) struct Hints {
    /// The first token, if there is one.
    pub(crate) token: Option<String>,
    pub(crate) strings: Vec<String>,
    pub(crate) numbers: Vec<Number>,
}

impl<'a> Question<'a> {
    pub(crate) fn read(text: &'a str, budget: &Budget) -> Result<Self, BudgetExceeded> {
        budget.work(text.len().saturating_mul(READ))?;
        Ok(Self {
            text,
            requested: echo::requested(text),
            mentioned: echo::tokens(text).chain(echo::quoted(text)).collect(),
            words: OnceCell::new(),
            hints: OnceCell::new(),
        })
    }

    /// Whether it contains these whole words, ignoring case and punctuation: `get weather` contains `get_weather`.
    pub(crate) fn mentions(&self, words: &str, budget: &Budget) -> Result<bool, BudgetExceeded> {
        budget.work(words.len().saturating_mul(READ))?;
        self.words.get_or_init(|| Words::of(self.text)).hold(&Words::of(words), budget)
    }

    pub(crate) fn hints(&self) -> &Hints {
        self.hints.get_or_init(|| Hints::of(self))
    }
}

impl Hints {
    fn of(question: &Question<'_>) -> Self {
        let text = question.text;
        let tokens = echo::tokens(text).take(HINTS);
        let strings = tokens.chain(echo::quoted(text).take(HINTS));
        let mut strings: Vec<String> = strings.map(str::to_owned).collect();
        strings.extend(question.requested.clone());
        strings.extend(names(text).into_iter().take(HINTS));
        let mut seen = HashSet::new();
        strings.retain(|string| seen.insert(string.clone()));
        let token = strings.iter().flat_map(|string| echo::tokens(string)).next().map(str::to_owned);
        Self { token, strings, numbers: echo::numbers(text).take(HINTS).collect() }
    }
}

/// Capitalized words inside sentences: `What is the weather in Paris?` offers `Paris`.
fn names(question: &str) -> Vec<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let name = |index: usize| {
        let word = words[index].trim_matches(|character: char| !character.is_alphanumeric());
        let inside = index > 0 && !words[index - 1].ends_with(['.', '!', '?', ':']);
        (inside && word.len() > 1 && word.starts_with(char::is_uppercase)).then(|| word.to_owned())
    };
    (0..words.len()).filter_map(name).take(HINTS).collect()
}

/// The lower-case words of a text, indexed for lookups.
struct Words {
    lower: String,
    /// Where each word is in `lower`, in order.
    places: Vec<(usize, usize)>,
    /// Indices into `places`, by word and then by place.
    sorted: Vec<usize>,
}

impl Words {
    fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let base = lower.as_ptr() as usize;
        let places: Vec<(usize, usize)> = lower
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| (word.as_ptr() as usize - base, word.len()))
            .collect();
        let mut sorted: Vec<usize> = (0..places.len()).collect();
        sorted.sort_by_key(|index| {
            let (start, length) = places[*index];
            &lower[start..start + length]
        });
        Self { lower, places, sorted }
    }

    fn word(&self, index: usize) -> Option<&str> {
        self.places.get(index).map(|(start, length)| &self.lower[*start..start + length])
    }

    /// Whether the words of `other` occur here in sequence; false if it has no words.
    fn hold(&self, other: &Self, budget: &Budget) -> Result<bool, BudgetExceeded> {
        let Some(first) = other.word(0) else { return Ok(false) };
        let start = self.sorted.partition_point(|index| self.word(*index) < Some(first));
        for at in self.sorted[start..].iter().take_while(|index| self.word(**index) == Some(first)) {
            let alike = (1..other.places.len())
                .take_while(|offset| self.word(at + offset) == other.word(*offset))
                .map(|offset| other.word(offset).map_or(0, str::len))
                .fold((1, 1), |(words, bytes), length| (words + 1, bytes + length));
            budget.work(first.len() + alike.1)?;
            if alike.0 == other.places.len() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(text: &str, words: &str) -> bool {
        let budget = Budget::new();
        let question = Question::read(text, &budget).expect("within the budget");
        question.mentions(words, &budget).expect("within the budget")
    }

    #[test]
    fn consecutive_whole_words_are_matched() {
        for (text, words) in [
            ("Please Get weather, now", "get_weather"),
            ("get get weather", "get_weather"),
            ("call getWeather.", "getweather"),
            ("é È", "È"),
        ] {
            assert!(mentions(text, words), "{text}: {words}");
        }
        for (text, words) in
            [("get the weather", "get_weather"), ("weathers", "weather"), ("get", "get_weather"), ("a", "-")]
        {
            assert!(!mentions(text, words), "{text}: {words}");
        }
    }

    #[test]
    fn word_lookups_do_not_rescan_the_question() {
        let budget = Budget::new();
        let text = "word ".repeat(50_000);
        let question = Question::read(&text, &budget).expect("within the budget");
        let read = budget.worked();
        for number in 0..1_000 {
            assert_eq!(question.mentions(&format!("tool_{number}"), &budget), Ok(false));
        }
        assert!(budget.worked() - read < 1_000_000, "{} steps", budget.worked() - read);
    }
}
