//! Flag values that are one of a few words of the specification, which help and messages list.

use clap::builder::{PossibleValuesParser, TypedValueParser};

/// Parses one of the words; another one is rejected with a list of all, and the most similar one. `word`: its
/// spelling.
pub(crate) fn one_of<W>(words: &'static [W], word: fn(&W) -> &'static str) -> impl TypedValueParser<Value = W>
where
    W: Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(words.iter().map(word)).map(move |given| {
        let known = words.iter().find(|known| word(known) == given);
        *known.expect("the parser lets none but these through")
    })
}
