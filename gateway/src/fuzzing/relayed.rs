//! A relayed stream: the client's bytes and the usage don't depend on packet boundaries, and the bytes are
//! the upstream's, except for the model name and the usage that only the gateway requested.

use bytes::Bytes;
use gatewright_protocol::conversation::Protocol;
use serde_json::Value;

use super::PROTOCOLS;
use crate::relay::cut::{CutOutcome, CutResult, Fields, MODEL, StreamHandling, lines_of_blocks, take};

/// Relays an upstream's stream. The first byte names the protocol, the second whether the usage is hidden and whether the
/// client reads an array, the third the packet size. Returns the length of the client's data in bytes; `None`: nothing was relayed.
///
/// # Panics
///
/// If the client gets anything else than the upstream sent, or if that depends on packet boundaries; if usage or end differ
/// from those that the protocol's reader finds.
pub fn relay(input: &[u8]) -> Option<usize> {
    let (&[protocol, form, size], stream) = input.split_first_chunk()?;
    let protocol = PROTOCOLS[usize::from(protocol) % PROTOCOLS.len()];
    let (hide_usage, array) = (form & 1 == 1, form & 2 == 2 && protocol == Protocol::Native);
    let way = StreamHandling::Passed { hide_usage, array };
    let in_packets =
        |way, size: usize| take(protocol, way, stream.chunks(size.max(1)).map(Bytes::copy_from_slice));
    let whole = in_packets(way, stream.len());
    for size in [1, 2 + usize::from(size)] {
        let cut = in_packets(way, size);
        assert_eq!((cut.end, cut.usage), (whole.end, whole.usage), "in packets of {size} bytes");
        assert_eq!(lines_of_blocks(&cut.out), lines_of_blocks(&whole.out), "in packets of {size} bytes");
    }
    if !array {
        is_as_it_came(protocol, hide_usage, stream, &whole);
    }
    let read = in_packets(StreamHandling::Read, stream.len());
    // Events that the reader cannot parse are relayed anyway.
    if read.end != CutOutcome::Unread && !has_odd_choices(stream) {
        // A malformed error is still an error; the reader treats it as an early end.
        let is_failure = (whole.end, read.end) == (CutOutcome::Failed, CutOutcome::Early);
        assert!(whole.end == read.end || is_failure, "{:?} and {:?} by the reader", whole.end, read.end);
        if whole.end == CutOutcome::Whole && reports_usage_plainly(protocol, stream) {
            assert_eq!(whole.usage, read.usage, "the reader of {protocol:?} reads another usage");
        }
    }
    (!whole.out.is_empty()).then_some(whole.out.len())
}

fn is_as_it_came(protocol: Protocol, hide_usage: bool, stream: &[u8], taken: &CutResult) {
    let (came, passed) = (lines_of_blocks(stream), lines_of_blocks(&taken.out));
    let mut passed = passed.iter();
    let mut next = passed.next();
    let mut has_ended = false;
    for (number, block) in came.iter().enumerate() {
        if next.is_some_and(|passed| is_same(block, passed)) {
            has_ended = has_ended || is_last_word(protocol, block);
            next = passed.next();
            continue;
        }
        let is_hidden = hide_usage && protocol == Protocol::Chat && tells_usage(block);
        let is_after_failure = taken.end == CutOutcome::Failed && next.is_none();
        // Its end is missing.
        let is_unterminated = number + 1 == came.len();
        let text = |block: &[&[u8]]| String::from_utf8_lossy(&block.join(&b'\n')).into_owned();
        assert!(
            is_hidden || is_after_failure || has_ended || is_unterminated,
            "{:?} comes as {:?}",
            text(block),
            next.map(|passed| text(passed))
        );
    }
    let last: Option<&Vec<&[u8]>> = next;
    let is_added = last.is_none_or(|last| protocol == Protocol::Chat && **last == [&b"data: [DONE]"[..]]);
    assert!(is_added && passed.next().is_none(), "more passes than came");
}

/// Whether a block ends its stream: nothing after it is relayed.
fn is_last_word(protocol: Protocol, block: &[&[u8]]) -> bool {
    let text = block.join(&b'\n');
    let fields = Fields::read(&text);
    let data = fields.data.map(|(data, _)| data).unwrap_or_default();
    let event: Value = serde_json::from_str(&data).unwrap_or_default();
    let kind = event["type"].as_str();
    let named = fields.name.unwrap_or_default();
    match protocol {
        Protocol::Chat => data.trim() == "[DONE]",
        Protocol::Responses => {
            event.is_object() && matches!(kind.unwrap_or(named), "response.completed" | "response.incomplete")
        }
        Protocol::Messages => {
            let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or(named);
            event.is_object() && named != "ping" && kind == "message_stop"
        }
        _ => false,
    }
}

/// Whether a block is unchanged except for one string, the model name.
fn is_same(came: &[&[u8]], passed: &[&[u8]]) -> bool {
    let (came, passed) = (came.join(&b'\n'), passed.join(&b'\n'));
    if came == passed {
        return true;
    }
    // A usage chunk gets a list of choices, which some providers omit.
    if let (Ok(mut came), Ok(passed)) = (data_of(&came), data_of(&passed))
        && came["choices"].is_null()
        && passed["choices"].as_array().is_some_and(Vec::is_empty)
    {
        came["choices"] = Value::Array(Vec::new());
        if !passed["model"].is_null() {
            came["model"] = passed["model"].clone();
        }
        return came == passed;
    }
    let name = format!("\"{MODEL}\"");
    let mut places = (0..passed.len()).filter(|at| passed[*at..].starts_with(name.as_bytes()));
    places.any(|at| {
        let rest = &passed[at + name.len()..];
        came.starts_with(&passed[..at])
            && came.len() >= at + rest.len()
            && came.ends_with(rest)
            && serde_json::from_slice::<String>(&came[at..came.len() - rest.len()]).is_ok()
    })
}

/// The JSON of a block with one data line.
fn data_of(block: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(block.strip_prefix(b"data:").unwrap_or(block))
}

/// Whether a stream reports its usage in the protocol's place and number of times: the gateway accepts it anywhere.
fn reports_usage_plainly(protocol: Protocol, stream: &[u8]) -> bool {
    let (mut reports, mut starts) = (0, 0);
    for block in lines_of_blocks(stream) {
        let data = value_of(&block);
        let kind = data["type"].as_str().unwrap_or_default();
        let in_event = !data["usage"].is_null() || !data["usageMetadata"].is_null();
        let in_object = !data["response"]["usage"].is_null() || !data["message"]["usage"].is_null();
        let is_plain = match protocol {
            // Nothing after the end is read.
            Protocol::Responses => !in_event && in_object == (kind == "response.completed"),
            Protocol::Messages => {
                (!in_event || kind == "message_delta") && (!in_object || kind == "message_start")
            }
            _ => !in_object,
        };
        reports += usize::from(in_event || in_object);
        // The reader ignores a second start.
        let text = block.join(&b'\n');
        starts += usize::from(kind == "message_start" || Fields::read(&text).name == Some("message_start"));
        if !is_plain || starts > 1 {
            return false;
        }
    }
    reports <= if protocol == Protocol::Messages { 2 } else { 1 }
}

/// Whether a choice of a stream is not an object: whether it counts as started is undefined.
fn has_odd_choices(stream: &[u8]) -> bool {
    let is_odd = |data: &Value| {
        let mut choices =
            ["choices", "candidates"].into_iter().filter_map(|name| data[name].as_array()).flatten();
        !choices.all(Value::is_object)
    };
    lines_of_blocks(stream).iter().any(|block| is_odd(&value_of(block)))
}

/// The data of a block.
fn value_of(block: &[&[u8]]) -> Value {
    let text = block.join(&b'\n');
    let data = Fields::read(&text).data.map(|(data, _)| data).unwrap_or_default();
    serde_json::from_str(&data).unwrap_or_default()
}

/// Whether a chat chunk contains only the usage.
fn tells_usage(block: &[&[u8]]) -> bool {
    let chunk = value_of(block);
    let has_choices = chunk["choices"].as_array().is_some_and(|choices| !choices.is_empty());
    !chunk["usage"].is_null() && !has_choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_each_protocol_pass_in_packets_of_any_size() {
        let chat = "data: {\"model\":\"theirs\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
                    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\r\n\r\ndata: [DONE]\n\n";
        let native = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}],\"modelVersion\":\"theirs\"}";
        for size in 0..64 {
            assert!(relay(&[&[0, 0, size], chat.as_bytes()].concat()).is_some());
            assert!(relay(&[&[0, 1, size], chat.as_bytes()].concat()).is_some());
            assert!(relay(&[&[3, 2, size], native.as_bytes()].concat()).is_some());
            assert!(relay(&[&[2, 0, size], &b": ping\n\n: pong"[..]].concat()).is_some());
        }
        assert!(relay(&[0, 0]).is_none());
    }

    #[test]
    fn changed_text_is_detected() {
        let same = |came: &str, passed: &str| is_same(&[came.as_bytes()], &[passed.as_bytes()]);
        assert!(same(r#"data: {"model":"theirs"}"#, r#"data: {"model":"mine"}"#));
        assert!(!same(r#"data: {"model":"theirs","a":1}"#, r#"data: {"model":"mine","a":2}"#));
        assert!(!same(r#"data: {"model":["a","b"]}"#, r#"data: {"model":["mine"]}"#));
    }
}
