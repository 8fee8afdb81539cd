//! Speech: a tone in place of a voice. Its pitch depends on the voice, its length on the text and the speed, and on nothing else.

use std::f64::consts::TAU;

use crate::budget::{Budget, BudgetExceeded};
use crate::seed::Seed;

/// Samples per second. A sample has 16 bits, and there is one channel.
pub const SAMPLE_RATE: u32 = 24_000;
/// Bytes of a sample.
const SAMPLE_BYTES: u16 = 2;
/// Samples per character of the text at the usual speed: a fiftieth of a second.
const PER_CHARACTER: f64 = 480.0;
/// Samples of a wave: the pitch is between 200 and 500 Hz.
const SHORTEST_WAVE: u32 = 48;
const LONGEST_WAVE: u32 = 120;
/// How loud it is; the maximum is 32767.
const AMPLITUDE: f64 = 8192.0;
/// Length of the header of a WAV file.
const HEADER_BYTES: usize = 44;

/// The samples of a text read aloud, in little-endian order. `speed`: 1 is usual; above 0.
pub fn samples(text: &str, voice: &str, speed: f64, budget: &Budget) -> Result<Vec<u8>, BudgetExceeded> {
    budget.work(text.len().saturating_add(voice.len()))?;
    let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a conversion of floats saturates, and the budget bounds the length"
    )]
    let count = (f64::from(characters) * PER_CHARACTER / speed) as usize;
    budget.make(count.saturating_mul(usize::from(SAMPLE_BYTES)))?;
    let wave = wave(voice);
    Ok(wave.iter().cycle().take(count).flatten().copied().collect())
}

/// One wave of a voice.
fn wave(voice: &str) -> Vec<[u8; 2]> {
    let longer = Seed::of(voice).below((LONGEST_WAVE - SHORTEST_WAVE) as usize);
    let length = SHORTEST_WAVE + u32::try_from(longer).unwrap_or_default();
    let sample = |index: u32| {
        let height = AMPLITUDE * (TAU * f64::from(index) / f64::from(length)).sin();
        #[expect(clippy::cast_possible_truncation, reason = "within the amplitude")]
        let height = height.round() as i16;
        height.to_le_bytes()
    };
    (0..length).map(sample).collect()
}

/// The samples as a WAV file.
pub fn wav(samples: &[u8]) -> Vec<u8> {
    // The budget keeps the length far below the limit of the format.
    let length = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let mut file = Vec::with_capacity(HEADER_BYTES + samples.len());
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&length.saturating_add(36).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    // PCM, of one channel.
    for word in [1_u16, 1] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(&SAMPLE_RATE.to_le_bytes());
    file.extend_from_slice(&(SAMPLE_RATE * u32::from(SAMPLE_BYTES)).to_le_bytes());
    for word in [SAMPLE_BYTES, 8 * SAMPLE_BYTES] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    file.extend_from_slice(b"data");
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(samples);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(text: &str, voice: &str, speed: f64) -> Vec<u8> {
        samples(text, voice, speed, &Budget::new()).expect("within the budget")
    }

    #[test]
    fn speech_depends_on_text_voice_and_speed_alone() {
        let usual = spoken("a boat", "alloy", 1.0);
        assert_eq!(usual, spoken("a boat", "alloy", 1.0));
        assert_eq!(usual.len(), 6 * 480 * 2);
        assert_ne!(usual, spoken("a boat", "onyx", 1.0));
        assert_eq!(spoken("a boat", "alloy", 2.0), usual[..usual.len() / 2]);
        assert_eq!(spoken("é", "alloy", 1.0).len(), 480 * 2);
        assert!(spoken("", "alloy", 1.0).is_empty());
    }

    #[test]
    fn tone_is_audible() {
        let spoken = spoken("a boat on a lake", "alloy", 1.0);
        let heights: Vec<i16> =
            spoken.chunks_exact(2).map(|bytes| i16::from_le_bytes([bytes[0], bytes[1]])).collect();
        let (least, most) = (heights.iter().min().expect("some"), heights.iter().max().expect("some"));
        assert!((8100..=8192).contains(most) && (-8192..=-8100).contains(least), "{least} {most}");
        let rising = heights.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count();
        // 16 characters are 0.32 s.
        assert!((64..=160).contains(&rising), "{rising} waves");
    }

    #[test]
    fn wav_file_states_its_format_and_length() {
        let samples = spoken("a", "alloy", 1.0);
        let file = wav(&samples);
        let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((&file[..4], &file[8..16], &file[36..40]), (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..]));
        assert_eq!((number(4) as usize, number(40) as usize), (file.len() - 8, samples.len()));
        assert_eq!((number(24), number(28)), (SAMPLE_RATE, 48_000));
        assert_eq!(file[HEADER_BYTES..], samples);
    }

    #[test]
    fn longest_speech_is_within_the_budget() {
        let spoken = spoken(&"a".repeat(4096), "alloy", 0.25);
        assert_eq!(spoken.len(), 4096 * 480 * 4 * 2);
        assert!(samples(&"a".repeat(100_000), "alloy", 0.25, &Budget::new()).is_err());
    }
}
