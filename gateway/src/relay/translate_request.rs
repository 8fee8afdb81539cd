//! Translates a request for an upstream that speaks another protocol, through the neutral conversation, and the answer back.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright::{ErrorCode, limits};
use gatewright_config::Capabilities;
use gatewright_protocol::conversation::{
    Conversation, JsonPointer, MediaSource, PartKind, Protocol, Role, Usage,
};
use gatewright_protocol::{
    AnswerAdapter, Defaults, LostContent, ResponseContext, failure_of, lost_content, without_half_characters,
};
use gatewright_system::clock::unix_seconds;
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use uuid::Uuid;

use super::RequestContext;
use super::compaction::{self, CompactionTrigger, compacted};
use super::conversation_state::{FullConversation, ItemSources, ResponseRecorder};
use super::estimate;
use super::failure::AttemptFailure;
use crate::bounds::memory_budget::Reservation;
use crate::routing::ModelRoute;
use crate::wire::{ApiError, Call};

/// Lists what the upstream's protocol can't express.
pub(crate) const DROPPED_HEADER: HeaderName = HeaderName::from_static("x-gatewright-dropped");
/// Rejects such a request instead. A request whose media or calls would be dropped is always rejected.
const STRICT_HEADER: HeaderName = HeaderName::from_static("x-gatewright-strict");
/// Maximum number of places listed.
const MAX_PLACES: usize = 50;
/// Maximum length of a list of places, in bytes.
const MAX_PLACES_BYTES: usize = 2048;

/// A request in the neutral form.
pub(super) struct RequestTranslation {
    conversation: Conversation,
    /// What the answer echoes from the request.
    context: Arc<ResponseContext>,
    strict: bool,
    defaults: Defaults,
    recorder: Option<ResponseRecorder>,
    origin: Option<ItemSources>,
    compacts: Option<CompactionTrigger>,
    tokens: Option<u64>,
    /// The memory that it holds.
    _share: Reservation,
}

/// A request in the format of an upstream of another protocol.
#[derive(Debug)]
pub(super) struct TranslatedRequest {
    pub(super) body: Bytes,
    /// The dropped places, as the client wrote them.
    pub(super) dropped: Option<HeaderValue>,
    /// Adapts the answer to what the client requested.
    pub(super) adapter: Box<AnswerAdapter>,
}

impl RequestTranslation {
    /// Reads a validated request. Errors: it isn't a valid conversation.
    pub(super) fn read(
        call: &Call,
        protocol: Protocol,
        request: Value,
        model: &str,
        stream: bool,
    ) -> Result<Conversation, ApiError> {
        protocol.request_in(request, model, stream).map_err(|malformed| {
            let reason = limits::brief(format_args!("{malformed}"));
            let message = format!("the request cannot be translated for {}: {reason}", call.operation.path);
            ApiError::new(&ErrorCode::INVALID_VALUE, message)
        })
    }

    /// The error for a request whose texts are all empty. `first`: the place of the first one.
    pub(super) fn of_nothing(first: &str) -> ApiError {
        let place = limits::brief(first);
        let message = format!("every text of the request is empty; add one at {place}");
        ApiError::new(&ErrorCode::INVALID_VALUE, message).param(as_param(&place))
    }

    /// `request`: what an answer may echo. `share`: the memory of both.
    pub(super) fn new(
        request_context: &RequestContext,
        conversation: Conversation,
        request: Value,
        share: Reservation,
    ) -> Self {
        let strict = is_strict(&request_context.call, &request_context.route);
        let model = &request_context.route.model;
        let (max_tokens, thinking) = (model.default_max_tokens, model.thinking);
        let defaults = Defaults { max_tokens, thinking, ..Defaults::default() };
        let has_functions = gatewright_protocol::has_functions(&conversation);
        let context = Arc::new(ResponseContext {
            has_functions,
            ..response_context(request_context, request_context.protocol, request)
        });
        Self {
            conversation,
            context,
            strict,
            defaults,
            recorder: None,
            origin: None,
            compacts: None,
            tokens: None,
            _share: share,
        }
    }

    /// Adds the recorder, the origin of the request's items, and whether to compact them.
    pub(super) fn continued(self, whole: FullConversation) -> Self {
        let FullConversation { recorder, origin, compacts, .. } = whole;
        Self { recorder, origin, compacts, ..self }
    }

    /// How the client requests a compaction.
    pub(super) fn compacts(&self) -> Option<CompactionTrigger> {
        self.compacts
    }

    /// Stores the answer.
    pub(super) fn recorder(&self) -> Option<ResponseRecorder> {
        self.recorder.clone()
    }

    /// Builds the request for an upstream. Errors: this protocol can't express some of the content, or anything else although
    /// the client wants nothing dropped.
    pub(super) fn request_for(
        &mut self,
        protocol: Protocol,
        model: &str,
        capabilities: Capabilities,
    ) -> Result<TranslatedRequest, ApiError> {
        model.clone_into(&mut self.conversation.model);
        let defaults = self.defaults.of_upstream(capabilities);
        let outgoing = protocol.request_out(&self.conversation, defaults);
        if let Some(lost) = lost_content(&self.conversation, &outgoing.dropped) {
            return Err(self.refused(&lost, protocol));
        }
        let lost = match &self.origin {
            Some(origin) => origin.sent(outgoing.dropped),
            None => outgoing.dropped,
        };
        let dropped = reported(&lost, self.strict)?;
        let adapter = Box::new(AnswerAdapter::new(&self.conversation, protocol, defaults));
        Ok(TranslatedRequest { body: outgoing.body.to_string().into(), dropped, adapter })
    }

    /// The error for content that an upstream's protocol can't express.
    fn refused(&self, lost: &LostContent, target: Protocol) -> ApiError {
        let name = match &lost.part.kind {
            PartKind::Image(_) => "image",
            PartKind::Audio(_) => "audio",
            PartKind::File(_) => "file",
            PartKind::Call(_) => "call",
            _ => "content",
        };
        let at = lost.part.at.clone();
        let sent = match &self.origin {
            Some(origin) => origin.sent(vec![at]).pop(),
            None => Some(at),
        };
        let place = sent.as_deref().map(limits::brief);
        let at = place.as_deref().unwrap_or("an earlier turn of the conversation");
        let way_out = way_out(lost, target);
        let message = format!("the model's provider cannot take the {name} at {at}; {way_out}, or omit it");
        let error = ApiError::new(&ErrorCode::INVALID_VALUE, message);
        match place {
            Some(place) => error.param(as_param(&place)),
            None => error,
        }
    }

    /// Estimated tokens of the request, counted once for all upstreams.
    pub(super) fn tokens(&mut self) -> u64 {
        *self.tokens.get_or_insert_with(|| estimate::of(&self.conversation) as u64)
    }

    /// What the answer echoes from the request.
    pub(super) fn context(&self) -> Arc<ResponseContext> {
        Arc::clone(&self.context)
    }
}

/// How the client could send it instead.
fn way_out(lost: &LostContent, target: Protocol) -> &'static str {
    let source = match &lost.part.kind {
        PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media) => &media.source,
        _ => return "send it in another form",
    };
    if !matches!(lost.role, Role::User | Role::Tool) {
        return "only a message of the user can have it: send it there";
    }
    if matches!(lost.part.kind, PartKind::Audio(_)) && !target.rules().audio {
        return "send its transcript";
    }
    match source {
        MediaSource::Url(_) => "send its content as base64 (a data URL) instead of an address",
        MediaSource::FileId(_) => {
            "only another provider has the file: send its content as base64 (a data URL)"
        }
        MediaSource::Inline(_) => "send it in a format that the provider reads",
    }
}

/// What an answer in a protocol echoes from the request.
pub(super) fn response_context(
    request_context: &RequestContext,
    protocol: Protocol,
    request: Value,
) -> ResponseContext {
    let prefix = protocol.binding().id_prefix;
    ResponseContext {
        model: request_context.meta.model.clone(),
        request,
        include_usage: request_context.meta.include_usage,
        id: format!("{prefix}{}", Uuid::new_v4().simple()),
        created: unix_seconds(),
        ..ResponseContext::default()
    }
}

/// Whether to reject a request if any of it would be dropped.
pub(super) fn is_strict(call: &Call, route: &ModelRoute) -> bool {
    match call.headers.get(STRICT_HEADER) {
        Some(value) => value.as_bytes().eq_ignore_ascii_case(b"true"),
        None => route.model.strict,
    }
}

/// The header that lists the dropped places. Errors: the client wants nothing dropped.
pub(super) fn reported(lost: &[JsonPointer], strict: bool) -> Result<Option<HeaderValue>, ApiError> {
    let places = listed(lost);
    if places.is_empty() {
        return Ok(None);
    }
    if strict {
        let message = format!(
            "the model's provider cannot express {places}; omit them, or omit {STRICT_HEADER} to have them dropped"
        );
        let first = lost.first().map(limits::brief).unwrap_or_default();
        return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(as_param(&first)));
    }
    Ok(HeaderValue::try_from(places).ok())
}

/// A place as errors name it.
fn as_param(place: &str) -> String {
    place.trim_start_matches('/').replace('/', ".")
}

/// The places as a header lists them: comma-separated, visible ASCII, within the limits.
fn listed(places: &[JsonPointer]) -> String {
    let mut list = String::new();
    for (index, place) in places.iter().enumerate() {
        // A byte takes up to three.
        if index == MAX_PLACES || list.len() + 3 * place.len() > MAX_PLACES_BYTES {
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

/// How a whole answer is translated for the client.
pub(super) struct AnswerTranslation<'a> {
    pub(super) from: Protocol,
    pub(super) to: Protocol,
    pub(super) context: &'a ResponseContext,
    /// Adapts the answer to what the client requested.
    pub(super) adapter: Option<Box<AnswerAdapter>>,
    /// Stores the answer.
    pub(super) recorder: Option<&'a ResponseRecorder>,
    /// How the client requested a compaction that the gateway performs.
    pub(super) compacts: Option<CompactionTrigger>,
}

/// Parses the document of an upstream's answer. Errors: it isn't JSON, or reports an error.
fn answered(from: Protocol, document: &Bytes, redactor: &Redactor) -> Result<Value, AttemptFailure> {
    let read = serde_json::from_slice(document).or_else(|error| {
        // Half a surrogate pair isn't valid JSON.
        let mended = std::str::from_utf8(document).ok().and_then(without_half_characters);
        mended.map_or(Err(error), |mended| serde_json::from_str(&mended))
    });
    let value: Value = read.map_err(|_| AttemptFailure::broken("is not a JSON document", redactor))?;
    let is_answer = ["choices", "output", "content", "candidates"].iter().any(|name| !value[name].is_null());
    if !is_answer && !value["error"].is_null() {
        return Err(AttemptFailure::of_event(from.failure_in(200, document), redactor));
    }
    match from.failure_within(&value) {
        Some(failure) => Err(AttemptFailure::of_event(failure, redactor)),
        None => Ok(value),
    }
}

/// The events that the upstream would have sent instead of one document. `share`: holds the memory of both.
pub(super) fn streamed(
    from: Protocol,
    document: &Bytes,
    context: ResponseContext,
    redactor: &Redactor,
    share: &mut Reservation,
) -> Result<Bytes, AttemptFailure> {
    let taken = document.len().saturating_add(weight(document));
    share.hold(taken).map_err(|why| AttemptFailure::no_room(why, redactor))?;
    let value = answered(from, document, redactor)?;
    let events = from.streamed(value, context).map_err(|malformed| {
        AttemptFailure::broken(&format!("is neither a stream nor an answer: {malformed}"), redactor)
    })?;
    share.hold(events.len()).map_err(|why| AttemptFailure::no_room(why, redactor))?;
    Ok(events.into())
}

/// Translates a whole upstream answer for the client.
pub(super) fn document(
    answering: AnswerTranslation<'_>,
    document: &Bytes,
    redactor: &Redactor,
    share: &mut Reservation,
) -> Result<(Bytes, Option<Usage>), AttemptFailure> {
    let AnswerTranslation { from, to, context, adapter, recorder, compacts } = answering;
    let taken = document.len().saturating_add(weight(document));
    share.hold(taken).map_err(|why| AttemptFailure::no_room(why, redactor))?;
    let value = answered(from, document, redactor)?;
    let broken = |why: &str| AttemptFailure::broken(why, redactor);
    let mut answer = from
        .answer_in(value)
        .map_err(|malformed| broken(&format!("does not have the format of its protocol: {malformed}")))?;
    if from != to {
        if let Some(failure) = failure_of(&answer) {
            return Err(AttemptFailure::of_event(failure, redactor).billed(answer.usage));
        }
        gatewright_protocol::mark(&mut answer, to);
    }
    if let Some(adapter) = adapter {
        adapter.answer(&mut answer);
    }
    let usage = answer.usage;
    if compacts.is_some() {
        let failed = |failure| AttemptFailure::of_event(failure, redactor).billed(usage);
        answer = compacted(answer).map_err(failed)?;
    }
    let written = match compacts {
        Some(CompactionTrigger::Operation) => compaction::document(answer, context),
        _ => to.answer_out(answer, context),
    };
    if let Some(recorder) = recorder {
        recorder.keep(&written);
    }
    Ok((written.to_string().into(), usage))
}

/// The memory for translating a document, besides its text: its values, and the text they become.
pub(super) fn weight(document: &[u8]) -> usize {
    gatewright::json_weight(document).saturating_add(document.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::memory_budget::MemoryBudget;

    #[test]
    fn dropped_pointers_are_listed_as_bounded_visible_ascii() {
        let places: Vec<JsonPointer> = vec!["/a/0".into(), "/ü,%\r\n".into()];
        assert_eq!(listed(&places), "/a/0, /%C3%BC%2C%25%0D%0A");
        let many: Vec<JsonPointer> = (0..1000).map(|number| format!("/messages/{number}").into()).collect();
        let list = listed(&many);
        assert!(list.len() < 2 * MAX_PLACES_BYTES && list.ends_with(", and 950 more"), "{list}");
        assert!(HeaderValue::try_from(list).is_ok());
        let long: Vec<JsonPointer> = vec!["/,".repeat(MAX_PLACES_BYTES / 2).into(), "/a".into()];
        assert_eq!(listed(&long), "2 places");
    }

    #[test]
    fn request_of_only_empty_texts_names_the_first_one() {
        let read = |messages: Value| {
            let request = serde_json::json!({ "model": "m", "messages": messages });
            Protocol::Chat.request_in(request, "m", false).expect("a request")
        };
        let empty = read(serde_json::json!([
            { "role": "system", "content": "" },
            { "role": "user", "content": [{ "type": "text", "text": " \n" }] },
        ]));
        let at = empty.only_empty_text().expect("the texts are empty");
        let error = RequestTranslation::of_nothing(at);
        assert_eq!(
            (error.code().status, error.field(), error.message()),
            (
                400,
                Some("messages.0.content"),
                "every text of the request is empty; add one at /messages/0/content"
            )
        );
        for messages in [
            serde_json::json!([{ "role": "system", "content": "Greet." }, { "role": "user", "content": "" }]),
            serde_json::json!([{ "role": "user", "content": [
                { "type": "text", "text": "" },
                { "type": "image_url", "image_url": { "url": "https://a.example/x.png" } },
            ] }]),
        ] {
            assert_eq!(read(messages).only_empty_text(), None);
        }
    }

    fn translation(source: Protocol, request: Value, strict: bool) -> RequestTranslation {
        let conversation = source.request_in(request, "m", false).expect("a request");
        let context =
            ResponseContext { model: "m".to_owned(), id: "c".to_owned(), ..ResponseContext::default() };
        RequestTranslation {
            conversation,
            context: Arc::new(context),
            strict,
            defaults: Defaults::default(),
            recorder: None,
            origin: None,
            compacts: None,
            tokens: None,
            _share: MemoryBudget::new(0).share(),
        }
    }

    #[test]
    fn unsupported_content_is_rejected_with_its_pointer_and_a_fix() {
        use serde_json::json;
        const BY_ADDRESS: &str = "send its content as base64 (a data URL) instead of an address, or omit it";
        const STORED: &str =
            "only another provider has the file: send its content as base64 (a data URL), or omit it";
        const TRANSCRIPT: &str = "send its transcript, or omit it";
        const BY_THE_USER: &str = "only a message of the user can have it: send it there, or omit it";
        const OTHER_FORMAT: &str = "send it in a format that the provider reads, or omit it";
        let chat = |part: Value| json!({ "messages": [{ "role": "user", "content": [part] }] });
        let picture = |url: &str| chat(json!({ "type": "image_url", "image_url": { "url": url } }));
        let sound =
            chat(json!({ "type": "input_audio", "input_audio": { "data": "AA==", "format": "wav" } }));
        let stored = chat(json!({ "type": "file", "file": { "file_id": "file-1" } }));
        let linked = json!({ "input": [{ "role": "user", "content": [
            { "type": "input_file", "file_url": "https://a.example/a.pdf" },
        ] }] });
        let within = json!({ "max_tokens": 9, "messages": [
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t", "name": "f", "input": {} }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": [
                { "type": "image", "source": { "type": "url", "url": "https://a.example/a.png" } },
            ] }] },
        ] });
        let drawn = json!({ "contents": [
            { "role": "user", "parts": [{ "text": "Draw." }] },
            { "role": "model", "parts": [{ "inlineData": { "mimeType": "image/png", "data": "AA==" } }] },
        ] });
        for (source, request, target, what, way_out) in [
            (
                Protocol::Chat,
                picture("https://a.example/a.png"),
                Protocol::Converse,
                "image at /messages/0/content/0",
                BY_ADDRESS,
            ),
            (
                Protocol::Messages,
                within,
                Protocol::Converse,
                "image at /messages/2/content/0/content/0",
                BY_ADDRESS,
            ),
            (
                Protocol::Chat,
                picture("data:image/bmp;base64,AAAA"),
                Protocol::Messages,
                "image at /messages/0/content/0",
                OTHER_FORMAT,
            ),
            (Protocol::Chat, sound, Protocol::Messages, "audio at /messages/0/content/0", TRANSCRIPT),
            (Protocol::Chat, stored, Protocol::Native, "file at /messages/0/content/0", STORED),
            (Protocol::Responses, linked, Protocol::Chat, "file at /input/0/content/0", BY_ADDRESS),
            (Protocol::Native, drawn, Protocol::Responses, "image at /contents/1/parts/0", BY_THE_USER),
        ] {
            let mut translation = translation(source, request, false);
            let refused = translation.request_for(target, "theirs", Capabilities::default());
            let error = refused.expect_err(what);
            let expected = format!("the model's provider cannot take the {what}; {way_out}");
            assert_eq!((error.code().status, error.message()), (400, &*expected));
            let place = what.rsplit(" /").next().unwrap_or_default().replace('/', ".");
            assert_eq!(error.field(), Some(&*place), "{what}");
        }
        for (source, request, target) in [
            (Protocol::Chat, picture("data:image/png;base64,AA=="), Protocol::Converse),
            (Protocol::Chat, picture("https://a.example/a.png"), Protocol::Messages),
        ] {
            let mut translation = translation(source, request, false);
            translation.request_for(target, "theirs", Capabilities::default()).expect("nothing is dropped");
        }
    }

    #[test]
    fn strict_refusal_truncates_long_names() {
        let mut request =
            serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
        request["x".repeat(100_000)] = 1.into();
        let mut translation = translation(Protocol::Chat, request, true);
        let refused = translation
            .request_for(Protocol::Native, "theirs", Capabilities::default())
            .expect_err("lost words");
        assert!(format!("{refused:?}").len() < 2 * MAX_PLACES_BYTES);
    }
}
