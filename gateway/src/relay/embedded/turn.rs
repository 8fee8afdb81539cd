//! Answers a conversation by the embedded provider. The codecs of the client's protocol read the request and write the answer.

use std::sync::Arc;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright::{ErrorCode, limits};
use gatewright_protocol::conversation::{Answer, Conversation, Delta, Protocol};
use gatewright_protocol::{Action, ResponseContext, has_functions, pieces, tree};
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use gatewright_simulator::{Refusal, SimulatedAnswer};
use http::HeaderValue;
use memchr::memmem;
use serde_json::Value;

use crate::app::App;
use crate::models;
use crate::relay::RequestContext;
use crate::relay::compaction::{self, CompactionTrigger, compacted};
use crate::relay::conversation_state::{ItemSources, expanded};
use crate::relay::failure::AttemptFailure;
use crate::relay::translate_request::{
    DROPPED_HEADER, RequestTranslation, is_strict, reported, response_context,
};
use crate::storage::PendingStore;
use crate::stored_responses::{InputItems, StoredConversation, conversation};
use crate::wire::{ApiError, Call, Response, json_response, sse};

/// Number of copies of the echoed request fields in memory at once: in the three events of a stream that contain the
/// response, and in the one being built.
const ECHOES_AT_ONCE: usize = 4;
/// Number of copies of a text's log probabilities in a stored response and in the last four events of a stream, besides one.
const MORE_LOGPROBS: usize = 4;

/// A request to the embedded provider, and what its answer echoes.
pub(super) struct EmbeddedRequest {
    app: Arc<App>,
    call: Arc<Call>,
    protocol: Protocol,
    action: Action,
    context: ResponseContext,
    /// Whether to reject a request with members that the simulator ignores.
    strict: bool,
}

/// What the provider answers.
enum EmbeddedAnswer {
    Turn(SimulatedAnswer),
    /// A compaction of the conversation.
    Compaction(Answer),
}

impl EmbeddedRequest {
    /// `call`: with the provider's name of the model.
    pub(super) fn new(request_context: &RequestContext, call: Arc<Call>) -> Self {
        let (protocol, action) = (request_context.protocol, request_context.action);
        let context = response_context(request_context, protocol, Value::Null);
        let strict = is_strict(&call, &request_context.route);
        Self { app: Arc::clone(&request_context.app), call, protocol, action, context, strict }
    }

    /// The answer, with a header that lists what the simulator ignored. Errors: the request is invalid, or costs too much.
    pub(super) fn answer(self, budget: &Budget) -> Result<Response, ApiError> {
        let mut ignored = None;
        let mut response = self.answered(budget, &mut ignored)?;
        response.headers_mut().extend(ignored.map(|places| (DROPPED_HEADER, places)));
        Ok(response)
    }

    fn answered(mut self, budget: &Budget, ignored: &mut Option<HeaderValue>) -> Result<Response, ApiError> {
        let body = self.call.checked_body()?;
        models::text_model(models::named(&self.call, &body), self.call.operation)?;
        if self.action == Action::CountTokens {
            return self.count_tokens(body, budget);
        }
        if self.protocol.binding().stores_responses {
            return self.respond(body, budget, ignored);
        }
        let conversation = self.read(body)?;
        *ignored = self.ignored(&conversation, None)?;
        self.context.has_functions = has_functions(&conversation);
        let answer = gatewright_simulator::answer(conversation, budget)?;
        Ok(self.write(EmbeddedAnswer::Turn(answer)))
    }

    fn is_stream(&self) -> bool {
        self.action == Action::Answer { stream: true }
    }

    fn read(&self, request: Value) -> Result<Conversation, ApiError> {
        let (model, stream) = (&self.context.model, self.is_stream());
        RequestTranslation::read(&self.call, self.protocol, request, model, stream)
    }

    /// The places of members that the simulator ignores, as a header lists them. `origin`: where the items of the conversation come
    /// from, if not all are the client's. Errors: the client wants nothing dropped.
    fn ignored(
        &self,
        conversation: &Conversation,
        origin: Option<&ItemSources>,
    ) -> Result<Option<HeaderValue>, ApiError> {
        let mut places: Vec<_> = conversation.extra.iter().map(|given| given.at.clone()).collect();
        if let Some(origin) = origin {
            places = origin.sent(places);
        }
        reported(&places, self.strict)
    }

    fn count_tokens(&self, mut body: Value, budget: &Budget) -> Result<Response, ApiError> {
        let (mut request, mut place) = (Value::Null, String::new());
        if let Some(name) = self.protocol.binding().counted_request {
            (request, place) = (body[name].take(), format!("/{name}"));
        }
        if !request.is_object() {
            (request, place) = (body, String::new());
        }
        let tokens = gatewright_simulator::count_tokens(self.read(request)?, budget);
        let tokens = tokens.map_err(|refusal| match refusal {
            Refusal::Schema(mut refused) => {
                refused.pointer.insert_str(0, &place);
                Refusal::Schema(refused)
            }
            Refusal::Request { message, at } => {
                Refusal::Request { message, at: format!("{place}{at}").into() }
            }
            Refusal::Budget(exceeded) => Refusal::Budget(exceeded),
        })?;
        Ok(json_response(&self.protocol.token_count(tokens)))
    }

    /// Answers a request of the responses protocol, which may continue a stored response, and whose own is stored.
    fn respond(
        mut self,
        mut body: Value,
        budget: &Budget,
        ignored: &mut Option<HeaderValue>,
    ) -> Result<Response, ApiError> {
        if body["background"] == true {
            let message = "background responses are not supported: omit background or send false, and use stream for long answers";
            return Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("background"));
        }
        let compacts = CompactionTrigger::of(&self.call, &body);
        let StoredConversation { items, earlier } =
            conversation(&self.app.storage, &self.call, &body, budget)?;
        if compacts != Some(CompactionTrigger::Operation) {
            let unmatched = limits::unmatched_calls(&items, earlier);
            if !unmatched.is_empty() {
                return Err(ApiError::violations(unmatched));
            }
        }
        let input = body["input"].take();
        let mut whole = body.clone();
        let (sources, sent): (Vec<_>, Vec<_>) = expanded(&items, earlier).into_iter().unzip();
        let origin = ItemSources::new(sources, &input);
        // The items of the previous response are already in the input.
        whole["previous_response_id"] = Value::Null;
        whole["input"] = sent.into();
        let is_stored = body["store"] != false && compacts != Some(CompactionTrigger::Operation);
        self.context.request = body;
        let conversation = self.read(whole)?;
        *ignored = self.ignored(&conversation, Some(&origin))?;
        let answer = match compacts {
            None => {
                let answer = gatewright_simulator::answer(conversation, budget)?;
                answer.charge_logprobs(MORE_LOGPROBS, budget)?;
                EmbeddedAnswer::Turn(answer)
            }
            Some(trigger) => {
                compaction::check(&items)?;
                let summary = gatewright_simulator::summary(conversation, budget)?;
                let answer = compacted(summary).map_err(|failure| {
                    AttemptFailure::of_event(failure, &Redactor::default()).into_error()
                })?;
                if trigger == CompactionTrigger::Operation {
                    return Ok(json_response(&compaction::document(answer, &self.context)));
                }
                EmbeddedAnswer::Compaction(answer)
            }
        };
        charge_echoes(&self.context.request, budget)?;
        if !is_stored {
            return Ok(self.write(answer));
        }
        let document = self.document(&answer);
        let documents = InputItems::new(items).answered(&document);
        let id = document["id"].as_str().unwrap_or_default().to_owned();
        self.app.storage.history.keep(self.call.caller.id(), id, Some(documents), None);
        let mut response = if self.is_stream() { self.write(answer) } else { json_response(&document) };
        response.extensions_mut().insert(PendingStore);
        Ok(response)
    }

    fn document(&self, answer: &EmbeddedAnswer) -> Value {
        let answer = match answer {
            EmbeddedAnswer::Turn(answer) => answer.whole(),
            EmbeddedAnswer::Compaction(answer) => answer.clone(),
        };
        self.protocol.answer_out(answer, &self.context)
    }

    fn write(self, answer: EmbeddedAnswer) -> Response {
        if !self.is_stream() {
            return json_response(&self.document(&answer));
        }
        match answer {
            EmbeddedAnswer::Turn(answer) => self.stream(answer.deltas()),
            EmbeddedAnswer::Compaction(answer) => self.stream(pieces(answer).into_iter()),
        }
    }

    /// Writes the events of each delta when the connection takes them, then the last line of the operation's streams.
    fn stream(self, deltas: impl Iterator<Item = Delta> + Send + 'static) -> Response {
        let (mut writer, mut events) = (self.protocol.stream_out(self.context), Vec::new());
        let pieces = deltas.flat_map(move |delta| {
            events.clear();
            writer.delta(delta, &mut events);
            each(Bytes::copy_from_slice(&events))
        });
        // A codec writes it itself if every stream of its protocol has it.
        let is_written = self.protocol.binding().stream.last_data.is_some();
        let last = self.call.operation.terminator.filter(|_| !is_written);
        let last = last.map(|word| Bytes::from(format!("data: {word}\n\n")));
        sse::respond(pieces.chain(last), self.app.config.event_delay)
    }
}

/// The events of a delta one by one: each ends with an empty line, and has none within.
fn each(mut events: Bytes) -> impl Iterator<Item = Bytes> {
    std::iter::from_fn(move || {
        let end = memmem::find(&events, b"\n\n")? + 2;
        Some(events.split_to(end))
    })
}

/// Charges the request fields that a response echoes: nearly everything except the input.
fn charge_echoes(request: &Value, budget: &Budget) -> Result<(), BudgetExceeded> {
    let members = request.as_object().into_iter().flatten();
    let echo: usize = members.map(|(_, member)| tree::bytes(member)).sum();
    budget.make(echo.saturating_mul(ECHOES_AT_ONCE))
}
