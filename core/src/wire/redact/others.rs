//! Finds text that looks like another party's secret: keys and tokens of known forms, anywhere in a text.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// Values of `Bearer` and `Basic`, except plain short words: "Bearer token is missing" contains no secret.
static AUTHORIZATION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(?:bearer|basic)(?:\s+|%20|\+)([a-z0-9._~+/=-]{4,})"));
/// Keys and tokens in the formats of widely used services.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(\bsk-[A-Za-z0-9_-]{6,}",
        r"|\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
        r"|\bAIza[A-Za-z0-9_-]{20,})",
    ))
});
/// Query parameters that carry keys.
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?i)[?&;](?:api[-_]?key|key|access[-_]?token|token|auth|authorization|secret|password|sig|signature)=([^&;\s"'<>#\\]+)"#,
    )
});
/// User name and password of a URL.
static USERINFO: LazyLock<Regex> = LazyLock::new(|| regex(r#"://([^/\s@"'<>]+)@"#));

/// The pattern's first group is the secret.
fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a literal pattern compiles")
}

/// Whether a match of a pattern is a secret.
type IsSecret = fn(&[u8]) -> bool;

/// The positions of such secrets, in no order.
pub(super) fn spans(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let patterns: [(&'static Regex, IsSecret); 4] = [
        (&AUTHORIZATION, |value| !is_word(value)),
        (&TOKEN, any),
        (&PARAMETER, is_left),
        (&USERINFO, is_left),
    ];
    patterns.into_iter().flat_map(move |(pattern, is_secret)| {
        let found = pattern.captures_iter(text).filter_map(|found| found.get(1));
        found.filter(move |secret| is_secret(secret.as_bytes())).map(|secret| {
            // Punctuation after an address belongs to the sentence.
            let kept = secret.as_bytes().iter().rposition(|byte| !b",.:!?)".contains(byte));
            secret.start()..kept.map_or(secret.end(), |last| secret.start() + last + 1)
        })
    })
}

fn any(_: &[u8]) -> bool {
    true
}

/// Not redacted already, as [`crate::transport::secret`] does for parts of an address.
fn is_left(value: &[u8]) -> bool {
    !value.starts_with(b"redacted") && !value.starts_with(b"[redacted]")
}

/// A short lower-case word, which isn't a secret; also `realm=` of a challenge.
fn is_word(value: &[u8]) -> bool {
    let end = value.iter().rposition(|byte| !b".-=".contains(byte)).map_or(0, |last| last + 1);
    let letters = &value[..end];
    let [first, tail @ ..] = letters else { return true };
    letters.len() < 16 && first.is_ascii_alphabetic() && tail.iter().all(u8::is_ascii_lowercase)
}
