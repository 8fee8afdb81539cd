//! Metrics and tracing of one attempt at an upstream: a count by outcome, and a child span of the request's span.

use std::sync::Arc;

use gatewright::operations::Operation;
use gatewright_protocol::conversation::Usage;
use http::{HeaderMap, Uri};
use opentelemetry::trace::{Status, TraceContextExt as _};
use opentelemetry::{KeyValue, Value};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::failure::{AttemptFailure, FailureClass};
use crate::observe::{self, Attempts, Metrics, Outcome, attempt_span, provider_name};
use crate::routing::{Destination, UpstreamAttempt};

/// An attempt in progress. Counted on drop; the default outcome is that the client disconnected.
pub(crate) struct AttemptMetrics {
    metrics: Arc<Metrics>,
    counts: Arc<Attempts>,
    outcome: Outcome,
    /// None if traces aren't exported.
    span: Option<Span>,
}

impl AttemptMetrics {
    /// `request`: the span of the request, if traces are exported.
    pub(super) fn at(
        attempt: &UpstreamAttempt,
        metrics: &Arc<Metrics>,
        request: Option<&Span>,
        operation: &Operation,
        streams: bool,
    ) -> Self {
        let destination = &attempt.destination;
        // The embedded provider runs in this process.
        let request = request.filter(|_| !destination.provider.is_simulator());
        let span = request.map(|request| {
            let span = attempt_span(request);
            describe(&span, destination, operation, streams);
            span
        });
        let (metrics, counts) = (Arc::clone(metrics), Arc::clone(&destination.attempts));
        Self { metrics, counts, outcome: Outcome::ClientLeft, span }
    }

    /// The headers that let the upstream continue the trace. None if the upstream must not see it.
    pub(super) fn trace(&self, destination: &Destination) -> Option<HeaderMap> {
        let span = self.span.as_ref().filter(|_| destination.provider.endpoint.sends_trace)?;
        Some(observe::trace_headers(span))
    }

    /// The upstream has answered, or started to.
    pub(super) fn answered(&mut self) {
        self.outcome = Outcome::Answered;
    }

    /// Records the usage that the upstream reported.
    pub(super) fn record_usage(&self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.set("gen_ai.usage.input_tokens", usage.input);
        self.set("gen_ai.usage.output_tokens", usage.output);
    }

    /// The answer was cut off.
    pub(super) fn broke_off(&mut self) {
        self.outcome = Outcome::BrokeOff;
        self.failed_by(self.outcome.name());
    }

    pub(super) fn failed(&mut self, failure: &AttemptFailure) {
        self.outcome = match failure.class {
            FailureClass::Request => Outcome::RequestRefused,
            FailureClass::Key | FailureClass::Permission => Outcome::KeyRefused,
            FailureClass::RateLimit => Outcome::RateLimited,
            FailureClass::Upstream => Outcome::Failed,
            FailureClass::Gateway => Outcome::NotRead,
        };
        self.set("http.response.status_code", failure.status().map(u64::from));
        self.failed_by(failure.code());
    }

    /// The embedded provider rejected the request, or failed.
    pub(super) fn refused(&mut self, status: u16) {
        self.outcome = if status >= 500 { Outcome::Failed } else { Outcome::RequestRefused };
        self.failed_by(self.outcome.name());
    }

    fn failed_by(&self, kind: &'static str) {
        let Some(span) = &self.span else { return };
        let context = span.context();
        context.span().set_attribute(KeyValue::new("error.type", kind));
        context.span().set_status(Status::error(""));
    }

    fn set(&self, name: &'static str, number: Option<u64>) {
        if let (Some(span), Some(number)) = (&self.span, number) {
            span.context().span().set_attribute(KeyValue::new(name, number.cast_signed()));
        }
    }
}

impl Drop for AttemptMetrics {
    fn drop(&mut self) {
        self.metrics.attempted(&self.counts, self.outcome);
    }
}

/// Sets the attributes of the semantic conventions for generative AI clients.
fn describe(span: &Span, destination: &Destination, operation: &Operation, streams: bool) {
    let context = span.context();
    let span = context.span();
    let set = |name: &'static str, value: Value| span.set_attribute(KeyValue::new(name, value));
    let endpoint = &destination.provider.endpoint;
    let address = endpoint.address();
    let host = address.as_ref().and_then(Uri::host);
    set("gen_ai.provider.name", provider_name(&endpoint.name, host).to_owned().into());
    set("gen_ai.request.model", destination.model.to_string().into());
    set("gatewright.upstream", endpoint.name.to_string().into());
    if let (Some(address), Some(host)) = (&address, host) {
        let usual = if address.scheme_str() == Some("https") { 443 } else { 80 };
        set("server.address", host.to_owned().into());
        set("server.port", i64::from(address.port_u16().unwrap_or(usual)).into());
    }
    if streams {
        set("gen_ai.request.stream", true.into());
    }
    if let Some(inference) = operation.inference {
        set("gen_ai.operation.name", inference.into());
        span.update_name(format!("{inference} {}", destination.model));
    }
}
