//! Handmade messages, truncated and modified.

use proptest::prelude::*;

use super::*;

/// The value of a header: the byte of its type, then its bytes.
fn header(name: &str, kind: u8, value: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).expect("a short name");
    [&[length], name.as_bytes(), &[kind], value].concat()
}

fn text(name: &str, value: &str) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value").to_be_bytes();
    header(name, 7, &[&length, value.as_bytes()].concat())
}

fn length(of: usize) -> [u8; 4] {
    u32::try_from(of).expect("a length").to_be_bytes()
}

/// A prelude with its checksum.
fn prelude(message: usize, headers: usize) -> Vec<u8> {
    let lengths = [length(message), length(headers)].concat();
    [&lengths[..], &crc32fast::hash(&lengths).to_be_bytes()].concat()
}

fn message(headers: &[Vec<u8>], payload: &[u8]) -> Vec<u8> {
    let headers = headers.concat();
    let mut bytes = prelude(16 + headers.len() + payload.len(), headers.len());
    bytes.extend_from_slice(&headers);
    bytes.extend_from_slice(payload);
    let checksum = crc32fast::hash(&bytes).to_be_bytes();
    bytes.extend_from_slice(&checksum);
    bytes
}

fn event(name: &str, payload: &str) -> Vec<u8> {
    let headers = [
        text(":event-type", name),
        text(":content-type", "application/json"),
        text(":message-type", "event"),
    ];
    message(&headers, payload.as_bytes())
}

/// The messages decoded from chunks, up to the first error.
fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Message>, Result<(), EventStreamError>) {
    let (mut decoder, mut messages) = (Decoder::default(), Vec::new());
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.finish(), Err(error), "an error stays");
                    return (messages, Err(error));
                }
            }
        }
    }
    (messages, decoder.finish())
}

fn error_of(bytes: &[u8]) -> EventStreamError {
    let (messages, end) = decode([bytes]);
    assert_eq!(messages, []);
    end.expect_err("no event stream")
}

/// Two events and an exception.
fn stream() -> (Vec<u8>, Vec<Message>) {
    let exception = [text(":message-type", "exception"), text(":exception-type", "throttlingException")];
    let bytes = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event("ping", ""),
        message(&exception, br#"{"message":"slow down"}"#),
    ];
    let payload = Bytes::from_static;
    let messages = vec![
        Message::Event { name: "messageStart".to_owned(), payload: payload(br#"{"role":"assistant"}"#) },
        Message::Event { name: "ping".to_owned(), payload: Bytes::new() },
        Message::Exception {
            name: "throttlingException".to_owned(),
            payload: payload(br#"{"message":"slow down"}"#),
        },
    ];
    (bytes.concat(), messages)
}

#[test]
fn messages_decode_across_any_packet_boundary() {
    let (bytes, messages) = stream();
    for at in 0..=bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(decode([head, tail]), (messages.clone(), Ok(())), "cut at {at}");
    }
    assert_eq!(decode(bytes.chunks(1)), (messages, Ok(())));
}

#[test]
fn stream_ending_within_a_message_is_truncated() {
    let bytes = event("ping", "{}");
    for end in 1..bytes.len() {
        assert_eq!(decode([&bytes[..end]]), (vec![], Err(EventStreamError::Truncated)), "ends at {end}");
    }
    assert_eq!(decode([]), (vec![], Ok(())));
}

#[test]
fn any_changed_byte_fails_the_checksum() {
    let (bytes, messages) = stream();
    for at in 0..bytes.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            let (decoded, end) = decode([&changed[..]]);
            assert_eq!(end, Err(EventStreamError::Checksum), "byte {at}");
            assert!(messages.starts_with(&decoded) && decoded.len() < messages.len(), "byte {at}");
        }
    }
}

#[test]
fn checksums_match_published_messages() {
    let empty = b"\x00\x00\x00\x10\x00\x00\x00\x00\x05\xc2\x48\xeb\x7d\x98\xc8\xff";
    assert_eq!(message(&[], b""), empty);
    let integer = [header("event-type", 4, &[0, 0, 0xa0, 0x0c])];
    let published = b"\x00\x00\x00\x2d\x00\x00\x00\x10\x41\xc4\x24\xb8\x0aevent-type\x04\x00\x00\xa0\x0c{'foo':'bar'}\x36\xf4\x80\xa0";
    assert_eq!(message(&integer, b"{'foo':'bar'}"), published);
    // Their checksums are valid, but they have no message type.
    assert_eq!(error_of(empty), EventStreamError::NoType);
    assert_eq!(error_of(published), EventStreamError::NoType);
}

#[test]
fn headers_of_every_type_are_skipped() {
    let headers = [
        header("true", 0, b""),
        header("false", 1, b""),
        header("byte", 2, &[1]),
        header("short", 3, &[0; 2]),
        header("int", 4, &[0; 4]),
        header("long", 5, &[0; 8]),
        header("bytes", 6, &[0, 3, 0xff, 0xfe, 0xfd]),
        text("text", "more"),
        header("time", 8, &[0; 8]),
        header("uuid", 9, &[0; 16]),
        text(":message-type", "event"),
        text(":event-type", "chunk"),
    ];
    let expected = Message::Event { name: "chunk".to_owned(), payload: Bytes::from_static(b"{}") };
    assert_eq!(decode([&message(&headers, b"{}")[..]]), (vec![expected], Ok(())));
}

#[test]
fn stream_error_has_its_code_and_a_bounded_message() {
    let long = "é".repeat(MAX_ERROR_BYTES);
    let headers =
        [text(":message-type", "error"), text(":error-code", "InternalError"), text(":error-message", &long)];
    let (messages, end) = decode([&message(&headers, b"")[..]]);
    assert_eq!(end, Ok(()));
    let message = "é".repeat(MAX_ERROR_BYTES / 2);
    assert_eq!(messages, [Message::Error { code: "InternalError".to_owned(), message }]);
}

#[test]
fn lengths_are_checked_before_their_bytes_arrive() {
    assert_eq!(error_of(&prelude(MAX_MESSAGE_BYTES + 1, 0)), EventStreamError::MessageTooLong);
    assert_eq!(error_of(&prelude(u32::MAX as usize, u32::MAX as usize)), EventStreamError::MessageTooLong);
    assert_eq!(
        error_of(&prelude(MAX_MESSAGE_BYTES, MAX_HEADERS_BYTES + 1)),
        EventStreamError::HeadersTooLong
    );
    for (message, headers) in [(0, 0), (15, 0), (16, 1), (100, 85)] {
        assert_eq!(error_of(&prelude(message, headers)), EventStreamError::Length, "{message}, {headers}");
    }
    assert_eq!(decode([&prelude(MAX_MESSAGE_BYTES, 0)[..]]), (vec![], Err(EventStreamError::Truncated)));
}

#[test]
fn malformed_headers_are_errors() {
    use EventStreamError::{Duplicate, Header, HeaderType, NoType, TooManyHeaders};

    let kind = || text(":message-type", "event");
    for (headers, error) in [
        (vec![header("a", 10, b"")], HeaderType(10)),
        (vec![header("a", 255, b"")], HeaderType(255)),
        (vec![header("", 0, b"")], Header),
        (vec![vec![5, b'a']], Header),
        (vec![vec![1, b'a']], Header),
        (vec![header("a", 5, &[0; 7])], Header),
        (vec![header("a", 7, &[0])], Header),
        (vec![header("a", 7, &[0, 9, b'x'])], Header),
        (vec![header(":message-type", 0, b"")], Header),
        (vec![header(":message-type", 7, &[0, 1, 0xff])], Header),
        (vec![kind(), kind()], Duplicate),
        (vec![kind()], NoType),
        (vec![text(":message-type", "other"), text(":event-type", "a")], NoType),
        (vec![text(":message-type", "exception"), text(":event-type", "a")], NoType),
        (vec![header("a", 0, b""); MAX_HEADERS + 1], TooManyHeaders),
    ] {
        assert_eq!(error_of(&message(&headers, b"{}")), error, "{headers:?}");
    }
}

proptest! {
    /// The checksums are valid, so the headers are parsed.
    #[test]
    fn arbitrary_headers_are_a_message_or_an_error(
        headers in proptest::collection::vec(any::<u8>(), 0..200),
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let (messages, end) = decode([&message(&[headers], &payload)[..]]);
        prop_assert_eq!(messages.len(), usize::from(end.is_ok()));
    }

    #[test]
    fn arbitrary_bytes_decode_alike_whole_and_in_chunks(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        size in 1..40_usize,
    ) {
        let whole = decode([&bytes[..]]);
        let pieces = decode(bytes.chunks(size));
        prop_assert_eq!(whole, pieces);
    }
}
