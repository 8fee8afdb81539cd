//! Answers over HTTP/1.1: whatever the bytes and however they are cut into packets, the reader finds the same body, does
//! not panic, and hands out no more than it was given.

#![no_main]

use gatewright_connect::fuzzing::answer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = answer(bytes, usize::MAX);
    for packet in [1, 2, 7] {
        assert_eq!(whole, answer(bytes, packet), "in packets of {packet}");
    }
    assert!(whole.is_none_or(|body| body.len() <= bytes.len()), "a body repeats what was sent once");
});
