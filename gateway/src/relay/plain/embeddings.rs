//! Embeddings: the request for an upstream of the native protocol, and the answers of both forms. Servers ignore `encoding_format`,
//! omit the usage or the positions, or return the vectors in another order. Vectors stay text unless their encoding changes.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::{items, members, string};
use gatewright_protocol::{EmbeddingsCodec, EncodedRequest, ProviderEmbeddings};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AnswerForm, AnswerHead, Answered, ListForm, Passed, PassedAnswer, Unusable, of_input, take};
use crate::bounds::memory_budget::Reservation;
use crate::relay::document::MAX_BYTES;
use crate::wire::ApiError;

/// How much memory another encoding takes at most, in sizes of the answer. Three bytes of base64 become a number of up to 15.
const GROWTH: usize = 4;
/// Maximum number of numbers of a vector whose encoding changes.
const MAX_NUMBERS: usize = 65_536;

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EmbeddingForm {
    /// Number of vectors.
    vectors: usize,
    /// Whether they are base64.
    base64: bool,
}

impl EmbeddingForm {
    /// Of a valid request.
    pub(super) fn of(request: &Value) -> Self {
        let vectors = match &request["input"] {
            Value::Array(inputs) if !inputs.first().is_some_and(Value::is_number) => inputs.len(),
            _ => 1,
        };
        Self { vectors, base64: request["encoding_format"] == "base64" }
    }
}

/// The request in the form of an upstream's protocol. Errors: it has tokens.
pub(in crate::relay) fn written(
    protocol: Protocol,
    codec: EmbeddingsCodec,
    request: &Value,
    model: &str,
) -> Result<EncodedRequest, ApiError> {
    (codec.request)(request, model).map_err(|_| {
        let kind = protocol.name();
        let message =
            format!("the model's provider, of the kind {kind}, cannot embed tokens; send input as text");
        ApiError::new(&ErrorCode::INVALID_VALUE, message).param("input")
    })
}

/// A vector of an answer.
struct Entry<'a> {
    /// The object that holds it; none in the native protocol.
    item: Option<&'a RawValue>,
    /// Position that the upstream states.
    index: Option<usize>,
    /// Numbers or base64.
    vector: &'a RawValue,
    /// Whether its object can stay as it is.
    is_whole: bool,
}

impl AnswerForm for EmbeddingForm {
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        match answered.from.embeddings() {
            // The upstream's protocol has a form of its own.
            Some(codec) => self.native(codec, answered, text, share),
            None => answered.relayed(self, document, text, share),
        }
    }
}

impl ListForm for EmbeddingForm {
    fn names(&self) -> &'static [&'static str] {
        &["data"]
    }

    fn noun(&self) -> &'static str {
        "embeddings"
    }

    fn most(&self) -> usize {
        self.vectors
    }

    fn list(
        &self,
        listed: &[&RawValue],
        size: usize,
        share: &mut Reservation,
    ) -> Result<Option<String>, Unusable> {
        let entries = listed.iter().map(|item| Entry::read(item)).collect::<Result<Vec<_>, _>>()?;
        let entries = self.in_order(entries)?;
        take(share, self.room(size, &entries))?;
        if entries.iter().enumerate().all(|(index, entry)| self.conforms(entry, index)) {
            return Ok(None);
        }
        Ok(Some(self.list_of(&entries)?))
    }

    fn head(&self) -> AnswerHead {
        AnswerHead::Object("list")
    }
}

impl EmbeddingForm {
    /// The answer of an upstream of the native protocol.
    fn native(
        &self,
        codec: EmbeddingsCodec,
        answered: &Answered<'_>,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        let ProviderEmbeddings { vectors, input_tokens, extra } =
            (codec.answer)(text, self.vectors).map_err(|malformed| malformed.0)?;
        let entries =
            vectors.into_iter().map(|vector| Entry { item: None, index: None, vector, is_whole: false });
        let entries = self.in_order(entries.collect())?;
        take(share, self.room(text.len(), &entries))?;
        let reported = input_tokens.map(|input| Usage { input: Some(input), ..Usage::default() });
        let mut written = format!(
            "{{\"object\":\"list\",\"data\":{},\"model\":{},\"usage\":{}",
            self.list_of(&entries)?,
            Value::from(answered.model),
            answered.usage(reported.as_ref())
        );
        let extra: Vec<String> =
            extra.iter().map(|(at, value)| format!("{}:{}", Value::from(&**at), value.get())).collect();
        if !extra.is_empty() {
            _ = write!(written, ",\"provider_extra\":{{{}}}", extra.join(","));
        }
        written.push('}');
        Ok(PassedAnswer::new(written.into(), reported.map(of_input)))
    }

    /// The memory of the list for the client. `size`: of the answer, in bytes.
    fn room(&self, size: usize, entries: &[Entry<'_>]) -> usize {
        let changes = entries.iter().any(|entry| is_base64(entry.vector) != self.base64);
        if changes { GROWTH * size } else { size }
    }

    /// The vectors in the order of the inputs. Errors: there is not one for each.
    fn in_order<'e>(&self, mut entries: Vec<Entry<'e>>) -> Result<Vec<Entry<'e>>, String> {
        let (found, wanted) = (entries.len(), self.vectors);
        if found != wanted {
            return Err(format!("has {found} embeddings for {wanted} inputs"));
        }
        let mut stated: Vec<usize> = entries.iter().filter_map(|entry| entry.index).collect();
        stated.sort_unstable();
        if stated.iter().copied().eq(0..wanted) {
            entries.sort_by_key(|entry| entry.index);
        }
        Ok(entries)
    }

    fn conforms(&self, entry: &Entry<'_>, index: usize) -> bool {
        entry.is_whole && entry.index == Some(index) && is_base64(entry.vector) == self.base64
    }

    /// The list for the client. Errors: a vector is not what it should be, or the list is too long.
    fn list_of(&self, entries: &[Entry<'_>]) -> Result<String, String> {
        let mut list = "[".to_owned();
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                list.push(',');
            }
            _ = write!(list, "{{\"object\":\"embedding\",\"index\":{index},\"embedding\":");
            match (is_base64(entry.vector), self.base64) {
                (false, true) => push_base64(&mut list, entry.vector)?,
                (true, false) => push_numbers(&mut list, entry.vector)?,
                _ => list.push_str(entry.vector.get()),
            }
            if let Some(item) = entry.item {
                members(item.get(), |name, value| {
                    if !matches!(name, "object" | "index" | "embedding") {
                        _ = write!(list, ",{}:{}", Value::from(name), value.get());
                    }
                })
                .map_err(|_| "has an embedding that is not an object")?;
            }
            list.push('}');
            if list.len() > MAX_BYTES {
                return Err(format!("is larger than {MAX_BYTES} bytes as the client wants it"));
            }
        }
        list.push(']');
        Ok(list)
    }
}

impl<'a> Entry<'a> {
    fn read(item: &'a RawValue) -> Result<Self, &'static str> {
        let (mut vector, mut index, mut is_whole) = (None, None, false);
        members(item.get(), |name, value| match name {
            "embedding" => vector = Some(value),
            "index" => index = value.get().parse().ok(),
            "object" => is_whole = value.get() == "\"embedding\"",
            _ => {}
        })
        .map_err(|_| "has an embedding that is not an object")?;
        let vector = vector.filter(|vector| vector.get().starts_with(['[', '"']));
        let vector = vector.ok_or("has an embedding without a vector")?;
        Ok(Self { item: Some(item), index, vector, is_whole })
    }
}

fn is_base64(vector: &RawValue) -> bool {
    vector.get().starts_with('"')
}

/// Appends numbers as base64 of 32-bit floats.
fn push_base64(list: &mut String, vector: &RawValue) -> Result<(), String> {
    let malformed = || format!("has a vector that is not of at most {MAX_NUMBERS} 32-bit floats");
    let numbers = items(vector.get(), MAX_NUMBERS).map_err(|_| malformed())?;
    let mut bytes = Vec::with_capacity(4 * numbers.len());
    for number in numbers {
        let number: f32 = number.get().parse().map_err(|_| malformed())?;
        if !number.is_finite() {
            return Err(malformed());
        }
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    list.push('"');
    BASE64_STANDARD.encode_string(bytes, list);
    list.push('"');
    Ok(())
}

/// Appends base64 of 32-bit floats as numbers.
fn push_numbers(list: &mut String, vector: &RawValue) -> Result<(), String> {
    let malformed = || format!("has a vector that is not base64 of at most {MAX_NUMBERS} 32-bit floats");
    let text = string(vector).ok_or_else(malformed)?;
    let bytes = BASE64_STANDARD.decode(&*text).map_err(|_| malformed())?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || numbers.len() > MAX_NUMBERS {
        return Err(malformed());
    }
    list.push('[');
    for (place, number) in numbers.iter().enumerate() {
        let number = f32::from_le_bytes(*number);
        if !number.is_finite() {
            return Err(malformed());
        }
        let comma = if place > 0 { "," } else { "" };
        _ = write!(list, "{comma}{number:?}");
    }
    list.push(']');
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::relay::plain::tests::fits;

    fn passed(from: Protocol, form: (usize, bool), document: &str) -> Result<(String, Option<u64>), String> {
        let form = EmbeddingForm { vectors: form.0, base64: form.1 };
        crate::relay::plain::tests::passed(from, &form, document)
    }

    fn value(from: Protocol, form: (usize, bool), document: &str) -> (Value, Option<u64>) {
        let (text, input) = passed(from, form, document).expect("an answer");
        (serde_json::from_str(&text).expect("JSON"), input)
    }

    #[test]
    fn inputs_of_each_form_are_counted() {
        for (input, vectors) in
            [(json!("a"), 1), (json!(["a", "b"]), 2), (json!([1, 2, 3]), 1), (json!([[1, 2], [3]]), 2)]
        {
            assert_eq!(
                EmbeddingForm::of(&json!({ "input": input })),
                EmbeddingForm { vectors, base64: false }
            );
        }
    }

    #[test]
    fn conforming_answer_keeps_its_bytes_except_the_model() {
        let document = "{ \"object\":\"list\", \"data\":[{\"object\":\"embedding\",\"embedding\":[ 1.50, -2e-3],\
                        \"index\":0,\"x\":1}],\"model\" : \"theirs\",\"id\":\"e1\",\
                        \"usage\":{\"prompt_tokens\":4,\"total_tokens\":4}}\n";
        let expected = (document.replace("theirs", "mine"), Some(4));
        assert_eq!(passed(Protocol::Chat, (1, false), document), Ok(expected));
    }

    #[test]
    fn sloppy_answer_is_completed_and_ordered() {
        let document =
            r#"{"data":[{"embedding":[2],"index":1,"x":7},{"embedding":[1],"index":0}],"usage":null}"#;
        let (answer, input) = value(Protocol::Chat, (2, false), document);
        assert_eq!(
            answer,
            json!({
                "object": "list",
                "model": "mine",
                "data": [
                    { "object": "embedding", "index": 0, "embedding": [1] },
                    { "object": "embedding", "index": 1, "embedding": [2], "x": 7 },
                ],
                "usage": { "prompt_tokens": 9, "total_tokens": 9 },
            })
        );
        assert_eq!(input, None, "nobody counted");
    }

    #[test]
    fn memory_of_another_encoding_is_reserved() {
        let of = |first: &str, second: &str| {
            format!(r#"{{"data":[{{"embedding":{first}}},{{"embedding":{second}}}]}}"#)
        };
        for (base64, document, growth) in [
            (false, of("[1]", "[2]"), 1),
            // Not only the first vector counts.
            (false, of("[1]", "\"AACAPg==\""), GROWTH),
            (true, of("\"AACAPg==\"", "[2]"), GROWTH),
        ] {
            let form = EmbeddingForm { vectors: 2, base64 };
            let room = growth * document.len();
            for (room, is_enough) in [(room, true), (room - 1, false)] {
                assert_eq!(fits(&form, &document, room), is_enough, "{document}: {room}");
            }
        }
    }

    #[test]
    fn surplus_vectors_and_numbers_are_not_collected() {
        let flood = format!(r#"{{"data":[1{}]}}"#, ",1".repeat(1_000_000));
        let error = passed(Protocol::Chat, (1, false), &flood).expect_err("a flood");
        assert!(error.contains("not a list of 1 embeddings"), "{error}");
        let flood = format!(r#"{{"embeddings":[1{}]}}"#, ",1".repeat(1_000_000));
        let error = passed(Protocol::Native, (1, false), &flood).expect_err("a flood");
        assert!(error.contains("not a list of 1"), "{error}");
        let numbers = |count: usize| format!("[0{}]", ",0".repeat(count - 1));
        let of = |vector: &str| format!(r#"{{"data":[{{"embedding":{vector}}}]}}"#);
        assert!(passed(Protocol::Chat, (1, true), &of(&numbers(MAX_NUMBERS))).is_ok());
        assert!(passed(Protocol::Chat, (1, true), &of(&numbers(MAX_NUMBERS + 1))).is_err());
        let text = |count: usize| format!("\"{}\"", BASE64_STANDARD.encode(vec![0; 4 * count]));
        assert!(passed(Protocol::Chat, (1, false), &of(&text(MAX_NUMBERS))).is_ok());
        assert!(passed(Protocol::Chat, (1, false), &of(&text(MAX_NUMBERS + 1))).is_err());
    }

    #[test]
    fn encoding_is_what_the_client_wants() {
        let of = |vector: &str| {
            format!(
                r#"{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{vector}}}],
                    "model":"m","usage":{{"prompt_tokens":1,"total_tokens":1}}}}"#
            )
        };
        let (numbers, base64) = ("[0.25,-1.5,1e-8]", "\"AACAPgAAwL93zCsy\"");
        let vector = |answer: Value| answer["data"][0]["embedding"].clone();
        assert_eq!(vector(value(Protocol::Chat, (1, true), &of(numbers)).0), json!("AACAPgAAwL93zCsy"));
        assert_eq!(vector(value(Protocol::Chat, (1, false), &of(base64)).0), json!([0.25, -1.5, 1e-8]));
        assert_eq!(vector(value(Protocol::Chat, (1, true), &of(base64)).0), json!("AACAPgAAwL93zCsy"));
        for broken in ["\"AAA\"", "\"?\"", "\"AADAfw==\"", "[\"x\"]", "[[1]]", "[1e39]"] {
            let base64 = broken.starts_with('[');
            assert!(passed(Protocol::Chat, (1, base64), &of(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn native_answer_is_translated_with_its_extra_members() {
        let document = r#"{"embeddings":[{"values":[0.50]},{"values":[1e0],"statistics":{"truncated":true}}],
                           "usageMetadata":{"promptTokenCount":5}}"#;
        let (text, input) = passed(Protocol::Native, (2, false), document).expect("an answer");
        assert!(text.contains("[0.50]") && text.contains("[1e0]"), "numbers keep their text: {text}");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&answer["usage"]["prompt_tokens"], input), (&json!(5), Some(5)));
        let extra = json!({ "/embeddings/1/statistics": { "truncated": true } });
        assert_eq!((&answer["provider_extra"], &answer["model"]), (&extra, &json!("mine")));
        let single = r#"{"embedding":{"values":[0.25]}}"#;
        let (answer, input) = value(Protocol::Native, (1, true), single);
        assert_eq!((&answer["data"][0]["embedding"], input), (&json!("AACAPg=="), None));
    }

    #[test]
    fn answer_without_a_vector_for_each_input_is_an_error() {
        for document in
            ["", "<html>", "[]", "{}", r#"{"data":{}}"#, r#"{"data":[{"index":0}]}"#, r#"{"data":[]}"#]
        {
            assert!(passed(Protocol::Chat, (1, false), document).is_err(), "{document}");
        }
        let one = r#"{"embedding":{"values":[1]}}"#;
        let error = passed(Protocol::Native, (2, false), one).expect_err("one is missing");
        assert!(error.contains("has 1 embeddings for 2 inputs"), "{error}");
        for from in [Protocol::Chat, Protocol::Native] {
            let error = passed(from, (1, false), r#"{"error":{"message":"no vectors today"}}"#);
            assert_eq!(error, Err("no vectors today".to_owned()), "{from:?}");
        }
    }
}
