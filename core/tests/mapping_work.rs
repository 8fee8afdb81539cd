//! Measures the cost of reading a native request in another spelling (2.5), in bytes allocated: whatever the form of
//! the body, the cost is at most a few copies of it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use gatewright::{limits, operations};
use serde_json::{Value, json};

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// Counts the bytes that its thread allocates; bytes that are freed are not subtracted.
struct Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; it only counts and passes on")]
// SAFETY: every call is forwarded to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Not counted once the thread's own storage is gone.
        _ = ALLOCATED.try_with(|bytes| bytes.set(bytes.get() + layout.size()));
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocated<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATED.get();
    let result = work();
    (ALLOCATED.get() - before, result)
}

/// A body whose only other spelling is at the bottom of 50 schemas, each in a list of the previous one, beside a text
/// of 100 kB at each level.
fn deep() -> Value {
    let mut schema = json!({ "min_items": 1 });
    for _ in 0..50 {
        schema = json!({ "description": "x".repeat(100_000), "anyOf": [{ "title": "y".repeat(100_000) }, schema] });
    }
    json!({ "contents": [{ "parts": [{ "text": "x" }] }], "generationConfig": { "responseSchema": schema } })
}

/// A body of 20,000 parts, each in the other spelling.
fn wide() -> Value {
    let part = json!({ "inline_data": { "mime_type": "image/png", "data": "AAAA" }, "text": null });
    json!({ "contents": [{ "parts": vec![part; 20_000] }] })
}

#[test]
fn body_in_another_spelling_is_copied_once_at_any_depth_or_width() {
    for (name, body) in [("deep", deep()), ("wide", wide())] {
        let (copy, _) = allocated(|| body.clone());
        let (cost, canonical) = allocated(|| limits::canonical(&operations::GENERATE_CONTENT, &body));
        let canonical = canonical.expect("it changes");
        assert!(cost < 4 * copy, "{name}: {cost} bytes for a body of {copy}");
        let (nothing, again) = allocated(|| limits::canonical(&operations::GENERATE_CONTENT, &canonical));
        assert_eq!((nothing, again), (0, None), "{name}: a canonical body costs nothing");
    }
}
