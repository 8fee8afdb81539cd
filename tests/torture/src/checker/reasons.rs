//! A rejection as the client's fault has a reason: everything that clients request in a run is valid.

use std::collections::HashMap;

use super::Violation;
use super::record::{Call, Record, report};
use crate::clients::{DEFAULT, DEFAULT_ALONE};
use crate::history::{Limits, Operation};

pub(super) fn check(record: &Record<'_>, violations: &mut Vec<Violation>) {
    let known = PossibleReasons::of(record);
    for call in record.calls() {
        let Some(status @ 400..500) = call.refused() else { continue };
        if !known.is_a_reason(call, status) {
            let why = format!("{}, which may do it, is refused with {status}", call.key);
            report(violations, "refusal has a reason", why, call.lines());
        }
    }
}

/// Possible reasons.
struct PossibleReasons<'h> {
    /// The limits of the created keys.
    limits: HashMap<&'h str, Limits>,
    /// The calls with an idempotency key.
    once: HashMap<&'h str, Vec<usize>>,
    /// When the first attempt to revoke a key began.
    revoking: HashMap<&'h str, usize>,
}

impl<'h> PossibleReasons<'h> {
    fn of(record: &Record<'h>) -> Self {
        let (mut limits, mut once, mut revoking) = (HashMap::new(), HashMap::new(), HashMap::new());
        for call in record.calls() {
            match call.operation {
                Operation::CreateKey { name, limits: of } => _ = limits.insert(name.as_str(), *of),
                Operation::RevokeKey { name } => _ = revoking.entry(name.as_str()).or_insert(call.line),
                _ => {}
            }
            if let Some(name) = call.operation.once() {
                once.entry(name).or_insert_with(Vec::new).push(call.line);
            }
        }
        Self { limits, once, revoking }
    }

    /// Whether the history has a reason for a status, or another rule checks it.
    fn is_a_reason(&self, call: &Call<'_>, status: u16) -> bool {
        let is_before = |lines: &HashMap<&str, usize>, name: &str| {
            lines.get(name).is_some_and(|first| *first < call.line)
        };
        if let (409, Some(name)) = (status, call.operation.once()) {
            // Another call with the same idempotency key is in progress: which of several is first, the store decides.
            // `repeats` judges whether it had ended.
            let end = call.answer.map_or(usize::MAX, |answer| answer.line);
            let calls = self.once.get(name);
            return calls.is_some_and(|lines| lines.iter().any(|line| *line != call.line && *line < end));
        }
        match (status, call.operation) {
            // `keys` judges those that are created and revoked.
            (401, _) => ![DEFAULT, DEFAULT_ALONE].contains(&call.key) && self.limits.contains_key(call.key),
            // `limits` judges whether they are used up.
            (429, _) => self.limits.get(call.key).is_some_and(|limits| *limits != Limits::default()),
            // `answers` and `tasks` judge what is not found.
            (404, Operation::Retrieve { .. } | Operation::LookUp { .. }) | (_, Operation::Fetch { .. }) => {
                true
            }
            // An earlier revocation, whose response was lost, has taken effect.
            (404, Operation::RevokeKey { name }) => is_before(&self.revoking, name),
            _ => false,
        }
    }
}
