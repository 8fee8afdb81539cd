//! Thoughts in requests, before they go to a provider that validates them.

use std::borrow::Cow;

use super::proof::is_marked;
use crate::conversation::{Part, PartKind, Thought};

/// Joins each proof with its text. Clients that keep the pieces of a stream send the text of a thought in several parts
/// and its proof in one more. `takes`: whether the target accepts a proof; if not, the thought is omitted.
pub(super) fn joined(parts: &[Part], takes: impl Fn(&String) -> bool) -> Cow<'_, [Part]> {
    let is_proof = |part: &Part| proof_of(part).is_some_and(&takes);
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

/// The proof of a thought without its text.
fn proof_of(part: &Part) -> Option<&String> {
    match &part.kind {
        PartKind::Thought(Thought { signature, text, redacted: false, .. })
            if text.iter().all(String::is_empty) =>
        {
            // Others keep them together.
            signature.as_ref().filter(|proof| is_marked(proof))
        }
        _ => None,
    }
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
    fn thought_pieces_are_joined_up_to_their_proof() {
        let answer_text = Part { at: "/y".into(), kind: PartKind::Text("Yes.".to_owned()), cache: None };
        let parts = [
            thought("I need", None),
            thought(" it.", None),
            thought("", Some("gw-messages:s1")),
            answer_text.clone(),
            thought("Two.", Some("s2")),
        ];
        let expected =
            [thought("I need it.", Some("gw-messages:s1")), answer_text, thought("Two.", Some("s2"))];
        assert_eq!(*joined(&parts, |_| true), expected);
        assert!(matches!(joined(&parts, |_| false), Cow::Borrowed(_)));
        assert!(matches!(joined(&expected, |_| true), Cow::Borrowed(_)));
    }
}
