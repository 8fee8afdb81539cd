//! Rows of the specification's tables, and bounds of our own, that are visible from outside only.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use futures_util::StreamExt;
use gatewright_gateway::Config;
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{Server, read, start, start_as, start_with};
use crate::videos::finished;

/// A receiver of notifications: its address, and what it receives.
async fn receiver() -> (String, mpsc::UnboundedReceiver<Value>) {
    let (sender, received) = mpsc::unbounded_channel();
    let take = |State(sender): State<mpsc::UnboundedSender<Value>>, body: Bytes| async move {
        sender.send(serde_json::from_slice(&body).expect("JSON")).expect("the test listens");
        StatusCode::NO_CONTENT
    };
    let app = Router::new().fallback(take).with_state(sender);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

/// 2.8: n 1, size 1024x1024, quality standard, style vivid, response_format url.
#[tokio::test]
async fn image_defaults_match_section_2_8() {
    let server = start().await;
    let least = json!({ "model": "image_model_1", "prompt": "a kite" });
    let all = json!({
        "model": "image_model_1", "prompt": "a kite", "n": 1, "size": "1024x1024", "quality": "standard", "style": "vivid",
        "response_format": "url",
    });
    let mut pictures = Vec::new();
    for body in [least, all] {
        let answer = server.ask("/v1/images/generations", &body).await;
        let [image] = answer["data"].as_array().expect("images").as_slice() else { panic!("{answer}") };
        assert_eq!(image["revised_prompt"], "a kite, in a vivid style, standard quality");
        assert!(image.get("b64_json").is_none(), "{image}");
        let url = image["url"].as_str().expect("an address");
        let file = server.bare(http::Method::GET, &url[server.url.len()..]).send().await.expect("an answer");
        let file = file.bytes().await.expect("a picture");
        // The size is in a PNG's first chunk.
        let side = |at: usize| u32::from_be_bytes(file[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((side(16), side(20)), (1024, 1024));
        pictures.push(file);
    }
    assert_eq!(pictures[0], pictures[1]);
}

/// 2.11: the revised prompt accompanies the URL.
#[tokio::test]
async fn revised_prompt_is_absent_with_base64() {
    let server = start().await;
    for (form, has) in [("url", true), ("b64_json", false)] {
        let body = json!({ "model": "image_model_1", "prompt": "a kite", "response_format": form });
        let answer = server.ask("/v1/images/generations", &body).await;
        assert_eq!(answer["data"][0].get("revised_prompt").is_some(), has, "{form}");
    }
}

/// 2.7: the estimated time is only in the response to the submission.
#[tokio::test]
async fn estimated_time_is_absent_on_look_up() {
    let server = start().await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    let task = server.ask("/v1/videos/generations", &body).await;
    assert!(task["estimated_time"].is_u64(), "{task}");
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    let (status, looked_up) = read(server.get(&path)).await;
    assert_eq!(status, 200);
    assert_eq!(looked_up.get("estimated_time"), None);
    assert_eq!(finished(&server, &task["id"]).await.get("estimated_time"), None);
}

/// The record without the query of its URL.
fn lasting(mut record: Value) -> Value {
    if let Some(url) = record["output"]["url"].as_str() {
        record["output"]["url"] = json!(url.split('?').next());
    }
    record
}

/// 6: the payload is the complete record of 2.7.
#[tokio::test]
async fn notification_equals_the_looked_up_record() {
    let config = Config { allow_private_webhooks: true, ..Config::default() };
    let server = start_with(config).await;
    for prompt in ["a comet", "[fail: no comets today]"] {
        let (url, mut received) = receiver().await;
        let body = json!({
            "model": "video_model_3", "prompt": prompt, "duration": 3, "resolution": "720p", "webhook_url": url,
        });
        let task = server.ask("/v1/videos/generations", &body).await;
        let wait = Duration::from_secs(30);
        let posted = tokio::time::timeout(wait, received.recv()).await.expect("in time").expect("a post");
        assert_eq!(lasting(posted), lasting(finished(&server, &task["id"]).await), "{prompt}");
    }
}

/// 8: our limit of choices and candidates, and one above it.
#[tokio::test]
async fn choices_and_candidates_are_limited_to_128() {
    let server = start().await;
    let chat = |n: u64| json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }], "n": n, "max_tokens": 1 });
    let native = |count: u64| {
        json!({
            "contents": [{ "parts": [{ "text": "hi" }] }],
            "generationConfig": { "candidateCount": count, "maxOutputTokens": 1 },
        })
    };
    let generate = "/v1beta/models/model-sol:generateContent";
    assert_eq!(count(&server.ask("/v1/chat/completions", &chat(128)).await, "choices"), 128);
    assert_eq!(count(&server.ask(generate, &native(128)).await, "candidates"), 128);
    let (status, answer) = server.refused("/v1/chat/completions", &chat(129)).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("n")), "{answer}");
    let (status, answer) = server.refused(generate, &native(129)).await;
    assert_eq!((status, &answer["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("128")), "{answer}");
}

fn count(answer: &Value, list: &str) -> usize {
    answer[list].as_array().map_or(0, Vec::len)
}

/// 2.7, 8: a thousand tasks may be in progress, and none is evicted for another.
#[tokio::test]
async fn task_beyond_a_thousand_in_progress_is_503() {
    let server = start_as(Config { video_time: Duration::from_hours(1), ..Config::default() }).await;
    let body = json!({ "model": "video_model_3", "prompt": "[fail]" });
    let submit = |_| submitted(&server, &body);
    let statuses: Vec<u16> =
        futures_util::stream::iter(0..1000).map(submit).buffer_unordered(16).collect().await;
    assert_eq!(statuses, [200; 1000]);
    let (status, answer) = server.refused("/v1/videos/generations", &body).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("server_is_overloaded")), "{answer}");
}

async fn submitted(server: &Server, body: &Value) -> u16 {
    server.refused("/v1/videos/generations", body).await.0
}
