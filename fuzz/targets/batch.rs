//! Files of requests: see `gatewright_gateway::fuzzing::read_batch`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    if gatewright_gateway::fuzzing::read_batch(input) { Corpus::Keep } else { Corpus::Reject }
});
