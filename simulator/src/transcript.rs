//! Transcripts: a few words in place of what is said. They depend on the bytes of the file, and on nothing else.

use crate::budget::{Budget, BudgetExceeded};
use crate::seed::Seed;

/// The words of transcripts.
const WORDS: [&str; 16] = [
    "a", "boat", "sails", "on", "the", "lake", "while", "two", "birds", "rest", "near", "an", "old",
    "harbour", "and", "wait",
];
/// Minimum number of words, and by how many there may be more.
const LEAST_WORDS: usize = 4;
const MORE_WORDS: usize = 8;
/// Bytes per second of a sound that doesn't state them: of 128 kbit per second.
const BYTES_PER_SECOND: f64 = 16_000.0;

/// What is said in a sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The words, which are separated by spaces in a text.
    pub words: Vec<&'static str>,
    /// Length of the sound, in seconds.
    pub seconds: f64,
}

impl Transcript {
    /// Of the content of a file.
    pub fn of(file: &[u8], budget: &Budget) -> Result<Self, BudgetExceeded> {
        budget.work(file.len())?;
        let mut seed = Seed::of_bytes(file);
        let count = LEAST_WORDS + seed.below(MORE_WORDS);
        let words = (0..count).map(|_| WORDS[seed.below(WORDS.len())]).collect();
        Ok(Self { words, seconds: seconds_of(file) })
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// Length of a sound: exact for a WAV file as the simulator makes them, else by a common rate.
fn seconds_of(file: &[u8]) -> f64 {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4)?;
        Some(f64::from(u32::from_le_bytes(bytes.try_into().ok()?)))
    };
    let is_wav = file.starts_with(b"RIFF") && file.get(8..16) == Some(b"WAVEfmt ".as_slice());
    let rate = if is_wav && file.get(36..40) == Some(b"data".as_slice()) { number(28) } else { None };
    let length = u32::try_from(file.len().saturating_sub(if rate.is_some() { 44 } else { 0 }));
    let length = f64::from(length.unwrap_or(u32::MAX));
    let seconds = length / rate.filter(|rate| *rate > 0.0).unwrap_or(BYTES_PER_SECOND);
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech;

    fn of(file: &[u8]) -> Transcript {
        Transcript::of(file, &Budget::new()).expect("within the budget")
    }

    #[test]
    fn transcript_depends_on_the_file_alone() {
        assert_eq!(of(b"abc"), of(b"abc"));
        assert_ne!(of(b"abc").words, of(b"abd").words);
        for file in [&b""[..], b"RIFF", b"RIFF....WAVEfmt ....................data"] {
            let transcript = of(file);
            assert!((LEAST_WORDS..LEAST_WORDS + MORE_WORDS).contains(&transcript.words.len()));
            assert_eq!(transcript.text().split(' ').count(), transcript.words.len());
            assert!(transcript.seconds.is_finite(), "{transcript:?}");
        }
    }

    #[test]
    fn length_of_speech_is_exact() {
        let samples = speech::samples("a boat", "alloy", 1.0, &Budget::new()).expect("within the budget");
        assert!((of(&speech::wav(&samples)).seconds - 0.12).abs() < 1e-9);
        assert!((of(&vec![0; 24_000]).seconds - 1.5).abs() < 1e-9);
    }

    #[test]
    fn long_file_exceeds_a_small_budget() {
        assert!(Transcript::of(&[0; 2000], &Budget::of(1000, usize::MAX)).is_err());
    }
}
