//! Base URLs: see `gatewright::fuzzing::base_url`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &str| -> Corpus {
    if gatewright::fuzzing::base_url(input) { Corpus::Keep } else { Corpus::Reject }
});
