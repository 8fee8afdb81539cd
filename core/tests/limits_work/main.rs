//! Measures the work and the memory of checking a request: both are bounded whatever the request contains.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use gatewright::limits;
use gatewright::operations::{self, Operation};
use serde_json::{Value, json};

/// Counts the bytes that a thread allocates.
struct Counting;

thread_local! {
    static ASKED_FOR: Cell<usize> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; every call goes on to the system's")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED_FOR.set(ASKED_FOR.get() + layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes a request with this number of elements.
type Make = Box<dyn Fn(usize) -> Value>;

/// The total bytes that a check allocates, and its findings.
fn cost(operation: &Operation, body: &Value) -> (usize, usize) {
    // Allocations that are made once for all requests are not counted.
    limits::check(operation, body);
    let before = ASKED_FOR.get();
    let found = limits::check(operation, body).len();
    (ASKED_FOR.get() - before, found)
}

#[test]
fn violations_in_every_element_cost_no_more_for_more_elements() {
    // 8: limits on request sizes are ours, and so is the cost of a rejection.
    let chat = |member: &str, value: Value| {
        let mut body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }] });
        body[member] = value;
        body
    };
    let requests: Vec<(&str, Operation, Make)> = vec![
        (
            "messages",
            operations::CREATE_CHAT_COMPLETION,
            Box::new(move |n| chat("messages", json!(vec![0; n]))),
        ),
        (
            "tools",
            operations::CREATE_CHAT_COMPLETION,
            Box::new(move |n| chat("tools", json!(vec![json!({}); n]))),
        ),
        ("stop", operations::CREATE_CHAT_COMPLETION, Box::new(move |n| chat("stop", json!(vec![0; n])))),
        (
            "metadata",
            operations::CREATE_CHAT_COMPLETION,
            Box::new(move |n| {
                let members = (0..n).map(|index| (format!("{index}"), json!(0)));
                chat("metadata", Value::Object(members.collect()))
            }),
        ),
        (
            "input",
            operations::CREATE_RESPONSE,
            Box::new(
                |n| json!({ "model": "model-sol", "input": vec![json!({ "type": "function_call" }); n] }),
            ),
        ),
        (
            "contents",
            operations::GENERATE_CONTENT,
            Box::new(|n| json!({ "contents": [{ "parts": vec![json!({}); n] }] })),
        ),
    ];
    for (name, operation, make) in requests {
        let (few, found_of_few) = cost(&operation, &make(200));
        let (many, found_of_many) = cost(&operation, &make(20_000));
        assert_eq!((found_of_few, found_of_many), (100, 100), "{name}");
        assert!(many <= few + 1_000, "{name}: {few} bytes for 200 elements, {many} for 20,000");
        assert!(many < 150_000, "{name}: {many} bytes");
    }
}

#[test]
fn rejecting_a_large_value_does_not_copy_it() {
    let large = json!("x".repeat(1_000_000));
    for (operation, body) in [
        (operations::CREATE_CHAT_COMPLETION, json!({ "model": "model-sol", "messages": large, "n": large })),
        (
            operations::CREATE_IMAGE,
            json!({ "model": "image_model_1", "prompt": large, "size": large, "style": large }),
        ),
        (operations::CREATE_VIDEO, json!({ "model": "video_model_1", "prompt": "x", "resolution": large })),
        (
            operations::CREATE_VIDEO,
            json!({ "model": "video_model_1", "prompt": "x", "resolution": [large, large] }),
        ),
    ] {
        let (bytes, found) = cost(&operation, &body);
        assert!(found > 0 && bytes < 20_000, "{}: {bytes} bytes for {found} violations", operation.id);
    }
}

#[test]
fn checking_a_valid_request_allocates_almost_nothing() {
    let messages = vec![json!({ "role": "user", "content": [{ "type": "text", "text": "hi" }] }); 20_000];
    let body = json!({ "model": "model-sol", "messages": messages, "stop": ["a"], "tool_choice": "auto" });
    let (bytes, found) = cost(&operations::CREATE_CHAT_COMPLETION, &body);
    // A list of the variants that a union element may match.
    assert_eq!(found, 0);
    assert!(bytes < 20_000 * 64, "{bytes} bytes");
}
