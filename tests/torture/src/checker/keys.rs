//! A key is rejected everywhere soon after its revocation, and accepted everywhere soon after its creation.

use std::collections::HashMap;

use super::record::{Call, Record, report};
use super::{SECOND, Violation};
use crate::history::{Fault, Operation};

/// Every node knows of a change within this time.
const KNOWN: u64 = 2 * SECOND;

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let (mut made, mut revoking, mut revoked) = (HashMap::new(), HashMap::new(), HashMap::new());
    for call in record.calls() {
        match call.operation {
            Operation::CreateKey { name, .. } if call.succeeded() => _ = made.insert(name.as_str(), call),
            Operation::RevokeKey { name } => {
                revoking.entry(name.as_str()).or_insert(call.began);
                if call.succeeded() {
                    revoked.entry(name.as_str()).or_insert(call);
                }
            }
            _ => {}
        }
    }
    for call in record.calls() {
        if let Some(revocation) = revoked.get(call.key) {
            refused(record, revocation, call, violations);
        }
        if let Some(creation) = made.get(call.key)
            && revoking.get(call.key).is_none_or(|began| call.answer.is_some_and(|answer| answer.at < *began))
        {
            accepted(record, creation, call, violations);
        }
    }
}

/// A call that begins two seconds after the revocation is rejected. While the store is away, no node can learn of it.
fn refused(record: &Record<'_>, revocation: &Call<'_>, call: &Call<'_>, violations: &mut Vec<Violation>) {
    let Some(known) = revocation.answer.map(|answer| answer.at) else { return };
    let back = record.store_was_back(call.node, known, known + KNOWN).unwrap_or(known);
    if call.succeeded() && call.began > back.max(known).saturating_add(KNOWN) {
        let late = (call.began - known) / 1000;
        let why = format!("{} is accepted {late} ms after its revocation was acknowledged", call.key);
        let lines = revocation.lines().into_iter().chain(call.lines());
        report(violations, "revoked key is refused", why, lines);
    }
}

/// A call that begins two seconds after the key was created is not rejected because of it. A node that hangs, or cannot reach the
/// store, does not know of the key yet.
fn accepted(record: &Record<'_>, creation: &Call<'_>, call: &Call<'_>, violations: &mut Vec<Violation>) {
    let (Some(made), Some(answer)) = (creation.answer, call.answer) else { return };
    let is_hindered = |fault| match fault {
        Fault::Killed { node } | Fault::Stopped { node } | Fault::Paused { node } => node == call.node,
        _ => false,
    };
    let from = call.began.saturating_sub(KNOWN).max(made.at);
    let is_excused = record.is_troubled(from, answer.at, is_hindered)
        || record.store_was_back(call.node, from, answer.at).is_some();
    if call.refused() == Some(401) && call.began > made.at + KNOWN && !is_excused {
        let lines = creation.lines().into_iter().chain(call.lines());
        report(violations, "key is accepted", format!("{} is not known", call.key), lines);
    }
}
