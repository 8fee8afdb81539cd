//! Error bodies: see `gatewright::fuzzing::error_body`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| gatewright::fuzzing::error_body(body));
