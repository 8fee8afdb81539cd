//! Splits a whole answer into the pieces of a stream, for providers that answer a streaming request with a single
//! document.

use serde_json::Value;

use super::{MalformedDocument, ResponseContext, sequence};
use crate::conversation::{Answer, Choice, Delta, Input, Part, PartKind, Protocol, Thought, ToolCall, Usage};

impl Protocol {
    /// The stream a provider of this protocol would have sent instead of one document, as server-sent events. Errors: the
    /// document isn't an answer of the protocol.
    pub fn streamed(self, document: Value, context: ResponseContext) -> Result<Vec<u8>, MalformedDocument> {
        let document = match self.codec().streamed(document) {
            Ok(bytes) => return Ok(bytes),
            Err(document) => document,
        };
        let mut bytes = Vec::new();
        let mut answer = self.answer_in(document)?;
        sequence::settle_calls(&mut answer);
        sequence::settle_ends(&mut answer);
        let mut writer = self.stream_out(context);
        for delta in pieces(answer) {
            writer.delta(delta, &mut bytes);
        }
        Ok(bytes)
    }
}

/// The pieces of an answer, one for each of its parts.
pub fn pieces(answer: Answer) -> Vec<Delta> {
    let Answer { source, id, model, created, choices, usage, service_tier, .. } = answer;
    let mut pieces =
        ChoiceDeltas { source, deltas: vec![Delta::Started { id, model, created, service_tier }] };
    // The messages protocol reports input tokens at the beginning.
    let input = usage.map(|usage| Usage { output: None, reasoning: None, ..usage });
    pieces.deltas.extend(input.map(Delta::Usage));
    for (index, choice) in (0..).zip(choices) {
        pieces.choice(index, choice);
    }
    pieces.deltas.extend(usage.map(Delta::Usage));
    pieces.deltas.push(Delta::Done);
    pieces.deltas
}

struct ChoiceDeltas {
    source: Protocol,
    deltas: Vec<Delta>,
}

impl ChoiceDeltas {
    fn choice(&mut self, choice: u32, content: Choice) {
        let Choice { parts, citations, end, mut logprobs, .. } = content;
        let (mut thoughts, mut calls) = (0, 0);
        let mut citations = Some(citations);
        let last_text = parts.iter().rposition(|part| matches!(part.kind, PartKind::Text(_)));
        for (place, Part { kind, .. }) in parts.into_iter().enumerate() {
            match kind {
                PartKind::Text(text) => {
                    self.deltas.push(Delta::Text { choice, text, logprobs: logprobs.take() });
                    if Some(place) == last_text {
                        let all = citations.take().unwrap_or_default();
                        self.deltas
                            .extend(all.into_iter().map(|citation| Delta::Citation { choice, citation }));
                    }
                }
                PartKind::Refusal(text) => self.deltas.push(Delta::Refusal { choice, text }),
                PartKind::Thought(thought) => {
                    self.thought(choice, thoughts, thought);
                    thoughts += 1;
                }
                PartKind::Call(call) => {
                    self.call(choice, calls, call);
                    calls += 1;
                }
                PartKind::Image(image) | PartKind::Audio(image) | PartKind::File(image) => {
                    self.deltas.push(Delta::Image { choice, image });
                }
                PartKind::Other(value) => {
                    self.deltas.push(Delta::Other { choice, source: self.source, value });
                }
                // Answers never contain the result of a client's tool.
                PartKind::Result(_) => {}
            }
        }
        self.deltas.extend(end.map(|end| Delta::Ended { choice, end }));
    }

    fn thought(&mut self, choice: u32, thought: u32, content: Thought) {
        let Thought { id, text, summary, signature, redacted } = content;
        let mut first = id.clone();
        for (part, text) in (0..).zip(text) {
            self.deltas.push(Delta::Thought { choice, thought, id: first.take(), part, text, summary });
        }
        if let Some(signature) = signature {
            self.deltas.push(Delta::ThoughtSigned { choice, thought, id, signature, redacted });
        }
    }

    fn call(&mut self, choice: u32, call: u32, content: ToolCall) {
        let ToolCall { id, name, input, signature } = content;
        let (custom, text) = match input {
            Input::Json(text) => (false, text),
            Input::Text(text) => (true, text),
        };
        self.deltas.push(Delta::Call { choice, call, id, name, custom, signature });
        self.deltas.push(Delta::CallInput { choice, call, text });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::grammar;
    use super::*;
    use crate::conversation::FinishReason;

    fn response_context() -> ResponseContext {
        ResponseContext {
            model: "m".to_owned(),
            request: Value::Object(serde_json::Map::new()),
            include_usage: true,
            id: "id".to_owned(),
            created: 1,
            ..ResponseContext::default()
        }
    }

    /// The same answer as each protocol writes it: a thought with its proof, a text and a call.
    fn documents() -> [(Protocol, Value); 4] {
        let chat = json!({
            "id": "c1", "object": "chat.completion", "created": 7, "model": "up",
            "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "Let me see.",
                "reasoning_details": [{ "type": "reasoning.text", "text": "Paris?", "signature": "cw==" }],
                "tool_calls": [{ "id": "k1", "type": "function",
                    "function": { "name": "weather", "arguments": "{\"city\":\"Paris\"}" } }],
            } }],
            "usage": { "prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16 },
        });
        let messages = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "up",
            "content": [
                { "type": "thinking", "thinking": "Paris?", "signature": "cw==" },
                { "type": "text", "text": "Let me see." },
                { "type": "tool_use", "id": "k1", "name": "weather", "input": { "city": "Paris" } },
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": { "input_tokens": 11, "output_tokens": 5 },
        });
        let responses = json!({
            "id": "resp_1", "object": "response", "created_at": 7, "status": "completed", "model": "up",
            "output": [
                { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Paris?" }],
                  "encrypted_content": "cw==" },
                { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                  "content": [{ "type": "output_text", "text": "Let me see.", "annotations": [] }] },
                { "type": "function_call", "id": "fc_1", "call_id": "k1", "name": "weather",
                  "arguments": "{\"city\":\"Paris\"}", "status": "completed" },
            ],
            "usage": { "input_tokens": 11, "output_tokens": 5, "total_tokens": 16 },
        });
        let native = json!({
            "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
                { "thought": true, "text": "Paris?" },
                { "text": "Let me see." },
                { "functionCall": { "id": "k1", "name": "weather", "args": { "city": "Paris" } },
                  "thoughtSignature": "cw==" },
            ] } }],
            "usageMetadata": { "promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16 },
        });
        [
            (Protocol::Chat, chat),
            (Protocol::Messages, messages),
            (Protocol::Responses, responses),
            (Protocol::Native, native),
        ]
    }

    #[test]
    fn document_becomes_an_equivalent_stream() {
        for (protocol, document) in documents() {
            let bytes = protocol.streamed(document, response_context()).expect("an answer");
            let transcript = grammar::transcript(protocol, &bytes);
            assert!(
                transcript.faults.is_empty(),
                "{}: {}",
                transcript.faults[0],
                String::from_utf8_lossy(&bytes)
            );
            let (mut reader, mut deltas) = (protocol.stream_in(), Vec::new());
            for event in String::from_utf8(bytes).expect("text").split("\n\n") {
                let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
                if let Some(data) = field("data: ") {
                    reader.event(field("event: "), data, &mut deltas).expect("an event");
                }
            }
            if deltas.last() != Some(&Delta::Done) {
                reader.end(&mut deltas).expect("the end");
            }
            let text = |wanted: fn(&Delta) -> Option<&String>| -> String {
                deltas.iter().filter_map(wanted).map(String::as_str).collect()
            };
            let texts = [
                text(|delta| match delta {
                    Delta::Thought { text, .. } => Some(text),
                    _ => None,
                }),
                text(|delta| match delta {
                    Delta::Text { text, .. } => Some(text),
                    _ => None,
                }),
                text(|delta| match delta {
                    Delta::CallInput { text, .. } => Some(text),
                    _ => None,
                }),
            ];
            assert_eq!(texts, ["Paris?", "Let me see.", r#"{"city":"Paris"}"#], "{protocol:?}");
            let proofs = deltas.iter().filter(|delta| match delta {
                Delta::ThoughtSigned { signature, .. } | Delta::Call { signature: Some(signature), .. } => {
                    signature == "cw=="
                }
                _ => false,
            });
            assert_eq!(proofs.count(), 1, "{protocol:?}: {deltas:?}");
            let usage = deltas.iter().rev().find_map(|delta| match delta {
                Delta::Usage(usage) => Some((usage.input, usage.output)),
                _ => None,
            });
            assert_eq!(usage.map(|(_, output)| output), Some(Some(5)), "{protocol:?}");
            assert!(
                deltas.contains(&Delta::Ended { choice: 0, end: FinishReason::ToolCalls }),
                "{protocol:?}: {deltas:?}"
            );
        }
    }

    #[test]
    fn native_event_list_becomes_those_events() {
        let list = json!([{ "candidates": [] }, { "usageMetadata": {} }]);
        let bytes = Protocol::Native.streamed(list, response_context()).expect("events");
        let expected = "data: {\"candidates\":[]}\n\ndata: {\"usageMetadata\":{}}\n\n";
        assert_eq!(String::from_utf8(bytes).expect("text"), expected);
    }

    #[test]
    fn non_answer_document_is_not_streamed() {
        for protocol in [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Native] {
            let document = json!("text");
            assert!(protocol.streamed(document, response_context()).is_err(), "{protocol:?}");
        }
    }
}
