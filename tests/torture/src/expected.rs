//! The upstream's response to an intent. It depends only on the number of the intent, so that a response to another
//! request, or part of one, is recognized.

use std::fmt::Write as _;

use ring::digest::SHA256;

/// The models of texts and of videos.
pub(crate) const TEXT: &str = "text";
pub(crate) const FILM: &str = "film";
/// The first bytes of a video file.
const HEAD: &[u8] = b"\0\0\0\x18ftypmp42";
/// Size of most files, in bytes.
const SMALL: usize = 48 * 1024;
/// Size of a few files, which a bucket takes in parts.
const LARGE: usize = 6 * 1024 * 1024;

/// The text of a response.
pub(crate) fn text(intent: u64) -> String {
    let mut text = format!("intent {intent}:");
    for word in 0..intent % 40 {
        _ = write!(text, " word{}", word * intent % 97);
    }
    text
}

/// What it used: input and output tokens.
pub(crate) fn tokens(intent: u64) -> (u64, u64) {
    (10 + intent % 13, 5 + intent % 40)
}

/// What a million input and output tokens cost: a budget of money is used up at a different moment than one of tokens.
pub(crate) const PRICES: (u64, u64) = (2_000, 7_000);
/// Billionths in a unit of the currency, in which money is counted.
pub(crate) const UNIT: u64 = 1_000_000_000;

/// What input and output tokens cost, in billionths.
pub(crate) fn cost((input, output): (u64, u64)) -> u64 {
    (input * PRICES.0 + output * PRICES.1) * (UNIT / 1_000_000)
}

/// Whether the video of an intent fails.
pub(crate) fn fails(intent: u64) -> bool {
    intent % 11 == 7
}

/// How long a video takes, in milliseconds: it waits for a while, then it is made.
pub(crate) fn pace(intent: u64) -> (u64, u64) {
    let waits = 100 + intent % 5 * 150;
    (waits, waits + 200 + intent % 7 * 600)
}

/// The file of a video.
pub(crate) fn video(intent: u64) -> Vec<u8> {
    let length = if intent % 53 == 5 { LARGE } else { SMALL };
    let mut file = HEAD.to_vec();
    let mut state = intent | 1;
    while file.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        file.extend_from_slice(&state.to_le_bytes());
    }
    file
}

/// The digest of a file.
pub(crate) fn digest(file: &[u8]) -> String {
    let mut digits = String::new();
    for byte in ring::digest::digest(&SHA256, file).as_ref() {
        _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The intent that a prompt names: its digits.
pub(crate) fn intent_of(prompt: &str) -> Option<u64> {
    let (_, after) = prompt.split_once('#')?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// A prompt that names an intent.
pub(crate) fn prompt(intent: u64) -> String {
    format!("answer #{intent}, please")
}
