//! Redacts secrets in text from outside: the client's own, in every encoding a service may use, and anything that looks
//! like another secret. Errors, the log, spans and the check kit's reports all use this module.
//!
//! Texts are redacted first and cut afterwards, so that no cut leaves half a secret.

mod others;
mod spelling;

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use memchr::memmem;

use self::spelling::{DecodedText, encodings, widened};
use crate::wire::secret_names::is_secret_name;
use gatewright_safe::visible::visible_lines;

/// What stands in place of a secret.
///
/// ```
/// use gatewright::redact::{REDACTED, Redactor};
///
/// let shown = Redactor::new(["my-secret-key"]).redact("Bearer my-secret-key");
/// assert_eq!(shown, format!("Bearer {REDACTED}"));
/// ```
pub const REDACTED: &str = "[redacted]";

/// A secret shorter than this, in bytes, may be an ordinary word: it is redacted only where it stands alone.
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

/// Secrets that are replaced while redactors know them, such as keys that hold for an hour. Clones are the same secrets.
///
/// ```
/// use gatewright::redact::{ChangingSecrets, Redactor};
///
/// let changing = ChangingSecrets::default();
/// let redactor = Redactor::default().also_knowing(Some(changing.clone()));
/// changing.set(["key-of-this-hour"]);
/// assert_eq!(redactor.redact("key-of-this-hour"), "[redacted]");
/// ```
#[derive(Clone, Default)]
pub struct ChangingSecrets(Arc<RwLock<Vec<KnownSecret>>>);

impl ChangingSecrets {
    /// Replaces the secrets.
    ///
    /// ```
    /// use gatewright::redact::{ChangingSecrets, Redactor};
    ///
    /// let changing = ChangingSecrets::default();
    /// changing.set(["first-secret"]);
    /// changing.set(["second-secret"]);
    /// let redactor = Redactor::default().also_knowing(Some(changing));
    /// assert_eq!(redactor.redact("first-secret, second-secret"), "first-secret, [redacted]");
    /// ```
    pub fn set<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Redactor::new(secrets).secrets;
    }
}

/// Shows none of the secrets.
impl fmt::Debug for ChangingSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
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
    /// Those, and anything that looks like somebody else's.
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
    /// anything that a terminal acts on. max_chars: where it is cut, in characters.
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
        // Text beside the part is not visible, so a word at the edge may not stand alone.
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
mod tests {
    use base64::Engine as _;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    const KEY: &str = "gw_Canary/4+7f=x9";

    fn redactor() -> Redactor {
        Redactor::new([KEY])
    }

    fn spelled(text: &str, form: impl Fn(char) -> String) -> String {
        let letters: Vec<String> = text.chars().map(form).collect();
        letters.concat()
    }

    fn json_escaped(text: &str) -> String {
        spelled(text, |letter| format!("\\u{:04X}", u32::from(letter)))
    }

    fn percent(text: &str) -> String {
        spelled(text, |letter| format!("%{:02x}", u32::from(letter)))
    }

    fn forms() -> Vec<(&'static str, String)> {
        let spread = |between: &str| spelled(KEY, |letter| format!("{letter}{between}"));
        vec![
            ("plain", KEY.to_owned()),
            ("upper case", KEY.to_uppercase()),
            ("lower case", KEY.to_lowercase()),
            ("slashes escaped", KEY.replace('/', "\\/")),
            ("as JSON code points", json_escaped(KEY)),
            ("JSON in JSON", json_escaped(KEY).replace('\\', "\\\\")),
            ("in a URL", percent(KEY)),
            ("special characters in a URL", KEY.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D")),
            ("twice in a URL", percent(KEY).replace('%', "%25")),
            ("HTML", spelled(KEY, |letter| format!("&#{};", u32::from(letter)))),
            ("HTML in hex", spelled(KEY, |letter| format!("&#x{:X};", u32::from(letter)))),
            ("base64", BASE64_STANDARD.encode(KEY)),
            ("base64 for URLs", BASE64_URL_SAFE.encode(KEY)),
            ("Basic", BASE64_STANDARD.encode(format!("user:{KEY}"))),
            ("base64, shifted", BASE64_STANDARD.encode(format!("u:{KEY}!"))),
            ("hex", spelled(KEY, |letter| format!("{:02x}", u32::from(letter)))),
            ("HEX", spelled(KEY, |letter| format!("{:02X}", u32::from(letter)))),
            ("with zeros between", spread("\0")),
            ("with zero width between", spread("\u{200b}")),
            ("with line breaks between", spread("\n")),
        ]
    }

    #[test]
    fn key_is_taken_out_in_every_form() {
        for (name, form) in forms() {
            for (before, after) in [("", ""), ("{\"message\":\"bad key ", "\"}"), ("ü", "é end")] {
                let redacted = redactor().redact(&format!("{before}{form}{after}"));
                assert!(redacted.contains(REDACTED), "{name}: {redacted}");
                assert!(redacted.starts_with(before), "{name}: {redacted}");
                assert!(redacted.ends_with(after), "{name}: {redacted}");
                // In a longer base64 text, the part before the secret remains.
                assert!(
                    redacted.len() <= before.len() + after.len() + REDACTED.len() + 8,
                    "{name}: {redacted}"
                );
                assert!(redactor().finds(&form), "{name}");
            }
        }
    }

    #[test]
    fn beginning_of_a_key_at_the_end_of_what_was_cut_off_is_taken_out() {
        assert_eq!(redactor().redact("{\"echo\":\"gw_Canary/"), "{\"echo\":\"[redacted]");
        assert_eq!(redactor().redact("end of gw_C"), "end of gw_C");
    }

    #[test]
    fn a_text_is_redacted_before_it_is_cut_at_whatever_place() {
        for (name, form) in forms() {
            let text = format!("{}{form}{}", "x".repeat(40), " y".repeat(40));
            let whole = redactor().redact(&text);
            for max_bytes in 0..text.len() {
                let (cut, _) = redactor().redact_beginning(&text, max_bytes);
                assert!(whole.starts_with(&cut), "{name} at {max_bytes}: {cut}");
                let body = redactor().show_body(&Bytes::from(text.clone()), max_bytes);
                assert!(whole.as_bytes().starts_with(&body), "{name} at {max_bytes}: {body:?}");
                assert!(body.len() <= max_bytes);
            }
        }
    }

    #[test]
    fn many_secrets_shorten_a_text_and_bring_no_half_of_one_into_sight() {
        let text = KEY.repeat(1000);
        for max_bytes in (1..text.len()).step_by(61) {
            let shown = redactor().show_body(&Bytes::from(text.clone()), max_bytes);
            assert!(REDACTED.as_bytes().starts_with(&shown), "{shown:?}");
        }
    }

    #[test]
    fn a_secret_across_the_steps_of_a_long_text_is_found() {
        for before in STEP_BYTES - 2 * KEY.len()..STEP_BYTES + 2 {
            let redacted = redactor().redact(&format!("{}{}", " ".repeat(before), json_escaped(KEY)));
            assert_eq!(redacted.trim_start(), REDACTED, "{before}");
        }
        let short = Redactor::new(["key"]);
        let words = "monkey ".repeat(STEP_BYTES / 3);
        assert_eq!(short.redact(&words), words);
    }

    #[test]
    fn many_secrets_at_the_same_places_take_memory_for_one() {
        let alike = Redactor::new(["canary-1", " canary-1", "canary-2", "canary-1", "", " "]);
        assert_eq!(alike.secrets.len(), 2);
        let secrets: Vec<String> =
            (SHORTEST_DISTINCT..SHORTEST_DISTINCT + 32).map(|n| "a".repeat(n)).collect();
        let text = "a".repeat(1 << 18);
        let redactor = Redactor::new(secrets.iter().map(String::as_str));
        let used = allocation_counter::measure(|| assert_eq!(redactor.redact(&text), REDACTED));
        assert!(used.bytes_max < 4 << 20, "{used:?}");
    }

    #[test]
    fn bytes_that_are_no_text_are_redacted_and_stay_as_they_are_otherwise() {
        let body = [b"\xff", KEY.as_bytes(), b"\xfe"].concat();
        assert_eq!(redactor().show_body(&body.into(), 100)[..], b"\xff[redacted]\xfe"[..]);
        let content = format!("{{\"content\":\"sk-example-of-a-tutorial {KEY}\"}}");
        let document = redactor().show_document(content.into()).expect("JSON");
        assert_eq!(document[..], b"{\"content\":\"sk-example-of-a-tutorial [redacted]\"}"[..]);
        let digits = Redactor::new(["1700000000"]);
        assert!(digits.show_document(Bytes::from_static(b"{\"created\":1700000000}")).is_none());
    }

    #[test]
    fn headers_lose_what_is_secret_by_name_or_holds_a_secret() {
        let headers = [
            ("set-cookie", "id=canary-cookie"),
            ("x-echo", "gw_Canary/4+7f=x9"),
            ("location", "https://h/login?next=1&key=canary-key"),
            ("www-authenticate", "Bearer realm=\"gateway\""),
            ("x-ratelimit-remaining-tokens", "17"),
        ];
        let headers = headers
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        let shown = redactor().show_headers(HeaderMap::from_iter(headers));
        let values: Vec<_> = shown.values().map(|value| value.to_str().expect("text")).collect();
        assert_eq!(
            values,
            [REDACTED, REDACTED, "https://h/login?next=1&key=[redacted]", "Bearer realm=\"gateway\"", "17"]
        );
    }

    #[test]
    fn a_shown_text_is_cut_after_its_secrets_and_steers_no_terminal() {
        let shown = redactor().show(&format!("{}{KEY} \x1b[2J", "x".repeat(10)), 100);
        assert_eq!(&*shown, "xxxxxxxxxx[redacted] \\u{1b}[2J");
        for before in 0..110 {
            let shown = redactor().show(&format!("{}{KEY}{}", "x".repeat(before), "y".repeat(200)), 100);
            assert!(!shown.contains("gw_"), "{before}: {}", &*shown);
        }
    }

    #[test]
    fn credentials_of_others_are_taken_out() {
        for (text, expected) in [
            ("Authorization: Bearer abc123def", "Authorization: Bearer [redacted]"),
            ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
            ("Incorrect key sk-proj-abcd1234.", "Incorrect key [redacted]."),
            ("jwt eyJhbGciOi.eyJzdWIi.sig_-x ok", "jwt [redacted] ok"),
            ("GET /v1?key=abc&x=1", "GET /v1?key=[redacted]&x=1"),
            ("see https://u:p@host/x?api_key=1#f", "see https://[redacted]@host/x?api_key=[redacted]#f"),
            ("http://h/?a=1&access_token=q\"", "http://h/?a=1&access_token=[redacted]\""),
        ] {
            assert_eq!(redactor().redact(text), expected);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "Bearer token is missing",
            "Bearer authentication required",
            "Basic realm",
            "desk-top",
            "task-abcdefgh",
            "COMPAT-0123456789abcdef",
            "resp_0123456789abcdef",
            "monkey=1",
        ] {
            assert_eq!(redactor().redact(text), text);
        }
    }

    #[test]
    fn short_secrets_are_taken_out_where_they_stand_alone() {
        let redactor = Redactor::new(["key", " "]);
        assert_eq!(
            redactor.redact("wrong key: key, monkey, keys"),
            "wrong [redacted]: [redacted], monkey, keys"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_holds_no_key(
            before in ".{0,30}",
            form in 0..20usize,
            after in ".{0,30}",
        ) {
            let forms = forms();
            let (name, form) = &forms[form];
            let redacted = redactor().redact(&format!("{before}{form}{after}"));
            prop_assert!(!redacted.contains(form.as_str()), "{}: {}", name, redacted);
            prop_assert!(!redactor().finds(&redacted), "{}: {}", name, redacted);
        }
    }
}
