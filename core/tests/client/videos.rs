//! Waiting for a video task (section 3).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright::{ErrorKind, SaveOptions, WaitOptions};

use crate::server::{Script, Server};

const SOON: WaitOptions =
    WaitOptions { interval: Duration::from_millis(10), timeout: Duration::from_secs(10), on_progress: None };

fn task(status: &str, more: &str) -> Script {
    Script::json(&format!(r#"{{"id":"t1","status":"{status}","created":1,"model":"video_model_1"{more}}}"#))
}

const OUTPUT: &str =
    r#","output":{"url":"http://h/files/t1","duration":5,"resolution":"1920x1080","format":"avi"}"#;

#[tokio::test]
async fn task_is_submitted_and_awaited_through_known_and_unknown_states() {
    let states =
        [task("processing", ""), task("pending", ""), task("warming_up", ""), task("completed", OUTPUT)];
    let server = Server::start(states).await;
    let request = serde_json::from_str(r#"{"model":"video_model_1","prompt":"a kite"}"#).unwrap();
    let done = server.client().videos().generations().create_and_wait(&request, SOON).await.unwrap();
    assert_eq!(done.status.as_str(), "completed");
    assert_eq!(done.output.as_ref().unwrap().url, "http://h/files/t1");
    let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines[0], "POST /v1/videos/generations HTTP/1.1");
    assert_eq!(lines[1..], ["GET /v1/videos/generations/t1 HTTP/1.1"; 3]);
}

#[tokio::test]
async fn failed_task_is_an_error_with_the_tasks_own_message() {
    let server = Server::start([task("failed", r#","error":{"message":"the prompt was refused"}"#)]).await;
    let error = server.client().videos().generations().wait("t1", SOON).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::TaskFailed, "the prompt was refused"));
    assert_eq!((error.operation(), error.status()), (Some("retrieve_video"), Some(200)));
}

#[tokio::test]
async fn task_that_takes_too_long_is_a_timeout() {
    let server = Server::start((0..200).map(|_| task("processing", ""))).await;
    let options = WaitOptions { timeout: Duration::from_millis(100), ..SOON };
    let error = server.client().videos().generations().wait("t1", options).await.unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Timeout, Some("retrieve_video")));
    assert!(error.message().contains("t1"), "{error}");
}

#[tokio::test]
async fn permanent_polling_error_ends_the_wait() {
    let missing = Script::whole(404, &[], r#"{"error":{"message":"no such task"}}"#);
    let server = Server::start([task("processing", ""), missing]).await;
    let error = server.client().videos().generations().wait("t1", SOON).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "no such task"));
}

#[tokio::test]
async fn wait_survives_an_outage_that_outlasts_the_retries_of_a_poll() {
    let busy = Script::whole(503, &[], r#"{"error":{"message":"restarting"}}"#);
    let outage =
        [task("processing", ""), Script::silence(), busy, Script::silence(), task("completed", OUTPUT)];
    let server = Server::start(outage).await;
    let (seen, options) = noting(SOON);
    let done = server.client().videos().generations().wait("t1", options).await.unwrap();
    assert_eq!(done.status.as_str(), "completed");
    // Polls that fail are not reported.
    assert_eq!(*seen.lock().unwrap(), ["processing", "completed"]);
}

#[tokio::test]
async fn lasting_outage_is_a_timeout_that_mentions_it() {
    let busy = || Script::whole(503, &[], r#"{"error":{"message":"restarting"}}"#);
    let server = Server::start([task("processing", "")].into_iter().chain((0..200).map(|_| busy()))).await;
    let options = WaitOptions { timeout: Duration::from_secs(1), ..SOON };
    let error = server.client().videos().generations().wait("t1", options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().ends_with("the last look-up failed: restarting"), "{error}");
}

#[tokio::test]
async fn wait_ends_unless_the_gateway_responded_or_accepted_the_task() {
    let server = Server::start([Script::silence()]).await;
    let error = server.client().videos().generations().wait("t1", SOON).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    let server = Server::start([task("processing", ""), Script::silence(), task("completed", OUTPUT)]).await;
    let request = gatewright::types::VideoGenerationRequest::new("video_model_1", "a kite");
    let done = server.client().videos().generations().create_and_wait(&request, SOON).await.unwrap();
    assert_eq!(done.status.as_str(), "completed");
}

/// Options with a list of the states that each poll found.
fn noting(options: WaitOptions) -> (Arc<Mutex<Vec<String>>>, WaitOptions) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    (seen, options.on_progress(move |task| list.lock().unwrap().push(task.status.to_string())))
}

#[tokio::test]
async fn progress_is_reported_at_every_poll_including_the_last() {
    let failed = task("failed", r#","error":{"message":"refused"}"#);
    for (last, ends) in [(task("completed", OUTPUT), "completed"), (failed, "failed")] {
        let server = Server::start([task("pending", ""), task("warming_up", ""), last]).await;
        let (seen, options) = noting(SOON);
        let outcome = server.client().videos().generations().wait("t1", options).await;
        assert_eq!(
            outcome.map_err(|error| error.kind()).err(),
            (ends == "failed").then_some(ErrorKind::TaskFailed)
        );
        assert_eq!(*seen.lock().unwrap(), ["pending", "warming_up", ends]);
    }
}

#[tokio::test]
async fn dropping_a_wait_closes_its_connection_at_once() {
    let server = Server::start([task("processing", ""), Script::hang()]).await;
    let client = server.client();
    let wait = tokio::time::timeout(Duration::from_millis(500), async {
        client.videos().generations().wait("t1", SOON).await
    });
    assert!(wait.await.is_err());
    assert!(server.connections_closed(1, Duration::from_secs(2)).await);
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn watch_yields_each_poll_and_can_be_dropped_during_one() {
    let server = Server::start([Script::hang(), task("processing", ""), task("completed", OUTPUT)]).await;
    let mut watch = server.client().watch_video("t1", &SOON);
    let polled = async {
        while server.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        found = watch.next() => panic!("the first poll hangs: {found:?}"),
        () = polled => {}
    }
    let mut states = Vec::new();
    while let Some(found) = watch.next().await.unwrap() {
        let task: serde_json::Value = serde_json::from_slice(&found.body).unwrap();
        states.push(task["status"].as_str().unwrap().to_owned());
    }
    assert_eq!(states, ["processing", "completed"]);
    assert!(watch.next().await.unwrap().is_none());
}

#[tokio::test]
async fn task_without_a_video_cannot_be_saved() {
    let server = Server::start([task("processing", "")]).await;
    let client = server.client();
    let task = client.videos().generations().retrieve("t1").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error =
        client.videos().generations().save(&task, folder.path().join("t.mp4"), SaveOptions::default()).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.message().contains("t1 is processing"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Front ends spawn waits on their runtimes.
#[tokio::test]
async fn waits_and_calls_can_be_spawned() {
    let server = Server::start([task("completed", OUTPUT), task("completed", OUTPUT)]).await;
    let client = server.client();
    let mut watch = client.watch_video("t1", &SOON);
    let raw = tokio::spawn(async move { watch.next().await });
    assert!(raw.await.unwrap().unwrap().is_some());
    let typed = tokio::spawn(async move { client.videos().generations().wait("t1", SOON).await.map(|_| ()) });
    assert!(typed.await.unwrap().is_ok());
}
