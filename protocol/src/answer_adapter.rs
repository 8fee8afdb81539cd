//! Adapts a provider's answer to what the client requested, doing here what the provider's protocol can't express.

use super::Defaults;
use super::stop_sequences::StopSequences;
use super::tool_answers::ClientCalls;
use crate::conversation::{Answer, Conversation, Delta, Protocol};

/// See the module.
#[derive(Debug, Clone)]
pub struct AnswerAdapter {
    calls: ClientCalls,
    stops: Option<StopSequences>,
}

impl AnswerAdapter {
    /// For the answer to this request from a provider that speaks the target's protocol.
    pub fn new(conversation: &Conversation, target: Protocol, defaults: Defaults) -> Self {
        let lacks_stops = !target.rules().stop_sequences && conversation.source != target;
        Self {
            calls: ClientCalls::new(conversation, target, defaults),
            stops: lacks_stops.then(|| StopSequences::new(conversation)).flatten(),
        }
    }

    /// Number of buffered bytes.
    pub fn held_bytes(&self) -> usize {
        self.calls.held_bytes() + self.stops.as_ref().map_or(0, StopSequences::held_bytes)
    }

    /// Adapts a whole answer.
    pub fn answer(self, answer: &mut Answer) {
        if let Some(stops) = &self.stops {
            stops.answer(answer);
        }
        self.calls.answer(answer);
    }

    /// Adapts deltas of a stream.
    pub fn deltas(&mut self, deltas: &mut Vec<Delta>) {
        if let Some(stops) = &mut self.stops {
            stops.deltas(deltas);
        }
        self.calls.deltas(deltas);
    }
}
