//! Embeddings: the request for an upstream of the native protocol, and the answers of both forms. An answer that is as the client
//! wants it passes through with the client's name for the model. Others are completed: servers ignore `encoding_format`, omit
//! the usage or the positions, or return the vectors in another order. Vectors stay text unless their encoding changes.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::redact::Redactor;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::{items, members, place, spliced, string};
use gatewright_protocol::{EmbeddingsCodec, EncodedRequest, ProviderEmbeddings};
use serde_json::Value;
use serde_json::value::RawValue;

use super::document::MAX_BYTES;
use super::failure::AttemptFailure;
use crate::bounds::memory_budget::{Reservation, ReservationError};
use crate::wire::ApiError;

/// The status of an answer whose body contains an error.
const SUCCEEDED: u16 = 200;
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
pub(super) fn written(
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

/// How to pass on an answer.
pub(super) struct Answered<'a> {
    /// The upstream's protocol.
    pub(super) from: Protocol,
    pub(super) form: EmbeddingForm,
    /// The client's name for the model.
    pub(super) model: &'a str,
    /// Estimated tokens of the inputs, if the upstream doesn't count them.
    pub(super) input: u64,
}

/// Why an answer can't be passed on.
enum Unusable {
    /// What is wrong with it.
    Broken(String),
    /// There is no memory for it in the client's form.
    NoRoom(ReservationError),
}

impl From<&str> for Unusable {
    fn from(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

impl From<String> for Unusable {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl From<ReservationError> for Unusable {
    fn from(why: ReservationError) -> Self {
        Self::NoRoom(why)
    }
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

impl Answered<'_> {
    /// The document for the client, and its usage if the upstream reports it. `share`: holds the memory of the document. Errors: the
    /// upstream reports an error, or doesn't answer with a vector for each input.
    pub(super) fn by(
        &self,
        document: &Bytes,
        redactor: &Redactor,
        share: &mut Reservation,
    ) -> Result<(Bytes, Option<Usage>), AttemptFailure> {
        let taken = share.bytes();
        let text =
            std::str::from_utf8(document).map_err(|_| AttemptFailure::broken("is not text", redactor))?;
        let passed = match self.from.embeddings() {
            Some(codec) => self.translated(codec, text, share),
            None => self.relayed(document, text, share),
        };
        let (passed, usage) = passed.map_err(|unusable| {
            let why = match unusable {
                Unusable::Broken(why) => why,
                Unusable::NoRoom(why) => return AttemptFailure::no_room(why, redactor),
            };
            let mut error = false;
            _ = members(text, |name, value| error |= name == "error" && value.get() != "null");
            if error {
                AttemptFailure::of_event(self.from.failure_in(SUCCEEDED, document), redactor)
            } else {
                AttemptFailure::broken(&why, redactor)
            }
        })?;
        let is_same = passed.as_ptr() == document.as_ptr();
        share
            .hold(if is_same { taken } else { passed.len() })
            .map_err(|why| AttemptFailure::no_room(why, redactor))?;
        Ok((passed, usage))
    }

    /// The answer of an upstream of the client's protocol. Errors: what is wrong with it.
    fn relayed(
        &self,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Result<(Bytes, Option<Usage>), Unusable> {
        let (mut data, mut usage, mut model, mut object) = (None, None, None, None);
        members(text, |name, value| match name {
            "data" => data = Some(value),
            "usage" => usage = Some(value),
            "model" => model = Some(value),
            "object" => object = Some(value),
            _ => {}
        })
        .map_err(|_| "is not a JSON object")?;
        let data = data.ok_or("has no list of embeddings")?;
        let wanted = self.form.vectors;
        let listed = items(data.get(), wanted)
            .map_err(|_| format!("has data that are not a list of {wanted} embeddings"))?;
        let entries = listed.into_iter().map(Entry::read).collect::<Result<Vec<_>, _>>()?;
        let entries = self.in_order(entries)?;
        self.reserve(&entries, text, share)?;
        let told = usage.and_then(|usage| {
            let counts = Protocol::Chat.usage_in(usage, Usage::default())?;
            (counts.input.is_some() && has_total(usage)).then_some(counts)
        });
        let rewritten = (!entries.iter().enumerate().all(|(index, entry)| self.is_as_wanted(entry, index)))
            .then(|| self.list_of(&entries))
            .transpose()?;
        let name = Value::from(self.model).to_string();
        let counts = self.usage(told.as_ref());
        let mut edits = Vec::new();
        let mut added = String::new();
        let mut set = |present: Option<&RawValue>, name: &str, value: &str| match present {
            Some(present) => edits.push((place(text, present), value.to_owned())),
            None => _ = write!(added, ",\"{name}\":{value}"),
        };
        if let Some(list) = rewritten {
            set(Some(data), "data", &list);
        }
        if told.is_none() {
            set(usage, "usage", &counts);
        }
        if model.is_none_or(|model| model.get() != name) {
            set(model, "model", &name);
        }
        if object.is_none_or(|object| object.get() != "\"list\"") {
            set(object, "object", "\"list\"");
        }
        let end = text.rfind('}').ok_or("is not a JSON object")?;
        edits.push((end..end, added));
        edits.retain(|(range, new)| !(range.is_empty() && new.is_empty()));
        edits.sort_by_key(|(range, _)| range.start);
        let edits: Vec<_> = edits.iter().map(|(range, new)| (range.clone(), new.as_bytes())).collect();
        Ok((spliced(document, &edits), told.map(of_input)))
    }

    /// The answer of an upstream of the native protocol. Errors: what is wrong with it.
    fn translated(
        &self,
        codec: EmbeddingsCodec,
        text: &str,
        share: &mut Reservation,
    ) -> Result<(Bytes, Option<Usage>), Unusable> {
        let ProviderEmbeddings { vectors, input_tokens, extra } =
            (codec.answer)(text, self.form.vectors).map_err(|malformed| malformed.0)?;
        let entries =
            vectors.into_iter().map(|vector| Entry { item: None, index: None, vector, is_whole: false });
        let entries = self.in_order(entries.collect())?;
        self.reserve(&entries, text, share)?;
        let told = input_tokens.map(|input| Usage { input: Some(input), ..Usage::default() });
        let mut written = format!(
            "{{\"object\":\"list\",\"data\":{},\"model\":{},\"usage\":{}",
            self.list_of(&entries)?,
            Value::from(self.model),
            self.usage(told.as_ref())
        );
        let extra: Vec<String> =
            extra.iter().map(|(at, value)| format!("{}:{}", Value::from(&**at), value.get())).collect();
        if !extra.is_empty() {
            _ = write!(written, ",\"provider_extra\":{{{}}}", extra.join(","));
        }
        written.push('}');
        Ok((written.into(), told.map(of_input)))
    }

    /// Reserves the memory of the document for the client, beside the upstream's.
    fn reserve(
        &self,
        entries: &[Entry<'_>],
        text: &str,
        share: &mut Reservation,
    ) -> Result<(), ReservationError> {
        let changes = entries.iter().any(|entry| is_base64(entry.vector) != self.form.base64);
        let growth = if changes { GROWTH } else { 1 };
        share.hold(share.bytes().saturating_add((growth * text.len()).min(MAX_BYTES)))
    }

    /// The vectors in the order of the inputs. Errors: there is not one for each.
    fn in_order<'e>(&self, mut entries: Vec<Entry<'e>>) -> Result<Vec<Entry<'e>>, String> {
        let (found, wanted) = (entries.len(), self.form.vectors);
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

    fn is_as_wanted(&self, entry: &Entry<'_>, index: usize) -> bool {
        entry.is_whole && entry.index == Some(index) && is_base64(entry.vector) == self.form.base64
    }

    /// The list for the client. Errors: a vector is not what it should be, or the list is too long.
    fn list_of(&self, entries: &[Entry<'_>]) -> Result<String, String> {
        let mut list = "[".to_owned();
        for (index, entry) in entries.iter().enumerate() {
            if index > 0 {
                list.push(',');
            }
            _ = write!(list, "{{\"object\":\"embedding\",\"index\":{index},\"embedding\":");
            match (is_base64(entry.vector), self.form.base64) {
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

    /// The usage for the client.
    fn usage(&self, told: Option<&Usage>) -> String {
        let input = told.and_then(|usage| usage.input).unwrap_or(self.input);
        format!("{{\"prompt_tokens\":{input},\"total_tokens\":{input}}}")
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

/// Vectors have no tokens.
fn of_input(usage: Usage) -> Usage {
    Usage { output: Some(0), ..usage }
}

fn has_total(usage: &RawValue) -> bool {
    let mut has_total = false;
    _ = members(usage.get(), |name, value| {
        has_total |= name == "total_tokens" && value.get().parse::<u64>().is_ok();
    });
    has_total
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
    use crate::bounds::memory_budget::MemoryBudget;

    fn passed(from: Protocol, form: (usize, bool), document: &str) -> Result<(String, Option<u64>), String> {
        let form = EmbeddingForm { vectors: form.0, base64: form.1 };
        let answered = Answered { from, form, model: "mine", input: 9 };
        let mut share = MemoryBudget::new(MAX_BYTES).share();
        let read =
            answered.by(&Bytes::copy_from_slice(document.as_bytes()), &Redactor::default(), &mut share);
        let (document, usage) = read.map_err(|fault| fault.failure().message.clone())?;
        let text = String::from_utf8(document.to_vec()).expect("text");
        Ok((text, usage.and_then(|usage| usage.input)))
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
    fn answer_as_wanted_keeps_its_bytes_but_for_the_model() {
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
            let answered = Answered { from: Protocol::Chat, form, model: "mine", input: 9 };
            let room = growth * document.len();
            for (room, fits) in [(room, true), (room - 1, false)] {
                let mut share = MemoryBudget::new(room).share();
                let passed = answered.relayed(&document.clone().into(), &document, &mut share);
                assert_eq!(!matches!(passed, Err(Unusable::NoRoom(_))), fits, "{document}: {room}");
            }
        }
    }

    #[test]
    fn more_vectors_and_numbers_than_anybody_wants_are_not_collected() {
        let flood = format!(r#"{{"data":[1{}]}}"#, ",1".repeat(1_000_000));
        let said = passed(Protocol::Chat, (1, false), &flood).expect_err("a flood");
        assert!(said.contains("not a list of 1 embeddings"), "{said}");
        let flood = format!(r#"{{"embeddings":[1{}]}}"#, ",1".repeat(1_000_000));
        let said = passed(Protocol::Native, (1, false), &flood).expect_err("a flood");
        assert!(said.contains("not a list of 1"), "{said}");
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
        let said = passed(Protocol::Native, (2, false), one).expect_err("one is missing");
        assert!(said.contains("has 1 embeddings for 2 inputs"), "{said}");
        for from in [Protocol::Chat, Protocol::Native] {
            let said = passed(from, (1, false), r#"{"error":{"message":"no vectors today"}}"#);
            assert_eq!(said, Err("no vectors today".to_owned()), "{from:?}");
        }
    }
}
