//! What the codecs of the wire protocols write, held against the rules of strict providers and strict clients: a request that
//! providers of its own protocol take is written as one that those of every other take, and whatever a provider streams, the
//! client's stream keeps its grammar.
//!
//! An input is one of the target `protocols`.

#![no_main]

use gatewright_gateway::fuzzing::hold;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match hold(input) {
        Some(_) => Corpus::Keep,
        None => Corpus::Reject,
    }
});
