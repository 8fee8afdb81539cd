//! Rankings of documents. Servers call the list and the scores differently, return it in the order of the documents, ignore `top_n`,
//! or omit the usage, the id and the documents.

use std::fmt::Write as _;

use bytes::Bytes;
use gatewright::limits::integer;
use gatewright_protocol::json;
use gatewright_protocol::lazy_json::{items, members};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AnswerForm, AnswerHead, Answered, ListForm, Passed, Unusable, take};
use crate::bounds::memory_budget::Reservation;

/// What is added to a result is shorter than this, in bytes, besides its text.
const ADDED: usize = 64;

/// What a client wants of a ranking.
#[derive(Debug)]
pub(super) struct RankingForm {
    /// Number of documents.
    documents: usize,
    /// Length of the ranking.
    top: usize,
    /// The request, if the ranking contains its documents.
    request: Option<Bytes>,
}

/// A document's place in a ranking.
struct Ranked<'a> {
    item: &'a RawValue,
    index: usize,
    score: f64,
    /// As the server wrote it.
    score_text: &'a str,
    /// The document, if the server returns it.
    document: Option<&'a RawValue>,
    /// Whether its object can stay as it is.
    is_whole: bool,
}

impl RankingForm {
    /// Of a valid request.
    pub(super) fn of(request: &Value, body: &Bytes) -> Self {
        let documents = json::list(&request["documents"]).count();
        let top = integer(&request["top_n"]).and_then(|top| usize::try_from(top).ok());
        let request = (request["return_documents"] == true).then(|| body.clone());
        Self { documents, top: top.map_or(documents, |top| top.min(documents)), request }
    }

    /// The texts of the request's documents, as JSON.
    fn texts<'r>(&self, request: &'r Bytes) -> Option<Vec<&'r str>> {
        let mut list = None;
        members(std::str::from_utf8(request).ok()?, |name, value| {
            if name == "documents" {
                list = Some(value);
            }
        })
        .ok()?;
        let documents = items(list?.get(), self.documents).ok()?;
        documents.into_iter().map(|document| text_of(document).map(RawValue::get)).collect()
    }

    /// The best results, which name each document at most once. Errors: what is wrong with them.
    fn ranked<'a>(&self, listed: &[&'a RawValue]) -> Result<Vec<Ranked<'a>>, String> {
        let (found, wanted, documents) = (listed.len(), self.top, self.documents);
        if found < wanted {
            return Err(format!("has {found} results instead of {wanted}"));
        }
        let mut ranked = listed.iter().map(|item| self.read(item)).collect::<Result<Vec<_>, _>>()?;
        let mut is_ranked = vec![false; documents];
        for entry in &ranked {
            let index = entry.index;
            let Some(is_ranked) = is_ranked.get_mut(index) else {
                return Err(format!("ranks document {index} of {documents}, counted from 0"));
            };
            if std::mem::replace(is_ranked, true) {
                return Err(format!("ranks document {index} twice"));
            }
        }
        // Stable: of equal scores, the server's order counts.
        ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
        ranked.truncate(wanted);
        Ok(ranked)
    }

    fn read<'a>(&self, item: &'a RawValue) -> Result<Ranked<'a>, String> {
        let (mut index, mut relevance, mut score, mut document) = (None, None, None, None);
        members(item.get(), |name, value| match name {
            "index" => index = value.get().parse().ok(),
            "relevance_score" => relevance = Some(value),
            "score" => score = Some(value),
            "document" => document = Some(value),
            _ => {}
        })
        .map_err(|_| "has a result that is not an object")?;
        let index = index.ok_or("has a result without the index of a document")?;
        let stated = relevance.or(score).map(RawValue::get);
        // A number beyond the range of a double has no order.
        let number = stated.and_then(|stated| stated.parse::<f64>().ok()).filter(|score| score.is_finite());
        let (Some(score_text), Some(score)) = (stated, number) else {
            return Err(format!("has no score of document {index}"));
        };
        let is_whole = relevance.is_some() && document.map_or(self.request.is_none(), is_text_object);
        Ok(Ranked { item, index, score, score_text, document, is_whole })
    }
}

impl AnswerForm for RankingForm {
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        answered.relayed(self, document, text, share)
    }
}

impl ListForm for RankingForm {
    fn names(&self) -> &'static [&'static str] {
        &["results", "data"]
    }

    fn noun(&self) -> &'static str {
        "results"
    }

    fn most(&self) -> usize {
        self.documents
    }

    fn list(
        &self,
        listed: &[&RawValue],
        size: usize,
        share: &mut Reservation,
    ) -> Result<Option<String>, Unusable> {
        let ranked = self.ranked(listed)?;
        let is_in_order = ranked.len() == listed.len()
            && ranked.iter().zip(listed).all(|(one, other)| std::ptr::eq(one.item, *other));
        if is_in_order && ranked.iter().all(|entry| entry.is_whole) {
            take(share, size)?;
            return Ok(None);
        }
        let texts = self.request.as_ref().map_or(0, Bytes::len);
        take(share, 2 * size + ADDED * ranked.len() + texts)?;
        let texts = self.request.as_ref().and_then(|request| self.texts(request));
        let mut list = "[".to_owned();
        for (place, entry) in ranked.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            _ = write!(list, "{comma}{{\"index\":{},\"relevance_score\":{}", entry.index, entry.score_text);
            let sent = entry.document.and_then(text_of).map(RawValue::get);
            match (entry.document.filter(|document| is_text_object(document)), sent) {
                (Some(document), _) => _ = write!(list, ",\"document\":{}", document.get()),
                (None, sent) => {
                    let own = texts.as_ref().and_then(|texts| texts.get(entry.index).copied());
                    if let Some(text) = sent.or(own) {
                        _ = write!(list, ",\"document\":{{\"text\":{text}}}");
                    }
                }
            }
            members(entry.item.get(), |name, value| {
                if !matches!(name, "index" | "relevance_score" | "score" | "document") {
                    _ = write!(list, ",{}:{}", Value::from(name), value.get());
                }
            })
            .map_err(|_| "has a result that is not an object")?;
            list.push('}');
        }
        list.push(']');
        Ok(Some(list))
    }

    fn head(&self) -> AnswerHead {
        AnswerHead::Id("rerank-")
    }
}

/// The text of a document, which is a text or an object with one.
fn text_of(document: &RawValue) -> Option<&RawValue> {
    if document.get().starts_with('"') {
        return Some(document);
    }
    let mut text = None;
    members(document.get(), |name, value| {
        if name == "text" {
            text = Some(value);
        }
    })
    .ok()?;
    text.filter(|text| text.get().starts_with('"'))
}

/// Whether a document is an object with a text.
fn is_text_object(document: &RawValue) -> bool {
    document.get().starts_with('{') && text_of(document).is_some()
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;
    use serde_json::json;

    use super::*;
    use crate::relay::plain::tests::{fits, passed as pass};

    fn form(request: &Value) -> RankingForm {
        RankingForm::of(request, &request.to_string().into())
    }

    fn of(documents: usize) -> RankingForm {
        form(&json!({ "documents": vec!["a"; documents] }))
    }

    fn value(form: &RankingForm, document: &str) -> (Value, Option<u64>) {
        let (text, input) = pass(Protocol::Chat, form, document).expect("an answer");
        (serde_json::from_str(&text).expect("JSON"), input)
    }

    fn refused(form: &RankingForm, document: &str) -> String {
        pass(Protocol::Chat, form, document).expect_err(document)
    }

    #[test]
    fn conforming_answer_keeps_its_bytes_except_the_model() {
        let document = "{ \"id\":\"x\", \"results\":[{\"index\":1,\"relevance_score\":9.50e-1,\"future\":1},\
                        {\"index\":0,\"relevance_score\":-2}],\"model\" : \"theirs\",\"meta\":{},\
                        \"usage\":{\"prompt_tokens\":4,\"total_tokens\":4}}\n";
        let expected = (document.replace("theirs", "mine"), Some(4));
        assert_eq!(pass(Protocol::Chat, &of(2), document), Ok(expected));
    }

    #[test]
    fn answers_of_every_server_become_those_of_clients() {
        let ranked = json!([{ "index": 1, "relevance_score": 0.75 }, { "index": 0, "relevance_score": 0.5 }]);
        for (document, id, input) in [
            // vLLM and Jina.
            (
                r#"{"id":"s1","results":[{"index":0,"relevance_score":0.5},{"index":1,"relevance_score":0.75}],"usage":{"total_tokens":7}}"#,
                "s1",
                Some(7),
            ),
            // Cohere.
            (
                r#"{"id":"s2","results":[{"index":1,"relevance_score":0.75},{"index":0,"relevance_score":0.5}],"meta":{"tokens":{"input_tokens":8}}}"#,
                "s2",
                Some(8),
            ),
            // Voyage.
            (
                r#"{"object":"list","data" : [{"index":1,"relevance_score":0.75},{"index":0,"relevance_score":0.5}],"usage":{"total_tokens":5},"id":null}"#,
                "rerank-r1",
                Some(5),
            ),
            // A name in another spelling cannot be replaced.
            (
                r#"{"d\u0061ta":[{"index":1,"score":0.75},{"score":0.5,"index":0,"document":null}]}"#,
                "rerank-r1",
                None,
            ),
        ] {
            let (answer, reported_tokens) = value(&of(2), document);
            let tokens = input.unwrap_or(9);
            assert_eq!(
                (&answer["results"], &answer["id"], &answer["model"]),
                (&ranked, &json!(id), &json!("mine"))
            );
            assert_eq!(
                answer["usage"],
                json!({ "prompt_tokens": tokens, "total_tokens": tokens }),
                "{document}"
            );
            assert_eq!(reported_tokens, input, "{document}");
        }
    }

    #[test]
    fn ranking_has_the_requested_length_and_documents() {
        let documents = json!(["a", { "text": "b\"", "id": 7 }, "c"]);
        let server = r#"{"results":[
            {"index":2,"relevance_score":0.1,"document":"their c"},
            {"index":1,"relevance_score":0.3},
            {"index":0,"relevance_score":0.2,"document":{"text":"their a","more":1},"x":1}]}"#;
        let two = form(&json!({ "documents": documents, "top_n": 2, "return_documents": true }));
        let (answer, _) = value(&two, server);
        assert_eq!(
            answer["results"],
            json!([
                { "index": 1, "relevance_score": 0.3, "document": { "text": "b\"" } },
                { "index": 0, "relevance_score": 0.2, "document": { "text": "their a", "more": 1 }, "x": 1 },
            ])
        );
        let all = form(&json!({ "documents": documents, "top_n": 9 }));
        let (answer, _) = value(&all, server);
        assert_eq!(answer["results"][2]["document"], json!({ "text": "their c" }));
        assert_eq!(answer["results"][0].get("document"), None);
    }

    #[test]
    fn answer_that_ranks_nothing_or_something_else_is_an_error() {
        let of_results = |results: &str| format!(r#"{{"results":[{results}]}}"#);
        let first = r#"{"index":0,"relevance_score":1}"#;
        for (results, expected) in [
            ("", "has 0 results instead of 2"),
            (first, "has 1 results instead of 2"),
            (&format!("{first},{first}"), "ranks document 0 twice"),
            (&format!("{first},{{\"index\":2,\"relevance_score\":1}}"), "ranks document 2 of 2"),
            (&format!("{first},{{\"index\":-1,\"relevance_score\":1}}"), "without the index"),
            (&format!("{first},{{\"relevance_score\":1}}"), "without the index"),
            (&format!("{first},{{\"index\":1}}"), "has no score of document 1"),
            (&format!("{first},{{\"index\":1,\"relevance_score\":null}}"), "has no score of document 1"),
            (&format!("{first},{{\"index\":1,\"relevance_score\":\"1\"}}"), "has no score of document 1"),
            (&format!("{first},{{\"index\":1,\"relevance_score\":1e999}}"), "has no score of document 1"),
            (&format!("{first},{{\"index\":1,\"relevance_score\":NaN}}"), "is not a JSON object"),
            (&format!("{first},7"), "is not an object"),
        ] {
            let error = refused(&of(2), &of_results(results));
            assert!(error.contains(expected), "{results}: {error}");
        }
        for document in ["", "<html>", "[]", "{}", r#"{"results":{}}"#, r#"{"results":null}"#] {
            refused(&of(1), document);
        }
        assert_eq!(refused(&of(1), r#"{"error":{"message":"no ranks today"}}"#), "no ranks today");
    }

    #[test]
    fn more_results_than_documents_are_not_collected() {
        let flood = format!(r#"{{"results":[1{}]}}"#, ",1".repeat(1_000_000));
        assert!(refused(&of(2), &flood).contains("not a list of 2 results"));
    }

    #[test]
    fn memory_of_returned_documents_is_reserved() {
        let request = json!({ "documents": ["a".repeat(1000)], "return_documents": true });
        let document = r#"{"results":[{"index":0,"relevance_score":1}]}"#;
        assert!(fits(&form(&request), document, 1200) && !fits(&form(&request), document, 1000));
    }
}
