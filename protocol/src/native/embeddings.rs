//! Embeddings at a provider of the native protocol: the request, and the vectors of the answer.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::conversation::JsonPointer;
use crate::json::text;
use crate::lazy_json::{items, members};
use crate::members::escaped;
use crate::{EncodedRequest, MalformedDocument, ProviderEmbeddings};

/// Members of the client's request that the native request or its answer expresses; `stream` may only be false.
const KNOWN: [&str; 5] = ["model", "input", "encoding_format", "dimensions", "stream"];

/// Maximum number of members that are passed on although clients have no member for them.
const MAX_EXTRA: usize = 256;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMetadata {
    prompt_token_count: Option<u64>,
}

/// A valid request for the provider's `model`: for a list of inputs that of `batchEmbedContents`, otherwise that of
/// `embedContent`. Errors: where the request has tokens, which the protocol has no member for.
pub(super) fn request(request: &Value, model: &str) -> Result<EncodedRequest, JsonPointer> {
    let dimensions = Some(&request["dimensions"]).filter(|dimensions| !dimensions.is_null());
    let of = |input: &Value| {
        let mut body = Map::new();
        body.insert("model".to_owned(), format!("models/{model}").into());
        body.insert("content".to_owned(), json!({ "parts": [{ "text": text(input) }] }));
        if let Some(dimensions) = dimensions {
            body.insert("outputDimensionality".to_owned(), dimensions.clone());
        }
        Value::Object(body)
    };
    let input = &request["input"];
    let body = match input {
        Value::Array(inputs) if inputs.iter().any(|input| !input.is_string()) => {
            return Err("/input".into());
        }
        Value::Array(inputs) => json!({ "requests": inputs.iter().map(of).collect::<Vec<_>>() }),
        input => of(input),
    };
    let sent = request.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let lost = sent.filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    let dropped = lost.map(|(name, _)| format!("/{}", escaped(name)).into()).collect();
    Ok(EncodedRequest { body, dropped })
}

/// Reads an answer, of either form. Errors: it has no vectors, or a list of more than `max`.
pub(super) fn answer(document: &str, max: usize) -> Result<ProviderEmbeddings<'_>, MalformedDocument> {
    let malformed = |what: &str| MalformedDocument(what.to_owned());
    let mut answer = ProviderEmbeddings { vectors: Vec::new(), input_tokens: None, extra: Vec::new() };
    let (mut single, mut list) = (None, None);
    members(document, |name, value| match name {
        "embedding" => single = Some(value),
        "embeddings" => list = Some(value),
        "usageMetadata" => {
            let usage = serde_json::from_str::<UsageMetadata>(value.get()).ok();
            answer.input_tokens = usage.and_then(|usage| usage.prompt_token_count);
        }
        name => answer.extra("", name, value),
    })
    .map_err(|_| malformed("is not a JSON object"))?;
    if let Some(single) = single {
        answer.vector("/embedding", single)?;
    }
    if let Some(list) = list {
        let listed = items(list.get(), max)
            .map_err(|_| MalformedDocument(format!("has embeddings that are not a list of {max}")))?;
        for (index, value) in listed.into_iter().enumerate() {
            answer.vector(&format!("/embeddings/{index}"), value)?;
        }
    }
    if answer.vectors.is_empty() { Err(malformed("has no embeddings")) } else { Ok(answer) }
}

impl<'a> ProviderEmbeddings<'a> {
    /// Adds the vector of an object.
    fn vector(&mut self, at: &str, object: &'a RawValue) -> Result<(), MalformedDocument> {
        let mut values = None;
        let read = members(object.get(), |name, value| match name {
            "values" => values = Some(value),
            name => self.extra(at, name, value),
        });
        let Some(values) = values.filter(|_| read.is_ok()) else {
            return Err(MalformedDocument(format!("has no values at {at}")));
        };
        if !values.get().starts_with('[') {
            return Err(MalformedDocument(format!("has values at {at} that are not a list")));
        }
        self.vectors.push(values);
        Ok(())
    }

    fn extra(&mut self, at: &str, name: &str, value: &'a RawValue) {
        let place = format!("{at}/{}", escaped(name));
        // Of duplicate names, the last counts.
        if let Some((_, earlier)) = self.extra.iter_mut().find(|(known, _)| *known == place) {
            *earlier = value;
        } else if self.extra.len() < MAX_EXTRA {
            self.extra.push((place.into(), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_one_content_and_list_is_a_batch() {
        let request = json!({ "model": "mine", "input": "a", "dimensions": 8, "encoding_format": "base64" });
        let written = super::request(&request, "theirs").expect("texts");
        let content = |text: &str| json!({ "model": "models/theirs", "content": { "parts": [{ "text": text }] }, "outputDimensionality": 8 });
        assert_eq!((&written.body, written.dropped.len()), (&content("a"), 0));
        let request = json!({ "model": "mine", "input": ["a", "b"], "dimensions": 8 });
        let written = super::request(&request, "theirs").expect("texts");
        assert_eq!(written.body, json!({ "requests": [content("a"), content("b")] }));
    }

    #[test]
    fn tokens_are_refused_and_further_members_reported() {
        for tokens in [json!([1, 2]), json!([[1], [2]])] {
            let refused = super::request(&json!({ "model": "m", "input": tokens }), "m");
            assert_eq!(refused.err().as_deref(), Some("/input"));
        }
        let request = json!({ "model": "m", "input": "a", "user": "u", "a/b": 1, "dimensions": null });
        let written = super::request(&request, "m").expect("a text");
        assert_eq!(written.dropped, ["/user", "/a~1b"]);
        assert_eq!(written.body.get("outputDimensionality"), None);
    }

    #[test]
    fn answers_of_both_forms_are_read() {
        let one = super::answer(r#"{"embedding":{"values":[0.1, -2e-3]}}"#, 1).expect("a vector");
        assert_eq!((one.vectors[0].get(), one.input_tokens), ("[0.1, -2e-3]", None));
        let two = super::answer(
            r#"{"embeddings":[{"values":[1],"statistics":{"truncated":true}},{"values":[2]}],
                "usageMetadata":{"promptTokenCount":7},"billed":1}"#,
            2,
        );
        let two = two.expect("vectors");
        assert_eq!((two.vectors.len(), two.input_tokens), (2, Some(7)));
        let extra: Vec<(&str, &str)> = two.extra.iter().map(|(at, value)| (&**at, value.get())).collect();
        assert_eq!(extra, [("/billed", "1"), ("/embeddings/0/statistics", r#"{"truncated":true}"#)]);
    }

    #[test]
    fn duplicate_and_excess_members_do_not_pile_up() {
        let flood: Vec<String> = (0..MAX_EXTRA + 50).map(|number| format!(r#""x{number}":0"#)).collect();
        let document = format!(r#"{{{},"x0":1,"embedding":{{"values":[1]}}}}"#, flood.join(","));
        let answer = super::answer(&document, 1).expect("a vector");
        assert_eq!((answer.extra.len(), answer.extra[0].1.get()), (MAX_EXTRA, "1"));
        assert!(super::answer(r#"{"embeddings":[{"values":[1]},{"values":[2]}]}"#, 1).is_err());
    }

    #[test]
    fn answer_without_vectors_is_malformed() {
        for document in [
            "",
            "[]",
            "{}",
            r#"{"embeddings":[]}"#,
            r#"{"embeddings":[{}]}"#,
            r#"{"embedding":{"values":1}}"#,
        ] {
            assert!(super::answer(document, 1).is_err(), "{document}");
        }
    }
}
