//! A request whose upstream speaks another protocol than its client: over the neutral conversation, and the answer back.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use gatewright::redact::Redactor;
use gatewright::{ErrorCode, limits};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use uuid::Uuid;

use super::compaction::{self, Compacting, Form, compacted};
use super::continued::{Keeper, Origin, Whole};
use super::counted;
use super::failure::Fault;
use super::frames::{Fields, blocks};
use super::observer::Progress;
use super::passing::{Events, Framing, Passed, open_array};
use super::{Journey, LONG_BODY};
use crate::bounds::room::{NoRoom, Share};
use crate::bounds::tree;
use crate::clock::unix_seconds;
use crate::conversation::{Citation, Conversation, Delta, Failure, FailureKind, Place, Protocol, Usage};
use crate::protocols::{Asked, Defaults, StreamIn, StreamOut};
use crate::routing::Route;
use crate::wire::{ApiError, Call};

/// Lists what the upstream's protocol has no words for.
pub(crate) const DROPPED_HEADER: HeaderName = HeaderName::from_static("x-gatewright-dropped");
/// Refuses a request instead.
const STRICT_HEADER: HeaderName = HeaderName::from_static("x-gatewright-strict");
/// Maximum number of places that are listed.
const MOST_PLACES: usize = 50;
/// Maximum length of a list of places, in bytes.
const MOST_PLACES_BYTES: usize = 2048;
/// What a citation takes beside its texts, in bytes: about as much as an object with its members.
const CITATION_BYTES: usize = 1024;

/// A request in the neutral form.
pub(super) struct Translation {
    conversation: Conversation,
    /// What the answer repeats of the request.
    asked: Arc<Asked>,
    strict: bool,
    defaults: Defaults,
    keeper: Option<Keeper>,
    origin: Option<Origin>,
    compacts: Option<Form>,
    /// The memory that it takes.
    _share: Share,
}

/// A request as an upstream of another protocol takes it.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) body: Bytes,
    /// Where the client wrote what is lost.
    pub(super) dropped: Option<HeaderValue>,
}

impl Translation {
    /// Reads a request that was checked. Errors: it makes no conversation.
    pub(super) fn read(
        call: &Call,
        protocol: Protocol,
        request: Value,
        model: &str,
        stream: bool,
    ) -> Result<Conversation, ApiError> {
        protocol.request_in(request, model, stream).map_err(|malformed| {
            let said = limits::brief(format_args!("{malformed}"));
            let message = format!("the request cannot be translated for {}: {said}", call.operation.path);
            ApiError::new(&ErrorCode::INVALID_VALUE, message)
        })
    }

    /// `request`: what an answer may repeat. `share`: the memory of both.
    pub(super) fn new(
        journey: &Journey<'_>,
        conversation: Conversation,
        request: Value,
        share: Share,
    ) -> Self {
        let strict = is_strict(journey.call, &journey.route);
        let model = &journey.route.model;
        let defaults = Defaults { max_tokens: model.default_max_tokens, thinking: model.thinking };
        let asked = Arc::new(Self::asked_of(journey, request));
        Self {
            conversation,
            asked,
            strict,
            defaults,
            keeper: None,
            origin: None,
            compacts: None,
            _share: share,
        }
    }

    /// Also what stores the answer, where the request's items come from, and whether they are to be compacted.
    pub(super) fn continued(self, whole: Whole) -> Self {
        let Whole { keeper, origin, compacts, .. } = whole;
        Self { keeper, origin, compacts, ..self }
    }

    /// How the client asks for a compaction.
    pub(super) fn compacts(&self) -> Option<Form> {
        self.compacts
    }

    /// Stores the answer.
    pub(super) fn keeper(&self) -> Option<Keeper> {
        self.keeper.clone()
    }

    /// The request for an upstream. Errors: it says what this protocol has no words for, and the client wants none lost.
    pub(super) fn request_for(&mut self, protocol: Protocol, model: &str) -> Result<Translated, ApiError> {
        model.clone_into(&mut self.conversation.model);
        let outgoing = protocol.request_out(&self.conversation, self.defaults);
        let lost = match &self.origin {
            Some(origin) => origin.sent(outgoing.dropped),
            None => outgoing.dropped,
        };
        let dropped = reported(&lost, self.strict)?;
        Ok(Translated { body: outgoing.body.to_string().into(), dropped })
    }

    /// What the answer repeats of the request.
    pub(super) fn asked(&self) -> Arc<Asked> {
        Arc::clone(&self.asked)
    }

    fn asked_of(journey: &Journey<'_>, request: Value) -> Asked {
        let prefix = match journey.protocol {
            Protocol::Chat => "chatcmpl-",
            Protocol::Responses => "resp_",
            Protocol::Messages => "msg_",
            Protocol::Native => "",
        };
        Asked {
            model: journey.asked.model.clone(),
            request,
            include_usage: journey.asked.include_usage,
            id: format!("{prefix}{}", Uuid::new_v4().simple()),
            created: unix_seconds(),
        }
    }
}

/// Whether a request is refused where something of it would be lost.
pub(super) fn is_strict(call: &Call, route: &Route) -> bool {
    match call.headers.get(STRICT_HEADER) {
        Some(asked) => asked.as_bytes().eq_ignore_ascii_case(b"true"),
        None => route.model.strict,
    }
}

/// The header that lists what is lost. Errors: the client wants nothing lost.
pub(super) fn reported(lost: &[Place], strict: bool) -> Result<Option<HeaderValue>, ApiError> {
    let places = listed(lost);
    if places.is_empty() {
        return Ok(None);
    }
    if strict {
        let message = format!(
            "the model's provider has no words for {places}; leave them out, or leave {STRICT_HEADER} out to have \
             them dropped"
        );
        let first = lost.first().map(limits::brief).unwrap_or_default();
        let param = first.trim_start_matches('/').replace('/', ".");
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(param));
    }
    Ok(HeaderValue::try_from(places).ok())
}

/// The places as a header lists them: separated by commas, in visible ASCII, within bounds.
fn listed(places: &[Place]) -> String {
    let mut list = String::new();
    for (index, place) in places.iter().enumerate() {
        // A byte takes up to three.
        if index == MOST_PLACES || list.len() + 3 * place.len() > MOST_PLACES_BYTES {
            let rest = places.len() - index;
            _ = match index {
                0 => write!(list, "{rest} places"),
                _ => write!(list, ", and {rest} more"),
            };
            break;
        }
        if index > 0 {
            list.push_str(", ");
        }
        for byte in place.bytes() {
            match byte {
                b'!'..=b'~' if byte != b',' && byte != b'%' => list.push(char::from(byte)),
                _ => _ = write!(list, "%{byte:02X}"),
            }
        }
    }
    list
}

/// How a whole answer becomes that of the client.
pub(super) struct Answering<'a> {
    pub(super) from: Protocol,
    pub(super) to: Protocol,
    pub(super) asked: &'a Asked,
    /// Stores the answer.
    pub(super) keeper: Option<&'a Keeper>,
    /// How the client asks for a compaction that the gateway makes.
    pub(super) compacts: Option<Form>,
}

/// The client's answer, from a whole one of the upstream.
pub(super) fn document(
    answering: &Answering<'_>,
    document: &Bytes,
    redactor: &Redactor,
    share: &mut Share,
) -> Result<(Bytes, Option<Usage>), Fault> {
    let Answering { from, to, asked, keeper, compacts } = *answering;
    let taken = document.len().saturating_add(weight(document));
    share.hold(taken).map_err(|NoRoom| Fault::no_room(redactor))?;
    let broken = |why: &str| Fault::broken(why, redactor);
    let value: Value = serde_json::from_slice(document).map_err(|_| broken("is not a JSON document"))?;
    let is_answer = ["choices", "output", "content", "candidates"].iter().any(|name| !value[name].is_null());
    if !is_answer && !value["error"].is_null() {
        return Err(Fault::of_event(from.failure_in(200, document), redactor));
    }
    let mut answer = from
        .answer_in(value)
        .map_err(|malformed| broken(&format!("does not have the form of its protocol: {malformed}")))?;
    let usage = answer.usage;
    if compacts.is_some() {
        answer = compacted(answer).map_err(|failure| Fault::of_event(failure, redactor))?;
    }
    let written = match compacts {
        Some(Form::Operation) => compaction::document(answer, asked),
        _ => to.answer_out(answer, asked),
    };
    if let Some(keeper) = keeper {
        keeper.keep(&written);
    }
    Ok((written.to_string().into(), usage))
}

/// The events of a stream on their way from one protocol to another.
pub(super) struct Translating {
    incoming: Box<dyn StreamIn>,
    outgoing: Box<dyn StreamOut>,
    keeper: Option<Keeper>,
    framing: Framing,
    usage: Option<Usage>,
    pieces: u64,
    /// What is kept to the end, in bytes: what the answer repeats of the request, what stores it, and the texts, citations
    /// and other parts so far, which some protocols repeat.
    kept: usize,
    /// Number of choices that a stream of chat has to end.
    wanted: u32,
    finished: u32,
    progress: Progress,
    /// Room for the deltas and bytes of an event.
    deltas: Vec<Delta>,
    bytes: Vec<u8>,
}

impl Translating {
    pub(super) fn new(
        from: Protocol,
        to: Protocol,
        framing: Framing,
        asked: Asked,
        keeper: Option<Keeper>,
    ) -> Self {
        let repeated = if asked.request.is_null() { 0 } else { tree::bytes(&asked.request) };
        let kept = repeated + keeper.as_ref().map_or(0, Keeper::weight);
        Self {
            incoming: from.stream_in(),
            outgoing: to.stream_out(asked),
            keeper,
            framing,
            usage: None,
            pieces: 0,
            kept,
            wanted: 0,
            finished: 0,
            progress: Progress::Underway,
            deltas: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// The upstream is to end this many choices.
    pub(super) fn wanting(self, choices: u32) -> Self {
        Self { wanted: choices, ..self }
    }

    /// Makes a compaction of the answer.
    pub(super) fn compacting(self) -> Self {
        Self { incoming: Box::new(Compacting::new(self.incoming)), ..self }
    }

    /// Writes what an event amounts to.
    fn write(&mut self, out: &mut BytesMut) -> Passed {
        let mut passed = Passed::Life;
        for delta in self.deltas.drain(..) {
            match &delta {
                Delta::Usage(usage) => {
                    self.usage = Some(counted::merged(self.usage.unwrap_or_default(), *usage));
                }
                Delta::Ended { .. } => {
                    self.finished += 1;
                    self.progress = self.progress.max(Progress::Finished);
                }
                Delta::Done => self.progress = self.progress.max(Progress::Ended),
                Delta::Failed(failure) => {
                    self.progress = Progress::Failed;
                    passed = Passed::Error(failure.clone());
                    break;
                }
                Delta::Started { .. } => passed = Passed::Content,
                Delta::Citation { .. } | Delta::Extra(_) => {
                    self.kept += memory_of(&delta);
                    passed = Passed::Content;
                }
                _ => {
                    self.pieces += 1;
                    self.kept += memory_of(&delta);
                    passed = Passed::Content;
                }
            }
            let (is_last, before) = (matches!(delta, Delta::Done), self.bytes.len());
            self.outgoing.delta(delta, &mut self.bytes);
            if is_last && let Some(keeper) = self.keeper.take() {
                keeper.keep_last(&self.bytes[before..]);
            }
        }
        self.flush(out);
        passed
    }

    /// Hands over the written events in the form that the client reads.
    fn flush(&mut self, out: &mut BytesMut) {
        match &mut self.framing {
            Framing::Events => out.extend_from_slice(&self.bytes),
            Framing::Array { opened } => {
                for block in blocks(&self.bytes) {
                    if let Some((data, _)) = Fields::read(block).data {
                        open_array(opened, out);
                        out.extend_from_slice(data.as_bytes());
                    }
                }
            }
        }
        self.bytes.clear();
    }

    fn close(&mut self, out: &mut BytesMut) {
        if let Framing::Array { opened } = self.framing {
            out.extend_from_slice(if opened { b"]" } else { b"[]" });
        }
    }
}

impl Events for Translating {
    fn block(&mut self, block: &Bytes, out: &mut BytesMut) -> Passed {
        let fields = Fields::read(block);
        let Some((data, _)) = fields.data else { return Passed::Life };
        match self.incoming.event(fields.name, &data, &mut self.deltas) {
            Ok(()) => self.write(out),
            Err(malformed) => Passed::Error(Failure {
                kind: FailureKind::Server,
                message: format!("the provider's stream cannot be read: {malformed}"),
                code: None,
                param: None,
            }),
        }
    }

    fn end(&mut self, out: &mut BytesMut) -> bool {
        if self.progress == Progress::Failed {
            return false;
        }
        if self.progress < Progress::Ended {
            if self.finished < self.wanted {
                return false;
            }
            if self.incoming.end(&mut self.deltas).is_err() {
                return false;
            }
            if matches!(self.write(out), Passed::Error(_)) {
                return false;
            }
        }
        self.progress = Progress::Ended;
        self.close(out);
        true
    }

    fn fail(&mut self, failure: &Failure, out: &mut BytesMut) {
        self.outgoing.fail(failure, &mut self.bytes);
        self.flush(out);
        self.close(out);
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn pieces(&self) -> u64 {
        self.pieces
    }

    fn weight(&self, block: &Bytes) -> usize {
        if block.len() > LONG_BODY { weight(block) } else { 0 }
    }

    fn kept(&self) -> usize {
        self.kept
    }
}

/// The memory that a document takes while it is translated, beside its text: its values, and the text that comes of them.
fn weight(document: &[u8]) -> usize {
    gatewright::json_weight(document).saturating_add(document.len())
}

/// The memory that a delta takes where it is kept to the end, in bytes.
fn memory_of(delta: &Delta) -> usize {
    match delta {
        Delta::Text { text, logprobs, .. } => text.len() + logprobs.as_ref().map_or(0, tree::bytes),
        Delta::Refusal { text, .. } | Delta::Thought { text, .. } | Delta::CallInput { text, .. } => {
            text.len()
        }
        Delta::ThoughtSigned { signature, .. } => signature.len(),
        Delta::Other { value, .. } => tree::bytes(value),
        Delta::Citation { citation: Citation { url, title, quote, .. }, .. } => {
            let texts = [url, title, quote].into_iter().flatten();
            CITATION_BYTES + texts.map(String::len).sum::<usize>()
        }
        Delta::Extra(given) => given.at.len() + tree::bytes(&given.value),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::MOST_EVENT_BYTES;
    use super::*;
    use crate::bounds::room::Room;
    use crate::conversation::Given;

    #[test]
    fn places_are_listed_in_visible_ascii_and_within_bounds() {
        let places: Vec<Place> = vec!["/a/0".into(), "/ü,%\r\n".into()];
        assert_eq!(listed(&places), "/a/0, /%C3%BC%2C%25%0D%0A");
        let many: Vec<Place> = (0..1000).map(|number| format!("/messages/{number}").into()).collect();
        let list = listed(&many);
        assert!(list.len() < 2 * MOST_PLACES_BYTES && list.ends_with(", and 950 more"), "{list}");
        assert!(HeaderValue::try_from(list).is_ok());
        let long: Vec<Place> = vec!["/,".repeat(MOST_PLACES_BYTES / 2).into(), "/a".into()];
        assert_eq!(listed(&long), "2 places");
    }

    #[test]
    fn a_strict_refusal_repeats_no_long_name_of_the_client() {
        let mut request =
            serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        request["x".repeat(100_000)] = 1.into();
        let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
        let asked = Asked {
            model: "m".to_owned(),
            request: Value::Null,
            include_usage: false,
            id: "c".to_owned(),
            created: 0,
        };
        let (asked, defaults) = (Arc::new(asked), Defaults::default());
        let share = Room::new(0).share();
        let mut translation = Translation {
            conversation,
            asked,
            strict: true,
            defaults,
            keeper: None,
            origin: None,
            compacts: None,
            _share: share,
        };
        let refused = translation.request_for(Protocol::Native, "theirs").expect_err("lost words");
        assert!(format!("{refused:?}").len() < 2 * MOST_PLACES_BYTES);
    }

    #[test]
    fn all_that_a_clients_stream_keeps_to_its_end_is_counted() {
        let text = "x".repeat(1000);
        let citation = Citation {
            url: Some(text.clone()),
            title: Some(text.clone()),
            quote: Some(text.clone()),
            span: None,
        };
        assert!(memory_of(&Delta::Citation { choice: 0, citation }) > 3000);
        assert!(memory_of(&Delta::Extra(Given::new(text.clone().into(), text.clone()))) > 2000);
        let logprobs = Some(vec![0; 1000].into());
        assert!(memory_of(&Delta::Text { choice: 0, text, logprobs }) > 2000);

        let asked = Asked {
            model: "m".to_owned(),
            request: Value::Null,
            include_usage: false,
            id: "c".to_owned(),
            created: 0,
        };
        let (from, to) = (Protocol::Messages, Protocol::Native);
        let mut events = Translating::new(from, to, Framing::Events, asked, None);
        let citation = serde_json::json!({ "type": "web_search_result_location", "url": "u".repeat(8000) });
        let delta = serde_json::json!({ "type": "citations_delta", "citation": citation });
        let mut out = BytesMut::new();
        for event in [
            serde_json::json!({ "type": "content_block_start", "content_block": { "type": "text" } }),
            serde_json::json!({ "type": "content_block_delta", "delta": delta }),
            serde_json::json!({ "type": "content_block_stop" }),
        ] {
            events.block(&format!("data: {event}\n\n").into(), &mut out);
        }
        assert!(events.kept() > 8000, "{}", events.kept());
    }

    #[test]
    fn an_own_event_of_any_length_becomes_an_element_of_an_array() {
        let asked = Asked {
            model: "m".to_owned(),
            request: Value::Null,
            include_usage: false,
            id: "c".to_owned(),
            created: 0,
        };
        let framing = Framing::Array { opened: false };
        let mut events = Translating::new(Protocol::Chat, Protocol::Native, framing, asked, None);
        let text = "x".repeat(MOST_EVENT_BYTES);
        let mut out = BytesMut::new();
        events.deltas.push(Delta::Text { choice: 0, text, logprobs: None });
        assert!(matches!(events.write(&mut out), Passed::Content));
        assert!(out.starts_with(b"[{") && out.len() > MOST_EVENT_BYTES);
    }
}
