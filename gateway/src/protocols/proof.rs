//! Proofs of thoughts: opaque texts by which a provider knows its own thoughts again. Each provider refuses those of
//! another one. Where an answer goes to a client of another protocol than its provider's, a mark before each proof tells
//! the provider's protocol; a proof without a mark is of the protocol in which a client sends it.

use super::{Malformed, StreamIn};
use crate::conversation::{Answer, Delta, PartKind, Protocol};

/// The marks. No base64 has a colon.
const MARKS: [(Protocol, &str); 4] = [
    (Protocol::Chat, "gw-chat:"),
    (Protocol::Responses, "gw-responses:"),
    (Protocol::Messages, "gw-messages:"),
    (Protocol::Native, "gw-native:"),
];

/// The documented proof of a call in the native protocol whose own is not known: another model made it, or the client did not keep
/// it. To every other provider it is none.
pub(super) const NO_PROOF: &str = "skip_thought_signature_validator";

/// The proof with the mark of its maker. One that has a mark keeps it.
pub(super) fn marked(proof: &str, maker: Protocol) -> String {
    if parts(proof).0.is_some() {
        return proof.to_owned();
    }
    let mark = MARKS.iter().find(|(protocol, _)| *protocol == maker).map_or("", |(_, mark)| mark);
    format!("{mark}{proof}")
}

/// The maker by its mark, and the proof without it.
fn parts(proof: &str) -> (Option<Protocol>, &str) {
    let marked = MARKS.iter().find_map(|(maker, mark)| Some((*maker, proof.strip_prefix(mark)?)));
    marked.map_or((None, proof), |(maker, proof)| (Some(maker), proof))
}

/// Whether a proof has the mark of a maker.
pub(super) fn is_marked(proof: &str) -> bool {
    parts(proof).0.is_some()
}

/// The proof as its maker wrote it, if that is a provider of the protocol `target`. `source`: the protocol of the request.
/// Servers of chat completions stand before models of any maker.
pub(super) fn of_maker(proof: &str, source: Protocol, target: Protocol) -> Option<&str> {
    let (maker, proof) = parts(proof);
    let is_none = proof.is_empty() && source != target;
    if is_none || proof == NO_PROOF && target != Protocol::Native {
        return None;
    }
    let is_of_target = match maker {
        Some(maker) => maker == target,
        None if source == Protocol::Chat && target == Protocol::Native => is_base64(proof),
        None => source == target || source == Protocol::Chat || target == Protocol::Chat,
    };
    is_of_target.then_some(proof)
}

/// Whether a text is base64, in either alphabet: proofs of the native protocol are bytes.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    !digits.is_empty()
        && digits.len() % 4 != 1
        && text.len() - digits.len() <= 2
        && digits.bytes().all(is_digit)
}

/// Marks the proofs of an answer for a client of another protocol.
pub(crate) fn mark(answer: &mut Answer) {
    let maker = answer.source;
    for part in answer.choices.iter_mut().flat_map(|choice| &mut choice.parts) {
        let proof = match &mut part.kind {
            PartKind::Thought(thought) => &mut thought.signature,
            PartKind::Call(call) => &mut call.signature,
            _ => continue,
        };
        *proof = proof.take().map(|proof| marked(&proof, maker));
    }
}

/// Marks the proofs of a stream for a client of another protocol.
pub(crate) struct Marking {
    incoming: Box<dyn StreamIn>,
    maker: Protocol,
}

impl Marking {
    pub(crate) fn new(incoming: Box<dyn StreamIn>, maker: Protocol) -> Self {
        Self { incoming, maker }
    }

    fn mark(&self, deltas: &mut [Delta]) {
        for delta in deltas {
            match delta {
                Delta::ThoughtSigned { signature, .. } | Delta::Call { signature: Some(signature), .. } => {
                    *signature = marked(signature, self.maker);
                }
                _ => {}
            }
        }
    }
}

impl StreamIn for Marking {
    fn event(&mut self, name: Option<&str>, data: &str, deltas: &mut Vec<Delta>) -> Result<(), Malformed> {
        let before = deltas.len();
        let read = self.incoming.event(name, data, deltas);
        self.mark(&mut deltas[before..]);
        read
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), Malformed> {
        let before = deltas.len();
        let read = self.incoming.end(deltas);
        self.mark(&mut deltas[before..]);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_goes_back_to_its_maker_alone() {
        for (maker, _) in MARKS {
            let proof = marked("a:b=", maker);
            assert_eq!(marked(&proof, Protocol::Chat), proof, "one mark is enough");
            for (source, _) in MARKS {
                for (target, _) in MARKS {
                    let expected = (maker == target).then_some("a:b=");
                    assert_eq!(of_maker(&proof, source, target), expected, "{source:?} {target:?}");
                }
            }
        }
        assert_eq!(of_maker("x", Protocol::Messages, Protocol::Messages), Some("x"));
        assert_eq!(of_maker("x", Protocol::Messages, Protocol::Native), None);
        assert_eq!(of_maker("eA==", Protocol::Chat, Protocol::Native), Some("eA=="));
        assert_eq!(of_maker("x", Protocol::Chat, Protocol::Native), None, "it is no base64");
    }
}
        assert_eq!(of_maker("", Protocol::Chat, Protocol::Responses), None, "an empty text proves nothing");
