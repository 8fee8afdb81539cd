//! Runs without chosen models, against services that list none of the models of the specification.

use gatewright::report::{CheckId, Profile, Status};
use gatewright_checkkit::{CancellationToken, CheckKit, Options, Progress};
use serde_json::{Value, json};
use std::sync::Mutex;

use crate::misbehaving::forms;
use crate::server::{Canned, End, Server};
use crate::{CANARY, key, run, valid_document};

/// A service that lists these models, and rejects everything else.
async fn listing(models: Value) -> Server {
    Server::start(move |request| {
        let (status, body) = if request.line.starts_with("GET ") {
            ("200 OK", json!({ "object": "list", "data": models }))
        } else {
            ("404 Not Found", json!({ "error": { "message": "no such model" } }))
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n");
        Canned { packets: vec![format!("{head}{body}").into_bytes()], end: End::Close }
    })
    .await
}

async fn tested(models: Value) -> Vec<String> {
    let server = listing(models).await;
    let report = run(Options::new(server.url())).await.report;
    let models = report.configuration.models.clone();
    let mut profile = Profile::default();
    if models != Profile::default().models() {
        profile.models.clone_from(&models);
    }
    valid_document(&report, &profile);
    assert_eq!(report.checks.len(), 1 + 5 * models.len());
    let access = report.checks.iter().filter(|check| check.id == CheckId::ModelAccess);
    let accessible = access.filter(|check| check.status == Status::Pass).count();
    let is_own = models != Profile::default().models();
    assert!(!is_own || accessible == models.len(), "{report:#?}");
    models
}

fn list(ids: &[&str]) -> Value {
    ids.iter().map(|id| json!({ "id": id, "object": "model" })).collect()
}

#[tokio::test]
async fn first_text_models_of_the_service_are_tested() {
    let listed =
        list(&["text-embedding-3-small", "gpt-5", "gpt-5", "dall-e-3", "o4-mini", "gpt-4o", "gpt-4.1"]);
    assert_eq!(tested(listed).await, ["gpt-5", "o4-mini", "gpt-4o"]);
    assert_eq!(tested(list(&["only-one"])).await, ["only-one"]);
    let with_kinds = json!([{ "id": "film", "kind": "video" }, { "id": "talk", "kind": "text" }]);
    assert_eq!(tested(with_kinds).await, ["talk"]);
}

#[tokio::test]
async fn models_without_the_responses_protocol_come_last_and_the_report_says_why_they_have_no_results() {
    let model = |id: &str, protocols: Value| json!({ "id": id, "kind": "text", "protocols": protocols });
    let chat = json!(["chat", "messages", "native"]);
    let server = listing(json!([
        model("claude-x", chat.clone()),
        model("gpt-5", json!(["chat", "responses"])),
        model("gemini-x", chat.clone()),
        model("mistral-x", chat),
    ]))
    .await;
    let mut options = Options::new(server.url());
    options.full = true;
    let report = run(options).await.report;
    assert_eq!(report.configuration.models, ["gpt-5", "claude-x", "gemini-x"]);
    let mut profile = Profile::default();
    profile.models.clone_from(&report.configuration.models);
    valid_document(&report, &profile);
    for check in report.checks.iter().filter(|check| check.model.as_deref() == Some("claude-x")) {
        if check.id == CheckId::ModelAccess {
            assert_eq!(check.status, Status::Pass, "{check:?}");
        } else {
            let words = check.in_words().expect("a reason");
            assert_eq!(words, "the service lists the model without the responses protocol", "{check:?}");
        }
    }
    let is_checked = |check: &&gatewright::report::Check| check.http_status.is_some();
    let checked: Vec<_> =
        report.checks.iter().filter(is_checked).filter_map(|check| check.model.as_deref()).collect();
    assert_eq!(checked, ["gpt-5"; 3]);
}

#[tokio::test]
async fn service_without_the_responses_protocol_fails_no_check() {
    let server = listing(json!([{ "id": "claude-x", "kind": "text", "protocols": ["chat"] }])).await;
    let report = run(Options::new(server.url())).await.report;
    assert_eq!(report.configuration.models, ["claude-x"]);
    assert_eq!((report.summary.passed, report.summary.failed, report.summary.skipped), (2, 0, 4));
}

#[tokio::test]
async fn models_of_the_specification_are_tested_if_one_is_listed_or_no_text_model_is() {
    let reference = Profile::default().models().to_vec();
    for listed in [list(&["gpt-5", &reference[1]]), list(&["whisper-1"]), list(&[]), json!("none")] {
        assert_eq!(tested(listed).await, reference);
    }
}

#[tokio::test]
async fn listed_id_that_holds_the_key_is_never_tested() {
    let listed = list(&[CANARY, &format!("my-{CANARY}-model"), &"x".repeat(3000), "plain"]);
    assert_eq!(tested(listed).await, ["plain"]);
    // Nor in any of the forms in which services echo it.
    let forms = forms();
    let ids: Vec<&str> = forms.iter().map(String::as_str).chain(["plain"]).collect();
    assert_eq!(tested(list(&ids)).await, ["plain"]);
}

#[tokio::test]
async fn chosen_models_are_tested_even_if_unlisted() {
    let server = listing(list(&["gpt-5"])).await;
    let mut options = Options::new(server.url());
    options.models = vec!["model-terra".to_owned()];
    assert_eq!(run(options).await.report.configuration.models, ["model-terra"]);
}

#[tokio::test]
async fn plan_is_announced_again_if_the_number_of_cells_changes() {
    let server = listing(list(&["only-one"])).await;
    let kit = CheckKit::new(Options::new(server.url()), &key()).expect("options within bounds");
    let planned = Mutex::new(Vec::new());
    let note = |progress| {
        if let Progress::Planned { cells, .. } = progress {
            planned.lock().expect("no panic").push(cells);
        }
    };
    kit.run(&note, &CancellationToken::new()).await;
    assert_eq!(*planned.lock().expect("no panic"), [16, 6]);
}
