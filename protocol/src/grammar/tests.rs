//! Each rule rejects a stream that breaks it and accepts a correct one.

#![expect(clippy::needless_pass_by_value, reason = "documents are written in place")]

mod chat;
mod messages;
mod native;
mod responses;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Transcript, rules, transcript};
use crate::conversation::Protocol;

/// Events with their names, as bytes. Strings become raw data.
fn stream(events: &[Value], named: bool) -> Vec<u8> {
    let event = |event: &Value| {
        let data = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        let name = event["type"].as_str().filter(|_| named).map(|name| format!("event: {name}\n"));
        format!("{}data: {data}\n\n", name.unwrap_or_default())
    };
    events.iter().map(event).collect::<String>().into_bytes()
}

/// A stream without faults.
fn clean(protocol: Protocol, bytes: &[u8]) -> Transcript {
    let read = transcript(protocol, bytes);
    assert_eq!(read.faults, [], "{}", String::from_utf8_lossy(bytes));
    read
}

/// Asserts that each case breaks its rule, and that each rule has a case.
fn every_rule_refuses(protocol: Protocol, cases: &[(&str, Vec<u8>)]) {
    for (index, (rule, bytes)) in cases.iter().enumerate() {
        let read = transcript(protocol, bytes);
        let is_found = read.faults.iter().any(|fault| fault.rule == *rule);
        assert!(is_found, "case {index}: {rule}: {:?} in {}", read.faults, String::from_utf8_lossy(bytes));
    }
    let tried: BTreeSet<&str> = cases.iter().map(|(rule, _)| *rule).collect();
    let known: BTreeSet<&str> = rules(protocol).iter().copied().collect();
    assert_eq!(tried, known);
}
