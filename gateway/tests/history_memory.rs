//! The memory of stored responses (2.4), measured by the allocator: the bound counts the bytes actually held.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use gatewright_gateway::{Body, Config, Embedded};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Mutex;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Peak of live bytes.
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The tests share these counters, so they run one at a time.
static TURN: Mutex<()> = Mutex::const_new(());

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts and passes on")]
// SAFETY: every method passes its arguments unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Stores a response with this input and returns its id.
async fn store(gateway: &Embedded, input: &str) -> String {
    let request = Request::post("/v1/responses")
        .header("authorization", format!("Bearer {}", gateway.key().expose()))
        .header("content-type", "application/json")
        .body(Body::from(format!(r#"{{"model":"model-sol","input":[{input}]}}"#)))
        .expect("a request");
    let response = gateway.answer(request).await;
    assert_eq!(response.status(), 200);
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    let answer: Value = serde_json::from_slice(&body).expect("JSON");
    answer["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn stored_responses_take_little_more_memory_than_their_text() {
    const RESPONSES: usize = 8;
    let _turn = TURN.lock().await;
    let gateway = Embedded::new(Config::default()).expect("a gateway");
    // Parsed, each two bytes of it take at least 32.
    let item = format!(r#"{{"type":"ours","numbers":[{}0]}}"#, "0,".repeat(100_000));
    store(&gateway, &item).await;
    let before = LIVE.load(Ordering::Relaxed);
    for _ in 0..RESPONSES {
        store(&gateway, &item).await;
    }
    let grown = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    let text = RESPONSES * item.len();
    assert!(grown >= text, "{grown} bytes for {text}: they were not kept");
    assert!(grown < text + text / 10, "{grown} bytes are held for {text} of text");
}

/// Sends a request; returns status, body, and the peak growth of live bytes meanwhile.
async fn grown(gateway: &Embedded, request: http::request::Builder, body: String) -> (u16, Vec<u8>, usize) {
    let request = request.header("authorization", format!("Bearer {}", gateway.key().expose()));
    let request =
        request.header("content-type", "application/json").body(Body::from(body)).expect("a request");
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let response = gateway.answer(request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, body.to_vec(), PEAK.load(Ordering::Relaxed).saturating_sub(before))
}

#[tokio::test]
async fn too_costly_stored_conversation_is_rejected_before_parsing() {
    let _turn = TURN.lock().await;
    let gateway = Embedded::new(Config::default()).expect("a gateway");
    let item = format!(r#"{{"type":"ours","numbers":[{}0]}}"#, "0,".repeat(400_000));
    let id = store(&gateway, &item).await;
    let next = json!({ "model": "model-sol", "input": "Say figs", "previous_response_id": id }).to_string();
    let path = format!("/v1/responses/{id}");
    for (request, body) in
        [(Request::post("/v1/responses"), next), (Request::get(format!("{path}/input_items")), String::new())]
    {
        let (status, answer, grown) = grown(&gateway, request, body).await;
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("request_too_costly")));
        assert!(grown < item.len(), "{grown} bytes for a conversation of {}", item.len());
    }
}

#[tokio::test]
async fn stored_response_is_retrieved_without_parsing() {
    let _turn = TURN.lock().await;
    let gateway = Embedded::new(Config::default()).expect("a gateway");
    let tool = format!(r#"{{"type":"ours","numbers":[{}0]}}"#, "0,".repeat(20_000));
    let request = format!(r#"{{"model":"model-sol","input":"Say figs","tools":[{tool}]}}"#);
    let (status, made, _) = grown(&gateway, Request::post("/v1/responses"), request).await;
    assert_eq!(status, 200);
    let answer: Value = serde_json::from_slice(&made).expect("JSON");
    let path = format!("/v1/responses/{}", answer["id"].as_str().expect("an id"));
    drop(answer);
    let (status, retrieved, grown) = grown(&gateway, Request::get(path), String::new()).await;
    assert_eq!((status, &retrieved), (200, &made));
    // The bytes are copied twice here for the comparison.
    assert!(grown < 3 * made.len(), "{grown} bytes for an answer of {}", made.len());
}
