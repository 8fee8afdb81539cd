//! The provider behind all gateways: it returns texts and makes videos as `expected` says, and counts its responses. It
//! recognizes a gateway by the key that it sends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::expected::{self, FILM, TEXT};
use crate::history::{Event, History};

/// How many words of a stream are in one event.
const WORDS: usize = 4;

/// The key that a node sends.
pub(crate) fn key_of(node: usize) -> String {
    format!("node-{node}")
}

/// Shared by all requests.
#[derive(Clone)]
struct Provider {
    history: Arc<History>,
    /// How many texts were requested: no two responses have the same ID.
    texts: Arc<AtomicU64>,
    /// The videos: their intents, and when each was accepted.
    videos: Arc<Mutex<HashMap<String, (u64, Instant)>>>,
}

/// Starts it at a free port. Returns its base URL.
pub(crate) async fn start(history: Arc<History>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    let router = Router::new()
        .route("/v1/chat/completions", post(chat))
        .route("/v1/responses", post(respond))
        .route("/v1/responses/{id}", get(stored))
        .route("/v1/videos", post(film))
        .route("/v1/videos/{id}", get(look_up))
        .route("/v1/videos/{id}/content", get(content))
        .with_state(Provider { history, texts: Arc::default(), videos: Arc::default() });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

/// A response in progress. It is counted when it is over, complete or not.
struct Answering {
    history: Arc<History>,
    node: usize,
    intent: u64,
    /// The ID of the response.
    id: String,
    whole: bool,
}

impl Answering {
    /// `kind`: the prefix of its ID.
    fn begin(provider: &Provider, headers: &HeaderMap, kind: &str, intent: u64) -> Self {
        let (history, node) = (Arc::clone(&provider.history), node_of(headers));
        let number = provider.texts.fetch_add(1, Ordering::Relaxed);
        let id = format!("{kind}_{intent}_{number}");
        history.add(Event::Begun { node, intent, id: Some(id.clone()) });
        Self { history, node, intent, id, whole: false }
    }

    fn end(mut self) {
        self.whole = true;
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        let Self { node, intent, whole, .. } = *self;
        let (input, output) = expected::tokens(intent);
        self.history.add(Event::Upstream { node, intent, input, output, whole });
    }
}

fn node_of(headers: &HeaderMap) -> usize {
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    key.strip_prefix("Bearer node-").and_then(|node| node.parse().ok()).unwrap_or(usize::MAX)
}

/// The intent that a request names, wherever its prompt is.
fn intent_of(request: &Value) -> Option<u64> {
    expected::intent_of(&request.to_string())
}

fn refused(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({ "error": { "message": message, "type": "invalid_request_error" } })))
        .into_response()
}

fn without_intent() -> Response {
    refused(StatusCode::BAD_REQUEST, "the prompt names no intent")
}

/// A provider needs some time.
async fn think(intent: u64) {
    tokio::time::sleep(Duration::from_millis(3 + intent % 30)).await;
}

async fn chat(State(provider): State<Provider>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let Some(intent) = intent_of(&request) else { return without_intent() };
    let answering = Answering::begin(&provider, &headers, "chat", intent);
    think(intent).await;
    let (input, output) = expected::tokens(intent);
    let usage =
        json!({ "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output });
    let model = &request["model"];
    if request["stream"] == true {
        return streamed(answering, model, &usage);
    }
    let id = answering.id.clone();
    answering.end();
    let message = json!({ "role": "assistant", "content": expected::text(intent) });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    Json(json!({ "id": id, "object": "chat.completion", "created": 1, "model": model,
        "choices": [choice], "usage": usage }))
    .into_response()
}

fn streamed(answering: Answering, model: &Value, usage: &Value) -> Response {
    let (intent, id) = (answering.intent, answering.id.clone());
    let event = |choices: Value, usage: &Value| {
        let chunk = json!({ "id": id, "object": "chat.completion.chunk", "created": 1,
            "model": model, "choices": choices, "usage": usage });
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| {
        event(json!([{ "index": 0, "delta": delta, "finish_reason": reason }]), &Value::Null)
    };
    let text = expected::text(intent);
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let mut events = vec![delta(json!({ "role": "assistant", "content": "" }), Value::Null)];
    events.extend(words.chunks(WORDS).map(|words| delta(json!({ "content": words.concat() }), Value::Null)));
    events.push(delta(json!({}), json!("stop")));
    events.push(event(json!([]), usage));
    events.push("data: [DONE]\n\n".to_owned());
    let body = stream::unfold((events.into_iter(), Some(answering)), |(mut events, mut answering)| async {
        let event = events.next()?;
        tokio::time::sleep(Duration::from_millis(2)).await;
        if events.len() == 0
            && let Some(answering) = answering.take()
        {
            answering.end();
        }
        Some((Ok::<_, std::io::Error>(Bytes::from(event)), (events, answering)))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
}

fn response_of(id: &str, intent: u64, model: &Value) -> Value {
    let (input, output) = expected::tokens(intent);
    let part = json!({ "type": "output_text", "text": expected::text(intent), "annotations": [] });
    let message = json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [part] });
    let usage = json!({ "input_tokens": input, "output_tokens": output, "total_tokens": input + output,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 } });
    json!({ "id": id, "object": "response", "created_at": 1, "status": "completed",
        "model": model, "output": [message], "usage": usage, "error": null, "incomplete_details": null,
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto",
        "tools": [], "top_p": 1.0 })
}

async fn respond(
    State(provider): State<Provider>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let Some(intent) = intent_of(&request) else { return without_intent() };
    let answering = Answering::begin(&provider, &headers, "resp", intent);
    think(intent).await;
    let id = answering.id.clone();
    answering.end();
    Json(response_of(&id, intent, &request["model"])).into_response()
}

async fn stored(Path(id): Path<String>) -> Response {
    let intent = id.strip_prefix("resp_").and_then(|rest| rest.split('_').next()?.parse().ok());
    match intent {
        Some(intent) => Json(response_of(&id, intent, &json!(TEXT))).into_response(),
        None => refused(StatusCode::NOT_FOUND, "no such response"),
    }
}

async fn film(State(provider): State<Provider>, headers: HeaderMap, Json(request): Json<Value>) -> Response {
    let Some(intent) = intent_of(&request) else { return without_intent() };
    think(intent).await;
    let id = {
        let mut videos = provider.videos.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("film-{intent}-{}", videos.len());
        videos.insert(id.clone(), (intent, Instant::now()));
        id
    };
    provider.history.add(Event::Filmed { node: node_of(&headers), intent });
    provider.video(&id)
}

impl Provider {
    /// The intent of a video, and its age.
    fn known(&self, id: &str) -> Option<(u64, Duration)> {
        let videos = self.videos.lock().unwrap_or_else(PoisonError::into_inner);
        videos.get(id).map(|(intent, taken)| (*intent, taken.elapsed()))
    }

    fn video(&self, id: &str) -> Response {
        let Some((intent, age)) = self.known(id) else {
            return refused(StatusCode::NOT_FOUND, "no such video");
        };
        let (waits, takes) = expected::pace(intent);
        let status = match age.as_millis() {
            age if age < waits.into() => "queued",
            age if age < takes.into() => "in_progress",
            _ if expected::fails(intent) => "failed",
            _ => "completed",
        };
        let error =
            (status == "failed").then(|| json!({ "message": "it cannot be filmed", "code": "unfilmable" }));
        Json(json!({ "id": id, "object": "video", "created_at": 1, "model": FILM, "status": status,
            "progress": 0, "seconds": "4", "size": "1280x720", "error": error }))
        .into_response()
    }
}

async fn look_up(State(provider): State<Provider>, Path(id): Path<String>) -> Response {
    provider.video(&id)
}

async fn content(State(provider): State<Provider>, Path(id): Path<String>) -> Response {
    match provider.known(&id) {
        Some((intent, _)) => ([(header::CONTENT_TYPE, "video/mp4")], expected::video(intent)).into_response(),
        None => refused(StatusCode::NOT_FOUND, "no such video"),
    }
}
