//! The text level: the new text of the first choice in each chunk. A well-formed chunk takes one scan of its text; any
//! other is parsed and searched.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use crate::api::operation::Protocol;
use crate::wire::repair;

/// The new text of a chunk, if it has any. Errors: the data is not JSON.
pub(super) fn text(protocol: Protocol, data: &str) -> Result<Option<String>, serde_json::Error> {
    let plain = match protocol {
        Protocol::Chat => serde_json::from_str(data).map(chat),
        Protocol::Responses => serde_json::from_str(data).map(responses),
        Protocol::Messages => serde_json::from_str(data).map(messages),
        Protocol::Native => serde_json::from_str(data).map(native),
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => Ok(None),
    };
    let text = match plain {
        Ok(text) => text.map(Cow::into_owned),
        Err(_) => search(protocol, repair::value(data)?),
    };
    Ok(text.filter(|text| !text.is_empty()))
}

#[derive(Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow)]
    choices: Vec<ChatChoice<'a>>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    index: u64,
    #[serde(borrow)]
    delta: ChatDelta<'a>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

fn chat(chunk: ChatChunk<'_>) -> Option<Cow<'_, str>> {
    chunk.choices.into_iter().find(|choice| choice.index == 0)?.delta.content
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<Cow<'a, str>>,
}

const TEXT_EVENT: &str = "response.output_text.delta";

fn responses(event: Event<'_>) -> Option<Cow<'_, str>> {
    event.delta.filter(|_| event.r#type == TEXT_EVENT)
}

#[derive(Deserialize)]
struct MessagesEvent<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    delta: Option<MessagesBlock<'a>>,
    /// In the first event; without content unless the server does not stream.
    #[serde(borrow)]
    message: Option<StartedMessage<'a>>,
}

#[derive(Deserialize)]
struct StartedMessage<'a> {
    #[serde(borrow)]
    content: Vec<MessagesBlock<'a>>,
}

/// A block, or a piece of one.
#[derive(Deserialize)]
struct MessagesBlock<'a> {
    #[serde(borrow)]
    r#type: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'a> MessagesBlock<'a> {
    fn text_of_kind(self, kind: &str) -> Option<Cow<'a, str>> {
        self.text.filter(|_| self.r#type.as_deref() == Some(kind))
    }
}

const PIECE_EVENT: &str = "content_block_delta";
const TEXT_DELTA: &str = "text_delta";

fn messages(piece: MessagesEvent<'_>) -> Option<Cow<'_, str>> {
    if let Some(message) = piece.message {
        let texts = message.content.into_iter().filter_map(|block| block.text_of_kind("text"));
        return texts.reduce(|text, more| text + more);
    }
    piece.delta.filter(|_| piece.r#type == PIECE_EVENT)?.text_of_kind(TEXT_DELTA)
}

#[derive(Deserialize)]
struct NativeContent<'a> {
    #[serde(borrow)]
    candidates: Vec<NativeCandidate<'a>>,
}

#[derive(Deserialize)]
struct NativeCandidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<NativeParts<'a>>,
}

#[derive(Deserialize)]
struct NativeParts<'a> {
    #[serde(borrow)]
    parts: Vec<NativePart<'a>>,
}

#[derive(Deserialize)]
struct NativePart<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    thought: Option<bool>,
}

fn native(content: NativeContent<'_>) -> Option<Cow<'_, str>> {
    let first = content.candidates.into_iter().find(|candidate| candidate.index.unwrap_or(0) == 0)?;
    let parts = first.content?.parts.into_iter().filter(|part| part.thought != Some(true));
    parts.filter_map(|part| part.text).reduce(|text, more| text + more)
}

/// The same for a chunk that deviates from its shape.
fn search(protocol: Protocol, mut chunk: Value) -> Option<String> {
    let first = |list: &mut Value| {
        let index = |entry: &Value| entry.get("index").and_then(Value::as_u64).unwrap_or(0);
        let entries = list.as_array_mut()?.iter_mut();
        entries.into_iter().find(|entry| index(entry) == 0).map(Value::take)
    };
    match protocol {
        Protocol::Chat => {
            let mut choice = first(chunk.get_mut("choices")?)?;
            let has = |choice: &Value, name: &str| choice.get(name).is_some_and(Value::is_object);
            let holder = ["delta", "message"].into_iter().find(|name| has(&choice, name));
            match holder {
                Some(holder) => text_of(choice[holder].get_mut("content")?.take()),
                None => text_of(choice.get_mut("text")?.take()),
            }
        }
        Protocol::Responses => (chunk.get("type")? == TEXT_EVENT).then(|| text_of(chunk["delta"].take()))?,
        Protocol::Messages => {
            if let Some(content) = chunk.pointer_mut("/message/content") {
                let Value::Array(blocks) = content.take() else { return None };
                return Some(
                    blocks.into_iter().filter(|block| block["type"] == "text").filter_map(text_of).collect(),
                );
            }
            let mut delta = chunk.get_mut("delta")?.take();
            let is_text = chunk["type"] == PIECE_EVENT && delta.get("type")? == TEXT_DELTA;
            is_text.then(|| text_of(delta["text"].take()))?
        }
        Protocol::Native => {
            let mut candidate = first(chunk.get_mut("candidates")?)?;
            let parts = candidate.get_mut("content")?.get_mut("parts")?.take();
            let Value::Array(parts) = parts else { return None };
            let spoken = parts.into_iter().filter(|part| part.get("thought") != Some(&Value::Bool(true)));
            Some(spoken.filter_map(text_of).collect())
        }
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => None,
    }
}

/// Converts what should be a text: a text is returned as it is, the text parts of a list are joined, a part gives its
/// text, and a number is returned as written.
pub(super) fn text_of(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Array(parts) => {
            let is_empty = parts.is_empty();
            let texts: Vec<String> = parts.into_iter().filter_map(text_of).collect();
            (is_empty || !texts.is_empty()).then(|| texts.concat())
        }
        Value::Object(mut part) => match part.remove("text")? {
            // {"text": {"value": "…"}}, as in one old protocol.
            Value::Object(mut inner) => inner.remove("value").and_then(text_of),
            text => text_of(text),
        },
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(_) | Value::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(protocol: Protocol, data: &str) -> Option<String> {
        text(protocol, data).expect("JSON")
    }

    #[test]
    fn chat_text_is_the_first_choices_content() {
        let chat = |data| of(Protocol::Chat, data);
        let two =
            r#"{"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a\n"}}]}"#;
        assert_eq!(chat(two).as_deref(), Some("a\n"));
        assert_eq!(chat(r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#), None);
        assert_eq!(chat(r#"{"choices":[{"index":0,"delta":{"content":""}}]}"#), None);
        assert_eq!(chat(r#"{"choices":[]}"#), None);
    }

    #[test]
    fn chat_text_is_found_in_deviating_chunks() {
        let chat = |data| of(Protocol::Chat, data);
        let parts = r#"{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}]}"#;
        assert_eq!(chat(parts).as_deref(), Some("ab"));
        assert_eq!(chat(r#"{"choices":[{"message":{"content":"a"}}]}"#).as_deref(), Some("a"));
        assert_eq!(chat(r#"{"choices":[{"delta":null,"text":"a"}]}"#).as_deref(), Some("a"));
        assert_eq!(
            chat(r#"{"choices":[{"delta":{"content":"\ud800"}}],"x":NaN}"#).as_deref(),
            Some("\u{FFFD}")
        );
        assert_eq!(chat(r#"{"choices":null}"#), None);
        assert_eq!(chat("[]"), None);
    }

    #[test]
    fn responses_text_comes_only_from_text_events() {
        let responses = |data| of(Protocol::Responses, data);
        assert_eq!(responses(r#"{"type":"response.output_text.delta","delta":"a"}"#).as_deref(), Some("a"));
        assert_eq!(responses(r#"{"type":"response.function_call_arguments.delta","delta":"a"}"#), None);
        assert_eq!(
            responses(r#"{"type":"response.output_text.delta","delta":{"text":"a"}}"#).as_deref(),
            Some("a")
        );
    }

    #[test]
    fn messages_text_comes_only_from_text_deltas() {
        let messages = |data: &str| of(Protocol::Messages, data);
        let piece = r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}"#;
        assert_eq!(messages(piece).as_deref(), Some("a\n"));
        let thought = r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#;
        assert_eq!(messages(thought), None);
        assert_eq!(messages(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#), None);
        assert_eq!(messages(r#"{"type":"ping"}"#), None);
        let blocks =
            r#"[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        let whole = format!(r#"{{"type":"message_start","message":{{"content":{blocks}}}}}"#);
        assert_eq!(messages(&whole).as_deref(), Some("ab"));
        let in_parts = whole.replace("\"a\"", "[\"a\"]");
        assert_eq!(messages(&in_parts).as_deref(), Some("ab"));
        let deviating = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":["a","b"]}}"#;
        assert_eq!(messages(deviating).as_deref(), Some("ab"));
    }

    #[test]
    fn native_text_excludes_thoughts() {
        let native = |data| of(Protocol::Native, data);
        let parts = r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"a"},{"text":"b"}]}}]}"#;
        assert_eq!(native(parts).as_deref(), Some("ab"));
        let deviating =
            r#"{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":["a"]},null]}}]}"#;
        assert_eq!(native(deviating).as_deref(), Some("a"));
        assert_eq!(native(r#"{"usageMetadata":{}}"#), None);
    }

    #[test]
    fn invalid_json_is_an_error() {
        assert!(text(Protocol::Chat, "{").is_err());
    }
}
