//! Thoughts in requests, before they go to a provider that checks them.

use std::borrow::Cow;

use crate::conversation::{Part, PartKind, Thought};

/// The parts with each proof beside its text. Clients that keep the pieces of a stream send the text of a thought in several
/// parts, and its proof in one more.
pub(super) fn joined(parts: &[Part]) -> Cow<'_, [Part]> {
    if !parts.windows(2).any(|pair| is_text(&pair[0]) && is_proof(&pair[1])) {
        return Cow::Borrowed(parts);
    }
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        let mut part = part.clone();
        if is_proof(&part)
            && let PartKind::Thought(proven) = &mut part.kind
        {
            let first = joined.iter().rposition(|before| !is_text(before)).map_or(0, |last| last + 1);
            let mut text = String::new();
            for before in joined.drain(first..) {
                if let PartKind::Thought(thought) = before.kind {
                    proven.summary |= thought.summary;
                    text.push_str(&thought.text.concat());
                }
            }
            if !text.is_empty() {
                proven.text = vec![text];
            }
        }
        joined.push(part);
    }
    Cow::Owned(joined)
}

/// Whether a part is the text of a thought without a proof.
fn is_text(part: &Part) -> bool {
    matches!(&part.kind, PartKind::Thought(Thought { signature: None, text, .. }) if !text.is_empty())
}

/// Whether a part is the proof of a thought without its text.
fn is_proof(part: &Part) -> bool {
    matches!(&part.kind, PartKind::Thought(Thought { signature: Some(_), text, redacted: false, .. }) if text.concat().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought(text: &str, signature: Option<&str>) -> Part {
        let text = (!text.is_empty()).then(|| text.to_owned()).into_iter().collect();
        let signature = signature.map(str::to_owned);
        let kind = PartKind::Thought(Thought { text, signature, ..Thought::default() });
        Part { at: "/x".into(), kind, cache: None }
    }

    #[test]
    fn the_pieces_of_a_thought_come_together_before_their_proof() {
        let said = Part { at: "/y".into(), kind: PartKind::Text("Yes.".to_owned()), cache: None };
        let parts = [
            thought("I need", None),
            thought(" it.", None),
            thought("", Some("s1")),
            said.clone(),
            thought("Two.", Some("s2")),
        ];
        let expected = [thought("I need it.", Some("s1")), said, thought("Two.", Some("s2"))];
        assert_eq!(*joined(&parts), expected);
        assert!(matches!(joined(&expected), Cow::Borrowed(_)));
    }
}
