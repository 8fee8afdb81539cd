//! A client's event stream: items open with their first piece and close where another begins.

mod thoughts;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::answer::{
    ResponseEnvelope, call_item, image_item, message_item, proof, refusal_part, status, text_part,
    thought_item,
};
use super::citations::write_annotation;
use super::own_kinds::namespace_of;
use crate::conversation::{
    Citation, Delta, Failure, FailureKind, FinishReason, Input, Media, Protocol, Thought, ToolCall, Usage,
};
use crate::provider_extra::StreamExtra;
use crate::{ResponseContext, StreamOut, failure, frames};

/// Maximum size of an answer's text, in bytes: the last events repeat all of it.
const MAX_BYTES: usize = 64 << 20;

/// Writes the events of a stream.
pub(super) struct ResponsesStreamWriter {
    context: ResponseContext,
    /// `None` until the stream starts.
    record: Option<ResponseEnvelope>,
    next_number: u64,
    open: Option<OpenItem>,
    output: Vec<Value>,
    /// Total size of the pieces so far, in bytes.
    size: usize,
    usage: Option<Usage>,
    end: Option<FinishReason>,
    has_refusal: bool,
    is_ended: bool,
    /// Characters of the text so far.
    length: usize,
    provider_extra: StreamExtra,
}

/// The item being written, the last of the output.
enum OpenItem {
    Message {
        id: String,
        content: Vec<Value>,
        part: Option<TextPart>,
    },
    /// With its index among the thoughts.
    Thought {
        id: String,
        place: u32,
        thought: Thought,
    },
    Call {
        id: String,
        call: ToolCall,
        place: u32,
    },
}

/// The message part being written.
#[derive(Default)]
struct TextPart {
    text: String,
    is_refusal: bool,
    logprobs: Vec<Value>,
    /// Where it begins in the answer's text, in characters, and how long it is.
    begin: usize,
    length: usize,
    annotations: Vec<Value>,
}

/// An event with a piece of text.
#[derive(Serialize)]
struct TextDeltaEvent<'a> {
    r#type: &'static str,
    sequence_number: u64,
    item_id: &'a str,
    output_index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
    delta: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<&'a [Value]>,
}

impl StreamOut for ResponsesStreamWriter {
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>) {
        if self.is_ended {
            return;
        }
        match &delta {
            Delta::Started { id, created, service_tier, .. } => {
                self.start(id.as_deref(), *created, service_tier.as_deref(), bytes);
            }
            // The tokens of the prompt may be known before.
            Delta::Usage(_) => {}
            _ => self.start(None, None, None, bytes),
        }
        if let Delta::Text { text, .. }
        | Delta::Refusal { text, .. }
        | Delta::Thought { text, .. }
        | Delta::CallInput { text, .. } = &delta
        {
            self.size = self.size.saturating_add(text.len());
            if self.size > MAX_BYTES {
                return self.fail_for(&format!("the answer is longer than {MAX_BYTES} bytes"), bytes);
            }
        }
        match delta {
            Delta::Text { choice: 0, text, logprobs } => self.text(&text, logprobs, false, bytes),
            Delta::Refusal { choice: 0, text } => {
                self.has_refusal = true;
                self.text(&text, None, true, bytes);
            }
            Delta::Thought { choice: 0, thought, id, part, text, summary } => {
                self.thought(thought, id, part, &text, summary, bytes);
            }
            Delta::ThoughtSigned { choice: 0, thought, id, signature, redacted } => {
                self.sign(thought, id, signature, redacted, bytes);
            }
            Delta::Call { choice: 0, call, id, name, custom, signature } => {
                let input = if custom { Input::Text(String::new()) } else { Input::Json(String::new()) };
                self.call(call, ToolCall { id, name, input, signature }, bytes);
            }
            Delta::CallInput { choice: 0, call, text } => self.input(call, &text, bytes),
            Delta::Other { choice: 0, source: Protocol::Responses, value } => {
                self.close("completed", bytes);
                self.added(&value, bytes);
                self.done(value, bytes);
            }
            Delta::Image { choice: 0, image } => self.image(image, bytes),
            Delta::Citation { choice: 0, citation } => self.cite(&citation, bytes),
            Delta::Other { choice: 0, value, .. } => self.provider_extra.other(value),
            Delta::Extra(given) => self.provider_extra.extra(given),
            Delta::Usage(usage) => self.usage = Some(usage),
            Delta::Ended { choice: 0, end } => {
                self.provider_extra.end(0, &end, Protocol::Responses);
                self.end = Some(end);
            }
            Delta::Failed(failure) => self.fail(&failure, bytes),
            Delta::Done => self.complete(bytes),
            // A response has only one choice.
            _ => {}
        }
    }

    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        self.start(None, None, None, bytes);
        let code = failure.code.as_deref().unwrap_or(failure::code_of(failure.kind).code);
        let mut response = self.record().started();
        response.insert("status".to_owned(), json!("failed"));
        response.insert("error".to_owned(), json!({ "code": code, "message": failure.message }));
        response.insert("output".to_owned(), std::mem::take(&mut self.output).into());
        self.of_response("response.failed", response, bytes);
    }
}

impl ResponsesStreamWriter {
    pub(super) fn new(context: ResponseContext) -> Self {
        Self {
            context,
            record: None,
            next_number: 0,
            open: None,
            output: Vec::new(),
            size: 0,
            usage: None,
            end: None,
            has_refusal: false,
            is_ended: false,
            length: 0,
            provider_extra: StreamExtra::default(),
        }
    }

    fn start(
        &mut self,
        id: Option<&str>,
        created: Option<u64>,
        service_tier: Option<&str>,
        bytes: &mut Vec<u8>,
    ) {
        if self.record.is_none() {
            let record = ResponseEnvelope::new(&self.context, id, created).served_by(service_tier);
            let started = self.record.insert(record).started();
            self.of_response("response.created", started.clone(), bytes);
            self.of_response("response.in_progress", started, bytes);
        }
    }

    fn record(&mut self) -> &ResponseEnvelope {
        self.record.get_or_insert_with(|| ResponseEnvelope::new(&self.context, None, None))
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    fn of_response(&mut self, kind: &'static str, response: Map<String, Value>, bytes: &mut Vec<u8>) {
        let mut event = json!({ "type": kind, "sequence_number": self.number() });
        event["response"] = Value::Object(response);
        frames::named(kind, &event, bytes);
    }

    /// Writes an event of the open item. `members`: an object.
    fn event(&mut self, kind: &'static str, item_id: &str, members: Value, bytes: &mut Vec<u8>) {
        let mut event = json!({
            "type": kind, "sequence_number": self.number(), "item_id": item_id, "output_index": self.output.len(),
        });
        if let (Value::Object(event), Value::Object(members)) = (&mut event, members) {
            event.extend(members);
        }
        frames::named(kind, &event, bytes);
    }

    fn added(&mut self, item: &Value, bytes: &mut Vec<u8>) {
        let kind = "response.output_item.added";
        let number = self.number();
        let event = json!({ "type": kind, "sequence_number": number, "output_index": self.output.len(), "item": item });
        frames::named(kind, &event, bytes);
    }

    fn done(&mut self, item: Value, bytes: &mut Vec<u8>) {
        let kind = "response.output_item.done";
        let number = self.number();
        let event = json!({ "type": kind, "sequence_number": number, "output_index": self.output.len(), "item": item });
        frames::named(kind, &event, bytes);
        self.output.push(item);
    }

    fn text(&mut self, text: &str, logprobs: Option<Value>, is_refusal: bool, bytes: &mut Vec<u8>) {
        let (id, mut content, part) = match self.open.take() {
            Some(OpenItem::Message { id, content, part }) => (id, content, part),
            other => {
                self.open = other;
                self.close("completed", bytes);
                let index = self.output.len();
                let id = self.record().item_id("msg", index);
                self.added(&message_item(&id, Vec::new(), "in_progress"), bytes);
                (id, Vec::new(), None)
            }
        };
        let mut part = match part {
            Some(part) if part.is_refusal == is_refusal => part,
            other => {
                if let Some(part) = other {
                    let written = self.part_done(&id, content.len(), &part, bytes);
                    content.push(written);
                }
                let part = TextPart { is_refusal, begin: self.length, ..TextPart::default() };
                let started = json!({ "content_index": content.len(), "part": part.written() });
                self.event("response.content_part.added", &id, started, bytes);
                part
            }
        };
        let logprobs = match logprobs {
            Some(Value::Array(tokens)) => tokens,
            _ => Vec::new(),
        };
        let kind = if is_refusal { "response.refusal.delta" } else { "response.output_text.delta" };
        let piece = TextDeltaEvent {
            r#type: kind,
            sequence_number: self.number(),
            item_id: &id,
            output_index: self.output.len(),
            content_index: Some(content.len()),
            summary_index: None,
            delta: text,
            logprobs: (!is_refusal).then_some(&logprobs),
        };
        frames::named(kind, &piece, bytes);
        part.text.push_str(text);
        if !is_refusal {
            let length = text.chars().count();
            part.length = part.length.saturating_add(length);
            self.length = self.length.saturating_add(length);
        }
        part.logprobs.extend(logprobs);
        self.open = Some(OpenItem::Message { id, content, part: Some(part) });
    }

    /// Adds a citation to the open text. A citation of text that has ended is reported next to the answer.
    fn cite(&mut self, citation: &Citation, bytes: &mut Vec<u8>) {
        let (id, content, mut part) = match self.open.take() {
            Some(OpenItem::Message { id, content, part: Some(part) }) if !part.is_refusal => {
                (id, content, part)
            }
            other => {
                self.open = other;
                return self.provider_extra.other(write_annotation(citation, &(0..self.length)));
            }
        };
        let annotation = write_annotation(citation, &(part.begin..part.begin.saturating_add(part.length)));
        let members = json!({
            "content_index": content.len(), "annotation_index": part.annotations.len(), "annotation": annotation,
        });
        self.event("response.output_text.annotation.added", &id, members, bytes);
        part.annotations.push(annotation);
        self.open = Some(OpenItem::Message { id, content, part: Some(part) });
    }

    /// Ends a part of a message and returns it complete.
    fn part_done(&mut self, id: &str, index: usize, part: &TextPart, bytes: &mut Vec<u8>) -> Value {
        let written = part.written();
        if part.is_refusal {
            let members = json!({ "content_index": index, "refusal": part.text });
            self.event("response.refusal.done", id, members, bytes);
        } else {
            let members = json!({ "content_index": index, "text": part.text, "logprobs": part.logprobs });
            self.event("response.output_text.done", id, members, bytes);
        }
        let members = json!({ "content_index": index, "part": written });
        self.event("response.content_part.done", id, members, bytes);
        written
    }

    fn call(&mut self, place: u32, call: ToolCall, bytes: &mut Vec<u8>) {
        self.close("completed", bytes);
        if let Some(signature) = &call.signature {
            let index = self.output.len();
            let item = proof(signature, index, self.record());
            self.added(&item, bytes);
            self.done(item, bytes);
        }
        let index = self.output.len();
        let id = self.record().call_id(&call.input, index);
        self.added(&call_item(&id, &call, "in_progress"), bytes);
        self.open = Some(OpenItem::Call { id, call, place });
    }

    fn input(&mut self, place: u32, text: &str, bytes: &mut Vec<u8>) {
        // The sequencer never emits a piece of another call.
        let is_open = matches!(&self.open, Some(OpenItem::Call { place: open, .. }) if *open == place);
        if !is_open {
            return self.fail_for("the provider sent a piece of a call that had ended", bytes);
        }
        let (number, index) = (self.number(), self.output.len());
        let Some(OpenItem::Call { id, call, .. }) = &mut self.open else { return };
        let (kind, input) = match &mut call.input {
            Input::Json(input) => ("response.function_call_arguments.delta", input),
            Input::Text(input) => ("response.custom_tool_call_input.delta", input),
        };
        input.push_str(text);
        let piece = TextDeltaEvent {
            r#type: kind,
            sequence_number: number,
            item_id: id,
            output_index: index,
            content_index: None,
            summary_index: None,
            delta: text,
            logprobs: None,
        };
        frames::named(kind, &piece, bytes);
    }

    /// Ends the open item. `status`: of the item.
    fn close(&mut self, status: &str, bytes: &mut Vec<u8>) {
        match self.open.take() {
            None => {}
            Some(OpenItem::Message { id, mut content, part }) => {
                if let Some(part) = part {
                    let written = self.part_done(&id, content.len(), &part, bytes);
                    content.push(written);
                }
                self.done(message_item(&id, content, status), bytes);
            }
            Some(OpenItem::Thought { id, thought, .. }) => {
                self.thought_part_done(&id, &thought, bytes);
                let index = self.output.len();
                let item = thought_item(&Thought { id: Some(id), ..thought }, index, self.record());
                self.done(item, bytes);
            }
            Some(OpenItem::Call { id, call, .. }) => {
                match &call.input {
                    Input::Json(text) => {
                        let (_, name) = namespace_of(&call.name);
                        let members = json!({ "name": name, "arguments": text });
                        self.event("response.function_call_arguments.done", &id, members, bytes);
                    }
                    Input::Text(text) => {
                        let members = json!({ "input": text });
                        self.event("response.custom_tool_call_input.done", &id, members, bytes);
                    }
                }
                self.done(call_item(&id, &call, status), bytes);
            }
        }
    }

    /// Writes an image as an item.
    fn image(&mut self, image: Media, bytes: &mut Vec<u8>) {
        self.close("completed", bytes);
        let index = self.output.len();
        match image_item(&image, index, self.record()) {
            Some(item) => {
                self.added(&item, bytes);
                self.done(item, bytes);
            }
            None => self.provider_extra.image(image, Protocol::Responses),
        }
    }

    fn complete(&mut self, bytes: &mut Vec<u8>) {
        let end = self.end.take().unwrap_or(FinishReason::Stop);
        // A refusal without text must still be visible.
        if end == FinishReason::Refusal && !self.has_refusal {
            self.text("", None, true, bytes);
        }
        let status = status(&end);
        self.close(status, bytes);
        self.is_ended = true;
        let (output, usage) = (std::mem::take(&mut self.output), self.usage);
        let mut response = self.record().response(&end, output, usage);
        self.provider_extra.add(&mut response);
        let kind = if status == "completed" { "response.completed" } else { "response.incomplete" };
        self.of_response(kind, response, bytes);
    }

    fn fail_for(&mut self, message: &str, bytes: &mut Vec<u8>) {
        let message = message.to_owned();
        self.fail(&Failure::new(FailureKind::Server, message), bytes);
    }
}

impl TextPart {
    /// The part so far.
    fn written(&self) -> Value {
        if self.is_refusal {
            return refusal_part(&self.text);
        }
        text_part(&self.text, &self.annotations, Some(Value::Array(self.logprobs.clone())))
    }
}
