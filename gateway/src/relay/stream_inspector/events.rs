//! One event of each protocol.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::choices::StreamChoice;
use super::{EventAction, MAX_KEPT_BYTES, STREAMED, StreamInspector, StreamProgress};
use crate::wire::lazy_json::{self, members};

/// Memory of a kept item beside its text, in bytes: its part of the list, and of the heap.
const ITEM_OVERHEAD: usize = 48;

impl StreamInspector {
    pub(super) fn chunk(&mut self, name: Option<&str>, data: &str) -> serde_json::Result<EventAction> {
        let (mut model, mut usage, mut error, mut choices) = (None, None, None, None);
        members(data, |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            "error" => error = Some(value),
            "choices" => choices = Some(value),
            _ => {}
        })?;
        if is_given(error) || name == Some("error") {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        let null = choices.filter(|choices| choices.get() == "null");
        let choices: Vec<StreamChoice<'_>> =
            choices.and_then(|choices| serde_json::from_str(choices.get()).ok()).unwrap_or_default();
        self.pieces += u64::from(!choices.is_empty());
        self.note(&choices);
        if self.take_usage(usage) && self.hide_usage && choices.is_empty() {
            return Ok(EventAction::Hide);
        }
        if let Some(null) = null {
            // Clients iterate over the list without checking that it exists.
            let mut edits = vec![(lazy_json::place(data, null), &b"[]"[..])];
            edits.extend(self.rename(data, model).map(|at| (at, self.model())));
            edits.sort_by_key(|(at, _)| at.start);
            return Ok(EventAction::Rewrite(lazy_json::spliced(
                &Bytes::copy_from_slice(data.as_bytes()),
                &edits,
            )));
        }
        Ok(self.renamed(data, model))
    }

    pub(super) fn response_event(
        &mut self,
        name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction> {
        let (mut kind, mut response, mut number, mut error, mut item) = (None, None, None, None, None);
        members(data, |name, value| match name {
            "type" => kind = lazy_json::string(value),
            "error" => error = Some(value),
            "response" => response = Some(value),
            "item" => item = Some(value),
            "sequence_number" => number = serde_json::from_str(value.get()).ok(),
            _ => {}
        })?;
        let typed = kind.as_deref().unwrap_or_default();
        // The event name is the fallback if the data has no type.
        let kind = kind.as_deref().or(name).unwrap_or_default();
        self.pieces += u64::from(kind.rsplit('.').next() == Some("delta"));
        if kind == "error" || typed.is_empty() && is_given(error) {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        // An error takes the number of the event that reports it to the client.
        if kind != "response.failed" {
            self.sequence_number = number.or(self.sequence_number);
        }
        if let Some(item) = item.filter(|_| kind == "response.output_item.done") {
            self.keep_item(item);
        }
        let (mut model, mut usage) = (None, None);
        let read = response.map(|response| {
            members(response.get(), |name, value| match name {
                "model" => model = Some(value),
                "usage" => usage = Some(value),
                _ => {}
            })
        });
        // A final event ends the stream even if its response can't be parsed.
        let is_end = matches!(kind, "response.completed" | "response.incomplete");
        if is_end {
            self.progress = StreamProgress::Ended;
        } else if kind != "response.failed" {
            read.transpose()?;
        }
        self.take_usage(usage);
        if kind == "response.failed" {
            let told = response.map(RawValue::get).filter(|told| told.starts_with('{')).unwrap_or(data);
            let mut failure = self.protocol.failure_in(STREAMED, told.as_bytes());
            if let Some(beyond) = &mut failure.beyond {
                // They belong to the response.
                beyond.beside.clear();
            }
            if let Some(response) =
                response.filter(|_| told.len() <= MAX_KEPT_BYTES && told.as_ptr() != data.as_ptr())
            {
                self.begun = Some(response.to_owned());
            }
            let seen = self.failed(failure);
            // The stream has sent its final event.
            self.progress = StreamProgress::Ended;
            return Ok(seen);
        }
        let Some(response) = response else { return Ok(EventAction::Pass) };
        if is_end {
            if response.get().starts_with('{') {
                self.ended_with = Some(lazy_json::place(data, response));
            }
        } else if self.begun.is_none() && response.get().len() <= MAX_KEPT_BYTES {
            self.begun = Some(response.to_owned());
        }
        Ok(self.renamed(data, model))
    }

    /// Keeps a finished item. If they exceed the limit, none is kept: a list with a gap would be a different answer.
    fn keep_item(&mut self, item: &RawValue) {
        let bytes = self.output_bytes.saturating_add(item.get().len() + ITEM_OVERHEAD);
        if bytes <= MAX_KEPT_BYTES {
            self.output.push(item.to_owned());
        } else {
            self.output = Vec::new();
        }
        self.output_bytes = bytes;
    }

    pub(super) fn message_event(
        &mut self,
        name: Option<&str>,
        data: &str,
    ) -> serde_json::Result<EventAction> {
        let (mut kind, mut message, mut usage, mut error) = (None, None, None, None);
        members(data, |name, value| match name {
            "type" => kind = lazy_json::string(value),
            "error" => error = Some(value),
            "message" => message = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })?;
        let typed = kind.as_deref().unwrap_or_default();
        let kind = if typed.is_empty() { name.unwrap_or_default() } else { typed };
        match if name == Some("ping") { "ping" } else { kind } {
            "ping" => return Ok(EventAction::Ping),
            "error" => return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes()))),
            // Proxies in front of other servers report errors in the chat format.
            _ if typed.is_empty() && is_given(error) => {
                return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
            }
            "content_block_delta" => self.pieces += 1,
            "message_stop" => self.progress = self.progress.max(StreamProgress::Ended),
            _ => {}
        }
        self.take_usage(usage);
        let Some(message) = message else { return Ok(EventAction::Pass) };
        let (mut model, mut usage) = (None, None);
        members(message.get(), |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })?;
        self.take_usage(usage);
        Ok(self.renamed(data, model))
    }

    pub(super) fn native_document(&mut self, data: &str) -> serde_json::Result<EventAction> {
        let (mut model, mut usage, mut error, mut candidates, mut blocked) = (None, None, None, None, false);
        members(first_of_list(data), |name, value| match name {
            "modelVersion" => model = Some(value),
            "usageMetadata" => usage = Some(value),
            "error" => error = Some(value),
            "candidates" => candidates = Some(value),
            "promptFeedback" => blocked = says_why(value),
            _ => {}
        })?;
        if is_given(error) {
            return Ok(self.failed(self.protocol.failure_in(STREAMED, data.as_bytes())));
        }
        self.take_usage(usage);
        let candidates: Vec<StreamChoice<'_>> =
            candidates.and_then(|candidates| serde_json::from_str(candidates.get()).ok()).unwrap_or_default();
        self.pieces += u64::from(!candidates.is_empty());
        // This protocol has no final event after this.
        self.note(&candidates);
        if blocked {
            self.progress = self.progress.max(StreamProgress::Finished);
        }
        Ok(self.renamed(data, model))
    }
}

/// Whether the prompt feedback says why there is no answer (native).
fn says_why(feedback: &RawValue) -> bool {
    let mut says = false;
    let read = members(feedback.get(), |name, value| {
        if name == "blockReason" {
            says = value.get().starts_with('"');
        }
    });
    read.is_ok() && says
}

/// An error may come as a list with one entry.
fn first_of_list(data: &str) -> &str {
    let Some(items) = data.trim_ascii_start().strip_prefix('[') else { return data };
    let first = serde_json::Deserializer::from_str(items).into_iter::<&RawValue>().next();
    first.and_then(Result::ok).map_or(data, RawValue::get)
}

fn is_given(member: Option<&RawValue>) -> bool {
    member.is_some_and(|member| member.get() != "null")
}
