//! Redacts secrets in text from outside: the client's own, in every encoding a service may use, and anything that looks
//! like another secret. Errors, the log, spans and the check kit's reports all use this module.
//!
//! Texts are redacted first and cut afterwards, so that no cut leaves half a secret.

mod changing_secrets;
mod others;
mod spelling;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::PoisonError;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use memchr::memmem;

pub use self::changing_secrets::ChangingSecrets;
use self::spelling::{DecodedText, encodings, widened};
use crate::wire::secret_names::is_secret_name;
use gatewright_safe::visible::visible_lines;

/// The text that replaces a secret.
///
/// ```
/// use gatewright::redact::{REDACTED, Redactor};
///
/// let shown = Redactor::new(["my-secret-key"]).redact("Bearer my-secret-key");
/// assert_eq!(shown, format!("Bearer {REDACTED}"));
/// ```
pub const REDACTED: &str = "[redacted]";

/// A secret shorter than this, in bytes, may be an ordinary word: it is redacted only as a whole word.
///
/// ```
/// use gatewright::redact::{Redactor, SHORTEST_DISTINCT};
///
/// assert!("boat".len() < SHORTEST_DISTINCT);
/// assert_eq!(Redactor::new(["boat"]).redact("boat, boats"), "[redacted], boats");
/// ```
pub const SHORTEST_DISTINCT: usize = 6;
/// How often a text is unescaped: JSON in JSON in a URL is three levels deep.
const LEVELS: usize = 3;
/// Shortest prefix of a secret that is redacted at the end of a truncated text.
const SHORTEST_BEGINNING: usize = 6;
/// Text is searched in chunks of this many bytes, which bounds the memory.
const STEP_BYTES: usize = 64 << 10;
/// Bytes that one byte of a secret may be spelled with: `\\\\u0073` is a letter of JSON in JSON in JSON.
const SPELLED_BYTES: usize = 24;

/// Knows the secrets to look for.
///
/// ```
/// use gatewright::redact::Redactor;
///
/// let redactor = Redactor::new(["my-secret-key"]);
/// assert!(redactor.finds("key=my-secret-key"));
/// assert_eq!(redactor.redact("key=my-secret-key"), "key=[redacted]");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<KnownSecret>,
    changing: Option<ChangingSecrets>,
}

#[derive(Clone)]
struct KnownSecret {
    /// In lower case, because a service may change the case of what it echoes.
    plain: Vec<u8>,
    /// The parts of its base64 and hex forms that don't depend on the surrounding text; none for a short
    /// secret.
    encoded: Vec<Vec<u8>>,
}

/// Which secrets to redact.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretScope {
    /// Only those the redactor knows: for content that must otherwise stay unchanged.
    Own,
    /// Those, and anything that looks like another party's secret.
    All,
}

impl Redactor {
    /// A redactor for these secrets; empty ones are ignored.
    ///
    /// ```
    /// use gatewright::redact::Redactor;
    ///
    /// let redactor = Redactor::new(["my-secret-key", "another-secret"]);
    /// assert_eq!(redactor.redact("another-secret!"), "[redacted]!");
    /// ```
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut secrets: Vec<&str> = secrets.into_iter().map(str::trim).collect();
        secrets.sort_unstable();
        secrets.dedup();
        secrets.retain(|secret| !secret.is_empty());
        Self { secrets: secrets.into_iter().map(KnownSecret::new).collect(), changing: None }
    }

    /// The same redactor, which also knows secrets that change, with their values at the time it is used.
    ///
    /// ```
    /// use gatewright::redact::{ChangingSecrets, Redactor};
    ///
    /// let changing = ChangingSecrets::default();
    /// let redactor = Redactor::new(["my-secret-key"]).also_knowing(Some(changing.clone()));
    /// changing.set(["another-secret"]);
    /// assert_eq!(redactor.redact("my-secret-key, another-secret"), "[redacted], [redacted]");
    /// ```
    #[must_use]
    pub fn also_knowing(self, changing: Option<ChangingSecrets>) -> Self {
        Self { changing, ..self }
    }

    /// A redactor with the secrets that this one knows now. None if its secrets don't change.
    fn of_now(&self) -> Option<Self> {
        let changing = self.changing.as_ref()?.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Self { secrets: self.secrets.iter().chain(changing.iter()).cloned().collect(), changing: None })
    }

    /// Whether a text contains one of the known secrets in some form.
    ///
    /// ```
    /// use gatewright::redact::Redactor;
    ///
    /// let redactor = Redactor::new(["my-secret-key"]);
    /// assert!(redactor.finds("https://example.com/?key=my%2Dsecret%2Dkey"));
    /// assert!(!redactor.finds("https://example.com/"));
    /// ```
    pub fn finds(&self, text: &str) -> bool {
        !self.spans(text.as_bytes(), SecretScope::Own).is_empty()
    }

    /// The text with every secret replaced by [`REDACTED`].
    ///
    /// ```
    /// use gatewright::redact::Redactor;
    ///
    /// let redactor = Redactor::new(["my-secret-key"]);
    /// assert_eq!(redactor.redact("Bearer my-secret-key is wrong"), "Bearer [redacted] is wrong");
    /// ```
    pub fn redact(&self, text: &str) -> String {
        self.redact_beginning(text, text.len()).0
    }

    /// The beginning of a text with every secret replaced, and whether the text is longer. max_bytes: limit on the
    /// original text; a secret across the cut is removed whole.
    ///
    /// ```
    /// use gatewright::redact::Redactor;
    ///
    /// let redactor = Redactor::new(["my-secret-key"]);
    /// let (beginning, is_cut) = redactor.redact_beginning("it is my-secret-key", 12);
    /// assert!(is_cut && !beginning.contains("my-sec"));
    /// ```
    pub fn redact_beginning(&self, text: &str, max_bytes: usize) -> (String, bool) {
        let end = text.floor_char_boundary(max_bytes);
        let clean = match self.without_secrets(text.as_bytes(), end, SecretScope::All) {
            // Secrets are removed at character boundaries.
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text[..end].to_owned(),
        };
        (clean, end < text.len())
    }

    /// A short text from outside, in a form that an error or a span may carry: without secrets, and without
    /// characters that could control a terminal. max_chars: where it is cut, in characters.
    pub(crate) fn show(&self, text: &str, max_chars: usize) -> SafeText {
        // A character has at most four bytes.
        let (clean, _) = self.redact_beginning(text, max_chars.saturating_mul(4));
        let clean = match clean.char_indices().nth(max_chars) {
            Some((end, _)) => &clean[..end],
            None => &clean,
        };
        SafeText(Cow::Owned(visible_lines(clean).into_owned()))
    }

    /// The beginning of a body from outside, which need not be text. max_bytes: limit on the result.
    pub(crate) fn show_body(&self, body: &Bytes, max_bytes: usize) -> SafeBytes {
        let end = body.len().min(max_bytes);
        let mut shown =
            self.without_secrets(body, end, SecretScope::All).map_or_else(|| body.slice(..end), Bytes::from);
        shown.truncate(max_bytes);
        SafeBytes(shown)
    }

    /// A JSON document built from what a service sent, such as the part of a response that arrived. It is unchanged
    /// except for the known secrets; none if it would no longer be JSON without them.
    pub(crate) fn show_document(&self, document: Bytes) -> Option<SafeBytes> {
        let Some(clean) = self.without_secrets(&document, document.len(), SecretScope::Own) else {
            return Some(SafeBytes(document));
        };
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(&clean).is_ok();
        is_json.then(|| SafeBytes(clean.into()))
    }

    /// A response's headers: those with secret names lose their value, the others any secret in it.
    pub(crate) fn show_headers(&self, headers: HeaderMap) -> SafeHeaders {
        let mut shown = headers;
        for (name, value) in &mut shown {
            if value.is_sensitive() || is_secret_name(name.as_str()) {
                *value = HeaderValue::from_static(REDACTED);
                continue;
            }
            if let Some(clean) = self.without_secrets(value.as_bytes(), value.len(), SecretScope::All) {
                *value = HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(REDACTED));
            }
        }
        SafeHeaders(shown)
    }

    /// The text up to `end` without secrets; none if it contains none. The text after `end` is searched as far as a
    /// secret that begins before it can reach.
    fn without_secrets(&self, text: &[u8], end: usize, whose: SecretScope) -> Option<Vec<u8>> {
        if let Some(now) = self.of_now() {
            return now.without_secrets(text, end, whose);
        }
        let window = &text[..text.len().min(end.saturating_add(self.margin()))];
        let mut spans = self.spans(window, whose);
        spans.retain(|span| span.start < end);
        if spans.is_empty() {
            return None;
        }
        let (mut clean, mut from) = (Vec::with_capacity(end), 0);
        for span in spans {
            clean.extend_from_slice(&text[from..span.start]);
            clean.extend_from_slice(REDACTED.as_bytes());
            from = span.end;
        }
        clean.extend_from_slice(text.get(from..end).unwrap_or_default());
        Some(clean)
    }

    /// Maximum number of bytes that the longest known secret takes in any form.
    fn margin(&self) -> usize {
        let longest = self.secrets.iter().map(|secret| secret.plain.len()).max().unwrap_or_default();
        longest.saturating_mul(SPELLED_BYTES)
    }

    /// The positions of secrets: in order, without overlaps, at character boundaries.
    fn spans(&self, text: &[u8], whose: SecretScope) -> Vec<Range<usize>> {
        if let Some(now) = self.of_now() {
            return now.spans(text, whose);
        }
        let mut spans: Vec<_> = match whose {
            SecretScope::Own => Vec::new(),
            SecretScope::All => others::spans(text).collect(),
        };
        if !self.secrets.is_empty() {
            let margin = self.margin();
            for at in (0..text.len()).step_by(STEP_BYTES) {
                let step = at.saturating_sub(margin)..text.len().min(at + STEP_BYTES + margin);
                self.find(text, step, &mut spans);
                merge(text, &mut spans);
            }
        }
        spans.extend(self.secrets.iter().filter_map(|secret| secret.beginning_at_end_of(text)));
        merge(text, &mut spans);
        spans
    }

    /// Searches a part of a text.
    fn find(&self, text: &[u8], part: Range<usize>, spans: &mut Vec<Range<usize>>) {
        // Text outside of the part is not visible, so a word at its edge may not be a whole word.
        let open = (part.start > 0, part.end < text.len());
        let mut level = DecodedText::of(&text[part.clone()]);
        for depth in 0..=LEVELS {
            for secret in &self.secrets {
                let found = secret.find(&level, open);
                spans.extend(found.map(|span| span.start + part.start..span.end + part.start));
                // Many secrets may be found at the same places.
                if spans.len() > STEP_BYTES {
                    merge(text, spans);
                }
            }
            match level.unescaped() {
                Some(next) if depth < LEVELS => level = next,
                _ => break,
            }
        }
    }
}

/// Shows none of the secrets.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl KnownSecret {
    /// secret: without surrounding white space.
    fn new(secret: &str) -> Self {
        let plain = secret.to_ascii_lowercase().into_bytes();
        let encoded = if plain.len() < SHORTEST_DISTINCT { Vec::new() } else { encodings(secret) };
        Self { plain, encoded }
    }

    /// Its positions in the original of a level. open: whether there is more text before and after the level.
    fn find<'a>(
        &'a self,
        level: &'a DecodedText,
        open: (bool, bool),
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let plain = memmem::find_iter(&level.lower, &self.plain).filter_map(move |at| {
            let end = at + self.plain.len();
            let is_joined = |byte: Option<&u8>, open: bool| byte.map_or(open, u8::is_ascii_alphanumeric);
            let before = at.checked_sub(1).and_then(|before| level.bytes.get(before));
            let is_alone = || !is_joined(before, open.0) && !is_joined(level.bytes.get(end), open.1);
            (self.plain.len() >= SHORTEST_DISTINCT || is_alone()).then(|| level.source(at, end))
        });
        let encoded = self.encoded.iter().flat_map(|encoded| {
            memmem::find_iter(&level.bytes, encoded).map(|at| {
                let (start, end) = widened(&level.bytes, at, at + encoded.len());
                level.source(start, end)
            })
        });
        plain.chain(encoded)
    }

    /// A truncated text may end with half a secret.
    fn beginning_at_end_of(&self, text: &[u8]) -> Option<Range<usize>> {
        let longest = self.plain.len().saturating_sub(1).min(text.len());
        (SHORTEST_BEGINNING..=longest).rev().find_map(|length| {
            let start = text.len() - length;
            text[start..].eq_ignore_ascii_case(&self.plain[..length]).then_some(start..text.len())
        })
    }
}

/// Sorts spans, merges those that touch, and widens them to whole characters.
fn merge(text: &[u8], spans: &mut Vec<Range<usize>>) {
    spans.sort_unstable_by_key(|span| span.start);
    for span in spans.iter_mut() {
        *span = whole_characters(text, span.clone());
    }
    spans.dedup_by(|span, last| {
        let touches = span.start <= last.end;
        if touches {
            last.end = last.end.max(span.end);
        }
        touches
    });
}

/// The range, widened to whole UTF-8 characters.
fn whole_characters(text: &[u8], Range { mut start, mut end }: Range<usize>) -> Range<usize> {
    let is_inside = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    while start > 0 && is_inside(start) {
        start -= 1;
    }
    while is_inside(end) {
        end += 1;
    }
    start..end
}

/// A short text that may be shown: our own words, or text that a [`Redactor`] passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SafeText(Cow<'static, str>);

impl SafeText {
    /// A text of ours.
    pub(crate) const fn ours(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl Deref for SafeText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// Bytes that a [`Redactor`] passed.
#[derive(Debug, Clone)]
pub(crate) struct SafeBytes(Bytes);

impl Deref for SafeBytes {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.0
    }
}

/// Headers that a [`Redactor`] passed.
#[derive(Debug, Clone)]
pub(crate) struct SafeHeaders(HeaderMap);

impl Deref for SafeHeaders {
    type Target = HeaderMap;

    fn deref(&self) -> &HeaderMap {
        &self.0
    }
}

#[cfg(test)]
mod tests;
