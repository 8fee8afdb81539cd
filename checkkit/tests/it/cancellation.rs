//! Interrupted runs, and what a run reports while it is in progress.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use gatewright::report::{AgentMode, CheckId, Profile, Status};
use gatewright::{ErrorKind, on_purpose};
use gatewright_checkkit::{BackgroundRun, CancellationToken, CheckKit, Next, Options, Progress};
use serde_json::json;

use crate::scenario::{good, reply};
use crate::server::{Route, Server};
use crate::{key, valid_document};

#[tokio::test]
async fn interrupted_run_returns_a_complete_report_immediately() {
    // The first model's stream never begins.
    let server = Server::start(|request| match request.route() {
        Route::Stream => reply(&json!({ "raw": "", "end": "hang" }), request),
        _ => good(request),
    })
    .await;
    for parallel in [false, true] {
        let mut options = Options::new(server.url());
        options.full = true;
        options.parallel = parallel;
        options.timeout_ms = 120_000;
        let kit = CheckKit::new(options, &key()).expect("within bounds");
        let cancel = CancellationToken::new();
        let stop = cancel.clone();
        let streams = Mutex::new(0);
        let began = Instant::now();
        let finished = kit
            .run(
                &|progress| {
                    if matches!(progress, Progress::Started { id: CheckId::ResponsesStream, .. }) {
                        *streams.lock().expect("not poisoned") += 1;
                        stop.cancel();
                    }
                },
                &cancel,
            )
            .await;
        assert!(finished.interrupted && began.elapsed() < Duration::from_secs(20));
        valid_document(&finished.report, &Profile::default());
        assert_eq!(finished.report.checks.len(), 16);
        assert_eq!(finished.report.checks[2].status, Status::Pass, "completed cells remain");
        let aborted: Vec<_> = finished
            .report
            .checks
            .iter()
            .filter(|check| check.reason.as_deref().is_some_and(|reason| reason.starts_with("aborted: ")))
            .collect();
        assert!(aborted.iter().all(|check| check.status == Status::Skip && check.duration_ms.is_none()));
        assert!(aborted.iter().any(|check| check.id == CheckId::ResponsesStream));
        assert_eq!(finished.report.summary.failed, 0);
        if !parallel {
            // The model list, access and text of the first model; agents are not requested.
            assert_eq!((finished.report.summary.passed, aborted.len()), (3, 10));
        }
    }
}

#[tokio::test]
async fn run_canceled_before_it_starts_sends_nothing() {
    let server = Server::start(good).await;
    let mut options = Options::new(server.url());
    options.agent_mode = AgentMode::AllModels;
    options.agent_program = Some("/bin/sh".into());
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let finished = kit.run(&|_| {}, &cancel).await;
    valid_document(&finished.report, &Profile::default());
    assert!(finished.interrupted && finished.evidence.is_empty());
    assert_eq!(finished.report.summary.skipped, 16);
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn progress_reports_every_cell_in_report_order() {
    let server = Server::start(good).await;
    let mut options = Options::new(server.url());
    options.models = vec!["model-terra".to_owned(), "model-sol".to_owned()];
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let events = Mutex::new(Vec::new());
    let finished = kit
        .run(
            &|progress| {
                events
                    .lock()
                    .expect("not poisoned")
                    .push(serde_json::to_value(progress).expect("it serializes"));
            },
            &CancellationToken::new(),
        )
        .await;
    let events = events.into_inner().expect("not poisoned");
    assert_eq!(events[0], json!({ "event": "planned", "cells": 11, "to_run": 7 }));
    assert_eq!(events[1], json!({ "event": "started", "index": 0, "id": "models_endpoint", "model": null }));
    let checks: Vec<_> = events.iter().filter(|event| event["event"] == "finished").collect();
    assert_eq!(checks.len(), 11);
    for (index, (event, check)) in checks.iter().zip(&finished.report.checks).enumerate() {
        assert_eq!(event["index"], index);
        assert_eq!(event["check"], serde_json::to_value(check).expect("it serializes"));
    }
    assert_eq!(events.iter().filter(|event| event["event"] == "started").count(), 7);
}

/// Evidence: one piece per cell that ran, with the expected and observed results and the exchange.
#[tokio::test]
async fn evidence_shows_expected_observed_and_the_exchange() {
    let server = Server::start(|request| match request.route() {
        Route::Text => {
            let script = json!({ "status": 503, "json": { "error": { "message": "bad {{key}}" } } });
            reply(&script, request)
        }
        _ => good(request),
    })
    .await;
    let mut options = Options::new(server.url());
    options.models = vec!["model-sol".to_owned()];
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let finished = kit.run(&|_| {}, &CancellationToken::new()).await;
    let cells: Vec<_> = finished.evidence.iter().map(|(index, evidence)| (*index, evidence.id)).collect();
    assert_eq!(
        cells,
        [
            (0, CheckId::ModelsEndpoint),
            (1, CheckId::ModelAccess),
            (2, CheckId::ResponsesText),
            (3, CheckId::ResponsesStream),
            (4, CheckId::ResponsesFunctionTool)
        ]
    );
    let text = &finished.evidence[2].1;
    let last = text.assertions.last().expect("an assertion");
    assert_eq!((last.expected.as_str(), last.observed.as_str(), last.held), ("200", "503", false));
    let exchange = text.exchange.as_ref().expect("an exchange");
    let request = format!("POST {}/v1/responses HTTP/1.1\n", server.url());
    assert!(exchange.request.starts_with(&request), "{}", exchange.request);
    assert!(exchange.request.contains("authorization: Bearer [redacted]\n"), "{}", exchange.request);
    assert!(
        exchange.request.contains("\n\n{\"model\":\"model-sol\",\"input\":\"Reply"),
        "{}",
        exchange.request
    );
    assert!(exchange.response.starts_with("HTTP/1.1 503\n"), "{}", exchange.response);
    assert!(exchange.response.ends_with("\n\n{\"error\":{\"message\":\"bad [redacted]\"}}"));
    assert!(finished.evidence[1].1.exchange.is_none());
    assert!(finished.evidence[3].1.assertions.iter().all(|assertion| assertion.held));

    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("evidence");
    let names = gatewright_checkkit::write_evidence(&folder, &finished.evidence).expect("written");
    assert_eq!(names[2], "02-responses_text-model-sol.json");
    for (name, (_, evidence)) in names.iter().zip(&finished.evidence) {
        let bytes = std::fs::read(folder.join(name)).expect("read");
        let read: gatewright::report::Evidence = serde_json::from_slice(&bytes).expect("evidence");
        assert_eq!(read, *evidence);
    }
}

/// For callers that poll for events instead of passing a callback.
#[tokio::test(flavor = "multi_thread")]
async fn background_run_reports_the_same_and_can_be_canceled() {
    let server = Server::start(|request| match request.route() {
        Route::Stream => reply(&json!({ "raw": "", "end": "hang" }), request),
        _ => good(request),
    })
    .await;
    let options = json!({ "endpoint": server.url(), "models": ["model-sol"], "timeout_ms": 120_000 });
    let options = Options::read(&options.to_string()).expect("options");
    let run = BackgroundRun::start(CheckKit::new(options, &key()).expect("within bounds")).expect("a thread");
    tokio::task::spawn_blocking(move || {
        let mut events = Vec::new();
        loop {
            match run.next(Duration::from_millis(100)) {
                Next::Event(event) => {
                    events.push(serde_json::to_value(event).expect("it serializes"));
                    assert!(run.finished().is_none() || events.len() > 8);
                }
                Next::Pending if events.last().is_some_and(|event| event["id"] == "responses_stream") => {
                    run.cancel();
                }
                Next::Pending => {}
                Next::Done => break,
            }
        }
        let finished = run.finished().expect("it is done").expect("the run is complete");
        assert!(finished.interrupted);
        valid_document(&finished.report, &Profile::default());
        assert_eq!(events.len(), 1 + 6 + 4, "{events:#?}");
    })
    .await
    .expect("it ends");
}

/// Ours: a panic of the run is retained for the caller that collects its result.
#[test]
fn background_run_that_panics_returns_an_internal_error() {
    let options = json!({ "endpoint": "http://127.0.0.1:1", "models": ["model-sol"] });
    let options = Options::read(&options.to_string()).expect("options");
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    on_purpose::panic_at(on_purpose::PanicPoint::Check);
    let run = BackgroundRun::start(kit).expect("a thread");
    while !matches!(run.next(Duration::from_millis(100)), Next::Done) {}
    on_purpose::panic_at(on_purpose::PanicPoint::Nowhere);
    let broke = run.finished().expect("it is done").expect_err("it panicked");
    assert_eq!(broke.kind(), ErrorKind::Internal);
}

#[test]
fn options_are_parsed_from_json_and_unknown_members_rejected() {
    let all = json!({
        "endpoint": "http://h", "base_path": "/v2", "models": ["model-sol"], "full": true, "agent_mode": "one-model",
        "timeout_ms": 1000, "agent_timeout_ms": 5000, "agent_program": "a", "agent_env": ["LANG"],
        "only": ["models_endpoint"], "skip": ["model_access"], "parallel": true,
        "profile": { "kit_name": "k", "models": ["model-sol"] }, "ca_bundle": "f", "runtime_version": "v3",
    });
    let options = Options::read(&all.to_string()).expect("options");
    assert_eq!((options.base_path.as_str(), options.agent_mode), ("/v2", AgentMode::OneModel));
    assert_eq!((options.only, options.profile.kit_name()), (vec![CheckId::ModelsEndpoint], "k"));
    for (json, expected) in [
        ("{}", "endpoint is missing"),
        (r#"{"endpoint":"http://h","key":"k"}"#, "no option is called key; the options are endpoint, "),
        (r#"{"endpoint":"http://h","only":["x"]}"#, "only must be a list out of models_endpoint, "),
        (
            r#"{"endpoint":"http://h","timeout_ms":-1}"#,
            "timeout_ms must be a whole number from 1000 to 120000, not -1",
        ),
    ] {
        let refused = Options::read(json).expect_err(expected);
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }
}
