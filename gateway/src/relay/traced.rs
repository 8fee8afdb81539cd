//! What is asked for of which upstream, for the span of a request.

use std::sync::Arc;

use http::Uri;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{KeyValue, Value};
use serde::Deserialize;
use serde_json::Number;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::observe::{current_span, provider_name};
use crate::routing::{Destination, Route};

/// Maximum size of a request whose parameters are read, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// Tells the span of the present request, when it is dropped, which upstream was asked last: attributes that are set twice stand
/// there twice. Does nothing where no traces are exported.
pub(crate) struct Asking<'r>(Option<Told<'r>>);

struct Told<'r> {
    span: Span,
    route: &'r Route,
    body: &'r [u8],
    last: Option<Arc<Destination>>,
}

/// The parameters of a request in the words of each protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters {
    #[serde(alias = "maxOutputTokens", alias = "max_completion_tokens", alias = "max_output_tokens")]
    max_tokens: Option<Number>,
    temperature: Option<Number>,
    #[serde(alias = "topP")]
    top_p: Option<Number>,
    #[serde(alias = "topK")]
    top_k: Option<Number>,
    #[serde(alias = "frequencyPenalty")]
    frequency_penalty: Option<Number>,
    #[serde(alias = "presencePenalty")]
    presence_penalty: Option<Number>,
    seed: Option<Number>,
    #[serde(alias = "candidateCount")]
    n: Option<Number>,
    /// The place of these in the native protocol.
    #[serde(rename = "generationConfig", alias = "generation_config")]
    native: Option<Box<Self>>,
}

impl<'r> Asking<'r> {
    /// `body`: of the request.
    pub(crate) fn new(route: &'r Route, body: &'r [u8]) -> Self {
        let span = current_span();
        Self(span.map(|span| Told { span, route, body, last: None }))
    }

    pub(crate) fn at(&mut self, destination: &Arc<Destination>) {
        if let Some(told) = &mut self.0 {
            told.last = Some(Arc::clone(destination));
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Some(Told { span, route, body, last }) = &self.0 else { return };
        let context = span.context();
        let span = context.span();
        let set = |name: &'static str, value: Value| span.set_attribute(KeyValue::new(name, value));
        set("gen_ai.request.model", route.id.to_string().into());
        if let Some(destination) = last {
            let endpoint = &destination.provider.endpoint;
            let address = endpoint.address();
            let host = address.as_ref().and_then(Uri::host);
            set("gen_ai.provider.name", provider_name(&endpoint.name, host).to_owned().into());
            // What it calls the model: clients get to see only what they call it.
            set("gen_ai.response.model", destination.model.to_string().into());
            if let (Some(address), Some(host)) = (&address, host) {
                let usual = if address.scheme_str() == Some("https") { 443 } else { 80 };
                set("server.address", host.to_owned().into());
                set("server.port", i64::from(address.port_u16().unwrap_or(usual)).into());
            }
        }
        for (name, value) in Parameters::of(body).named() {
            if let Some(value) = value {
                set(name, value);
            }
        }
    }
}

impl Parameters {
    /// None of a body that is too long or malformed.
    fn of(body: &[u8]) -> Self {
        let read = (body.len() <= MOST_BYTES).then(|| serde_json::from_slice::<Self>(body).ok()).flatten();
        let mut parameters = read.unwrap_or_default();
        match parameters.native.take() {
            Some(native) => *native,
            None => parameters,
        }
    }

    /// With their names in the conventions.
    fn named(self) -> [(&'static str, Option<Value>); 8] {
        let whole = |number: Option<Number>| number.and_then(|number| number.as_i64()).map(Value::from);
        let real = |number: Option<Number>| number.and_then(|number| number.as_f64()).map(Value::from);
        [
            ("gen_ai.request.max_tokens", whole(self.max_tokens)),
            ("gen_ai.request.seed", whole(self.seed)),
            // Only if it is not the usual one.
            ("gen_ai.request.choice.count", whole(self.n.filter(|n| n.as_i64() != Some(1)))),
            ("gen_ai.request.temperature", real(self.temperature)),
            ("gen_ai.request.top_p", real(self.top_p)),
            ("gen_ai.request.top_k", real(self.top_k)),
            ("gen_ai.request.frequency_penalty", real(self.frequency_penalty)),
            ("gen_ai.request.presence_penalty", real(self.presence_penalty)),
        ]
    }
}
