//! Event streams: whatever the bytes and however they are cut into packets, the decoder gives the same items, does
//! not panic, and hands out no more than it was given.

#![no_main]

use gatewright::sse::{Decoder, Item, StreamEvent};
use libfuzzer_sys::fuzz_target;

type Decoded = (Vec<Item>, Option<StreamEvent>);

fuzz_target!(|stream: &[u8]| {
    let decoders: [fn() -> Decoder; 2] = [Decoder::new, || Decoder::new().with_frames(true)];
    for decoder in decoders {
        let whole = decode(decoder(), [stream]);
        assert_eq!(whole, decode(decoder(), stream.chunks(1)), "one byte at a time");
        assert_eq!(whole, decode(decoder(), cut(stream)), "in packets of several sizes");
        assert!(text_bytes(&whole) <= 3 * stream.len(), "an event repeats what was sent once");
    }
});

fn decode<'a>(mut decoder: Decoder, packets: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let mut items = Vec::new();
    for packet in packets {
        decoder.feed(packet, &mut items).expect("the input is shorter than the bound");
    }
    (items, decoder.finish())
}

/// Packets whose sizes the stream's own bytes choose, so that the search finds the cuts as well.
fn cut(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let last = *rest.last()?;
        let (packet, after) = rest.split_at(usize::from(last % 7 + rest[0] % 5).min(rest.len()).max(1));
        rest = after;
        Some(packet)
    })
}

/// Bytes of text in the events; ids aside, which the standard repeats. A malformed byte becomes three.
fn text_bytes((items, rest): &Decoded) -> usize {
    let event = |event: &StreamEvent| event.data.len() + event.event.as_ref().map_or(0, String::len);
    let item = |item: &Item| match item {
        Item::Event(inner) => event(inner),
        Item::Frame(frame) => {
            let texts = frame.data.iter().chain(&frame.event).chain(&frame.comments);
            texts.map(String::len).sum()
        }
        Item::Unknown(text) => text.len(),
        _ => 0,
    };
    items.iter().map(item).sum::<usize>() + rest.as_ref().map_or(0, event)
}
