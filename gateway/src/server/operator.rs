//! Endpoints for operators besides the operations: liveness, readiness and metrics.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

use gatewright::ErrorCode;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::json;

use crate::app::App;
use crate::observe::States;
use crate::wire::{ApiError, Body, Response, json_response};

/// The methods of these paths.
const METHODS: &str = "GET, HEAD, OPTIONS";

/// Answers one of these paths. `None` for any other.
pub(super) fn answer(app: &App, head: &mut Parts) -> Option<Result<Response, ApiError>> {
    let (method, path) = (&head.method, head.uri.path());
    let read: fn(&App, &mut HeaderMap) -> Result<Response, ApiError> = match path {
        "/health/live" => |_, _| Ok(json_response(&json!({ "status": "live" }))),
        "/health/ready" => |app, _| Ok(ready(app)),
        "/metrics" => metrics,
        _ => return None,
    };
    Some(match *method {
        Method::GET | Method::HEAD => read(app, &mut head.headers),
        _ => {
            Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, format!("{method} is not allowed for {path}"))
                .allow(METHODS))
        }
    })
}

fn ready(app: &App) -> Response {
    let draining = app.draining.load(Ordering::Relaxed);
    // A gateway without models can't serve requests.
    let unconfigured = app.live.shared.as_ref().is_some_and(|shared| shared.in_use().is_none());
    let status = match (draining, unconfigured) {
        (true, _) => "draining",
        (false, true) => "unconfigured",
        (false, false) => "ready",
    };
    let mut state = json!({ "status": status });
    // Without its counters, a gateway keeps serving: others would have to take over its requests, and have no
    // counters either.
    if let Some(counters) = &app.access.counters {
        state["limits"] = if counters.is_present() { "shared" } else { "local" }.into();
    }
    // The running configuration keeps serving: only an operator can fix the file. Its content must not be shown to
    // every client that can reach this endpoint.
    if let Some(stale) = &*app.live.stale.load() {
        state["configuration"] = "stale".into();
        if let Some((line, column)) = stale.place {
            state["configuration_problem_at"] = format!("{line}:{column}").into();
        }
    } else if app.live.shared.as_ref().is_some_and(|shared| shared.refused().is_some()) {
        state["configuration"] = "stale".into();
    } else if app.live.needs_restart.load(Ordering::Relaxed) {
        state["configuration"] = "restart_needed".into();
    }
    let mut response = json_response(&state);
    if status != "ready" {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

/// The metrics, public or for holders of the admin key.
fn metrics(app: &App, headers: &mut HeaderMap) -> Result<Response, ApiError> {
    if !app.config.open_metrics {
        if !app.access.authenticator.has_admin() {
            return Err(ApiError::new(&ErrorCode::NOT_FOUND, "metrics are disabled on this gateway"));
        }
        app.access.authenticator.admit_admin(headers)?;
    }
    let mut response = Response::new(Body::from(app.telemetry.metrics.render() + &states(app).render()));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// State that is only read on request.
fn states(app: &App) -> States {
    let states = States::default();
    for (state, requests) in app.access.ledger.counters().states() {
        states.set("gatewright_usage_requests", &[("state", state)], requests);
    }
    states.count("gatewright_usage_unpriced_total", app.access.ledger.counters().unpriced());
    states.count("gatewright_store_failures_total", app.access.ledger.counters().failures());
    if let Some(journal) = app.access.ledger.journal() {
        states.count("gatewright_usage_unjournaled_total", journal.missed());
    }
    states.set("gatewright_held_bytes", &[], number(app.resources.memory.taken()));
    set_waiting(&states, app);
    if let Some(counters) = &app.access.counters {
        states.set("gatewright_counters_present", &[], f64::from(u8::from(counters.is_present())));
        states.count("gatewright_counters_losses_total", counters.losses());
        states.count("gatewright_counters_local_requests_total", counters.judged_locally());
    }
    states.set("gatewright_config_stale", &[], f64::from(u8::from(app.live.stale.load().is_some())));
    if let Some(shared) = &app.live.shared {
        let refused = shared.refused().map_or(0, |refused| refused.revision.number);
        states.set("gatewright_config_revision", &[], number(shared.number().unwrap_or(0)));
        states.set("gatewright_config_refused", &[], number(refused));
    }
    for upstream in app.live.routes.load().health(Instant::now()) {
        let name = upstream.name;
        states.set("gatewright_upstream_in_flight", &[("upstream", name)], number(upstream.in_flight));
        // A model may have several targets at one upstream: the worst state counts.
        let mut models = BTreeMap::new();
        for model in upstream.models {
            let worst = models.entry(model.model).or_insert(model.breaker);
            *worst = model.breaker.max(*worst);
        }
        for (model, breaker) in models {
            let labels = [("upstream", name), ("model", model)];
            states.set("gatewright_upstream_breaker", &labels, breaker.number());
        }
    }
    states
}

/// Counts the work in this process that waits for the store or for its turn. A slow or absent store doesn't delay this.
fn set_waiting(states: &States, app: &App) {
    for (kind, waiting) in [
        ("responses", number(app.storage.history_keeper.unwritten())),
        ("answers", number(app.storage.replays.unwritten())),
        ("task_ends", number(app.task_runner.ending())),
    ] {
        states.set("gatewright_store_waiting", &[("kind", kind)], waiting);
    }
    states.set("gatewright_video_tasks", &[], number(app.task_runner.under_way()));
    for (work, waiting) in app.task_runner.schedule.waiting() {
        states.set("gatewright_video_tasks_waiting", &[("work", work)], number(waiting));
    }
    for (state, notifications) in app.webhooks.outbox.states() {
        states.set("gatewright_notifications", &[("state", state)], number(notifications));
    }
}

/// A count as a metric value.
#[expect(clippy::cast_precision_loss, reason = "there are far fewer of anything than would lose it")]
fn number(count: impl TryInto<u64>) -> f64 {
    count.try_into().unwrap_or(u64::MAX) as f64
}
