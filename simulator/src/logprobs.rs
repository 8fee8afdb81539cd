//! Simulated log probabilities in the neutral form (ours). They depend only on
//! the token and its position, so that equal requests get equal values.

use serde_json::{Value, json};

use crate::budget::{Budget, BudgetExceeded};
use crate::seed::Seed;
use crate::tokens;

/// Estimated memory of an entry, in bytes: the token itself or one of the likeliest tokens.
const ENTRY: usize = 512;
/// Alternative tokens.
const OTHERS: &[&str] = &[
    " the", " a", " of", " and", " to", " in", " is", " that", " it", " for", " as", " with", " on", " this",
    " by", " an", " be", " or", " not", " are", " from",
];

/// Requested log probabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Logprobs {
    /// Number of likeliest tokens per position.
    top: usize,
}

impl Logprobs {
    /// `top`: as in the request.
    pub(crate) fn new(top: u64) -> Self {
        Self { top: usize::try_from(top).unwrap_or(usize::MAX).min(OTHERS.len()) }
    }

    /// Charges the log probabilities of a text that appears this many times in a response.
    pub(crate) fn charge(self, text: &str, times: usize, budget: &Budget) -> Result<(), BudgetExceeded> {
        budget.make(tokens::count(text).saturating_mul(ENTRY * (1 + self.top) * times))
    }

    /// The log probabilities of a text.
    pub(crate) fn of(self, text: &str) -> Value {
        tokens::pieces(text).enumerate().map(|(place, token)| self.token(place, token)).collect()
    }

    /// The log probability of the token at a position.
    pub(crate) fn token(self, place: usize, token: &str) -> Value {
        let mut seed = Seed::of(&format!("{place}:{token}"));
        let mut probability = 0.5 + seed.fraction() / 2.0;
        let mut chosen = entry(token, probability);
        let mut top = Vec::with_capacity(self.top);
        if self.top > 0 {
            top.push(chosen.clone());
        }
        // Each alternative takes half of the remaining probability.
        let mut left = 1.0 - probability;
        let first = seed.below(OTHERS.len());
        let others = (0..OTHERS.len()).map(|index| OTHERS[(first + index) % OTHERS.len()]);
        for other in others.filter(|other| *other != token).take(self.top.saturating_sub(1)) {
            probability = (left / 2.0).min(probability);
            left -= probability;
            top.push(entry(other, probability));
        }
        chosen["top_logprobs"] = top.into();
        chosen
    }
}

fn entry(token: &str, probability: f64) -> Value {
    json!({ "token": token, "logprob": probability.max(f64::MIN_POSITIVE).ln(), "bytes": token.as_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_decrease_and_sum_to_at_most_one() {
        for token in ["hello", " the", " über"] {
            let chosen = Logprobs::new(20).token(3, token);
            let top = chosen["top_logprobs"].as_array().expect("a list");
            let logprobs: Vec<f64> = top.iter().filter_map(|entry| entry["logprob"].as_f64()).collect();
            assert_eq!((top.len(), &top[0]["token"], logprobs.len()), (20, &json!(token), 20));
            assert!(logprobs.windows(2).all(|pair| pair[0] >= pair[1]), "{logprobs:?}");
            assert!(logprobs.iter().map(|logprob| logprob.exp()).sum::<f64>() <= 1.0 + 1e-9);
            assert_eq!(chosen["bytes"], json!(token.as_bytes()));
            let tokens: std::collections::HashSet<&str> =
                top.iter().filter_map(|entry| entry["token"].as_str()).collect();
            assert_eq!(tokens.len(), 20);
        }
    }

    #[test]
    fn top_logprobs_are_empty_unless_requested() {
        assert_eq!(Logprobs::new(0).token(0, "x")["top_logprobs"], json!([]));
    }

    #[test]
    fn logprobs_are_charged_per_token_and_alternative() {
        let budget = Budget::new();
        Logprobs::new(4).charge("one two three", 2, &budget).expect("within the budget");
        assert_eq!(budget.made(), 2 * 3 * 5 * ENTRY);
    }
}
