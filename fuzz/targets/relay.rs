//! A stream of an upstream on its way to a client of its protocol, in packets of any size: the client gets what the upstream
//! sent, except the model name and the usage that only the gateway requested, however it is cut; usage and end are those that
//! the reader of the protocol parses.
//!
//! An input is a byte that names the protocol, one for the form (1: the usage is hidden, 2: an array), one for the size of
//! packets, and the stream.

#![no_main]

use gatewright_gateway::fuzzing::relay;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    match relay(input) {
        Some(_) => Corpus::Keep,
        None => Corpus::Reject,
    }
});
