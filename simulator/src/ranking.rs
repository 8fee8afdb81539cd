//! Relevance: the share of a query's words that a document has, and how much of the document they are. It depends on nothing but the
//! two texts.

use std::collections::HashSet;

use crate::budget::{Budget, BudgetExceeded};

/// Steps to read a byte of a text: its words are lowercased and looked up.
const READ: usize = 8;
/// How much the query's words that a document has count; the rest is how much of the document they are.
const OF_QUERY: f64 = 0.9;
/// Scores are rounded to this share of 1.
const PRECISION: f64 = 1e6;

/// The words of a query.
#[derive(Debug)]
pub struct Query(HashSet<String>);

impl Query {
    /// Of a text.
    pub fn read(text: &str, budget: &Budget) -> Result<Self, BudgetExceeded> {
        budget.work(READ.saturating_mul(text.len()))?;
        Ok(Self(words(text).collect()))
    }

    /// How relevant a document is, from 0 to 1.
    pub fn relevance_of(&self, document: &str, budget: &Budget) -> Result<f64, BudgetExceeded> {
        budget.work(READ.saturating_mul(document.len()))?;
        let words: HashSet<String> = words(document).collect();
        let shared = words.intersection(&self.0).count();
        if shared == 0 {
            return Ok(0.0);
        }
        #[expect(clippy::cast_precision_loss, reason = "numbers of words of a request")]
        let share = |all: usize| shared as f64 / all as f64;
        let score = OF_QUERY * share(self.0.len()) + (1.0 - OF_QUERY) * share(words.len());
        Ok((score * PRECISION).round() / PRECISION)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relevance(query: &str, document: &str) -> f64 {
        let budget = Budget::new();
        Query::read(query, &budget).expect("a query").relevance_of(document, &budget).expect("a score")
    }

    #[test]
    fn document_with_more_of_the_query_is_more_relevant() {
        let query = "Which boats sail on a lake?";
        let scores = [
            "Boats SAIL on a lake, which is calm.",
            "boats on a lake",
            "a lake and a hill",
            "rates of banks",
        ]
        .map(|document| relevance(query, document));
        assert!(scores.is_sorted_by(|one, other| one > other), "{scores:?}");
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
        assert!((relevance("a boat", "A boat!") - 1.0).abs() < 1e-9);
        assert!(relevance("湖", "湖") > 0.99 && relevance("?", "!").abs() < 1e-9);
    }

    #[test]
    fn flood_of_text_exceeds_the_budget() {
        let budget = Budget::of(1000, usize::MAX);
        let query = Query::read("a", &budget).expect("short");
        assert!(query.relevance_of(&"a ".repeat(1000), &budget).is_err());
    }
}
