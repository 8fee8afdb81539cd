//! A whole answer as the stream that its provider should have sent: some servers answer a request for a stream with one document.

use serde_json::Value;

use super::{Asked, Malformed, sequence};
use crate::conversation::{Answer, Choice, Delta, End, Input, PartKind, Protocol};

impl Protocol {
    /// Writes the events, in this protocol, of the answer that a document of this protocol is. `None`: it has parts that no stream
    /// carries. `id` and `created` are those of the answer where the document gives none.
    ///
    /// # Errors
    /// If the document is no answer.
    pub(crate) fn streamed(
        self,
        document: Value,
        id: &str,
        created: u64,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        let mut answer = self.answer_in(document.clone())?;
        sequence::settle_calls(&mut answer);
        sequence::settle_ends(&mut answer);
        let asked = Asked {
            model: answer.model.clone().unwrap_or_default(),
            // An answer of responses repeats its request under the same names.
            request: document,
            include_usage: true,
            id: answer.id.clone().unwrap_or_else(|| id.to_owned()),
            created: answer.created.unwrap_or(created),
        };
        let Some(deltas) = deltas(answer) else { return Ok(None) };
        let (mut writer, mut bytes) = (self.stream_out(asked), Vec::new());
        for delta in deltas {
            writer.delta(delta, &mut bytes);
        }
        Ok(Some(bytes))
    }
}

/// What a stream tells of an answer, in order. `None`: it has parts that no stream carries.
fn deltas(answer: Answer) -> Option<Vec<Delta>> {
    let Answer { source, id, model, created, choices, usage, extra, .. } = answer;
    let mut deltas = vec![Delta::Started { id, model, created }];
    for (number, choice) in (0..).zip(choices) {
        push_choice(number, source, choice, &mut deltas)?;
    }
    deltas.extend(extra.into_iter().map(Delta::Extra));
    deltas.extend(usage.map(Delta::Usage));
    deltas.push(Delta::Done);
    Some(deltas)
}

fn push_choice(choice: u32, source: Protocol, told: Choice, deltas: &mut Vec<Delta>) -> Option<()> {
    let Choice { parts, citations, end, mut logprobs, .. } = told;
    let (mut thoughts, mut calls) = (0, 0);
    for part in parts {
        match part.kind {
            PartKind::Text(text) => deltas.push(Delta::Text { choice, text, logprobs: logprobs.take() }),
            PartKind::Refusal(text) => deltas.push(Delta::Refusal { choice, text }),
            PartKind::Image(image) => deltas.push(Delta::Image { choice, image }),
            PartKind::Other(value) => deltas.push(Delta::Other { choice, source, value }),
            PartKind::Thought(told) => {
                let thought = thoughts;
                thoughts += 1;
                let (mut id, summary) = (told.id.clone(), told.summary);
                for (part, text) in (0..).zip(told.text) {
                    deltas.push(Delta::Thought { choice, thought, id: id.take(), part, text, summary });
                }
                if let Some(signature) = told.signature {
                    let (id, redacted) = (told.id, told.redacted);
                    deltas.push(Delta::ThoughtSigned { choice, thought, id, signature, redacted });
                }
            }
            PartKind::Call(told) => {
                let call = calls;
                calls += 1;
                let (text, custom) = match told.input {
                    Input::Json(text) => (text, false),
                    Input::Text(text) => (text, true),
                };
                let (id, name, signature) = (told.id, told.name, told.signature);
                deltas.push(Delta::Call { choice, call, id, name, custom, signature });
                deltas.push(Delta::CallInput { choice, call, text });
            }
            PartKind::Audio(_) | PartKind::File(_) | PartKind::Result(_) => return None,
        }
    }
    deltas.extend(citations.into_iter().map(|citation| Delta::Citation { choice, citation }));
    deltas.push(Delta::Ended {
        choice,
        end: end.unwrap_or(if calls > 0 { End::ToolCalls } else { End::Stop }),
    });
    Some(())
}
