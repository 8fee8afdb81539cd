//! A request whose upstream speaks another protocol than its client: over the neutral conversation, and the answer back.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};
use gatewright::redact::Redactor;
use gatewright::{ErrorCode, limits};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use uuid::Uuid;

use super::Journey;
use super::continued::{Keeper, Origin};
use super::counted;
use super::failure::Fault;
use super::frames::{Fields, Frames};
use super::observer::Progress;
use super::passing::{Events, Framing, Passed, open_array};
use crate::clock::unix_seconds;
use crate::conversation::{Conversation, Delta, Failure, FailureKind, Place, Protocol, Usage};
use crate::protocols::{Asked, Defaults, StreamIn, StreamOut};
use crate::wire::{ApiError, Call};

/// Lists what the upstream's protocol has no words for.
pub(super) const DROPPED_HEADER: HeaderName = HeaderName::from_static("x-gatewright-dropped");
/// Refuses a request instead.
const STRICT_HEADER: HeaderName = HeaderName::from_static("x-gatewright-strict");
/// Maximum number of places that are listed.
const MOST_PLACES: usize = 50;
/// Maximum length of a list of places, in bytes.
const MOST_PLACES_BYTES: usize = 2048;

/// A request in the neutral form.
pub(super) struct Translation {
    conversation: Conversation,
    /// The client's request.
    request: Value,
    strict: bool,
    defaults: Defaults,
    keeper: Option<Keeper>,
    origin: Option<Origin>,
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

    pub(super) fn new(journey: &Journey<'_>, conversation: Conversation, request: Value) -> Self {
        let asked = journey.call.headers.get(STRICT_HEADER).map(HeaderValue::as_bytes);
        let strict = match asked {
            Some(asked) => asked.eq_ignore_ascii_case(b"true"),
            None => journey.route.model.strict,
        };
        let defaults = Defaults { max_tokens: journey.route.model.default_max_tokens };
        Self { conversation, request, strict, defaults, keeper: None, origin: None }
    }

    /// Also what stores the answer, and where the request's items come from.
    pub(super) fn continued(self, keeper: Option<Keeper>, origin: Option<Origin>) -> Self {
        Self { keeper, origin, ..self }
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
        let places = listed(&lost);
        if self.strict && !places.is_empty() {
            let message = format!(
                "the model's provider has no words for {places}; leave them out, or leave {STRICT_HEADER} out to have \
                 them dropped"
            );
            let first = lost.first().map(limits::brief).unwrap_or_default();
            let param = first.trim_start_matches('/').replace('/', ".");
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(param));
        }
        let dropped = (!places.is_empty()).then(|| HeaderValue::try_from(places).ok()).flatten();
        Ok(Translated { body: outgoing.body.to_string().into(), dropped })
    }

    /// What the answer repeats of the request.
    pub(super) fn asked(&self, journey: &Journey<'_>) -> Asked {
        let prefix = match journey.protocol {
            Protocol::Chat => "chatcmpl-",
            Protocol::Responses => "resp_",
            Protocol::Messages => "msg_",
            Protocol::Native => "",
        };
        Asked {
            model: journey.asked.model.clone(),
            request: self.request.clone(),
            include_usage: journey.asked.include_usage,
            id: format!("{prefix}{}", Uuid::new_v4().simple()),
            created: unix_seconds(),
        }
    }
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

/// The client's answer, from a whole one of the upstream.
pub(super) fn document(
    from: Protocol,
    to: Protocol,
    document: &Bytes,
    asked: &Asked,
    keeper: Option<&Keeper>,
    redactor: &Redactor,
) -> Result<(Bytes, Option<Usage>), Fault> {
    let broken = |why: &str| Fault::broken(why, redactor);
    let value: Value = serde_json::from_slice(document).map_err(|_| broken("is not a JSON document"))?;
    let is_answer = ["choices", "output", "content", "candidates"].iter().any(|name| !value[name].is_null());
    if !is_answer && !value["error"].is_null() {
        return Err(Fault::of_event(from.failure_in(200, document), redactor));
    }
    let answer = from
        .answer_in(value)
        .map_err(|malformed| broken(&format!("does not have the form of its protocol: {malformed}")))?;
    let usage = answer.usage;
    let written = to.answer_out(answer, asked);
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
        Self {
            incoming: from.stream_in(),
            outgoing: to.stream_out(asked),
            keeper,
            framing,
            usage: None,
            pieces: 0,
            progress: Progress::Underway,
            deltas: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Writes what an event amounts to.
    fn write(&mut self, out: &mut BytesMut) -> Passed {
        let mut passed = Passed::Life;
        for delta in self.deltas.drain(..) {
            match &delta {
                Delta::Usage(usage) => {
                    self.usage = Some(counted::merged(self.usage.unwrap_or_default(), *usage));
                }
                Delta::Ended { .. } => self.progress = self.progress.max(Progress::Finished),
                Delta::Done => self.progress = self.progress.max(Progress::Ended),
                Delta::Failed(failure) => {
                    self.progress = Progress::Failed;
                    passed = Passed::Error(failure.clone());
                    break;
                }
                Delta::Started { .. } => passed = Passed::Content,
                _ => {
                    self.pieces += 1;
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
                let mut frames = Frames::default();
                // Our own events are short.
                _ = frames.push(Bytes::copy_from_slice(&self.bytes), |block| {
                    if let Some((data, _)) = Fields::read(&block).data {
                        open_array(opened, out);
                        out.extend_from_slice(data.as_bytes());
                    }
                });
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let (request, defaults) = (Value::Null, Defaults { max_tokens: 1 });
        let mut translation =
            Translation { conversation, request, strict: true, defaults, keeper: None, origin: None };
        let refused = translation.request_for(Protocol::Native, "theirs").expect_err("lost words");
        assert!(format!("{refused:?}").len() < 2 * MOST_PLACES_BYTES);
    }
}
