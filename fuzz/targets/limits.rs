//! Limits of requests: see `gatewright::fuzzing::check_limits`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|body: &[u8]| -> Corpus {
    if gatewright::fuzzing::check_limits(body) { Corpus::Keep } else { Corpus::Reject }
});
