//! Metrics in the Prometheus text format. Each gateway has its own recorder, so several can run in one process. Whatever
//! the request path updates is registered beforehand, as far as its labels are known by then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gatewright::operations::{self, Operation};
use gatewright_protocol::conversation::Usage;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder as _, SharedString, Unit,
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::attempts::{Attempts, Outcome};

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, None);

const REQUESTS: &str = "gatewright_requests_total";
const DURATION: &str = "gatewright_request_duration_seconds";
const FIRST_BYTE: &str = "gatewright_time_to_first_byte_seconds";
const IN_FLIGHT: &str = "gatewright_requests_in_flight";
const CONNECTIONS: &str = "gatewright_connections";
const TOKENS: &str = "gatewright_tokens_total";
const ABORTED: &str = "gatewright_requests_aborted_total";
const ATTEMPTS: &str = "gatewright_upstream_attempts_total";

/// Descriptions of the [`States`].
const STATES: &[(&str, &str)] = &[
    ("gatewright_usage_requests", "Requests since the start, by the state of their usage records."),
    (
        "gatewright_usage_unpriced_total",
        "Requests since the start without a known cost, because their model has no price at its upstream.",
    ),
    ("gatewright_store_failures_total", "Failed attempts to write usage to the store."),
    (
        "gatewright_usage_unjournaled_total",
        "Requests since the start whose usage could not be journaled: it is only in memory until it is in the store.",
    ),
    (
        "gatewright_store_waiting",
        "Records that wait in memory to be stored: changes of stored responses (responses), answers by idempotency keys \
            (answers), ends of video tasks (task_ends).",
    ),
    ("gatewright_video_tasks", "Video tasks of this process, including those that wait for a slot."),
    ("gatewright_video_tasks_waiting", "Video tasks that wait for a slot, by the work that needs it."),
    (
        "gatewright_notifications",
        "Notifications that this process is sending (sending) or will retry (retrying), and how many it has delivered or \
            given up on (dead) since the start.",
    ),
    ("gatewright_held_bytes", "Memory of the requests and answers in progress."),
    ("gatewright_counters_present", "Whether the shared counter server is available."),
    ("gatewright_counters_losses_total", "How often the connection to the shared counter server was lost."),
    (
        "gatewright_counters_local_requests_total",
        "Requests of keys with limits that were checked without the shared counter server.",
    ),
    (
        "gatewright_config_stale",
        "1 while the configuration file is rejected and an earlier version is in use; else 0.",
    ),
    ("gatewright_config_revision", "Revision of the shared configuration in use; 0: none."),
    ("gatewright_config_refused", "The newest revision, if this gateway rejects it; else 0."),
    ("gatewright_upstream_in_flight", "Requests in progress at the upstream."),
    (
        "gatewright_upstream_breaker",
        "0: closed; 1: half-open, one request decides; 2: open, no requests are sent.",
    ),
];

/// Upper bounds of the histogram buckets, in seconds: from a rejected request to a long stream.
const BUCKETS_S: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0,
];
/// Range of statuses that have their own counters.
const STATUSES: std::ops::Range<u16> = 200..600;
/// Label of requests that matched no operation.
const NO_OPERATION: &str = "none";

/// The metrics of a gateway.
pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// One per operation, and a last one for requests without an operation.
    operations: Vec<PerOperation>,
    /// Requests whose response hasn't been fully sent.
    pub(crate) in_flight: CountGauge,
    /// Open connections.
    pub(crate) connections: CountGauge,
}

/// A gauge of how many there are now, which can also be read.
#[derive(Debug, Clone)]
pub(crate) struct CountGauge {
    gauge: Gauge,
    now: Arc<AtomicU64>,
}

impl CountGauge {
    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

/// One counted item, for as long as it lives.
#[derive(Debug)]
pub(crate) struct GaugeGuard(CountGauge);

impl GaugeGuard {
    pub(crate) fn new(count: &CountGauge) -> Self {
        count.gauge.increment(1);
        count.now.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.gauge.decrement(1);
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The metrics of an operation.
struct PerOperation {
    name: &'static str,
    duration: Histogram,
    first_byte: Histogram,
    aborted: Counter,
    /// By status, starting with the first of [`STATUSES`].
    requests: Box<[OnceLock<Counter>]>,
}

impl Default for Metrics {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS_S)
            .expect("there are buckets")
            .build_recorder();
        for (name, unit, text) in [
            (REQUESTS, Unit::Count, "Requests answered, by operation and status."),
            (ABORTED, Unit::Count, "Requests whose client disconnected before the end of the response."),
            (ATTEMPTS, Unit::Count, "Attempts at upstreams, by outcome."),
            (
                TOKENS,
                Unit::Count,
                "Input tokens (input, cached, cache_write) and output tokens (output, reasoning).",
            ),
        ] {
            recorder.describe_counter(KeyName::from(name), Some(unit), SharedString::const_str(text));
        }
        for (name, text) in [
            (DURATION, "Time from the request's head to the end of the response."),
            (
                FIRST_BYTE,
                "Time from the request's head to the first byte of the answer, not counting keep-alives.",
            ),
        ] {
            recorder.describe_histogram(
                KeyName::from(name),
                Some(Unit::Seconds),
                SharedString::const_str(text),
            );
        }
        for (name, text) in [
            (IN_FLIGHT, "Requests whose response is not completely sent yet."),
            (CONNECTIONS, "Open client connections."),
        ] {
            recorder.describe_gauge(KeyName::from(name), Some(Unit::Count), SharedString::const_str(text));
        }
        let names = operations::ALL.iter().map(|operation| operation.id).chain([NO_OPERATION]);
        let operations = names.map(|name| PerOperation::new(&recorder, name)).collect();
        let count = |name| {
            let gauge = recorder.register_gauge(&Key::from_static_name(name), &METADATA);
            CountGauge { gauge, now: Arc::default() }
        };
        let (in_flight, connections) = (count(IN_FLIGHT), count(CONNECTIONS));
        let handle = recorder.handle();
        Self { recorder, handle, operations, in_flight, connections }
    }
}

impl PerOperation {
    fn new(recorder: &PrometheusRecorder, name: &'static str) -> Self {
        let key = |metric| Key::from_parts(metric, vec![operation_label(name)]);
        Self {
            name,
            duration: recorder.register_histogram(&key(DURATION), &METADATA),
            first_byte: recorder.register_histogram(&key(FIRST_BYTE), &METADATA),
            aborted: recorder.register_counter(&key(ABORTED), &METADATA),
            requests: STATUSES.map(|_| OnceLock::new()).collect(),
        }
    }
}

fn operation_label(name: &'static str) -> Label {
    Label::from_static_parts("operation", name)
}

impl Metrics {
    fn of(&self, operation: Option<&'static Operation>) -> &PerOperation {
        let known =
            operation.and_then(|operation| operations::ALL.iter().position(|other| other.id == operation.id));
        &self.operations[known.unwrap_or(self.operations.len() - 1)]
    }

    /// The first byte of an answer is sent to its client. `waited`: since the request head.
    pub(crate) fn started(&self, operation: Option<&'static Operation>, waited: Duration) {
        self.of(operation).first_byte.record(waited);
    }

    /// A response head is ready.
    pub(crate) fn answered(&self, operation: Option<&'static Operation>, status: u16) {
        let metrics = self.of(operation);
        let register = || {
            let labels = vec![operation_label(metrics.name), Label::new("status", status.to_string())];
            self.recorder.register_counter(&Key::from_parts(REQUESTS, labels), &METADATA)
        };
        let place = status.checked_sub(STATUSES.start).map(usize::from);
        match place.and_then(|place| metrics.requests.get(place)) {
            Some(counter) => counter.get_or_init(register).increment(1),
            None => register().increment(1),
        }
    }

    /// A response ended. `took`: since the request head. `whole`: the client received all of it.
    pub(crate) fn ended(&self, operation: Option<&'static Operation>, took: Duration, whole: bool) {
        let metrics = self.of(operation);
        metrics.duration.record(took);
        if !whole {
            metrics.aborted.increment(1);
        }
    }

    /// Tokens were used. Not for the request path: it looks the counters up.
    pub(crate) fn tokens(&self, model: &str, upstream: &str, usage: &Usage) {
        let kinds = [
            ("input", usage.input),
            ("cached", usage.cached),
            ("cache_write", usage.cache_write),
            ("output", usage.output),
            ("reasoning", usage.reasoning),
        ];
        for (kind, tokens) in kinds {
            let Some(tokens) = tokens.filter(|tokens| *tokens > 0) else { continue };
            let labels = vec![
                Label::new("model", model.to_owned()),
                Label::new("upstream", upstream.to_owned()),
                Label::from_static_parts("kind", kind),
            ];
            self.recorder.register_counter(&Key::from_parts(TOKENS, labels), &METADATA).increment(tokens);
        }
    }

    /// An attempt at an upstream has ended.
    pub(crate) fn attempted(&self, attempts: &Attempts, outcome: Outcome) {
        let register = || {
            let labels = vec![
                Label::new("upstream", Arc::clone(&attempts.upstream)),
                Label::new("model", Arc::clone(&attempts.model)),
                Label::from_static_parts("outcome", outcome.name()),
            ];
            self.recorder.register_counter(&Key::from_parts(ATTEMPTS, labels), &METADATA)
        };
        attempts.counter(outcome).get_or_init(register).increment(1);
    }

    /// All metrics in the text format.
    pub(crate) fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}

/// States and counts that are read on each scrape. They are built for a single response: what no longer exists has no
/// line.
pub(crate) struct States(PrometheusRecorder);

impl Default for States {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for (name, text) in STATES {
            let (name, text) = (KeyName::from(*name), SharedString::const_str(text));
            if name.as_str().ends_with("_total") {
                recorder.describe_counter(name, None, text);
            } else {
                recorder.describe_gauge(name, None, text);
            }
        }
        Self(recorder)
    }
}

impl States {
    /// A total since the start.
    pub(crate) fn count(&self, name: &'static str, value: u64) {
        self.0.register_counter(&Key::from_name(name), &METADATA).absolute(value);
    }

    pub(crate) fn set(&self, name: &'static str, labels: &[(&'static str, &str)], value: f64) {
        let labels: Vec<Label> =
            labels.iter().map(|(key, value)| Label::new(*key, (*value).to_owned())).collect();
        self.0.register_gauge(&Key::from_parts(name, labels), &METADATA).set(value);
    }

    /// Everything in the text format.
    pub(crate) fn render(&self) -> String {
        self.0.handle().render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_status() {
        let metrics = Metrics::default();
        let chat = Some(&operations::CREATE_CHAT_COMPLETION);
        metrics.answered(chat, 200);
        metrics.answered(chat, 200);
        metrics.answered(chat, 429);
        metrics.answered(None, 404);
        metrics.answered(None, 101);
        metrics.started(chat, Duration::from_millis(3));
        metrics.ended(chat, Duration::from_millis(40), true);
        metrics.ended(chat, Duration::from_millis(40), false);
        let text = metrics.render();
        for line in [
            "gatewright_requests_total{operation=\"create_chat_completion\",status=\"200\"} 2",
            "gatewright_requests_total{operation=\"create_chat_completion\",status=\"429\"} 1",
            "gatewright_requests_total{operation=\"none\",status=\"404\"} 1",
            "gatewright_requests_total{operation=\"none\",status=\"101\"} 1",
            "gatewright_requests_aborted_total{operation=\"create_chat_completion\"} 1",
            "gatewright_request_duration_seconds_bucket{operation=\"create_chat_completion\",le=\"0.05\"} 2",
            "gatewright_request_duration_seconds_count{operation=\"create_chat_completion\"} 2",
            "gatewright_time_to_first_byte_seconds_bucket{operation=\"create_chat_completion\",le=\"0.0025\"} 0",
            "gatewright_time_to_first_byte_seconds_bucket{operation=\"create_chat_completion\",le=\"0.005\"} 1",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in:\n{text}");
        }
    }

    #[test]
    fn counts_render_as_counters_and_states_as_gauges() {
        let states = States::default();
        states.count("gatewright_store_failures_total", 3);
        states.set("gatewright_held_bytes", &[], 1.0);
        let text = states.render();
        for line in [
            "# TYPE gatewright_store_failures_total counter",
            "gatewright_store_failures_total 3",
            "# TYPE gatewright_held_bytes gauge",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in:\n{text}");
        }
    }

    #[test]
    fn attempts_are_counted_by_upstream_model_and_outcome() {
        let metrics = Metrics::default();
        let attempts = Attempts::new("one".into(), "mine".into());
        for outcome in [Outcome::Failed, Outcome::Answered, Outcome::Failed, Outcome::ClientLeft] {
            metrics.attempted(&attempts, outcome);
        }
        // The same after a reload, with new counters.
        metrics.attempted(&Attempts::new("one".into(), "mine".into()), Outcome::Failed);
        let text = metrics.render();
        for (outcome, count) in [("failed", 3), ("answered", 1), ("client_left", 1)] {
            let labels = format!("upstream=\"one\",model=\"mine\",outcome=\"{outcome}\"");
            let line = format!("gatewright_upstream_attempts_total{{{labels}}} {count}");
            assert!(text.lines().any(|other| other == line), "{line} in:\n{text}");
        }
    }

    #[test]
    fn tokens_are_counted_by_model_upstream_and_kind() {
        let metrics = Metrics::default();
        let usage = Usage { input: Some(7), output: Some(5), cached: Some(0), ..Usage::default() };
        metrics.tokens("a \"model\"\n", "one", &usage);
        metrics.tokens("a \"model\"\n", "one", &usage);
        let text = metrics.render();
        let line = "gatewright_tokens_total{model=\"a \\\"model\\\"\\n\",upstream=\"one\",kind=\"input\"} 14";
        assert!(text.lines().any(|other| other == line), "{text}");
        assert!(!text.contains("kind=\"cached\""), "{text}");
    }
}
