//! Traces over OTLP: a span for each request, with the names of OpenTelemetry's conventions for HTTP and generative AI.
//! It continues the trace of a client that sends `traceparent`.

use std::time::Duration;

use gatewright::operations::Operation;
use http::{HeaderMap, Method};
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TracerProvider as _;
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

/// Target of the spans that are exported; no log shows it unless asked for.
const TARGET: &str = "gatewright_trace";
/// Name of the service in traces; `OTEL_SERVICE_NAME` has precedence.
const SERVICE: &str = "gatewright";
/// Path of traces below the address of a collector.
const PATH: &str = "/v1/traces";
/// Timeout of an export.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The export of traces to a collector, in the background. Spans wait in a bounded queue; a collector that is slow or
/// gone costs spans, never requests.
pub struct Traces {
    provider: SdkTracerProvider,
}

/// Why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
#[error("traces cannot be exported to {endpoint}: {why}")]
pub struct TracesError {
    endpoint: String,
    why: String,
}

impl Traces {
    /// Exports to a collector, over HTTP with binary protobuf. `endpoint`: its address, such as `http://127.0.0.1:4318`.
    /// `OTEL_EXPORTER_OTLP_HEADERS` and the other standard variables apply.
    pub fn to(endpoint: &str) -> Result<Self, TracesError> {
        let failed = |why: String| TracesError { endpoint: endpoint.to_owned(), why };
        let url = url::Url::parse(endpoint).map_err(|error| failed(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            let endpoint = url.host_str().unwrap_or_default().to_owned();
            let why = "its address must hold no user and password; use OTEL_EXPORTER_OTLP_HEADERS".to_owned();
            return Err(TracesError { endpoint, why });
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(failed("it must be an http or https address".to_owned()));
        }
        // The library refuses to make a blocking client on a thread of a runtime.
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

    /// The layer of a subscriber that collects the spans of requests.
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

    /// Exports what still waits. Blocks for some seconds at most.
    pub fn end(self) {
        // The collector may be gone; there is nobody left to tell.
        _ = self.provider.shutdown_with_timeout(TIMEOUT);
    }
}

/// The exporter works on a thread of its own.
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

/// The span of a request that was just received; disabled, and nearly free, unless traces are exported.
pub(crate) fn span(method: &Method, path: &str, headers: &HeaderMap, id: &str) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %method,
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = %method,
        url.path = path,
        http.route = Empty,
        http.response.status_code = Empty,
        gen_ai.operation.name = Empty,
        gen_ai.request.model = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gatewright.request_id = id,
        gatewright.upstream = Empty,
        gatewright.outcome = Empty,
    );
    if !span.is_disabled() {
        let parent = TraceContextPropagator::new().extract(&Headers(headers));
        // Fails only for a span that no layer collects.
        _ = span.set_parent(parent);
    }
    span
}

/// What is known of a request once it has been sent.
pub(super) fn told(
    span: &Span,
    operation: Option<&'static Operation>,
    model: Option<&str>,
    upstream: Option<&str>,
    (status, outcome): (u16, &str),
) {
    if span.is_disabled() {
        return;
    }
    span.record("http.response.status_code", status);
    span.record("gatewright.outcome", outcome);
    if status >= 500 || outcome == "failed" {
        span.record("otel.status_code", "ERROR");
    }
    if let Some(upstream) = upstream {
        span.record("gatewright.upstream", upstream);
    }
    let Some(operation) = operation else { return };
    span.record("http.route", operation.path);
    let inference = operation.inference;
    if let Some(inference) = inference {
        span.record("gen_ai.operation.name", inference);
    }
    if let Some(model) = model {
        span.record("gen_ai.request.model", model);
    }
    match (inference, model) {
        (Some(inference), Some(model)) => span.record("otel.name", format!("{inference} {model}")),
        _ => span.record("otel.name", format!("{} {}", operation.method.as_str(), operation.path)),
    };
}

/// Request headers as the propagator reads them.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}
