//! The codecs of the wire protocols: whatever a client or a provider sends is translated or refused, without a panic, and
//! what is written is not much longer than what was read. A request that is written for its own protocol is what it was,
//! and what another protocol cannot say of it is reported by a place that it has.
//!
//! An input is a byte that names the protocol, a byte for the kind of the document, and the document.

#![no_main]

use gatewright_gateway::fuzzing::translate;
use libfuzzer_sys::{Corpus, fuzz_target};

/// The longest that a byte becomes in the four protocols together: an event of its own in each.
const MAX_PER_BYTE: usize = 4_000;
/// What is written around nothing.
const FRAME_BYTES: usize = 40_000;

fuzz_target!(|input: &[u8]| -> Corpus {
    match translate(input) {
        Some(written) => {
            assert!(
                written <= FRAME_BYTES + MAX_PER_BYTE * input.len(),
                "{written} bytes of {}",
                input.len()
            );
            Corpus::Keep
        }
        None => Corpus::Reject,
    }
});
