//! Embeddings of the simulator.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright::limits::integer;
use gatewright_protocol::json::{list, text};
use gatewright_simulator::budget::{Budget, BudgetExceeded};
use gatewright_simulator::embedding::vector;
use gatewright_simulator::tokens::counted;
use serde_json::{Value, json};

use crate::models;
use crate::wire::{ApiError, Call, Response, json_response};

/// Bytes of a number in an answer.
const NUMBER: usize = 12;

/// `POST /v1/embeddings`.
pub(super) fn create(call: &Call, budget: &Budget) -> Result<Response, ApiError> {
    let body = call.checked_body()?;
    let model = models::embedding_model(text(&body["model"]), call.operation)?;
    let longest = usize::try_from(model.dimensions).unwrap_or(usize::MAX);
    Ok(json_response(&answer(&body, longest, budget)?))
}

/// The answer to a valid request. `longest`: the length of the model's vectors.
fn answer(request: &Value, longest: usize, budget: &Budget) -> Result<Value, BudgetExceeded> {
    let requested = integer(&request["dimensions"]).and_then(|requested| usize::try_from(requested).ok());
    let length = requested.map_or(longest, |requested| requested.min(longest));
    let in_base64 = request["encoding_format"] == "base64";
    let input = &request["input"];
    let inputs = if is_one(input) { std::slice::from_ref(input) } else { list(input).as_slice() };
    let (mut data, mut tokens) = (Vec::with_capacity(inputs.len()), 0);
    for (index, input) in inputs.iter().enumerate() {
        budget.make(length * NUMBER)?;
        let vector = match input {
            Value::Array(numbers) => {
                tokens += numbers.len();
                let words: Vec<String> = numbers.iter().map(Value::to_string).collect();
                vector(&words.join(" "), length, budget)?
            }
            input => {
                tokens += counted(text(input), budget)?;
                vector(text(input), length, budget)?
            }
        };
        let vector = if in_base64 { base64_of(&vector).into() } else { json!(vector) };
        data.push(json!({ "object": "embedding", "index": index, "embedding": vector }));
    }
    Ok(json!({
        "object": "list",
        "data": data,
        "model": request["model"],
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

/// Whether an input is one text, or the tokens of one.
fn is_one(input: &Value) -> bool {
    input.is_string() || list(input).next().is_some_and(Value::is_number)
}

/// The 32-bit floats of a vector, little-endian, as base64.
fn base64_of(vector: &[f64]) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "the form has 32 bits for a number")]
    let bytes: Vec<u8> = vector.iter().flat_map(|number| (*number as f32).to_le_bytes()).collect();
    BASE64_STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(request: &Value) -> Value {
        answer(request, 256, &Budget::new()).expect("within the budget")
    }

    fn vectors(input: &Value) -> Value {
        let mut answer = embedded(&json!({ "model": "m", "input": input }));
        answer["data"].take()
    }

    #[test]
    fn tokens_are_one_input_and_lists_of_tokens_several() {
        assert_eq!(vectors(&json!([1, 2, 3])), vectors(&json!([[1, 2, 3]])));
        assert_eq!(vectors(&json!([[1, 2], [3]])).as_array().map(Vec::len), Some(2));
        let usage = &embedded(&json!({ "model": "m", "input": [[1, 2], [3]] }))["usage"];
        assert_eq!(usage, &json!({ "prompt_tokens": 3, "total_tokens": 3 }));
    }

    #[test]
    fn dimensions_and_encoding_are_as_requested() {
        let request = json!({ "model": "m", "input": "a boat", "dimensions": 3 });
        let numbers = embedded(&request)["data"][0]["embedding"].clone();
        assert_eq!(numbers.as_array().map(Vec::len), Some(3));
        let request =
            json!({ "model": "m", "input": "a boat", "dimensions": 3, "encoding_format": "base64" });
        let encoded = embedded(&request)["data"][0]["embedding"].clone();
        let bytes = BASE64_STANDARD.decode(text(&encoded)).expect("base64");
        let (floats, rest) = bytes.as_chunks::<4>();
        assert!(rest.is_empty());
        for (float, number) in floats.iter().zip(list(&numbers)) {
            let float = f64::from(f32::from_le_bytes(*float));
            assert!((float - number.as_f64().expect("a number")).abs() < 1e-6);
        }
    }

    #[test]
    fn largest_list_is_within_the_budget() {
        let request = json!({ "model": "m", "input": vec!["word"; 2048] });
        assert_eq!(embedded(&request)["data"].as_array().map(Vec::len), Some(2048));
    }
}
