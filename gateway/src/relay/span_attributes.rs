//! Attributes for the span of a request: the operation, its parameters, and the upstream.

use std::borrow::Cow;
use std::sync::Arc;

use gatewright_config::ModelKind;
use gatewright_protocol::RequestMembers;
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::lazy_json::members;
use http::Uri;
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry::{KeyValue, Value};
use serde_json::Number;
use serde_json::value::RawValue;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

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
    protocol: Protocol,
    body: &'r [u8],
    last: Option<Arc<Destination>>,
}

/// The parameters of a request.
struct Parameters<'a> {
    names: &'static RequestMembers,
    /// The object that has them. Empty: the body is too long.
    text: &'a str,
}

impl<'r> RequestSpan<'r> {
    /// `span`, `body`: of the request.
    pub(crate) fn new(
        span: Option<&Span>,
        route: &'r ModelRoute,
        protocol: Protocol,
        body: &'r [u8],
    ) -> Self {
        Self(span.map(|span| OpenSpan { span: span.clone(), route, protocol, body, last: None }))
    }

    pub(crate) fn at(&mut self, destination: &Arc<Destination>) {
        if let Some(open) = &mut self.0 {
            open.last = Some(Arc::clone(destination));
        }
    }
}

impl Drop for RequestSpan<'_> {
    fn drop(&mut self) {
        let Some(OpenSpan { span, route, protocol, body, last }) = &self.0 else { return };
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
        let parameters = Parameters::of(body, *protocol);
        let output = match route.model.kind {
            ModelKind::Image => Some("image"),
            ModelKind::Speech => Some("speech"),
            _ => parameters.output(),
        };
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

impl<'a> Parameters<'a> {
    fn of(body: &'a [u8], protocol: Protocol) -> Self {
        let names = &protocol.binding().request;
        let body = if body.len() <= MAX_BYTES { std::str::from_utf8(body).unwrap_or_default() } else { "" };
        let text = if names.parameters.is_empty() {
            body
        } else {
            member(body, names.parameters).map_or("", RawValue::get)
        };
        Self { names, text }
    }

    /// The output type, in the terms of the conventions.
    fn output(&self) -> Option<&'static str> {
        let format = |path: &&[&str]| {
            path.iter().try_fold(self.text, |text, name| Some(member(text, &[*name])?.get()))
        };
        let kind = self.names.formats.iter().find_map(format)?;
        match &*serde_json::from_str::<Cow<'_, str>>(kind).ok()? {
            "json_object" | "json_schema" | "application/json" => Some("json"),
            "text" | "text/plain" => Some("text"),
            _ => None,
        }
    }

    /// With their names in the conventions.
    fn named(&self) -> [(&'static str, Option<Value>); 8] {
        let names = self.names;
        let searched = [
            names.max_tokens,
            names.seed,
            names.choices,
            names.temperature,
            names.top_p,
            names.top_k,
            names.frequency_penalty,
            names.presence_penalty,
        ];
        let mut found: [Option<Number>; 8] = Default::default();
        _ = members(self.text, |name, value| {
            if let Some(place) = searched.iter().position(|names| names.contains(&name)) {
                found[place] = serde_json::from_str(value.get()).ok();
            }
        });
        let whole = |number: Option<Number>| number.and_then(|number| number.as_i64()).map(Value::from);
        let real = |number: Option<Number>| number.and_then(|number| number.as_f64()).map(Value::from);
        let [max_tokens, seed, choices, temperature, top_p, top_k, frequency_penalty, presence_penalty] =
            found;
        [
            ("gen_ai.request.max_tokens", whole(max_tokens)),
            ("gen_ai.request.seed", whole(seed)),
            // Only if it isn't the default.
            ("gen_ai.request.choice.count", whole(choices.filter(|n| n.as_i64() != Some(1)))),
            ("gen_ai.request.temperature", real(temperature)),
            ("gen_ai.request.top_p", real(top_p)),
            ("gen_ai.request.top_k", real(top_k)),
            ("gen_ai.request.frequency_penalty", real(frequency_penalty)),
            ("gen_ai.request.presence_penalty", real(presence_penalty)),
        ]
    }
}

/// A member of an object, in one of its spellings. Of duplicates, the last one counts. `None`: it is absent, or the text is no
/// object.
fn member<'a>(object: &'a str, names: &[&str]) -> Option<&'a RawValue> {
    let mut found = None;
    members(object, |name, value| {
        if names.contains(&name) {
            found = Some(value);
        }
    })
    .ok()?;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn span_output_type_is_read_from_each_protocol() {
        use Protocol::{Chat, Messages, Native, Responses};

        for (protocol, body, output) in [
            (Chat, r#"{"response_format":{"type":"json_schema","json_schema":{"name":"a"}}}"#, Some("json")),
            (Chat, r#"{"response_format":{"type":"text"}}"#, Some("text")),
            (Responses, r#"{"text":{"format":{"type":"json_object"},"verbosity":"low"}}"#, Some("json")),
            (Messages, r#"{"output_config":{"format":{"type":"json_schema","schema":{}}}}"#, Some("json")),
            (Messages, r#"{"output_format":{"type":"json_schema"}}"#, Some("json")),
            (Native, r#"{"generationConfig":{"responseMimeType":"application/json"}}"#, Some("json")),
            (Native, r#"{"generationConfig":{"topK":3,"responseMimeType":"text/x.enum"}}"#, None),
            (Chat, r#"{"response_format":"url","text":7}"#, None),
            (Chat, r#"{"messages":[]}"#, None),
        ] {
            assert_eq!(Parameters::of(body.as_bytes(), protocol).output(), output, "{body}");
        }
    }
}
