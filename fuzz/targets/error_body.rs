//! Error bodies: any bytes are read without a panic, and what is made of them is bounded by a message's length and by
//! what was sent.

#![no_main]

use gatewright::ErrorBody;
use libfuzzer_sys::fuzz_target;

/// A message's bound in characters, and the words that stand around a page's title.
const MAX_MESSAGE_CHARS: usize = 500 + "an HTML page: ".len();

fuzz_target!(|body: &[u8]| {
    let read = ErrorBody::read(body);
    assert!(read.message.as_ref().is_none_or(|message| message.chars().count() <= MAX_MESSAGE_CHARS));
    // A malformed byte becomes three; a number may be written longer than it was.
    let bytes: usize = [read.code, read.param, read.error_type].iter().flatten().map(String::len).sum();
    assert!(bytes <= 64 + 3 * 3 * body.len(), "{bytes} bytes of {}", body.len());
    assert_eq!(ErrorBody::read(body).message, read.message);
});
