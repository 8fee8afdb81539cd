//! Headers of answers: see `gatewright::fuzzing::headers`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    if gatewright::fuzzing::headers(input) { Corpus::Keep } else { Corpus::Reject }
});
