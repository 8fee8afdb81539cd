//! Writes streams of the messages protocol.

use serde_json::{Value, json};

use super::{citations, stop_reason, usage};
use crate::conversation::{Delta, Failure, FailureKind, FinishReason, Protocol, Usage};
use crate::members::object;
use crate::provider_extra::StreamExtra;
use crate::{ResponseContext, StreamOut, frames};

/// Writes a client's stream.
pub(crate) fn stream_out(context: ResponseContext) -> Box<dyn StreamOut> {
    let ResponseContext { model, id, .. } = context;
    Box::new(MessagesStreamWriter {
        id,
        model,
        has_started: false,
        next: 0,
        open: OutputBlock::None,
        calls: Vec::new(),
        end: None,
        usage: Usage::default(),
        service_tier: None,
        refuses: false,
        provider_extra: StreamExtra::default(),
    })
}

struct MessagesStreamWriter {
    id: String,
    model: String,
    has_started: bool,
    /// Index of the next block.
    next: u32,
    open: OutputBlock,
    /// The block of each call, and whether its input is text.
    calls: Vec<(u32, bool)>,
    end: Option<FinishReason>,
    usage: Usage,
    service_tier: Option<String>,
    refuses: bool,
    provider_extra: StreamExtra,
}

/// The block that has started, which is the last one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputBlock {
    None,
    Text,
    /// Text with a citation: the text after it may not be covered.
    Cited,
    /// Which thought, and which of its texts.
    Thought(u32, u32),
    /// With whether its input is text.
    Call(bool),
}

impl StreamOut for MessagesStreamWriter {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        match delta {
            Delta::Started { id, service_tier, .. } => {
                self.id = id.unwrap_or_else(|| std::mem::take(&mut self.id));
                self.service_tier = service_tier;
                self.start(bytes);
            }
            Delta::Text { choice: 0, text, .. } => self.text(&text, bytes),
            Delta::Refusal { choice: 0, text } => {
                self.refuses = true;
                self.text(&text, bytes);
            }
            Delta::Thought { choice: 0, thought, part, text, .. } => {
                match self.open {
                    OutputBlock::Thought(open, of) if (open, of) == (thought, part) => {}
                    // Another text of the same thought is a new paragraph.
                    OutputBlock::Thought(open, _) if open == thought => {
                        self.piece(&json!({ "type": "thinking_delta", "thinking": "\n\n" }), bytes);
                    }
                    _ => self.begin(&json!({ "type": "thinking", "thinking": "", "signature": "" }), bytes),
                }
                self.open = OutputBlock::Thought(thought, part);
                self.piece(&json!({ "type": "thinking_delta", "thinking": text }), bytes);
            }
            Delta::ThoughtSigned { choice: 0, thought, signature, redacted, .. } => {
                self.signature(Some(thought), &signature, redacted, bytes);
            }
            Delta::Call { choice: 0, id, name, custom, signature, .. } => {
                if let Some(signature) = signature {
                    self.signature(None, &signature, false, bytes);
                }
                self.begin(&json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), bytes);
                self.open = OutputBlock::Call(custom);
                self.calls.push((self.next - 1, custom));
                if custom {
                    self.piece(
                        &json!({ "type": "input_json_delta", "partial_json": "{\"input\":\"" }),
                        bytes,
                    );
                }
            }
            Delta::CallInput { choice: 0, call, text } => self.input(call, text, bytes),
            Delta::Other { choice: 0, source: Protocol::Messages, value } => {
                self.begin(&value, bytes);
                self.stop(bytes);
            }
            Delta::Citation { choice: 0, citation } => {
                let citation = citations::write(&citation);
                match self.open {
                    OutputBlock::Text | OutputBlock::Cited => {
                        self.open = OutputBlock::Cited;
                        self.piece(&json!({ "type": "citations_delta", "citation": citation }), bytes);
                    }
                    // The cited text is in a block that has ended.
                    _ => self.provider_extra.other(citation),
                }
            }
            Delta::Image { choice: 0, image } => self.provider_extra.image(image, Protocol::Messages),
            Delta::Other { choice: 0, value, .. } => self.provider_extra.other(value),
            Delta::Extra(given) => self.provider_extra.extra(given),
            Delta::Usage(usage) => self.usage = usage,
            Delta::Ended { choice: 0, end } => {
                self.provider_extra.end(0, &end, Protocol::Messages);
                self.end = Some(end);
            }
            Delta::Failed(failure) => self.fail(&failure, bytes),
            Delta::Done => self.finish(bytes),
            // This protocol has a single choice.
            _ => {}
        }
    }

    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>) {
        let error = json!({ "type": error_type(failure.kind), "message": failure.message });
        frames::named("error", &json!({ "type": "error", "error": error }), bytes);
    }
}

impl MessagesStreamWriter {
    fn start(&mut self, bytes: &mut Vec<u8>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let mut usage = usage::write(self.usage);
        if let Some(tier) = &self.service_tier {
            usage["service_tier"] = usage::tier_word(tier).into();
        }
        let message = json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        });
        frames::named("message_start", &json!({ "type": "message_start", "message": message }), bytes);
    }

    /// Begins a block, which ends the previous one.
    fn begin(&mut self, block: &Value, bytes: &mut Vec<u8>) {
        self.start(bytes);
        self.stop(bytes);
        let event = json!({ "type": "content_block_start", "index": self.next, "content_block": block });
        frames::named("content_block_start", &event, bytes);
        self.next += 1;
        self.open = OutputBlock::Text;
    }

    /// Appends to the last block.
    fn piece(&self, delta: &Value, bytes: &mut Vec<u8>) {
        piece(self.next.saturating_sub(1), delta, bytes);
    }

    fn stop(&mut self, bytes: &mut Vec<u8>) {
        if self.open == OutputBlock::None {
            return;
        }
        if self.open == OutputBlock::Call(true) {
            self.piece(&json!({ "type": "input_json_delta", "partial_json": "\"}" }), bytes);
        }
        self.open = OutputBlock::None;
        let event = json!({ "type": "content_block_stop", "index": self.next.saturating_sub(1) });
        frames::named("content_block_stop", &event, bytes);
    }

    fn text(&mut self, text: &str, bytes: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if self.open != OutputBlock::Text {
            self.begin(&json!({ "type": "text", "text": "" }), bytes);
        }
        self.piece(&json!({ "type": "text_delta", "text": text }), bytes);
    }

    /// Writes a proof into the open block of its thought, or into a block of its own. `thought`: `None` for a call's
    /// proof.
    fn signature(&mut self, thought: Option<u32>, signature: &str, redacted: bool, bytes: &mut Vec<u8>) {
        if redacted {
            self.begin(&json!({ "type": "redacted_thinking", "data": signature }), bytes);
        } else {
            if !matches!(self.open, OutputBlock::Thought(open, _) if Some(open) == thought) {
                self.begin(&json!({ "type": "thinking", "thinking": "", "signature": "" }), bytes);
            }
            self.piece(&json!({ "type": "signature_delta", "signature": signature }), bytes);
        }
        self.stop(bytes);
    }

    /// Writes a piece of a call's input, even into a block that has ended: clients go by the index.
    fn input(&mut self, call: u32, text: String, bytes: &mut Vec<u8>) {
        let Some((index, custom)) = self.calls.get(call as usize).copied() else { return };
        let text = if custom {
            // A fragment of a JSON string.
            let quoted = Value::String(text).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        } else {
            text
        };
        piece(index, &json!({ "type": "input_json_delta", "partial_json": text }), bytes);
    }

    fn finish(&mut self, bytes: &mut Vec<u8>) {
        self.start(bytes);
        self.stop(bytes);
        let end = match self.end.take() {
            Some(FinishReason::Stop) | None if self.refuses => FinishReason::Refusal,
            end => end.unwrap_or(FinishReason::Stop),
        };
        let (reason, sequence) = stop_reason::words(&end, !self.calls.is_empty());
        let mut event = object([
            ("type", "message_delta".into()),
            ("delta", json!({ "stop_reason": reason, "stop_sequence": sequence })),
            ("usage", usage::write(self.usage)),
        ]);
        self.provider_extra.add(&mut event);
        frames::named("message_delta", &event, bytes);
        frames::named("message_stop", &json!({ "type": "message_stop" }), bytes);
    }
}

/// Appends to a block.
fn piece(index: u32, delta: &Value, bytes: &mut Vec<u8>) {
    let event = json!({ "type": "content_block_delta", "index": index, "delta": delta });
    frames::named("content_block_delta", &event, bytes);
}

/// The type of an error. What only the operator of the gateway can fix is reported as an upstream error.
fn error_type(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::InvalidRequest => "invalid_request_error",
        FailureKind::PermissionDenied => "permission_error",
        FailureKind::NotFound => "not_found_error",
        FailureKind::TooLarge => "request_too_large",
        FailureKind::RateLimited | FailureKind::QuotaExceeded => "rate_limit_error",
        FailureKind::Timeout => "timeout_error",
        FailureKind::Overloaded => "overloaded_error",
        FailureKind::Authentication | FailureKind::Server => "api_error",
    }
}
