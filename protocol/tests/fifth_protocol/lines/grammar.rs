//! What strict clients rely on in a stream.

use gatewright_protocol::grammar::{EventData, Transcript, TranscriptEvent};

pub(super) const RULES: &[&str] = &["begun_first", "why_last"];

pub(super) fn read(events: &[TranscriptEvent], transcript: &mut Transcript) {
    let documents = events.iter().filter_map(|event| match &event.data {
        EventData::Object(document) => Some(document),
        EventData::Done => None,
    });
    let documents: Vec<_> = documents.collect();
    if documents.first().is_none_or(|first| first["begun"] != true) {
        transcript.fault("begun_first", "the first event does not begin the answer");
    }
    for document in &documents {
        transcript.text.push_str(document["more"].as_str().unwrap_or_default());
        transcript.failed |= document.get("wrong").is_some();
        transcript.ends.extend(document["why"].as_str().map(str::to_owned));
    }
    let ends = documents.last().is_some_and(|last| last.get("why").or(last.get("wrong")).is_some());
    if !ends {
        transcript.fault("why_last", "the last event does not end the answer");
    }
}
