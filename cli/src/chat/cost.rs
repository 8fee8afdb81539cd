//! The cost of an answer, at the price that the gateway gives its console.

use std::time::Duration;

use gatewright::operations::LIST_MODELS;
use gatewright::visible::visible;
use gatewright::{Call, Client, Operation};
use gatewright_protocol::conversation::Usage;
use serde::Deserialize;

/// Timeout of the request for prices: the answer itself has arrived.
const WAIT: Duration = Duration::from_secs(2);
/// Number of tokens that a price is for.
const PRICED_TOKENS: f64 = 1_000_000.0;
/// What a key may use, and the prices of its models. Other gateways don't have it.
const SESSION: Operation = Operation { id: "session", path: "/console/session", ..LIST_MODELS };

#[derive(Debug, Deserialize)]
struct ConsoleSession {
    currency: Option<String>,
    models: Vec<PricedModel>,
}

#[derive(Debug, Deserialize)]
struct PricedModel {
    id: String,
    #[serde(default)]
    aliases: Vec<String>,
    price: Option<AnswerPrice>,
}

#[derive(Debug, Deserialize)]
struct AnswerPrice {
    tokens: TokenPrice,
    tiers: Vec<PriceTier>,
}

#[derive(Debug, Deserialize)]
struct PriceTier {
    above: u64,
    tokens: TokenPrice,
}

#[derive(Debug, Deserialize)]
struct TokenPrice {
    input: f64,
    output: f64,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
    reasoning: Option<f64>,
}

/// The cost of an answer, as text. `None`: the gateway gives no price of the model, or its upstreams have several.
pub(super) async fn cost(client: &Client, model: &str, usage: Usage) -> Option<String> {
    let answer = tokio::time::timeout(WAIT, client.call(Call::new(&SESSION))).await.ok()?.ok()?;
    let session: ConsoleSession = serde_json::from_slice(&answer.body).ok()?;
    let is_named =
        |known: &&PricedModel| known.id == model || known.aliases.iter().any(|alias| alias == model);
    let cost = session.models.iter().find(is_named)?.price.as_ref()?.cost(usage);
    let currency = session.currency.map(|currency| format!(" {}", visible(&currency)));
    Some(format!("{}{}", amount(cost), currency.unwrap_or_default()))
}

/// With two significant digits at least, since answers cost fractions of a cent.
fn amount(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.1 { format!("{cost:.2}") } else { format!("{cost:.6}") }
}

impl AnswerPrice {
    /// As the gateway computes it, but for its rounding: `tests/vectors/prices` holds both to the same costs.
    fn cost(&self, usage: Usage) -> f64 {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let cached = usage.cached.unwrap_or(0).min(input);
        let written = usage.cache_write.unwrap_or(0).min(input - cached);
        let reasoning = usage.reasoning.unwrap_or(0).min(output);
        // The highest tier that the prompt exceeds applies to the whole request.
        let exceeded = self.tiers.iter().filter(|tier| input > tier.above).max_by_key(|tier| tier.above);
        let rates = exceeded.map_or(&self.tokens, |tier| &tier.tokens);
        let parts = [
            (input - cached - written, rates.input),
            (cached, rates.cached_input.unwrap_or(rates.input)),
            (written, rates.cache_write.unwrap_or(rates.input)),
            (output - reasoning, rates.output),
            (reasoning, rates.reasoning.unwrap_or(rates.output)),
        ];
        // Exact for any number of tokens that a model takes.
        let tokens = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        parts.iter().map(|(count, rate)| tokens(*count) * rate).sum::<f64>() / PRICED_TOKENS
    }
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;

    use super::*;

    #[test]
    fn cost_is_that_of_the_vectors() {
        let cases = include_str!("../../../tests/vectors/prices/costs.json");
        let cases: Vec<serde_json::Value> = serde_json::from_str(cases).expect("cases");
        for case in &cases {
            let price: AnswerPrice = serde_json::from_value(case["price"].clone()).expect("a price");
            let usage = serde_json::value::to_raw_value(&case["usage"]).expect("JSON");
            let usage = Protocol::Chat.usage_in(&usage, Usage::default()).expect("a usage");
            let expected = case["cost"].as_f64().expect("a cost");
            assert!((price.cost(usage) - expected).abs() < 1e-9, "{}: {}", case["name"], price.cost(usage));
        }
        assert!(cases.len() > 5);
    }

    #[test]
    fn small_amounts_keep_their_digits() {
        assert_eq!([0.0, 0.000_123, 0.25, 12.0].map(amount), ["0.00", "0.000123", "0.25", "12.00"]);
    }
}
