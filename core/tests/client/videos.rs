//! Waiting for a video task (section 3).

use std::time::Duration;

use gatewright::{ErrorKind, WaitOptions};

use crate::server::{Script, Server};

const SOON: WaitOptions =
    WaitOptions { interval: Duration::from_millis(10), timeout: Duration::from_secs(10) };

fn task(status: &str, more: &str) -> Script {
    Script::json(&format!(r#"{{"id":"t1","status":"{status}","created":1,"model":"video_model_1"{more}}}"#))
}

const OUTPUT: &str =
    r#","output":{"url":"http://h/files/t1","duration":5,"resolution":"1920x1080","format":"avi"}"#;

#[tokio::test]
async fn a_task_is_submitted_and_waited_for_through_states_known_and_unknown() {
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
async fn a_failed_task_is_an_error_with_the_tasks_own_message() {
    let server = Server::start([task("failed", r#","error":{"message":"the prompt was refused"}"#)]).await;
    let error = server.client().videos().generations().wait("t1", SOON).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::TaskFailed, "the prompt was refused"));
    assert_eq!((error.operation(), error.status()), (Some("retrieve_video"), Some(200)));
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_a_timeout() {
    let server = Server::start((0..200).map(|_| task("processing", ""))).await;
    let options = WaitOptions { timeout: Duration::from_millis(100), ..SOON };
    let error = server.client().wait_for_video("t1", options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("t1"), "{error}");
}

#[tokio::test]
async fn a_look_up_that_fails_ends_the_wait() {
    let missing = Script::whole(404, &[], r#"{"error":{"message":"no such task"}}"#);
    let server = Server::start([task("processing", ""), missing]).await;
    let error = server.client().wait_for_video("t1", SOON).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

/// Front ends spawn waits on their runtimes.
#[tokio::test]
async fn waits_and_calls_can_be_spawned() {
    let server = Server::start([task("completed", OUTPUT), task("completed", OUTPUT)]).await;
    let client = server.client();
    let raw = client.clone();
    let raw = tokio::spawn(async move { raw.wait_for_video("t1", SOON).await });
    assert!(raw.await.unwrap().is_ok());
    let typed = tokio::spawn(async move { client.videos().generations().wait("t1", SOON).await.map(|_| ()) });
    assert!(typed.await.unwrap().is_ok());
}
