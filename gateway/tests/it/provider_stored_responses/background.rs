//! Responses that a provider generates in the background: the gateway polls it for their usage.

use std::time::{Duration, Instant};

use gatewright_gateway::Kind;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{ADMIN, PATH, at, broken, delete, events, not_found, path, question, response};
use crate::support::{Server, read, send};
use crate::upstreams::{Scripted, json_answer, stream};

/// A gateway whose client requested a background response. Its stream ended early, and its provider then has the whole response.
async fn after_a_cut_background_stream() -> (Server, Scripted) {
    let made = response("resp_1", "apples");
    let whole = events(&made);
    let early = &whole[..whole.find("event: response.completed").expect("the last event")];
    let provider = Scripted::start([stream(early), json_answer(200, &made)]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    let mut body = question("Say apples");
    (body["stream"], body["background"]) = (json!(true), json!(true));
    send(server.post(PATH, &body)).await.text().await.expect("an answer");
    (server, provider)
}

#[tokio::test]
async fn background_response_survives_a_stream_disconnect() {
    let (server, _provider) = after_a_cut_background_stream().await;
    assert_eq!(read(server.get(&path("resp_1"))).await.1["status"], "completed");
}

/// The only usage row, once it satisfies a condition.
async fn usage_of(server: &Server, is_there: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let (_, report) = read(server.bare(Method::GET, "/admin/usage").bearer_auth(ADMIN)).await;
        match report["usage"].as_array().map(Vec::as_slice) {
            Some([row]) if is_there(row) => return row.clone(),
            rows => assert!(started.elapsed() < Duration::from_secs(30), "{rows:?}"),
        }
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn background_usage_is_counted_once_completed() {
    let done = response("resp_1", "apples");
    let at_status = |status: &str| {
        let mut response = done.clone();
        (response["status"], response["output"], response["usage"]) = (json!(status), json!([]), Value::Null);
        json_answer(200, &response)
    };
    let steps = [at_status("queued"), at_status("in_progress"), broken(), json_answer(200, &done)];
    let provider = Scripted::start(steps).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    let mut request = question("Say apples");
    request["background"] = json!(true);
    let queued = server.ask(PATH, &request).await;
    assert_eq!(queued["status"], "queued");
    let row = usage_of(&server, |row| row["requests"] == 1).await;
    let counted = ["input_tokens", "output_tokens", "estimated"].map(|name| row[name].clone());
    assert_eq!(counted, [json!(3), json!(2), json!(0)], "{row}");
    let paths: Vec<String> = provider.seen().iter().map(|request| request.path().to_owned()).collect();
    assert_eq!(
        paths[1..],
        ["/v1/responses/resp_1", "/v1/responses/resp_1", "/v1/responses/resp_1"],
        "{paths:?}"
    );
}

#[tokio::test]
async fn usage_of_a_background_stream_that_breaks_off_is_counted_once_completed() {
    let (server, _provider) = after_a_cut_background_stream().await;
    let row = usage_of(&server, |row| row["requests"] == 1).await;
    let counted = ["input_tokens", "output_tokens", "estimated"].map(|name| row[name].clone());
    assert_eq!(counted, [json!(3), json!(2), json!(0)], "{row}");
}

#[tokio::test]
async fn usage_of_a_background_response_is_read_before_it_is_deleted() {
    let done = response("resp_1", "apples");
    let mut queued = done.clone();
    (queued["status"], queued["output"], queued["usage"]) = (json!("queued"), json!([]), Value::Null);
    let deleted = json!({ "id": "resp_1", "object": "response", "deleted": true });
    let steps = [json_answer(200, &queued), json_answer(200, &done), json_answer(200, &deleted)];
    let provider = Scripted::start(steps).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    let mut request = question("Say apples");
    request["background"] = json!(true);
    server.ask(PATH, &request).await;
    assert_eq!(delete(&server, "resp_1").await.0, 200);
    let lines: Vec<String> = provider.seen()[1..].iter().map(|seen| seen.line.clone()).collect();
    assert!(lines[0].starts_with("GET ") && lines[1].starts_with("DELETE "), "{lines:?}");
    let row = usage_of(&server, |row| row["requests"] == 1).await;
    let counted = ["input_tokens", "output_tokens", "estimated"].map(|name| row[name].clone());
    assert_eq!(counted, [json!(3), json!(2), json!(0)], "{row}");
}

#[tokio::test]
async fn usage_of_a_deleted_background_response_is_estimated() {
    let mut queued = response("resp_1", "");
    (queued["status"], queued["output"], queued["usage"]) = (json!("queued"), json!([]), Value::Null);
    let provider = Scripted::start([json_answer(200, &queued), not_found()]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    let mut request = question("Say apples");
    request["background"] = json!(true);
    server.ask(PATH, &request).await;
    let row = usage_of(&server, |row| row["requests"] == 1).await;
    assert_eq!(row["estimated"], 1, "{row}");
}
