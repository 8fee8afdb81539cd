//! Videos at providers, in both forms: whatever a provider says of one is read within bounds, and a request is written without
//! what is the gateway's own.
//!
//! An input is a byte that names the form, and a document: of a provider, or of a client.

#![no_main]

use gatewright_gateway::fuzzing::film;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match film(input) {
        Some(_) => Corpus::Keep,
        None => Corpus::Reject,
    }
});
