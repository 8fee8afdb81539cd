//! The memory of stored responses (2.4), counted by the allocator: what the bound counts is what is held.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use gatewright_gateway::{Config, Embedded};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::Value;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts and passes on")]
// SAFETY: every method passes its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Stores a response with this input and gives its id.
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
    let gateway = Embedded::new(Config::default()).expect("a gateway");
    // As a tree, each two bytes of it take 32 and more.
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
