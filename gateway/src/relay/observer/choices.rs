//! Which choices of a stream have begun, and which have finished.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A choice of chat or a candidate of native.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    /// A text: nothing else is a reason to any reader of the protocol.
    #[serde(borrow, alias = "finishReason")]
    finish_reason: Option<&'a RawValue>,
}

/// The choices of a stream, a bit for each; those after the last bit share it.
#[derive(Debug, Default)]
pub(super) struct Choices {
    begun: u128,
    finished: u128,
}

impl Choices {
    pub(super) fn note(&mut self, choices: &[Choice<'_>]) {
        for (place, choice) in (0..).zip(choices) {
            let index: Option<u32> = choice.index.and_then(|index| index.get().parse().ok());
            let bit = 1 << index.unwrap_or(place).min(u128::BITS - 1);
            self.begun |= bit;
            if choice.finish_reason.is_some_and(|reason| reason.get().starts_with('"')) {
                self.finished |= bit;
            }
        }
    }

    /// Whether as many as the client wants have finished, and each that has begun.
    pub(super) fn have_finished(&self, wanted: u32) -> bool {
        self.begun == self.finished && self.finished.count_ones() >= wanted.clamp(1, u128::BITS)
    }
}
