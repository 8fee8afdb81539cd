//! Streams as a provider sends them, cut anywhere.

use serde_json::{Value, json};

use super::*;
use crate::wire::event_stream::encode;

/// What a stream emits that arrives in packets of a size, and how it ends.
fn read(stream: &[u8], size: usize) -> (Vec<String>, Result<(), StreamEnd>) {
    let (mut events, mut blocks) = (BinaryEvents::default(), Vec::new());
    for packet in stream.chunks(size) {
        let emit = |block: Bytes| blocks.push(String::from_utf8(block.to_vec()).expect("text"));
        if let Err(end) = events.push(packet, emit) {
            return (blocks, Err(end));
        }
    }
    (blocks, events.finish().map_err(StreamEnd::Malformed))
}

fn chunk(document: &str) -> Vec<u8> {
    let payload = json!({ "bytes": STANDARD.encode(document), "p": "abcd" });
    event("chunk", &payload)
}

fn event(name: &str, payload: &Value) -> Vec<u8> {
    encode(&[(":message-type", "event"), (":event-type", name)], payload.to_string().as_bytes())
}

fn exception(name: &str, payload: &str) -> Vec<u8> {
    encode(&[(":message-type", "exception"), (":exception-type", name)], payload.as_bytes())
}

#[test]
fn chunks_unwrap_to_events_across_packet_boundaries() {
    let stream = [
        chunk(r#"{"type":"message_start","message":{"model":"m"}}"#),
        chunk("{\n  \"type\": \"ping\"\r\n}"),
        chunk(r#"{"choices":[]}"#),
    ]
    .concat();
    let expected = [
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"m\"}}\n\n",
        "event: ping\ndata: {   \"type\": \"ping\"  }\n\n",
        "data: {\"choices\":[]}\n\n",
    ];
    for size in 1..=stream.len() {
        let (blocks, end) = read(&stream, size);
        assert_eq!(blocks, expected, "packets of {size} bytes");
        assert!(end.is_ok());
    }
}

#[test]
fn provider_events_keep_their_names() {
    let stream = event("contentBlockDelta", &json!({ "delta": { "text": "a" } }));
    let (blocks, _) = read(&stream, stream.len());
    assert_eq!(blocks, ["event: contentBlockDelta\ndata: {\"delta\":{\"text\":\"a\"}}\n\n"]);
}

#[test]
fn invalid_event_name_is_omitted() {
    for name in ["a\nb", "a b", "", &"x".repeat(MAX_NAME_BYTES + 1)] {
        let (blocks, _) = read(&chunk(&json!({ "type": name }).to_string()), 1000);
        assert_eq!(blocks, [format!("data: {}\n\n", json!({ "type": name }))], "{name:?}");
    }
    let longest = "x".repeat(MAX_NAME_BYTES);
    let (blocks, _) = read(&chunk(&json!({ "type": longest }).to_string()), 1000);
    assert!(blocks[0].starts_with(&format!("event: {longest}\ndata: ")));
}

#[test]
fn exception_becomes_an_error_of_its_kind_after_earlier_events() {
    for (name, kind) in [
        ("throttlingException", FailureKind::RateLimited),
        ("ThrottlingException", FailureKind::RateLimited),
        ("validationException", FailureKind::InvalidRequest),
        ("accessDeniedException", FailureKind::PermissionDenied),
        ("resourceNotFoundException", FailureKind::NotFound),
        ("modelTimeoutException", FailureKind::Timeout),
        ("serviceUnavailableException", FailureKind::Overloaded),
        ("serviceQuotaExceededException", FailureKind::QuotaExceeded),
        ("ExpiredTokenException", FailureKind::Authentication),
        ("internalServerException", FailureKind::Server),
        ("modelStreamErrorException", FailureKind::Server),
        ("newException", FailureKind::Server),
    ] {
        let stream = [chunk("{}"), exception(name, r#"{"message":"the reason"}"#), chunk("{}")].concat();
        let (blocks, end) = read(&stream, stream.len());
        assert_eq!(blocks.len(), 1, "{name}");
        let Err(StreamEnd::Reported(failure)) = end else { panic!("{name}: {end:?}") };
        assert_eq!((failure.kind, &*failure.message), (kind, "the reason"), "{name}");
    }
    for payload in ["", "{}", "[]", r#"{"message":null}"#] {
        let (_, end) = read(&exception("throttlingException", payload), 1000);
        let Err(StreamEnd::Reported(failure)) = end else { panic!("{payload}: {end:?}") };
        assert!(failure.message.contains("throttlingException"), "{}", failure.message);
    }
    let error =
        encode(&[(":message-type", "error"), (":error-code", "Throttling"), (":error-message", "no")], b"");
    let (_, end) = read(&error, 1000);
    assert!(matches!(end, Err(StreamEnd::Reported(failure)) if failure.kind == FailureKind::RateLimited));
}

#[test]
fn chunk_without_content_and_truncated_message_are_malformed() {
    for payload in [json!({}), json!({ "bytes": "no base64" }), json!({ "bytes": 1 }), json!([])] {
        let (blocks, end) = read(&event("chunk", &payload), 1000);
        assert!(blocks.is_empty());
        assert!(matches!(end, Err(StreamEnd::Malformed(Malformed::NoContent))), "{payload}: {end:?}");
    }
    let stream = chunk("{}");
    let (_, end) = read(&stream[..stream.len() - 1], 1000);
    assert!(matches!(end, Err(StreamEnd::Malformed(Malformed::EventStream(_)))), "{end:?}");
}
