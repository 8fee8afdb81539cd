//! Tokens of the simulator: a token is a piece of a word of at most six characters, with the whitespace before it.
//! Answers are streamed piece by piece, so streams have many deltas, and usage counts them exactly.

use crate::budget::{Budget, BudgetExceeded};

/// Maximum length of a piece, in characters other than whitespace.
const MAX_TOKEN_CHARS: usize = 6;

/// Steps to count the tokens of a byte of text.
const COUNT: usize = 4;

/// The pieces of a text in order; joined, they are the text.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(first_piece(rest));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Like [`pieces`], for an owned text: produces the pieces one by one as a stream takes them.
pub(crate) fn owned_pieces(text: String) -> impl Iterator<Item = String> + Send {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let length = first_piece(rest);
        start += length;
        (length > 0).then(|| rest[..length].to_owned())
    })
}

/// Length of the first piece, in bytes.
fn first_piece(text: &str) -> usize {
    let mut length = 0;
    let next = text.char_indices().find(|(_, character)| {
        let boundary = if character.is_whitespace() { length > 0 } else { length == MAX_TOKEN_CHARS };
        length += usize::from(!character.is_whitespace());
        boundary
    });
    next.map_or(text.len(), |(at, _)| at)
}

/// Number of tokens of a text.
pub fn count(text: &str) -> usize {
    pieces(text).count()
}

/// Like [`count`], charged to a budget.
pub fn counted(text: &str, budget: &Budget) -> Result<usize, BudgetExceeded> {
    budget.work(text.len().saturating_mul(COUNT))?;
    Ok(count(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_concatenate_to_the_text() {
        for text in ["", " ", "a", "COMPAT-0123456789", "two  words\n\n", "  日本語のテキスト と é"]
        {
            assert_eq!(pieces(text).collect::<String>(), text);
            assert!(pieces(text).all(|piece| piece.trim().chars().count() <= MAX_TOKEN_CHARS), "{text}");
        }
        assert_eq!(pieces("one two, three-four").collect::<Vec<_>>(), ["one", " two,", " three-", "four"]);
    }
}
