//! Log probabilities: two lists here, an array of tokens with alternatives in the neutral form.

use serde_json::{Value, json};

use crate::json::list;

/// The tokens of a candidate, in the neutral form; `None`: there are none.
pub(super) fn tokens(candidate: &Value) -> Option<Value> {
    let result = &candidate["logprobsResult"];
    let top =
        list(&result["topCandidates"]).map(|top| list(&top["candidates"]).map(token).collect::<Value>());
    let mut top = top.fuse();
    let tokens: Vec<Value> = list(&result["chosenCandidates"])
        .map(|chosen| {
            let mut token = token(chosen);
            token["top_logprobs"] = top.next().unwrap_or_else(|| json!([]));
            token
        })
        .collect();
    (!tokens.is_empty()).then_some(Value::Array(tokens))
}

fn token(candidate: &Value) -> Value {
    let text = candidate["token"].as_str().unwrap_or_default();
    json!({ "token": text, "logprob": candidate["logProbability"], "bytes": text.as_bytes() })
}

/// The two lists.
pub(super) fn result(tokens: &Value) -> Value {
    let candidate = |token: &Value| json!({ "token": token["token"], "logProbability": token["logprob"] });
    let chosen: Vec<Value> = list(tokens).map(candidate).collect();
    let top: Vec<Value> = list(tokens)
        .map(|token| json!({ "candidates": list(&token["top_logprobs"]).map(candidate).collect::<Vec<_>>() }))
        .collect();
    json!({ "chosenCandidates": chosen, "topCandidates": top })
}
