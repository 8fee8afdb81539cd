//! Verdicts about content. Servers omit `flagged`, the scores or the id, and have null for categories that they didn't judge.

use std::fmt::Write as _;

use bytes::Bytes;
use gatewright_protocol::lazy_json::members;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{AnswerForm, AnswerHead, Answered, ListForm, Passed, Unusable, take};
use crate::bounds::memory_budget::Reservation;

/// What is added to a verdict is shorter than this, in bytes.
const ADDED: usize = 64;

/// What a client wants of a moderation.
#[derive(Debug)]
pub(super) struct ModerationForm {
    /// Number of verdicts.
    verdicts: usize,
}

/// A verdict of an answer.
struct Verdict<'a> {
    item: &'a RawValue,
    is_flagged: bool,
    categories: Option<&'a RawValue>,
    scores: Option<&'a RawValue>,
    /// Whether its object can stay as it is.
    is_whole: bool,
}

impl ModerationForm {
    /// Of a valid request.
    pub(super) fn of(request: &Value) -> Self {
        // Parts are judged together.
        let verdicts = match &request["input"] {
            Value::Array(inputs) if inputs.first().is_some_and(Value::is_string) => inputs.len(),
            _ => 1,
        };
        Self { verdicts }
    }
}

impl AnswerForm for ModerationForm {
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed {
        answered.relayed(self, document, text, share)
    }

    fn states_usage(&self) -> bool {
        false
    }
}

impl ListForm for ModerationForm {
    fn names(&self) -> &'static [&'static str] {
        &["results"]
    }

    fn noun(&self) -> &'static str {
        "verdicts"
    }

    fn most(&self) -> usize {
        self.verdicts
    }

    fn list(
        &self,
        listed: &[&RawValue],
        size: usize,
        share: &mut Reservation,
    ) -> Result<Option<String>, Unusable> {
        let (found, wanted) = (listed.len(), self.verdicts);
        if found != wanted {
            return Err(format!("has {found} verdicts for {wanted} inputs").into());
        }
        let verdicts = listed.iter().map(|item| Verdict::read(item)).collect::<Result<Vec<_>, _>>()?;
        take(share, size + ADDED * found)?;
        if verdicts.iter().all(|verdict| verdict.is_whole) {
            return Ok(None);
        }
        let mut list = "[".to_owned();
        for (place, verdict) in verdicts.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            _ = write!(list, "{comma}{{\"flagged\":{},\"categories\":", verdict.is_flagged);
            push_judged(&mut list, verdict.categories);
            list.push_str(",\"category_scores\":");
            push_judged(&mut list, verdict.scores);
            members(verdict.item.get(), |name, value| {
                if !matches!(name, "flagged" | "categories" | "category_scores") {
                    _ = write!(list, ",{}:{}", Value::from(name), value.get());
                }
            })
            .map_err(|_| "has a verdict that is not an object")?;
            list.push('}');
        }
        list.push(']');
        Ok(Some(list))
    }

    fn head(&self) -> AnswerHead {
        AnswerHead::Id("modr-")
    }
}

impl<'a> Verdict<'a> {
    fn read(item: &'a RawValue) -> Result<Self, String> {
        let (mut flagged, mut categories, mut scores) = (None, None, None);
        members(item.get(), |name, value| match name {
            "flagged" => flagged = value.get().parse::<bool>().ok(),
            "categories" => categories = Some(value).filter(|value| value.get() != "null"),
            "category_scores" => scores = Some(value).filter(|value| value.get() != "null"),
            _ => {}
        })
        .map_err(|_| "has a verdict that is not an object")?;
        if flagged.is_none() && categories.is_none() {
            return Err("has a verdict without flagged and categories".to_owned());
        }
        let (mut is_harmful, mut is_whole) = (false, flagged.is_some());
        is_whole &= each(categories, "categories", |value| match value {
            "true" => {
                is_harmful = true;
                true
            }
            value => value == "false",
        })?;
        is_whole &= each(scores, "category_scores", |value| value.parse().is_ok_and(f64::is_finite))?;
        Ok(Self { item, is_flagged: flagged.unwrap_or(is_harmful), categories, scores, is_whole })
    }
}

/// Whether an object of categories exists and judges all of them. Errors: a value is neither valid nor null.
fn each(
    categories: Option<&RawValue>,
    name: &str,
    mut is_valid: impl FnMut(&str) -> bool,
) -> Result<bool, String> {
    let Some(categories) = categories else { return Ok(false) };
    let (mut is_whole, mut is_broken) = (true, false);
    members(categories.get(), |_, value| {
        let is_null = value.get() == "null";
        is_whole &= !is_null;
        is_broken |= !is_null && !is_valid(value.get());
    })
    .map_err(|_| format!("has {name} that are not an object"))?;
    if is_broken { Err(format!("has {name} with a value of the wrong type")) } else { Ok(is_whole) }
}

/// Appends the categories that the server judged.
fn push_judged(list: &mut String, categories: Option<&RawValue>) {
    list.push('{');
    let mut is_first = true;
    let written = categories.map(|categories| {
        members(categories.get(), |name, value| {
            if value.get() != "null" {
                let comma = if std::mem::take(&mut is_first) { "" } else { "," };
                _ = write!(list, "{comma}{}:{}", Value::from(name), value.get());
            }
        })
    });
    debug_assert!(!matches!(written, Some(Err(_))), "it was read before");
    list.push('}');
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;
    use serde_json::json;

    use super::*;
    use crate::relay::plain::tests::passed as pass;

    fn of(verdicts: usize) -> ModerationForm {
        ModerationForm { verdicts }
    }

    fn value(verdicts: usize, document: &str) -> Value {
        let (text, _) = pass(Protocol::Chat, &of(verdicts), document).expect("an answer");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn inputs_of_each_form_are_counted() {
        let part = json!({ "type": "text", "text": "a" });
        for (input, verdicts) in [(json!("a"), 1), (json!(["a", "b"]), 2), (json!([part, part]), 1)] {
            assert_eq!(ModerationForm::of(&json!({ "input": input })).verdicts, verdicts, "{input}");
        }
    }

    #[test]
    fn conforming_answer_keeps_its_bytes_except_the_model() {
        let document = "{ \"id\":\"m1\",\"model\" : \"theirs\", \"results\":[{\"flagged\":true,\
                        \"categories\":{\"violence\":true,\"hate\":false},\"category_scores\":{\"violence\":9.50e-1},\
                        \"category_applied_input_types\":{\"violence\":[\"text\"]},\"future\":1}]}\n";
        let expected = (document.replace("theirs", "mine"), None);
        assert_eq!(pass(Protocol::Chat, &of(1), document), Ok(expected));
    }

    #[test]
    fn verdicts_are_completed() {
        let document = r#"{"model":"theirs","usage":{"prompt_tokens":3,"total_tokens":3},"results":[
            {"categories":{"law":false,"pii":true,"health":null},"category_scores":{"law":0.1,"pii":0.9,"health":null}},
            {"categories":{"law":false}},
            {"flagged":true,"category_scores":null,"x":1}]}"#;
        assert_eq!(
            value(3, document),
            json!({
                "id": "modr-r1",
                "model": "mine",
                "usage": { "prompt_tokens": 3, "total_tokens": 3 },
                "results": [
                    { "flagged": true, "categories": { "law": false, "pii": true }, "category_scores": { "law": 0.1, "pii": 0.9 } },
                    { "flagged": false, "categories": { "law": false }, "category_scores": {} },
                    { "flagged": true, "categories": {}, "category_scores": {}, "x": 1 },
                ],
            })
        );
    }

    #[test]
    fn answer_without_a_verdict_for_each_input_is_an_error() {
        let whole = r#"{"flagged":false,"categories":{}}"#;
        for (results, expected) in [
            ("", "has 0 verdicts for 2 inputs"),
            (whole, "has 1 verdicts for 2 inputs"),
            (&format!("{whole},{whole},{whole}"), "not a list of 2 verdicts"),
            (&format!("{whole},7"), "is not an object"),
            (&format!("{whole},{{}}"), "without flagged and categories"),
            (&format!("{whole},{{\"flagged\":\"no\"}}"), "without flagged and categories"),
            (&format!("{whole},{{\"categories\":[]}}"), "has categories that are not an object"),
            (
                &format!("{whole},{{\"categories\":{{\"law\":1}}}}"),
                "has categories with a value of the wrong type",
            ),
            (
                &format!("{whole},{{\"flagged\":true,\"category_scores\":{{\"law\":\"1\"}}}}"),
                "has category_scores with",
            ),
            (
                &format!("{whole},{{\"flagged\":true,\"category_scores\":{{\"law\":1e999}}}}"),
                "has category_scores with",
            ),
            (
                &format!("{whole},{{\"flagged\":true,\"category_scores\":{{\"law\":NaN}}}}"),
                "is not a JSON object",
            ),
        ] {
            let document = format!(r#"{{"results":[{results}]}}"#);
            let error = pass(Protocol::Chat, &of(2), &document).expect_err(results);
            assert!(error.contains(expected), "{results}: {error}");
        }
        let error = pass(Protocol::Chat, &of(1), r#"{"error":{"message":"no verdicts today"}}"#);
        assert_eq!(error, Err("no verdicts today".to_owned()));
    }
}
