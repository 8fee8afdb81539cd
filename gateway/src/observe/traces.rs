//! Traces over OTLP: a span for each request, named by OpenTelemetry's conventions for HTTP and generative AI. It
//! continues the trace of a client that sends `traceparent`.

use std::time::Duration;

use gatewright::operations::Operation;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{Status, TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::field::Empty;
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::origin::Origin;
use super::response_inspector::{OTHER, ResponseInspector};

/// Target of exported spans; no log shows it unless configured to.
const TARGET: &str = "gatewright_trace";
/// Service name in traces; `OTEL_SERVICE_NAME` takes precedence.
const SERVICE: &str = "gatewright";
/// Path for traces below the collector's URL.
const PATH: &str = "/v1/traces";
/// Export timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Exports traces to a collector in the background. Spans wait in a bounded queue; a slow or unreachable collector costs
/// spans, never requests.
pub struct Traces {
    provider: SdkTracerProvider,
}

/// Why traces can't be exported.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be exported to {endpoint}: {why}")]
pub struct TracesError {
    endpoint: String,
    why: String,
}

impl Traces {
    /// Exports to a collector, over HTTP with binary protobuf. `endpoint`: its URL, such as `http://127.0.0.1:4318`.
    /// `OTEL_EXPORTER_OTLP_HEADERS` and the other standard variables apply.
    pub fn to(endpoint: &str) -> Result<Self, TracesError> {
        let failed = |why: String| TracesError { endpoint: endpoint.to_owned(), why };
        let url = url::Url::parse(endpoint).map_err(|error| failed(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            let endpoint = url.host_str().unwrap_or_default().to_owned();
            let why =
                "its address must not contain a user and password; use OTEL_EXPORTER_OTLP_HEADERS".to_owned();
            return Err(TracesError { endpoint, why });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failed("it must be an http or https address".to_owned()));
        }
        // The library refuses to create a blocking client on a runtime thread.
        let client = std::thread::spawn(client).join().map_err(|_| failed("no client".to_owned()))?;
        let client = client.map_err(failed)?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{}{PATH}", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let named = std::env::var_os("OTEL_SERVICE_NAME").is_some();
        let resource = Resource::builder();
        let resource = if named { resource } else { resource.with_service_name(SERVICE) };
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Self { provider })
    }

    /// A subscriber layer that collects request spans.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(filter_fn(|metadata| metadata.target() == TARGET))
    }

    /// Exports what is still queued. Blocks for a few seconds at most.
    pub fn end(self) {
        // The collector may be gone, and no receiver is left.
        _ = self.provider.shutdown_with_timeout(TIMEOUT);
    }
}

/// The exporter runs on its own thread.
fn client() -> Result<reqwest::blocking::Client, String> {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    let tls = gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth();
    reqwest::blocking::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| error.to_string())
}

/// The span of a request that just arrived; disabled, and nearly free, unless traces are exported.
pub(crate) fn span(method: &Method, path: &str, is_tls: bool, headers: &HeaderMap, id: &str) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %method,
        otel.kind = "server",
        http.request.method = %method,
        url.path = path,
        url.scheme = if is_tls { "https" } else { "http" },
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gatewright.request_id = id,
    );
    if !span.is_disabled() {
        let parent = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
        // Fails only for a span that no layer collects.
        _ = span.set_parent(parent);
    }
    span
}

/// The span of an attempt at an upstream, as a child of its request's span.
pub(crate) fn attempt_span(request: &Span) -> Span {
    tracing::info_span!(target: TARGET, parent: request, "attempt", otel.kind = "client")
}

/// Headers that let the callee continue a span's trace.
pub(crate) fn trace_headers(span: &Span) -> HeaderMap {
    let mut headers = HeaderMap::new();
    TraceContextPropagator::new().inject_context(&span.context(), &mut HeaderInjector(&mut headers));
    headers
}

/// The span of the request being answered, if it is exported.
pub(crate) fn current_span() -> Option<Span> {
    Some(Span::current()).filter(|span| span.metadata().is_some_and(|metadata| metadata.target() == TARGET))
}

/// Attributes of a request that are known once it has been sent.
pub(super) struct TracedRequest<'a> {
    pub(super) operation: Option<&'static Operation>,
    pub(super) origin: Option<&'a Origin>,
    pub(super) status: u16,
    pub(super) outcome: &'static str,
    /// Attributes from its response.
    pub(super) inspector: &'a ResponseInspector,
}

/// Completes a request's span. It doesn't use span fields: they have no lists, export unsigned numbers as text, and can't
/// rename a span that was entered.
pub(super) fn complete(span: &Span, known: &TracedRequest<'_>) {
    let TracedRequest { operation, origin, status, outcome, inspector } = *known;
    let context = span.context();
    let span = context.span();
    let set = |name: &'static str, value: Value| span.set_attribute(KeyValue::new(name, value));
    set("http.response.status_code", i64::from(status).into());
    set("gatewright.outcome", outcome.into());
    // A stream may fail after its head promised success. A client's mistake isn't a server failure.
    if status >= 500 || outcome == "failed" || (inspector.error.is_some() && status < 400) {
        span.set_status(Status::error(""));
    }
    match inspector.error {
        Some(code) if code != OTHER || status < 400 => set("error.type", code.into()),
        _ if status >= 400 => set("error.type", status.to_string().into()),
        _ if outcome == "failed" => set("error.type", OTHER.into()),
        _ => {}
    }
    if let Some(upstream) = origin.and_then(Origin::upstream) {
        set("gatewright.upstream", upstream.to_string().into());
    }
    let Some(operation) = operation else { return };
    set("http.route", operation.path.into());
    let (inference, model) = (operation.inference, origin.map(|origin| &*origin.model));
    span.update_name(match (inference, model) {
        (Some(inference), Some(model)) => format!("{inference} {model}"),
        _ => format!("{} {}", operation.method.as_str(), operation.path),
    });
    let Some(inference) = inference else { return };
    set("gen_ai.operation.name", inference.into());
    if let Some(waited) = inspector.first_event {
        set("gen_ai.request.stream", true.into());
        set("gen_ai.response.time_to_first_chunk", waited.as_secs_f64().into());
    }
    if let Some(id) = &inspector.id {
        set("gen_ai.response.id", id.clone().into());
    }
    let reasons: Vec<StringValue> = inspector.reasons().map(StringValue::from).collect();
    if !reasons.is_empty() {
        set("gen_ai.response.finish_reasons", Value::Array(Array::String(reasons)));
    }
}

/// Request headers, as read by the propagator.
struct HeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for HeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// Request headers, as written by the propagator.
struct HeaderInjector<'a>(&'a mut HeaderMap);

impl Injector for HeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        // It writes an empty `tracestate` if there is none.
        if value.is_empty() {
            return;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}
