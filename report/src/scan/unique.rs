//! Arrays with unique items.

use super::words::MAX_WORDS;

/// Maximum number of texts that are compared with each other.
const MAX_TEXTS: usize = 32;

/// Words by their index, each at most once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UniqueWords([u64; MAX_WORDS.div_ceil(64)]);

impl UniqueWords {
    /// Adds a word; `None` if it is there already.
    #[inline]
    pub(crate) fn add(&mut self, index: usize) -> Option<()> {
        let bits = self.0.get_mut(index / 64)?;
        let bit = 1 << (index % 64);
        if *bits & bit != 0 {
            return None;
        }
        *bits |= bit;
        Some(())
    }

    pub(crate) fn has(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|bits| bits & (1 << (index % 64)) != 0)
    }

    /// Whether all of these words are also among the others.
    pub(crate) fn are_among(&self, others: &Self) -> bool {
        self.0.iter().zip(&others.0).all(|(these, others)| these & !others == 0)
    }
}

/// Texts as written, each at most once.
#[derive(Debug, Default)]
pub(crate) struct UniqueTexts<'a> {
    texts: [&'a [u8]; MAX_TEXTS],
    count: usize,
}

impl<'a> UniqueTexts<'a> {
    /// Adds a text. `None` if it is there already, or may be: it has escapes, or there are too many texts.
    pub(crate) fn add(&mut self, text: &'a [u8]) -> Option<()> {
        if text.contains(&b'\\') || self.texts.get(..self.count)?.contains(&text) {
            return None;
        }
        *self.texts.get_mut(self.count)? = text;
        self.count += 1;
        Some(())
    }
}
