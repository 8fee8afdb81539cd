//! The `api.json` of models.dev: an object of providers, each with its models and their prices per million tokens.

use gatewright_gateway::{ListedModel, ModelPrice, TieredPrice, TokenPrice};
use serde_json::Value;
use serde_json::value::RawValue;

use super::collected::{Collected, ListedProvider};
use super::number::{Members, PriceUnit, limit, price, whole};
use super::source::{Entries, members};

/// Providers by their name in the list, with our names.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("amazon-bedrock", &["bedrock", "bedrock-anthropic", "bedrock-converse"]),
    ("anthropic", &["anthropic"]),
    ("azure", &["azure-openai"]),
    ("cerebras", &["cerebras"]),
    ("cohere", &["cohere"]),
    ("deepseek", &["deepseek"]),
    ("fireworks-ai", &["fireworks"]),
    ("google", &["gemini", "gemini-compatible"]),
    ("google-vertex", &["vertex-gemini"]),
    ("google-vertex-anthropic", &["vertex-anthropic"]),
    ("groq", &["groq"]),
    ("mistral", &["mistral"]),
    ("moonshotai", &["moonshot"]),
    ("openai", &["openai"]),
    ("openrouter", &["openrouter"]),
    ("togetherai", &["together"]),
    ("xai", &["xai"]),
    ("zai", &["zai"]),
];

/// The kinds of output that gateways serve.
const OUTPUTS: [&str; 3] = ["text", "image", "video"];
/// The prompt size that `context_over_200k` refers to.
const LARGE_PROMPT: u64 = 200_000;

/// Whether a list has this format: its providers have models.
pub(super) fn has_form(entries: &Entries<'_>) -> bool {
    entries.values().any(|entry| models(entry).is_some())
}

/// The models of a provider, if an entry is one.
fn models(entry: &RawValue) -> Option<Entries<'_>> {
    members(members(entry)?.get("models").copied()?)
}

/// Errors: there are too many models.
pub(super) fn read(entries: &Entries<'_>, collected: &mut Collected) -> Result<(), String> {
    for (listed_as, entry) in entries {
        let names = PROVIDERS.iter().find(|(name, _)| name == listed_as).map_or(&[][..], |(_, names)| names);
        let provider = ListedProvider { listed_as, names };
        let Some(models) = models(entry) else {
            collected.leave_out(format!("{listed_as}: it has no models"));
            continue;
        };
        for (id, entry) in models {
            match serde_json::from_str::<Members>(entry.get()) {
                Ok(members) if !is_served(&members) => collected.not_served(provider),
                Ok(members) => collected.add(provider, &id, listed(&members))?,
                Err(error) => collected.add(provider, &id, Err(error.to_string()))?,
            }
        }
    }
    Ok(())
}

fn is_served(members: &Members) -> bool {
    let outputs = members.get("modalities").and_then(|modalities| modalities.get("output")?.as_array());
    outputs.is_none_or(|outputs| {
        outputs.iter().any(|output| output.as_str().is_some_and(|output| OUTPUTS.contains(&output)))
    })
}

/// A model, if it has a price. Errors: a number makes no sense.
fn listed(members: &Members) -> Result<Option<ListedModel>, String> {
    let Some(cost) = members.get("cost").and_then(Value::as_object) else { return Ok(None) };
    let Some(tokens) = token_price(cost)? else { return Ok(None) };
    let mut stated = ModelPrice::default();
    (stated.tokens, stated.tiers) = (tokens, tiers(cost)?);
    let mut model = ListedModel::new(stated);
    if let Some(limits) = members.get("limit").and_then(Value::as_object) {
        (model.context, model.max_output) = (limit(limits, "context")?, limit(limits, "output")?);
    }
    Ok(Some(model))
}

fn token_price(cost: &Members) -> Result<Option<TokenPrice>, String> {
    let stated = |name: &str| price(cost, name, PriceUnit::MillionTokens);
    let (input, output) = match (stated("input")?, stated("output")?) {
        (None, None) => return Ok(None),
        (Some(input), Some(output)) => (input, output),
        (Some(_), None) => return Err("output is missing".to_owned()),
        (None, Some(_)) => return Err("input is missing".to_owned()),
    };
    let mut tokens = TokenPrice::new(input, output);
    tokens.cached_input = stated("cache_read")?;
    tokens.cache_write = stated("cache_write")?;
    tokens.reasoning = stated("reasoning")?;
    Ok(Some(tokens))
}

/// The prices for large prompts: those of `tiers`, or the older `context_over_200k`.
fn tiers(cost: &Members) -> Result<Vec<TieredPrice>, String> {
    let mut tiers = Vec::new();
    if let Some(listed) = cost.get("tiers").and_then(Value::as_array) {
        for listed in listed.iter().filter_map(Value::as_object) {
            let tier = listed.get("tier");
            let of = |name: &str| tier.and_then(|tier| tier.get(name));
            if of("type").and_then(Value::as_str) != Some("context") {
                return Err("a tier does not depend on the prompt's size".to_owned());
            }
            let above = of("size").and_then(whole).filter(|size| *size > 0);
            let above = above.ok_or("a tier has no size")?;
            tiers.extend(token_price(listed)?.map(|tokens| TieredPrice::new(above, tokens)));
        }
    } else if let Some(large) = cost.get("context_over_200k").and_then(Value::as_object) {
        tiers.extend(token_price(large)?.map(|tokens| TieredPrice::new(LARGE_PROMPT, tokens)));
    }
    tiers.sort_by_key(|tier| tier.above);
    if tiers.windows(2).any(|pair| pair[0].above == pair[1].above) {
        return Err("two tiers have the same size".to_owned());
    }
    Ok(tiers)
}
