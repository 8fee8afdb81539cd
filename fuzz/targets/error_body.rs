//! Error bodies: any bytes are read without a panic, and what is made of them is bounded by what was sent. A message is
//! cut where it is shown, after it was redacted.

#![no_main]

use gatewright::ErrorBody;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let read = ErrorBody::read(body);
    let texts = [&read.message, &read.code, &read.param, &read.error_type];
    // A malformed byte becomes three; a number may be written longer than it was; a page's title has words around it.
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    assert!(bytes <= 64 + 4 * 3 * body.len(), "{bytes} bytes of {}", body.len());
    assert_eq!(ErrorBody::read(body), read);
});
