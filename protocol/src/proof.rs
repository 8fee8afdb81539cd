//! Proofs of thoughts: opaque texts by which a provider recognizes its own thoughts. Providers reject each other's
//! proofs. When the client's protocol differs from the provider's, each proof gets a prefix that names the provider's
//! protocol; a proof without a prefix belongs to the protocol the client sends it in.

use super::{MalformedDocument, StreamIn};
use crate::conversation::{Answer, Delta, PartKind, Protocol};

/// What the prefixes begin with; the maker's protocol and a colon follow. Base64 never contains a colon.
const MARK: &str = "gw-";

/// The documented placeholder proof for a call in the native protocol whose own proof is unknown: another model made the
/// call, or the client lost it. No other provider accepts it.
pub(super) const NO_PROOF: &str = "skip_thought_signature_validator";

/// The proof with its maker's prefix. An existing prefix is kept.
pub(super) fn marked(proof: &str, maker: Protocol) -> String {
    if parts(proof, maker).0.is_some() {
        return proof.to_owned();
    }
    format!("{MARK}{}:{proof}", maker.name())
}

/// The maker according to the prefix, and the proof without it. `other`: a protocol that may be one of another crate.
fn parts(proof: &str, other: Protocol) -> (Option<Protocol>, &str) {
    let named = proof.strip_prefix(MARK).and_then(|marked| marked.split_once(':'));
    let known =
        |name: &str| Protocol::OF_UPSTREAMS.into_iter().chain([other]).find(|known| known.name() == name);
    let marked = named.and_then(|(name, proof)| Some((known(name)?, proof)));
    marked.map_or((None, proof), |(maker, proof)| (Some(maker), proof))
}

/// Whether a proof has a maker's prefix.
pub(super) fn is_marked(proof: &str) -> bool {
    parts(proof, Protocol::default()).0.is_some()
}

/// The proof as its maker wrote it, if the maker is a provider of the protocol `target`. `source`: the request's
/// protocol. Chat completions servers may front models of any maker.
pub(super) fn of_maker(proof: &str, source: Protocol, target: Protocol) -> Option<&str> {
    let (maker, proof) = parts(proof, target);
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

/// Whether clients of a protocol get a provider's thoughts as summaries: some providers send summaries without labelling them,
/// and some clients show nothing else.
fn are_summaries(maker: Protocol, client: Protocol) -> bool {
    maker.rules().unlabelled_summaries
        && client.answer_rules().is_some_and(|rules| rules.shows_only_summaries)
}

/// Prefixes the proofs of an answer for a client of another protocol, and labels its summaries.
pub fn mark(answer: &mut Answer, client: Protocol) {
    let maker = answer.source;
    let are_summaries = are_summaries(maker, client);
    for part in answer.choices.iter_mut().flat_map(|choice| &mut choice.parts) {
        let proof = match &mut part.kind {
            PartKind::Thought(thought) => {
                thought.summary |= are_summaries;
                &mut thought.signature
            }
            PartKind::Call(call) => &mut call.signature,
            _ => continue,
        };
        *proof = proof.take().map(|proof| marked(&proof, maker));
    }
}

/// The same for a stream.
pub struct Marking {
    incoming: Box<dyn StreamIn>,
    maker: Protocol,
    are_summaries: bool,
}

impl Marking {
    /// Marks what `incoming` reads from a provider of the `maker` protocol, for a client of the `client` protocol.
    pub fn new(incoming: Box<dyn StreamIn>, maker: Protocol, client: Protocol) -> Self {
        Self { incoming, maker, are_summaries: are_summaries(maker, client) }
    }

    fn mark(&self, deltas: &mut [Delta]) {
        for delta in deltas {
            match delta {
                Delta::ThoughtSigned { signature, .. } | Delta::Call { signature: Some(signature), .. } => {
                    *signature = marked(signature, self.maker);
                }
                Delta::Thought { summary, .. } => *summary |= self.are_summaries,
                _ => {}
            }
        }
    }
}

impl StreamIn for Marking {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let before = deltas.len();
        let read = self.incoming.event(name, data, deltas);
        self.mark(&mut deltas[before..]);
        read
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        let before = deltas.len();
        let read = self.incoming.end(deltas);
        self.mark(&mut deltas[before..]);
        read
    }

    fn held(&self) -> usize {
        self.incoming.held()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::ResponseContext;

    /// The thought and its proof, as a responses client gets them.
    fn read_by_responses() -> (Value, String) {
        let context = ResponseContext {
            model: "m".to_owned(),
            request: json!({}),
            include_usage: true,
            id: "resp_1".to_owned(),
            created: 1,
            ..ResponseContext::default()
        };
        let document = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "up", "stop_reason": "end_turn",
            "content": [
                { "type": "thinking", "thinking": "They greet me.", "signature": "c2ln" },
                { "type": "text", "text": "Hello." },
            ],
            "usage": { "input_tokens": 3, "output_tokens": 4 },
        });
        let mut answer = Protocol::Messages.answer_in(document).expect("an answer");
        mark(&mut answer, Protocol::Responses);
        let whole = Protocol::Responses.answer_out(answer, &context);
        let events = [
            json!({ "type": "message_start", "message": { "id": "msg_1" } }),
            json!({ "type": "content_block_start", "index": 0,
                "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
            json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "thinking_delta", "thinking": "They greet me." } }),
            json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "signature_delta", "signature": "c2ln" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
        ];
        let incoming = Protocol::Messages.stream_in();
        let mut reader = Marking::new(incoming, Protocol::Messages, Protocol::Responses);
        let (mut writer, mut bytes) = (Protocol::Responses.stream_out(context), Vec::new());
        for event in events {
            let mut deltas = Vec::new();
            reader.event(None, &event.to_string(), &mut deltas).expect("an event");
            for delta in deltas {
                writer.delta(delta, &mut bytes);
            }
        }
        (whole, String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn marking_reader_counts_buffered_bytes() {
        let incoming = Protocol::Chat.stream_in();
        let mut reader = Marking::new(incoming, Protocol::Chat, Protocol::Messages);
        let call = |index: u32, text: &str| {
            json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [
                { "index": index, "id": format!("call_{index}"), "function": { "name": "f", "arguments": text } },
            ] } }] })
            .to_string()
        };
        let mut deltas = Vec::new();
        // The second call waits until the first one is complete.
        for event in [call(0, "{"), call(1, &format!("{{\"x\":\"{}", "y".repeat(10_000)))] {
            reader.event(None, &event, &mut deltas).expect("an event");
        }
        assert!(reader.held() >= 10_000, "{}", reader.held());
    }

    #[test]
    fn messages_thoughts_round_trip_through_responses_with_their_proof() {
        let (whole, stream) = read_by_responses();
        let thought = &whole["output"][0];
        assert_eq!(thought["summary"], json!([{ "type": "summary_text", "text": "They greet me." }]));
        assert!(stream.contains("response.reasoning_summary_text.delta"), "{stream}");
        assert!(!stream.contains("reasoning_text.delta"), "{stream}");

        let next = json!({ "model": "m", "input": [
            { "role": "user", "content": "Hi." }, thought, whole["output"][1], { "role": "user", "content": "Go on." },
        ] });
        let conversation = Protocol::Responses.request_in(next, "m", false).expect("a request");
        let defaults = crate::Defaults { max_tokens: 64, ..Default::default() };
        let sent = Protocol::Messages.request_out(&conversation, defaults).body;
        let expected = json!({ "type": "thinking", "thinking": "They greet me.", "signature": "c2ln" });
        assert_eq!(sent["messages"][1]["content"][0], expected, "{sent}");
    }

    #[test]
    fn proof_is_returned_only_to_its_maker() {
        for maker in Protocol::OF_UPSTREAMS {
            let proof = marked("a:b=", maker);
            assert_eq!(marked(&proof, Protocol::Chat), proof, "one mark is enough");
            for source in Protocol::OF_UPSTREAMS {
                for target in Protocol::OF_UPSTREAMS {
                    let expected = (maker == target).then_some("a:b=");
                    assert_eq!(of_maker(&proof, source, target), expected, "{source:?} {target:?}");
                }
            }
        }
        assert_eq!(of_maker("x", Protocol::Messages, Protocol::Messages), Some("x"));
        assert_eq!(of_maker("", Protocol::Chat, Protocol::Responses), None, "an empty text proves nothing");
        assert_eq!(of_maker("x", Protocol::Messages, Protocol::Native), None);
        assert_eq!(of_maker("eA==", Protocol::Chat, Protocol::Native), Some("eA=="));
        assert_eq!(of_maker("x", Protocol::Chat, Protocol::Native), None, "not base64");
    }
}
