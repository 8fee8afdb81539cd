//! Writes a client's stream.

use gatewright_protocol::conversation::{Delta, Failure, FinishReason, Usage};
use gatewright_protocol::{ResponseContext, StreamOut};
use serde_json::{Value, json};

use super::{usage, word_of};

pub(super) struct LinesWriter {
    context: ResponseContext,
    usage: Option<Usage>,
    end: Option<FinishReason>,
}

impl LinesWriter {
    pub(super) fn new(context: ResponseContext) -> Self {
        Self { context, usage: None, end: None }
    }
}

impl StreamOut for LinesWriter {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        match delta {
            Delta::Started { .. } => write(&json!({ "model": self.context.model, "begun": true }), bytes),
            Delta::Text { choice: 0, text, .. } => write(&json!({ "more": text }), bytes),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::Ended { choice: 0, end } => self.end = Some(end),
            Delta::Done => {
                let tokens = usage::write(self.usage);
                write(&json!({ "why": word_of(self.end.as_ref()), "tokens": tokens }), bytes);
            }
            _ => {}
        }
    }

    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>) {
        write(&json!({ "wrong": failure.message }), bytes);
    }
}

fn write(event: &Value, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
}
