//! A span per call (crate `tracing`, target `gatewright`). If the client enables it, the span has the attributes of
//! OpenTelemetry's conventions for generative AI. Only then are bodies parsed, and only if there is a subscriber.
//!
//! Lists are recorded as JSON text, because `tracing` has no lists; numbers as signed ones, because OpenTelemetry has no others and
//! its bridge exports unsigned ones as text. Information in a stream's events (usage, finish
//! reasons, the time to the first event) is recorded as they pass. Errors within a stream are not recorded, except for
//! a connection that breaks. Prompts, generated content and secrets are never recorded.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use tracing::Span;
use tracing::field::{Empty, display};
use url::Url;

use crate::api::operation::Operation;
use crate::transport::outgoing::Outgoing;
use crate::transport::response::Head;
use crate::transport::secret::Secrets;
use crate::wire::error::Error;
use crate::wire::json_weight;
use crate::wire::redact::Redactor;
use crate::wire::sse::{Decoder, Item};

/// The provider name in the attributes. The provider behind the gateway is not known.
const PROVIDER: &str = "gatewright";
/// Maximum number of choices whose finish reasons are recorded; our gateway does not produce more.
const MAX_CHOICES: usize = 128;
/// Maximum length of a text from the service, in characters.
const MAX_TEXT_CHARS: usize = 200;
/// The final states of a response.
const ENDED: &[&str] = &["completed", "incomplete", "failed", "cancelled"];

/// The span of a call in progress.
pub(crate) struct CallSpan {
    span: Span,
    /// The conventions' name for the operation; none if the conventions are not enabled or do not cover it.
    inference: Option<&'static str>,
    began: Instant,
}

impl CallSpan {
    /// telemetry: whether the conventions' attributes are wanted.
    pub(crate) fn begin(
        operation: &'static Operation,
        request: &Outgoing,
        is_stream: bool,
        telemetry: bool,
    ) -> Self {
        let began = Instant::now();
        if !telemetry {
            let span = tracing::info_span!(
                target: "gatewright",
                "call",
                operation = operation.id,
                attempts = Empty,
                status = Empty,
                request_id = Empty,
                "error.type" = Empty,
            );
            return Self { span, inference: None, began };
        }
        let span = tracing::info_span!(
            target: "gatewright",
            "call",
            operation = operation.id,
            attempts = Empty,
            status = Empty,
            request_id = Empty,
            "error.type" = Empty,
            otel.name = operation.id,
            otel.kind = "client",
            otel.status_code = Empty,
            server.address = Empty,
            server.port = Empty,
            http.request.method = operation.method.as_str(),
            http.request.resend_count = Empty,
            http.response.status_code = Empty,
            url.template = operation.path,
            gen_ai.operation.name = Empty,
            gen_ai.provider.name = Empty,
            gen_ai.request.model = Empty,
            gen_ai.request.stream = Empty,
            gen_ai.request.temperature = Empty,
            gen_ai.request.top_p = Empty,
            gen_ai.request.top_k = Empty,
            gen_ai.request.max_tokens = Empty,
            gen_ai.request.frequency_penalty = Empty,
            gen_ai.request.presence_penalty = Empty,
            gen_ai.request.seed = Empty,
            gen_ai.request.choice.count = Empty,
            gen_ai.request.stop_sequences = Empty,
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.response.time_to_first_chunk = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.reasoning.output_tokens = Empty,
        );
        if span.is_disabled() {
            return Self { span, inference: None, began };
        }
        span.record("server.address", request.url.host_str());
        span.record("server.port", request.url.port_or_known_default().map(i64::from));
        let inference = operation.inference;
        if let Some(name) = inference {
            span.record("gen_ai.operation.name", name);
            span.record("gen_ai.provider.name", PROVIDER);
            if is_stream {
                span.record("gen_ai.request.stream", true);
            }
            let body = request.body.as_deref().unwrap_or_default();
            // The gateway reports a body that cannot be parsed.
            let body: RequestBody = serde_json::from_slice(body).unwrap_or_default();
            body.record(&span, name, &request.url);
        }
        Self { span, inference, began }
    }

    /// The span in which to run the call.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// error: already redacted.
    pub(crate) fn failed(&self, error: &Error) {
        if self.span.is_disabled() {
            return;
        }
        self.attempts(error.attempts());
        self.status(error.status(), error.request_id());
        self.span.record("error.type", error.kind().name());
        self.span.record("otel.status_code", "ERROR");
    }

    pub(crate) fn answered(&self, head: &Head, body: &[u8]) {
        if self.span.is_disabled() {
            return;
        }
        let redactor = head.secrets.redactor();
        self.answered_by(head, &redactor);
        if self.inference.is_some()
            && json_weight::check(body).is_ok()
            && let Ok(body) = serde_json::from_slice::<TracedBody>(body)
        {
            let mut summary = ResponseSummary::default();
            summary.take(body);
            summary.record(&self.span, &redactor);
        }
    }

    /// The call continues as a stream; none if there is no subscriber.
    pub(crate) fn opened(self, head: &Head) -> Option<StreamSpan> {
        if self.span.is_disabled() {
            return None;
        }
        self.answered_by(head, &head.secrets.redactor());
        let events = Events { secrets: head.secrets.clone(), ..Events::default() };
        let events = self.inference.map(|_| Box::new(events));
        Some(StreamSpan { span: self.span, began: self.began, events })
    }

    fn answered_by(&self, head: &Head, redactor: &Redactor) {
        self.attempts(head.attempts);
        let request_id = head.request_id().map(|id| redactor.show(id, MAX_TEXT_CHARS));
        self.status(Some(head.status), request_id.as_deref());
    }

    fn attempts(&self, attempts: u32) {
        self.span.record("attempts", i64::from(attempts));
        if attempts > 1 {
            self.span.record("http.request.resend_count", i64::from(attempts - 1));
        }
    }

    fn status(&self, status: Option<u16>, request_id: Option<&str>) {
        let status = status.map(i64::from);
        self.span.record("status", status);
        self.span.record("http.response.status_code", status);
        self.span.record("request_id", request_id);
    }
}

/// The span of a call whose response is streaming; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct StreamSpan {
    span: Span,
    began: Instant,
    /// None if events are not examined.
    events: Option<Box<Events>>,
}

#[derive(Debug, Default)]
struct Events {
    decoder: Decoder,
    summary: ResponseSummary,
    has_started: bool,
    secrets: Secrets,
}

impl StreamSpan {
    pub(crate) fn packet(&mut self, packet: &Bytes) {
        let Some(events) = &mut self.events else { return };
        let mut items = Vec::new();
        if events.decoder.feed(packet, &mut items).is_err() {
            // The reader gets the same error; there is nothing more to learn here.
            self.events = None;
            return;
        }
        for item in items {
            let Item::Event(event) = item else { continue };
            if !std::mem::replace(&mut events.has_started, true) {
                let seconds = self.began.elapsed().as_secs_f64();
                self.span.record("gen_ai.response.time_to_first_chunk", seconds);
            }
            // An event that needs too much memory ends the stream when its reader takes it.
            if json_weight::check(event.data.as_bytes()).is_ok()
                && let Ok(chunk) = serde_json::from_str::<TracedBody>(&event.data)
            {
                events.summary.take(chunk);
            }
        }
    }

    pub(crate) fn broken(&self) {
        self.span.record("error.type", "connection");
        self.span.record("otel.status_code", "ERROR");
    }
}

impl Drop for StreamSpan {
    fn drop(&mut self) {
        if let Some(events) = &self.events {
            events.summary.record(&self.span, &events.secrets.redactor());
        }
    }
}

/// The parts of a request's body to record, in the terms of each protocol. Values may have any type, so that a wrong
/// one does not hide the others.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RequestBody {
    model: Option<Value>,
    temperature: Option<Value>,
    #[serde(alias = "topP")]
    top_p: Option<Value>,
    #[serde(alias = "topK")]
    top_k: Option<Value>,
    max_tokens: Option<Value>,
    max_completion_tokens: Option<Value>,
    #[serde(alias = "maxOutputTokens")]
    max_output_tokens: Option<Value>,
    #[serde(alias = "frequencyPenalty")]
    frequency_penalty: Option<Value>,
    #[serde(alias = "presencePenalty")]
    presence_penalty: Option<Value>,
    seed: Option<Value>,
    #[serde(alias = "candidateCount")]
    n: Option<Value>,
    #[serde(alias = "stopSequences", alias = "stop_sequences")]
    stop: Option<Value>,
    /// The native protocol's place for these parameters.
    #[serde(rename = "generationConfig")]
    native: Option<Box<Self>>,
}

impl RequestBody {
    fn record(mut self, span: &Span, operation: &str, url: &Url) {
        let model = self.model.as_ref().and_then(Value::as_str).map(str::to_owned);
        if let Some(model) = model.or_else(|| model_of_path(url.path())) {
            span.record("gen_ai.request.model", model.as_str());
            span.record("otel.name", display(format_args!("{operation} {model}")));
        }
        if let Some(native) = self.native.take() {
            self = *native;
        }
        let max_tokens = self.max_completion_tokens.or(self.max_output_tokens).or(self.max_tokens);
        for (name, value) in [
            ("gen_ai.request.temperature", self.temperature),
            ("gen_ai.request.top_p", self.top_p),
            ("gen_ai.request.top_k", self.top_k),
            ("gen_ai.request.max_tokens", max_tokens),
            ("gen_ai.request.frequency_penalty", self.frequency_penalty),
            ("gen_ai.request.presence_penalty", self.presence_penalty),
            ("gen_ai.request.seed", self.seed),
            // Only if it is not the usual value.
            ("gen_ai.request.choice.count", self.n.filter(|n| *n != 1)),
            ("gen_ai.request.stop_sequences", self.stop),
        ] {
            record(span, name, value.as_ref());
        }
    }
}

/// The model in a path of the native protocol: `/v1beta/models/{model}:generateContent`.
fn model_of_path(path: &str) -> Option<String> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (model, _) = rest.rsplit_once(':')?;
    Some(percent_encoding::percent_decode_str(model).decode_utf8_lossy().into_owned())
}

/// The parts of a response or of a stream's event to record, in the terms of each protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TracedBody {
    #[serde(alias = "responseId")]
    id: Option<Value>,
    #[serde(alias = "modelVersion")]
    model: Option<Value>,
    #[serde(alias = "candidates")]
    choices: Option<Vec<TracedChoice>>,
    /// Of a response, with the reason if it is incomplete.
    status: Option<Value>,
    incomplete_details: Option<Value>,
    #[serde(alias = "usageMetadata")]
    usage: Option<Value>,
    /// Of a message, and of the event that adds it.
    stop_reason: Option<Value>,
    delta: Option<Value>,
    /// Present in the events of a response, and in the first of a message.
    #[serde(alias = "message")]
    response: Option<Box<Self>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TracedChoice {
    index: Option<usize>,
    #[serde(alias = "finishReason")]
    finish_reason: Option<Value>,
}

/// What a response has reported so far.
#[derive(Debug, Default)]
struct ResponseSummary {
    id: Option<Value>,
    model: Option<Value>,
    /// By index of the choice.
    finish_reasons: BTreeMap<usize, Value>,
    usage: Option<Value>,
}

impl ResponseSummary {
    fn take(&mut self, body: TracedBody) {
        if let Some(response) = body.response {
            self.take(*response);
        }
        self.id = self.id.take().or(body.id);
        self.model = self.model.take().or(body.model);
        match (&mut self.usage, body.usage) {
            // The last event of a message tells only what has changed.
            (Some(Value::Object(usage)), Some(Value::Object(newer))) => {
                usage.extend(newer.into_iter().filter(|(_, count)| !count.is_null()));
            }
            (_, Some(usage @ Value::Object(_))) => self.usage = Some(usage),
            _ => {}
        }
        for (position, choice) in body.choices.into_iter().flatten().enumerate() {
            let has_room = self.finish_reasons.len() < MAX_CHOICES;
            if let Some(reason) = choice.finish_reason.filter(|reason| has_room && reason.is_string()) {
                self.finish_reasons.insert(choice.index.unwrap_or(position), reason);
            }
        }
        let reason = body.incomplete_details.as_ref().and_then(|details| details.get("reason")).cloned();
        let ended = body.status.filter(|status| ENDED.iter().any(|ended| status == ended));
        let stopped = body.stop_reason.or_else(|| body.delta?.get("stop_reason").cloned());
        let ended = ended.map(|status| reason.unwrap_or(status));
        if let Some(reason) = ended.or(stopped.filter(Value::is_string)) {
            self.finish_reasons.insert(0, reason);
        }
    }

    fn record(&self, span: &Span, redactor: &Redactor) {
        // Each is text from the service.
        let shown = |value: &Value| Some(Value::from(&*redactor.show(value.as_str()?, MAX_TEXT_CHARS)));
        record(span, "gen_ai.response.id", self.id.as_ref().and_then(shown).as_ref());
        record(span, "gen_ai.response.model", self.model.as_ref().and_then(shown).as_ref());
        if !self.finish_reasons.is_empty() {
            let reasons = self.finish_reasons.values().filter_map(shown).collect();
            record(span, "gen_ai.response.finish_reasons", Some(&Value::Array(reasons)));
        }
        let Some(usage) = &self.usage else { return };
        let count = |paths: &[&str]| paths.iter().find_map(|path| usage.pointer(path)?.as_u64());
        let thoughts = count(&["/thoughtsTokenCount"]);
        // The native protocol counts thoughts separately from the output they led to.
        let native_output = count(&["/candidatesTokenCount"]);
        let native_output = native_output.map(|output| output.saturating_add(thoughts.unwrap_or(0)));
        let input = count(&["/prompt_tokens", "/input_tokens", "/promptTokenCount"]);
        // The messages protocol counts what a cache reads or writes separately; the conventions count it as input.
        let beside = ["/cache_read_input_tokens", "/cache_creation_input_tokens"].map(|path| count(&[path]));
        let input = input.map(|input| beside.into_iter().flatten().fold(input, u64::saturating_add));
        let output = count(&["/completion_tokens", "/output_tokens"]).or(native_output);
        let cached = count(&[
            "/prompt_tokens_details/cached_tokens",
            "/input_tokens_details/cached_tokens",
            "/cachedContentTokenCount",
            "/cache_read_input_tokens",
        ]);
        let reasoning = count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
        ]);
        span.record("gen_ai.usage.input_tokens", input.map(signed));
        span.record("gen_ai.usage.output_tokens", output.map(signed));
        span.record("gen_ai.usage.cache_read.input_tokens", cached.map(signed));
        span.record("gen_ai.usage.reasoning.output_tokens", reasoning.or(thoughts).map(signed));
    }
}

fn record(span: &Span, name: &str, value: Option<&Value>) {
    match value {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => _ = span.record(name, text.as_str()),
        Some(Value::Bool(value)) => _ = span.record(name, value),
        Some(Value::Number(number)) if number.is_i64() => _ = span.record(name, number.as_i64()),
        Some(Value::Number(number)) => _ = span.record(name, number.as_f64()),
        Some(list @ (Value::Array(_) | Value::Object(_))) => _ = span.record(name, list.to_string().as_str()),
    }
}

/// A count as far as OpenTelemetry's numbers go.
fn signed(count: u64) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
