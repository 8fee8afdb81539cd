//! Rankings and verdicts of the simulator.

use gatewright::limits::{Rules, integer};
use gatewright_config::ModelKind;
use gatewright_protocol::json::{list, text};
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use gatewright_simulator::moderation::{Verdict, verdict};
use gatewright_simulator::ranking::Query;
use gatewright_simulator::tokens::counted;
use serde_json::{Map, Value, json};

use crate::models;
use crate::wire::{ApiError, Call, Response, json_response};

/// Bytes of a result beside its document.
const RESULT: usize = 64;
/// Bytes of a verdict.
const VERDICT: usize = 1024;

/// `POST /v1/rerank`.
pub(super) fn rerank(call: &Call, model: &str, budget: &Budget) -> Result<Response, ApiError> {
    models::plain_model(model, ModelKind::Rerank, call.operation)?;
    Ok(json_response(&ranking(&call.checked_body_of(Some(model), Rules::default())?, model, budget)?))
}

/// `POST /v1/moderations`.
pub(super) fn moderate(call: &Call, model: &str, budget: &Budget) -> Result<Response, ApiError> {
    models::plain_model(model, ModelKind::Moderation, call.operation)?;
    Ok(json_response(&verdicts(&call.checked_body_of(Some(model), Rules::default())?, model, budget)?))
}

/// The ranking for a valid request.
fn ranking(request: &Value, model: &str, budget: &Budget) -> Result<Value, BudgetExceeded> {
    let query = text(&request["query"]);
    let mut tokens = counted(query, budget)?;
    let query = Query::read(query, budget)?;
    let mut ranked = Vec::new();
    for (index, document) in list(&request["documents"]).enumerate() {
        let content = document.as_str().unwrap_or_else(|| text(&document["text"]));
        tokens += counted(content, budget)?;
        ranked.push((query.relevance_of(content, budget)?, index, content));
    }
    ranked.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let top = integer(&request["top_n"]).and_then(|top| usize::try_from(top).ok()).unwrap_or(usize::MAX);
    let mut results = Vec::new();
    for (score, index, content) in ranked.into_iter().take(top) {
        budget.make(RESULT)?;
        let mut result = json!({ "index": index, "relevance_score": score });
        if request["return_documents"] == true {
            budget.make(content.len())?;
            result["document"] = json!({ "text": content });
        }
        results.push(result);
    }
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(json!({ "model": model, "results": results, "usage": usage }))
}

/// The verdicts for a valid request.
fn verdicts(request: &Value, model: &str, budget: &Budget) -> Result<Value, BudgetExceeded> {
    let input = &request["input"];
    let parts = || list(input).map(|part| text(&part["text"])).collect::<Vec<_>>().join("\n");
    let texts: Vec<String> = match input {
        Value::String(text) => vec![text.clone()],
        input if list(input).next().is_some_and(Value::is_string) => {
            list(input).map(|input| text(input).to_owned()).collect()
        }
        _ => vec![parts()],
    };
    let results = texts.iter().map(|text| {
        budget.make(VERDICT)?;
        Ok(written(&verdict(text, budget)?))
    });
    Ok(json!({ "model": model, "results": results.collect::<Result<Vec<_>, BudgetExceeded>>()? }))
}

fn written(verdict: &Verdict) -> Value {
    let (mut categories, mut scores, mut kinds) = (Map::new(), Map::new(), Map::new());
    for (name, score) in &verdict.scores {
        categories.insert((*name).to_owned(), Verdict::is_harmful(*score).into());
        scores.insert((*name).to_owned(), (*score).into());
        kinds.insert((*name).to_owned(), json!(["text"]));
    }
    json!({
        "flagged": verdict.is_flagged(),
        "categories": categories,
        "category_scores": scores,
        "category_applied_input_types": kinds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranking_has_the_best_documents_first() {
        let request = json!({
            "query": "boats on a lake",
            "documents": ["rates of banks", { "text": "boats on a lake" }, "a lake"],
            "top_n": 2,
            "return_documents": true,
        });
        let answer = ranking(&request, "m", &Budget::new()).expect("within the budget");
        let results = &answer["results"];
        assert_eq!((&results[0]["index"], &results[1]["index"]), (&json!(1), &json!(2)));
        assert_eq!(results[0]["document"], json!({ "text": "boats on a lake" }));
        assert_eq!((list(results).count(), &answer["usage"]["total_tokens"]), (2, &json!(13)), "{answer}");
    }

    #[test]
    fn texts_have_a_verdict_each_and_parts_one() {
        let judged = |input: Value| {
            let answer =
                verdicts(&json!({ "input": input }), "m", &Budget::new()).expect("within the budget");
            list(&answer["results"]).map(|verdict| verdict["flagged"] == true).collect::<Vec<_>>()
        };
        assert_eq!(judged(json!("I will punch you")), [true]);
        assert_eq!(judged(json!(["a boat", "they attack"])), [false, true]);
        let image = json!({ "type": "image_url", "image_url": { "url": "https://example.com/a.png" } });
        assert_eq!(judged(json!([{ "type": "text", "text": "a boat" }, image])), [false]);
    }

    #[test]
    fn largest_ranking_is_within_the_budget() {
        let request = json!({ "query": "word ".repeat(100), "documents": vec!["word ".repeat(1000); 1000] });
        let answer = ranking(&request, "m", &Budget::new()).expect("within the budget");
        assert_eq!(list(&answer["results"]).count(), 1000);
    }
}
