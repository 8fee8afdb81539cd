//! Server-sent events as the gateway writes them: UTF-8, `event:` and `data:` lines, comments, a blank line after each event.

use serde_json::Value;

use super::Transcript;

/// An event of a stream.
#[derive(Debug)]
pub struct TranscriptEvent {
    /// Its `event` line.
    pub name: Option<String>,
    /// Its data.
    pub data: EventData,
}

/// The data of an event.
#[derive(Debug)]
pub enum EventData {
    /// A document.
    Object(Value),
    /// `[DONE]`.
    Done,
}

/// Reads the events. Anything else is a fault and is skipped.
pub(super) fn read(bytes: &[u8], transcript: &mut Transcript) -> Vec<TranscriptEvent> {
    let Ok(text) = str::from_utf8(bytes) else {
        transcript.fault("events_are_json", "the stream is not UTF-8");
        return Vec::new();
    };
    if !text.is_empty() && !text.ends_with("\n\n") {
        transcript.fault("events_are_json", "the last event is not terminated");
    }
    text.split("\n\n").filter_map(|frame| event(frame, transcript)).collect()
}

fn event(frame: &str, transcript: &mut Transcript) -> Option<TranscriptEvent> {
    let (mut name, mut data) = (None, Vec::new());
    for line in frame.split('\n') {
        if let Some(value) = line.strip_prefix("event:") {
            name = Some(value.trim_start().to_owned());
        } else if let Some(value) = line.strip_prefix("data:") {
            data.push(value.strip_prefix(' ').unwrap_or(value));
        } else if !(line.is_empty()
            || line.starts_with(':')
            || line.starts_with("id:")
            || line.starts_with("retry:"))
        {
            transcript.fault("events_are_json", format!("a line {line:?}"));
        }
    }
    if data.is_empty() {
        return None;
    }
    let data = data.join("\n");
    if data == "[DONE]" {
        return Some(TranscriptEvent { name, data: EventData::Done });
    }
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(&data) {
        Some(TranscriptEvent { name, data: EventData::Object(value) })
    } else {
        transcript.fault("events_are_json", format!("an event {data:?}"));
        None
    }
}
