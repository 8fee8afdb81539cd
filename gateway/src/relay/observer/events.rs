//! One event of each protocol.

use serde_json::value::RawValue;

use super::choices::Choice;
use super::{MOST_KEPT_BYTES, Observer, Progress, STREAMED, Seen};
use crate::wire::peek::{self, members};

impl Observer {
    pub(super) fn chunk(&mut self, data: &str) -> serde_json::Result<Seen> {
        let (mut model, mut usage, mut error, mut choices) = (None, None, None, None);
        members(data, |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            "error" => error = Some(value),
            "choices" => choices = Some(value),
            _ => {}
        })?;
        if is_given(error) {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        let choices: Vec<Choice<'_>> =
            choices.and_then(|choices| serde_json::from_str(choices.get()).ok()).unwrap_or_default();
        self.pieces += u64::from(!choices.is_empty());
        self.note(&choices);
        if self.take_usage(usage) && self.hide_usage && choices.is_empty() {
            return Ok(Seen::Hide);
        }
        Ok(self.renamed(data, model))
    }

    pub(super) fn response_event(&mut self, data: &str) -> serde_json::Result<Seen> {
        let (mut kind, mut response, mut number, mut error) = (None, None, None, None);
        members(data, |name, value| match name {
            "type" => kind = peek::string(value),
            "error" => error = Some(value),
            "response" => response = Some(value),
            "sequence_number" => number = serde_json::from_str(value.get()).ok(),
            _ => {}
        })?;
        self.sequence_number = number.or(self.sequence_number);
        let kind = kind.as_deref().unwrap_or_default();
        self.pieces += u64::from(kind.rsplit('.').next() == Some("delta"));
        if kind == "error" || kind.is_empty() && is_given(error) {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        let Some(response) = response else { return Ok(Seen::Pass) };
        let (mut model, mut usage) = (None, None);
        members(response.get(), |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })?;
        self.take_usage(usage);
        match kind {
            "response.completed" | "response.incomplete" => {
                self.progress = Progress::Ended;
                self.ended_with = Some(peek::place(data, response));
            }
            "response.failed" => {
                let error = self.protocol.failure_in(STREAMED, response.get().as_bytes());
                let seen = self.failed(error);
                // The stream has its last word.
                self.progress = Progress::Ended;
                return Ok(seen);
            }
            _ if self.begun.is_none() && response.get().len() <= MOST_KEPT_BYTES => {
                self.begun = Some(response.to_owned());
            }
            _ => {}
        }
        Ok(self.renamed(data, model))
    }

    pub(super) fn message_event(&mut self, data: &str) -> serde_json::Result<Seen> {
        let (mut kind, mut message, mut usage, mut error) = (None, None, None, None);
        members(data, |name, value| match name {
            "type" => kind = peek::string(value),
            "error" => error = Some(value),
            "message" => message = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })?;
        self.take_usage(usage);
        match kind.as_deref().unwrap_or_default() {
            "ping" => return Ok(Seen::Ping),
            "error" => return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes()))),
            // Servers in front of others tell errors in the form of chat.
            "" if is_given(error) => {
                return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
            }
            "content_block_delta" => self.pieces += 1,
            "message_stop" => self.progress = self.progress.max(Progress::Ended),
            _ => {}
        }
        let Some(message) = message else { return Ok(Seen::Pass) };
        let (mut model, mut usage) = (None, None);
        members(message.get(), |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })?;
        self.take_usage(usage);
        Ok(self.renamed(data, model))
    }

    pub(super) fn native_document(&mut self, data: &str) -> serde_json::Result<Seen> {
        let (mut model, mut usage, mut error, mut candidates, mut blocked) = (None, None, None, None, false);
        members(data, |name, value| match name {
            "modelVersion" => model = Some(value),
            "usageMetadata" => usage = Some(value),
            "error" => error = Some(value),
            "candidates" => candidates = Some(value),
            "promptFeedback" => blocked = value.get().contains("blockReason"),
            _ => {}
        })?;
        if is_given(error) {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        self.take_usage(usage);
        let candidates: Vec<Choice<'_>> =
            candidates.and_then(|candidates| serde_json::from_str(candidates.get()).ok()).unwrap_or_default();
        self.pieces += u64::from(!candidates.is_empty());
        // No last word follows in this protocol.
        self.note(&candidates);
        if blocked {
            self.progress = self.progress.max(Progress::Finished);
        }
        Ok(self.renamed(data, model))
    }
}

fn is_given(member: Option<&RawValue>) -> bool {
    member.is_some_and(|member| member.get() != "null")
}
