//! Redacts the texts of a report and its evidence, then truncates them. The order matters: truncation must not leave
//! half a secret.

use gatewright::redact;
use gatewright::visible::{visible, visible_lines};

pub(crate) use gatewright::redact::SHORTEST_DISTINCT;

/// Maximum length of a key in characters: the lookahead of the redaction of evidence.
pub(crate) const MAX_KEY_CHARS: usize = 4096;

/// Maximum length of a text in a report, in code points (2.12 states it for messages).
const MAX_FIELD_CHARS: usize = 2000;
/// Length that a longer text is truncated to.
const KEPT_FIELD_CHARS: usize = 1984;
const CUT: &str = "… [truncated]";
/// Maximum length of a text to process for a field of the report; truncation would remove the rest in any case.
const FIELD_BYTES: usize = 64 << 10;
/// A message for a check that failed without a message.
const NOTHING_SAID: &str = "unknown error";

/// Redacts the secrets of a run.
#[derive(Clone)]
pub(crate) struct Redactor(redact::Redactor);

impl Redactor {
    /// Creates a redactor for these secrets; ignores empty ones.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        Self(redact::Redactor::new(secrets))
    }

    /// Whether a text contains a secret of the run in any form.
    pub(crate) fn finds(&self, text: &str) -> bool {
        self.0.finds(text)
    }

    /// A text for a field of the report: redacted, on one line, at most 2000 code points.
    pub(crate) fn field(&self, text: &str) -> String {
        let (text, _) = self.0.redact_beginning(text, FIELD_BYTES);
        let text = text.replace(['\r', '\n', '\t'], " ");
        let line = visible(text.trim());
        if line.chars().count() <= MAX_FIELD_CHARS {
            return line.into_owned();
        }
        line.chars().take(KEPT_FIELD_CHARS).chain(CUT.chars()).collect()
    }

    /// Like [`Self::field`], but never empty.
    pub(crate) fn message(&self, text: &str) -> String {
        let message = self.field(text);
        if message.is_empty() { NOTHING_SAID.to_owned() } else { message }
    }

    /// A text for evidence: redacted, lines kept, at most about `max_bytes`.
    pub(crate) fn text(&self, text: &str, max_bytes: usize) -> String {
        let (text, mut cut) = self.0.redact_beginning(text, max_bytes);
        let mut shown = visible_lines(&text.replace('\r', " ")).into_owned();
        if shown.len() > max_bytes {
            shown.truncate(shown.floor_char_boundary(max_bytes));
            cut = true;
        }
        if cut {
            shown.push_str(CUT);
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "gw_Canary/4+7f=x9";

    fn redactor() -> Redactor {
        Redactor::new([KEY])
    }

    #[test]
    fn fields_are_single_lines_of_at_most_2000_code_points() {
        let redactor = redactor();
        assert_eq!(redactor.field("a\r\nb\u{202e}c\u{1b}[31m"), "a  b\\u{202e}c\\u{1b}[31m");
        assert_eq!(redactor.field(&"🙂".repeat(2000)), "🙂".repeat(2000));
        let cut = redactor.field(&"🙂".repeat(2001));
        assert_eq!(cut, format!("{}… [truncated]", "🙂".repeat(1984)));
        assert_eq!(redactor.message(" \n"), "unknown error");
    }

    #[test]
    fn key_is_fully_redacted_at_any_truncation_point() {
        let redactor = redactor();
        for (before, bound) in (1960..2010).zip(std::iter::repeat(KEPT_FIELD_CHARS)) {
            let field = redactor.field(&format!("{}{KEY}{}", "x".repeat(before), "y".repeat(100)));
            assert!(!field.contains("gw_"), "{before} of {bound}: {field}");
        }
        for max_bytes in 10..100 {
            let text = redactor.text(&format!("{KEY} ").repeat(100), max_bytes);
            assert!(!text.contains("gw_"), "{text}");
        }
    }

    #[test]
    fn evidence_text_keeps_its_lines() {
        assert_eq!(redactor().text("a\n\tb\u{7}c", 100), "a\n\tb\\u{7}c");
        assert_eq!(redactor().text(&"é".repeat(100), 9), "éééé… [truncated]");
    }
}
