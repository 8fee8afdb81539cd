//! Words set by a deployment: the kit's name, the models.

use serde_json::Value as Json;

/// Maximum number of words in a set, plus one for none of them.
pub(crate) const MAX_WORDS: usize = 1024;

/// A set of words, each with an index.
#[derive(Debug)]
pub(crate) struct WordSet(Vec<Box<str>>);

impl WordSet {
    /// The strings that a place in a schema allows, by `const` or `enum`. `None` if there are too many.
    ///
    /// A word that requires escapes is omitted: it is never recognized with certainty.
    pub(crate) fn at(schema: &Json, pointer: &str) -> Option<Self> {
        let place = schema.pointer(pointer)?;
        let one = place.get("const");
        let all = one.into_iter().chain(place.get("enum").and_then(Json::as_array).into_iter().flatten());
        let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        let plain = all.filter_map(Json::as_str).filter(|word| word.bytes().all(is_plain));
        let mut words: Vec<Box<str>> = plain.map(Into::into).collect();
        words.sort_unstable();
        (words.len() < MAX_WORDS).then_some(Self(words))
    }

    /// The index of a word.
    #[inline]
    pub(crate) fn index(&self, word: &[u8]) -> Option<usize> {
        self.0.binary_search_by(|known| known.as_bytes().cmp(word)).ok()
    }

    /// The word with an index.
    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(|word| &**word)
    }
}
