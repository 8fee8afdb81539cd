//! Forms with files: see `gatewright_gateway::fuzzing::read_form`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    if gatewright_gateway::fuzzing::read_form(input) { Corpus::Keep } else { Corpus::Reject }
});
