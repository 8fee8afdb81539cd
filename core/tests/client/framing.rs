//! Tests the decoder against tests/vectors/sse/framing.json.

use gatewright::StreamEvent;
use gatewright::sse::{Decoder, Item};
use serde::Deserialize;

use crate::vectors::{self, Packet};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    chunks: Vec<Packet>,
    events: Vec<Event>,
    comments: Vec<String>,
    retry_ms: Vec<u128>,
    unterminated: Option<Event>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "named as in the vectors")]
struct Event {
    event: Option<String>,
    data: String,
    id: Option<String>,
}

impl From<StreamEvent> for Event {
    fn from(StreamEvent { event, data, id }: StreamEvent) -> Self {
        Self { event, data, id: id.as_deref().map(str::to_owned) }
    }
}

#[test]
fn every_framing_vector_decodes_as_expected() {
    for case in vectors::read::<Case>("sse/framing.json") {
        let (items, rest) = decode(&case, Decoder::new());
        let events = items.into_iter().filter_map(|item| match item {
            Item::Event(event) => Some(Event::from(event)),
            _ => None,
        });
        assert_eq!(events.collect::<Vec<_>>(), case.events, "{}", case.name);
        assert_eq!(rest.map(Event::from), case.unterminated, "{}", case.name);
    }
}

#[test]
fn every_framing_vector_yields_frames_with_comments_and_retries() {
    for case in vectors::read::<Case>("sse/framing.json") {
        let (items, _) = decode(&case, Decoder::new().with_frames(true));
        let (mut events, mut comments, mut retry_ms) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            let Item::Frame(frame) = item else { continue };
            comments.extend(frame.comments);
            retry_ms.extend(frame.retry.map(|retry| retry.as_millis()));
            events.extend(frame.data.map(|data| Event {
                event: frame.event,
                data,
                id: frame.id.as_deref().map(str::to_owned),
            }));
        }
        assert_eq!(events, case.events, "{}", case.name);
        // The decoder removes the space after the colon from comments.
        let expected: Vec<&str> =
            case.comments.iter().map(|text| text.strip_prefix(' ').unwrap_or(text)).collect();
        assert_eq!(comments, expected, "{}", case.name);
        assert_eq!(retry_ms, case.retry_ms, "{}", case.name);
    }
}

fn decode(case: &Case, mut decoder: Decoder) -> (Vec<Item>, Option<StreamEvent>) {
    let mut items = Vec::new();
    for packet in &case.chunks {
        decoder.feed(&packet.bytes(), &mut items).unwrap();
    }
    (items, decoder.finish())
}
