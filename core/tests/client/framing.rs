//! The decoder against tests/vectors/sse/framing.json.

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
    retry_ms: Vec<u64>,
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
fn every_framing_vector_decodes_as_it_says() {
    for case in vectors::read::<Case>("sse/framing.json") {
        let mut decoder = Decoder::new().with_comments(true);
        let mut items = Vec::new();
        for packet in &case.chunks {
            decoder.feed(&packet.bytes(), &mut items).unwrap();
        }
        let (mut events, mut comments, mut retry_ms) = (Vec::new(), Vec::new(), Vec::new());
        for item in items {
            match item {
                Item::Event(event) => events.push(Event::from(event)),
                Item::Comment(text) => comments.push(text),
                Item::Retry(ms) => retry_ms.push(ms),
                _ => {}
            }
        }
        assert_eq!(events, case.events, "{}", case.name);
        assert_eq!(comments, case.comments, "{}", case.name);
        assert_eq!(retry_ms, case.retry_ms, "{}", case.name);
        assert_eq!(decoder.finish().map(Event::from), case.unterminated, "{}", case.name);
    }
}
