//! Reasoning items of a stream.

use serde_json::json;

use super::super::answer::thought_item;
use super::{OpenItem, ResponsesStreamWriter, TextDeltaEvent};
use crate::conversation::Thought;
use crate::frames;

impl ResponsesStreamWriter {
    /// `place`: the thought's index among the thoughts; `id`: the provider's, if a piece has it.
    pub(super) fn thought(
        &mut self,
        place: u32,
        id: Option<String>,
        part: u32,
        text: &str,
        summary: bool,
        bytes: &mut Vec<u8>,
    ) {
        let (id, mut thought) = match self.open.take() {
            // A text that has ended can't be continued.
            Some(OpenItem::Thought { id, place: open, thought })
                if open == place && thought.summary == summary && thought.text.len() <= part as usize + 1 =>
            {
                (id, thought)
            }
            other => {
                self.open = other;
                self.close("completed", bytes);
                self.open_thought(Thought { id, summary, ..Thought::default() }, bytes)
            }
        };
        if thought.text.len() <= part as usize {
            self.thought_part_done(&id, &thought, bytes);
            thought.text.push(String::new());
            self.thought_part_added(&id, &thought, bytes);
        }
        let index = thought.text.len().saturating_sub(1);
        let kind =
            if summary { "response.reasoning_summary_text.delta" } else { "response.reasoning_text.delta" };
        let piece = TextDeltaEvent {
            r#type: kind,
            sequence_number: self.number(),
            item_id: &id,
            output_index: self.output.len(),
            content_index: (!summary).then_some(index),
            summary_index: summary.then_some(index),
            delta: text,
            logprobs: None,
        };
        frames::named(kind, &piece, bytes);
        if let Some(last) = thought.text.last_mut() {
            last.push_str(text);
        }
        self.open = Some(OpenItem::Thought { id, place, thought });
    }

    fn open_thought(&mut self, thought: Thought, bytes: &mut Vec<u8>) -> (String, Thought) {
        let index = self.output.len();
        let started = thought_item(&thought, index, self.record());
        self.added(&started, bytes);
        (started["id"].as_str().unwrap_or_default().to_owned(), thought)
    }

    fn thought_part_added(&mut self, id: &str, thought: &Thought, bytes: &mut Vec<u8>) {
        let index = thought.text.len() - 1;
        if thought.summary {
            let members = json!({ "summary_index": index, "part": { "type": "summary_text", "text": "" } });
            self.event("response.reasoning_summary_part.added", id, members, bytes);
        } else {
            let members = json!({ "content_index": index, "part": { "type": "reasoning_text", "text": "" } });
            self.event("response.content_part.added", id, members, bytes);
        }
    }

    /// Ends the last text of a thought, if it has one.
    pub(super) fn thought_part_done(&mut self, id: &str, thought: &Thought, bytes: &mut Vec<u8>) {
        let Some(text) = thought.text.last() else { return };
        let index = thought.text.len() - 1;
        if thought.summary {
            let members = json!({ "summary_index": index, "text": text });
            self.event("response.reasoning_summary_text.done", id, members, bytes);
            let part = json!({ "summary_index": index, "part": { "type": "summary_text", "text": text } });
            self.event("response.reasoning_summary_part.done", id, part, bytes);
        } else {
            let members = json!({ "content_index": index, "text": text });
            self.event("response.reasoning_text.done", id, members, bytes);
            let part = json!({ "content_index": index, "part": { "type": "reasoning_text", "text": text } });
            self.event("response.content_part.done", id, part, bytes);
        }
    }

    /// The opaque end of the open thought, or a thought without anything else. `place`, `id`: see `thought`.
    pub(super) fn sign(
        &mut self,
        place: u32,
        id: Option<String>,
        signature: String,
        redacted: bool,
        bytes: &mut Vec<u8>,
    ) {
        let is_open = matches!(&self.open, Some(OpenItem::Thought { place: open, .. }) if *open == place);
        if !is_open || redacted {
            self.close("completed", bytes);
            let (id, thought) = self.open_thought(Thought { id, ..Thought::default() }, bytes);
            self.open = Some(OpenItem::Thought { id, place, thought });
        }
        if let Some(OpenItem::Thought { thought, .. }) = &mut self.open {
            thought.signature = Some(signature);
            thought.redacted = redacted;
        }
        self.close("completed", bytes);
    }
}
