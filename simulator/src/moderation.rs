//! Moderation: a verdict about a text, by a short list of words. It depends on nothing but the text, and judges nothing: it lets
//! programs that call a moderation model be tested.

use crate::budget::{Budget, BudgetExceeded};

/// The categories, and the words that count for each.
const CATEGORIES: [(&str, &[&str]); 6] = [
    ("harassment", &["bully", "insult", "threaten"]),
    ("hate", &["despise", "hate"]),
    ("illicit", &["counterfeit", "smuggle", "steal"]),
    ("self-harm", &[]),
    ("sexual", &[]),
    ("violence", &["attack", "fight", "punch"]),
];
/// Steps to read a byte of a text.
const READ: usize = 16;
/// The score of a category of which a text has no word.
const LEAST: f64 = 0.0001;
/// The doubt that each word leaves.
const DOUBT: f64 = 0.25;
/// From this score on, a text is harmful.
const HARMFUL: f64 = 0.5;
/// The number of words after which there is no more doubt.
const MOST_WORDS: i32 = 8;

/// What a text is.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The score of each category, from 0 to 1.
    pub scores: Vec<(&'static str, f64)>,
}

impl Verdict {
    /// Whether a score means harm.
    pub fn is_harmful(score: f64) -> bool {
        score >= HARMFUL
    }

    /// Whether any does.
    pub fn is_flagged(&self) -> bool {
        self.scores.iter().any(|(_, score)| Self::is_harmful(*score))
    }
}

/// Judges a text.
pub fn verdict(text: &str, budget: &Budget) -> Result<Verdict, BudgetExceeded> {
    budget.work(READ.saturating_mul(text.len()))?;
    let mut found = [0; CATEGORIES.len()];
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        for (count, (_, words)) in found.iter_mut().zip(CATEGORIES) {
            if words.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                *count = (*count + 1).min(MOST_WORDS);
            }
        }
    }
    let score = |count: i32| if count == 0 { LEAST } else { 1.0 - DOUBT.powi(count) };
    let scores = CATEGORIES.iter().zip(found).map(|((name, _), count)| (*name, score(count)));
    Ok(Verdict { scores: scores.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Verdict {
        verdict(text, &Budget::new()).expect("within the budget")
    }

    fn score(verdict: &Verdict, category: &str) -> f64 {
        verdict.scores.iter().find(|(name, _)| *name == category).expect("a category").1
    }

    #[test]
    fn words_decide_about_their_category_only() {
        let calm = of("A boat on a lake. Fighting words are no words of the list.");
        assert!(!calm.is_flagged() && calm == of("") && calm.scores.len() == CATEGORIES.len());
        let (once, twice) = (of("I will PUNCH you!"), of("punch, attack"));
        assert!(once.is_flagged() && score(&once, "violence") < score(&twice, "violence"));
        assert!(score(&twice, "violence") < 1.0 && score(&twice, "hate") < HARMFUL);
        assert!(score(&of(&"fight ".repeat(10_000)), "violence") < 1.0);
    }

    #[test]
    fn flood_of_text_exceeds_the_budget() {
        assert!(verdict(&"a ".repeat(1000), &Budget::of(1000, usize::MAX)).is_err());
    }
}
