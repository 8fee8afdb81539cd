//! Embeddings: a vector of length 1 for a text, which depends on nothing but the text. Texts that share words have vectors
//! of similar direction, so that a search finds what it should.

use super::seed::Seed;
use crate::budget::{Budget, BudgetExceeded};

/// Numbers that are added in one step.
const PER_STEP: usize = 4;
/// Weight of a word; the whole text has 1, so that the order of words counts a little, and no vector is zero.
const OF_A_WORD: i64 = 4;
/// Numbers are rounded to this share of 1.
const PRECISION: f64 = 1e7;

/// The sum of the directions of the words and of the whole text, of length 1.
pub fn vector(text: &str, length: usize, budget: &Budget) -> Result<Vec<f64>, BudgetExceeded> {
    budget.work(2 * text.len())?;
    let mut sums = vec![0; length];
    add(&mut sums, text, 1);
    let lowercase = text.to_lowercase();
    for word in lowercase.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        budget.work(length.div_ceil(PER_STEP))?;
        add(&mut sums, word, OF_A_WORD);
    }
    #[expect(clippy::cast_precision_loss, reason = "the sums count the words of a request")]
    let numbers: Vec<f64> = sums.into_iter().map(|sum| sum as f64).collect();
    let norm = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    Ok(numbers.into_iter().map(|number| (number / norm * PRECISION).round() / PRECISION).collect())
}

/// Adds the direction of a text: the signs of its vector are the bits of its seed.
fn add(sums: &mut [i64], text: &str, weight: i64) {
    let mut seed = Seed::of(text);
    for sums in sums.chunks_mut(64) {
        let bits = seed.next();
        for (place, sum) in sums.iter_mut().enumerate() {
            *sum += if bits >> place & 1 == 1 { weight } else { -weight };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector_of(text: &str) -> Vec<f64> {
        vector(text, 256, &Budget::new()).expect("within the budget")
    }

    fn product(one: &[f64], other: &[f64]) -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    }

    #[test]
    fn vectors_have_length_one_and_depend_only_on_the_text() {
        for text in ["A boat on a lake", "x", "!", "湖の船"] {
            let [one, same] = [text, text].map(vector_of);
            assert_eq!((one.len(), &one), (256, &same), "{text}");
            assert!((product(&one, &one) - 1.0).abs() < 1e-5, "{text}");
        }
        assert_ne!(vector_of("man bites dog"), vector_of("dog bites man"));
    }

    #[test]
    fn texts_that_share_words_are_closer() {
        let texts = ["How do I sail a boat?", "A boat can sail on a lake", "Interest rates of banks"];
        let [question, near, far] = texts.map(vector_of);
        assert!(product(&question, &near) > product(&question, &far) + 0.2);
    }

    #[test]
    fn flood_of_words_exceeds_the_budget() {
        let (words, budget) = ("a ".repeat(100_000), Budget::of(1_000_000, usize::MAX));
        assert!(matches!(vector(&words, 256, &budget), Err(BudgetExceeded::Steps(1_000_000))));
    }
}
