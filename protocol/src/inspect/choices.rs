//! Which choices of a stream have started, and which have finished.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::conversation::Protocol;
use crate::lazy_json;

/// A chat choice or a native candidate.
#[derive(Default)]
pub(crate) struct StreamChoice<'a> {
    index: Option<&'a RawValue>,
    finish_reason: Option<&'a RawValue>,
    /// The finish reason of a candidate.
    reason: Option<&'a RawValue>,
    /// What a chat choice adds.
    pub(crate) delta: Option<&'a RawValue>,
    /// The same of a candidate.
    pub(crate) content: Option<&'a RawValue>,
}

impl<'de> Deserialize<'de> for StreamChoice<'de> {
    /// Of duplicate members, the last one counts, as it does for the readers.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut choice = Self::default();
        lazy_json::members_in(deserializer, |name, value| match name {
            "index" => choice.index = Some(value),
            "finish_reason" => choice.finish_reason = Some(value),
            "finishReason" => choice.reason = Some(value),
            "delta" => choice.delta = Some(value),
            "content" => choice.content = Some(value),
            _ => {}
        })?;
        Ok(choice)
    }
}

impl StreamChoice<'_> {
    /// A reason is a non-empty string.
    fn has_finished(&self, protocol: Protocol) -> bool {
        let reason = if protocol == Protocol::Native { self.reason } else { self.finish_reason };
        reason.is_some_and(|reason| reason.get().starts_with('"') && reason.get() != "\"\"")
    }
}

/// The choices of a stream, one bit each; those beyond the last bit share it.
#[derive(Debug, Default)]
pub(super) struct ChoiceTracker {
    started: u128,
    finished: u128,
}

impl ChoiceTracker {
    pub(super) fn note(&mut self, protocol: Protocol, choices: &[StreamChoice<'_>]) {
        for (place, choice) in (0..).zip(choices) {
            let index: Option<u32> = choice.index.and_then(|index| index.get().parse().ok());
            let bit = 1 << index.unwrap_or(place).min(u128::BITS - 1);
            self.started |= bit;
            if choice.has_finished(protocol) {
                self.finished |= bit;
            }
        }
    }

    /// Whether all requested choices have finished, and every choice that has started.
    pub(super) fn have_finished(&self, wanted: u32) -> bool {
        self.started == self.finished && self.finished.count_ones() >= wanted.clamp(1, u128::BITS)
    }
}
