//! Notifications: see `gatewright::fuzzing::unwrap_webhook`.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|input: &[u8]| -> Corpus {
    if gatewright::fuzzing::unwrap_webhook(input) { Corpus::Keep } else { Corpus::Reject }
});
