//! Accumulators of streams: see `gatewright::fuzzing::accumulate`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|lines: &str| gatewright::fuzzing::accumulate(lines));
