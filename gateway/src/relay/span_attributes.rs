//! Attributes for the span of a request: the operation, its parameters, and the upstream.

use std::borrow::Cow;
use std::sync::Arc;

use http::Uri;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{KeyValue, Value};
use serde::Deserialize;
use serde_json::Number;
use serde_json::value::RawValue;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::config::ModelKind;
use crate::observe::provider_name;
use crate::routing::{Destination, ModelRoute};

/// Maximum size of a request whose parameters are read, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// On drop, sets on the current request's span which upstream was tried last: attributes that are set twice appear twice. Does
/// nothing if traces aren't exported.
pub(crate) struct RequestSpan<'r>(Option<OpenSpan<'r>>);

struct OpenSpan<'r> {
    span: Span,
    route: &'r ModelRoute,
    body: &'r [u8],
    last: Option<Arc<Destination>>,
}

/// The parameters of a request in the format of each protocol.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Parameters<'a> {
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
    /// `{"type"}` of the text, or the format of an image.
    #[serde(borrow, alias = "output_format")]
    response_format: Option<&'a RawValue>,
    /// `{"format": {"type"}}`
    #[serde(borrow, alias = "output_config")]
    text: Option<&'a RawValue>,
    #[serde(borrow, alias = "responseMimeType", alias = "response_mime_type")]
    media_type: Option<&'a RawValue>,
    /// Where the native protocol has these.
    #[serde(borrow, rename = "generationConfig", alias = "generation_config")]
    native: Option<Box<Self>>,
}

impl<'r> RequestSpan<'r> {
    /// `span`, `body`: of the request.
    pub(crate) fn new(span: Option<&Span>, route: &'r ModelRoute, body: &'r [u8]) -> Self {
        Self(span.map(|span| OpenSpan { span: span.clone(), route, body, last: None }))
    }

    pub(crate) fn at(&mut self, destination: &Arc<Destination>) {
        if let Some(told) = &mut self.0 {
            told.last = Some(Arc::clone(destination));
        }
    }
}

impl Drop for RequestSpan<'_> {
    fn drop(&mut self) {
        let Some(OpenSpan { span, route, body, last }) = &self.0 else { return };
        let context = span.context();
        let span = context.span();
        let set = |name: &'static str, value: Value| span.set_attribute(KeyValue::new(name, value));
        set("gen_ai.request.model", route.id.to_string().into());
        if let Some(destination) = last {
            let endpoint = &destination.provider.endpoint;
            let address = endpoint.address();
            let host = address.as_ref().and_then(Uri::host);
            set("gen_ai.provider.name", provider_name(&endpoint.name, host).to_owned().into());
            // Use the upstream's name for the model: clients only ever see their own.
            set("gen_ai.response.model", destination.model.to_string().into());
            if let (Some(address), Some(host)) = (&address, host) {
                let usual = if address.scheme_str() == Some("https") { 443 } else { 80 };
                set("server.address", host.to_owned().into());
                set("server.port", i64::from(address.port_u16().unwrap_or(usual)).into());
            }
        }
        let parameters = Parameters::of(body);
        let output = if route.model.kind == ModelKind::Image { Some("image") } else { parameters.output() };
        if let Some(output) = output {
            set("gen_ai.output.type", output.into());
        }
        for (name, value) in parameters.named() {
            if let Some(value) = value {
                set(name, value);
            }
        }
    }
}

/// The output format, where each protocol puts it. Anything of another shape is ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct FormatParameter<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    format: Option<Box<Self>>,
}

impl<'a> Parameters<'a> {
    /// None for a body that is too long or malformed.
    fn of(body: &'a [u8]) -> Self {
        let read = (body.len() <= MAX_BYTES).then(|| serde_json::from_slice(body).ok()).flatten();
        let mut parameters: Self = read.unwrap_or_default();
        match parameters.native.take() {
            Some(native) => *native,
            None => parameters,
        }
    }

    /// The output type, in the terms of the conventions.
    fn output(&self) -> Option<&'static str> {
        let format = |format: &'a RawValue| {
            serde_json::from_str::<FormatParameter<'a>>(format.get()).unwrap_or_default()
        };
        let inner = self.text.and_then(|text| format(text).format).map(|inner| *inner);
        let kind = inner.or(self.response_format.map(format)).and_then(|format| format.kind);
        let media_type =
            || self.media_type.and_then(|own| serde_json::from_str::<Cow<'_, str>>(own.get()).ok());
        match &*kind.or_else(media_type)? {
            "json_object" | "json_schema" | "application/json" => Some("json"),
            "text" | "text/plain" => Some("text"),
            _ => None,
        }
    }

    /// With their names in the conventions.
    fn named(self) -> [(&'static str, Option<Value>); 8] {
        let whole = |number: Option<Number>| number.and_then(|number| number.as_i64()).map(Value::from);
        let real = |number: Option<Number>| number.and_then(|number| number.as_f64()).map(Value::from);
        [
            ("gen_ai.request.max_tokens", whole(self.max_tokens)),
            ("gen_ai.request.seed", whole(self.seed)),
            // Only if it isn't the default.
            ("gen_ai.request.choice.count", whole(self.n.filter(|n| n.as_i64() != Some(1)))),
            ("gen_ai.request.temperature", real(self.temperature)),
            ("gen_ai.request.top_p", real(self.top_p)),
            ("gen_ai.request.top_k", real(self.top_k)),
            ("gen_ai.request.frequency_penalty", real(self.frequency_penalty)),
            ("gen_ai.request.presence_penalty", real(self.presence_penalty)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_output_type_is_read_from_each_protocol() {
        for (body, output) in [
            (r#"{"response_format":{"type":"json_schema","json_schema":{"name":"a"}}}"#, Some("json")),
            (r#"{"response_format":{"type":"text"}}"#, Some("text")),
            (r#"{"text":{"format":{"type":"json_object"},"verbosity":"low"}}"#, Some("json")),
            (r#"{"output_config":{"format":{"type":"json_schema","schema":{}}}}"#, Some("json")),
            (r#"{"output_format":{"type":"json_schema"}}"#, Some("json")),
            (r#"{"generationConfig":{"responseMimeType":"application/json"}}"#, Some("json")),
            (r#"{"generationConfig":{"topK":3,"responseMimeType":"text/x.enum"}}"#, None),
            (r#"{"response_format":"url","text":7}"#, None),
            (r#"{"messages":[]}"#, None),
        ] {
            assert_eq!(Parameters::of(body.as_bytes()).output(), output, "{body}");
        }
    }
}
