//! A connection of a client: whatever bytes come, it ends without a panic, and in which packets they come makes no difference.
//!
//! The first byte of an input is the size of a packet.

#![no_main]

use gatewright_gateway::fuzzing::received_requests;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((&packet, sent)) = input.split_first() else { return };
    assert_eq!(received_requests(sent, usize::from(packet)), received_requests(sent, sent.len()));
});
