//! Configuration files: whatever one contains, it is parsed, or its problems are reported, within bounds and without a secret.

#![no_main]

use gatewright_gateway::fuzzing::configure;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match configure(input) {
        Some(_) => Corpus::Keep,
        None => Corpus::Reject,
    }
});
