//! LiteLLM's `model_prices_and_context_window.json`: an object of models, each with its provider and the prices per token.

use std::collections::BTreeSet;

use gatewright_gateway::{ListedModel, ModelPrice, TieredPrice, TokenPrice};
use serde_json::{Map, Value};

use super::collected::{Collected, ListedProvider};
use super::number::{Members, PriceUnit, limit, price, whole};
use super::source::{Entries, members};

/// Entries that are not models.
const NO_MODELS: [&str; 2] = ["sample_spec", "fallback_generalizations"];

/// The modes of models that are paid by token; others generate images or videos, read aloud, transcribe, or are of kinds that a gateway
/// doesn't serve.
const TOKEN_MODES: [&str; 6] = ["chat", "completion", "embedding", "moderation", "rerank", "responses"];

/// Providers by their name in the list, with our names.
const PROVIDERS: &[(&str, &[&str])] = &[
    ("anthropic", &["anthropic"]),
    ("azure", &["azure-openai"]),
    ("bedrock", &["bedrock", "bedrock-anthropic"]),
    ("bedrock_converse", &["bedrock", "bedrock-anthropic", "bedrock-converse"]),
    ("cerebras", &["cerebras"]),
    ("cohere", &["cohere", "cohere-rerank"]),
    ("cohere_chat", &["cohere"]),
    ("deepseek", &["deepseek"]),
    ("fireworks_ai", &["fireworks"]),
    ("gemini", &["gemini", "gemini-compatible"]),
    ("groq", &["groq"]),
    ("jina_ai", &["jina"]),
    ("mistral", &["mistral"]),
    ("moonshot", &["moonshot"]),
    ("openai", &["openai"]),
    ("openrouter", &["openrouter"]),
    ("text-completion-openai", &["openai"]),
    ("together_ai", &["together"]),
    ("xai", &["xai"]),
    ("zai", &["zai"]),
];

/// Providers with several names, such as `vertex_ai-language-models`, and the prefix of their model ids.
const FAMILIES: &[(&str, &[&str])] = &[("vertex_ai", &["vertex-gemini", "vertex-anthropic"])];

/// The members with token prices. For large prompts, each has a suffix.
const INPUT: &str = "input_cost_per_token";
const OUTPUT: &str = "output_cost_per_token";
const CACHED_INPUT: &str = "cache_read_input_token_cost";
/// An older name.
const CACHE_HIT: &str = "input_cost_per_token_cache_hit";
const CACHE_WRITE: &str = "cache_creation_input_token_cost";
const REASONING: &str = "output_cost_per_reasoning_token";

/// Whether a list has this format: its models name their providers.
pub(super) fn has_form(entries: &Entries<'_>) -> bool {
    entries
        .values()
        .any(|entry| members(entry).is_some_and(|members| members.contains_key("litellm_provider")))
}

/// Errors: there are too many models.
pub(super) fn read(entries: &Entries<'_>, collected: &mut Collected) -> Result<(), String> {
    for (id, entry) in entries.iter().filter(|(id, _)| !NO_MODELS.contains(&id.as_str())) {
        let model: Members = match serde_json::from_str(entry.get()) {
            Ok(model) => model,
            Err(error) => {
                collected.leave_out(format!("{id}: {error}"));
                continue;
            }
        };
        let Some(listed_as) = model.get("litellm_provider").and_then(Value::as_str) else {
            collected.leave_out(format!("{id}: it has no litellm_provider"));
            continue;
        };
        let (prefix, names) = provider(listed_as);
        let provider = ListedProvider { listed_as, names };
        match PricedMedium::of(&model) {
            Some(mode) => {
                let id = id.strip_prefix(prefix).and_then(|id| id.strip_prefix('/')).unwrap_or(id);
                collected.add(provider, id, listed(&model, mode))?;
            }
            None => collected.not_served(provider),
        }
    }
    Ok(())
}

/// The prefix of a provider's model ids, and our names for it.
fn provider(listed_as: &str) -> (&str, &'static [&'static str]) {
    if let Some((_, names)) = PROVIDERS.iter().find(|(name, _)| *name == listed_as) {
        let prefix = if listed_as == "bedrock_converse" { "bedrock" } else { listed_as };
        return (prefix, names);
    }
    let family = FAMILIES.iter().find(|(prefix, _)| listed_as.starts_with(prefix));
    family.map_or((listed_as, &[]), |(prefix, names)| (prefix, names))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PricedMedium {
    Tokens,
    Image,
    Video,
    Speech,
    Transcription,
}

impl PricedMedium {
    /// `None`: a gateway doesn't serve such models.
    fn of(members: &Members) -> Option<Self> {
        match members.get("mode").and_then(Value::as_str) {
            None => Some(Self::Tokens),
            Some(mode) if TOKEN_MODES.contains(&mode) => Some(Self::Tokens),
            Some("image_generation" | "image_edit") => Some(Self::Image),
            Some("video_generation") => Some(Self::Video),
            Some("audio_speech") => Some(Self::Speech),
            Some("audio_transcription") => Some(Self::Transcription),
            Some(_) => None,
        }
    }
}

/// A model, if it has a price. Errors: a number makes no sense.
fn listed(members: &Members, mode: PricedMedium) -> Result<Option<ListedModel>, String> {
    let media = |names: &[&str]| {
        let mut stated = names.iter().map(|name| price(members, name, PriceUnit::ImageOrSecond));
        stated.find_map(Result::transpose).transpose()
    };
    let mut stated = ModelPrice::default();
    match mode {
        PricedMedium::Tokens => {}
        PricedMedium::Image => stated.image = media(&["output_cost_per_image", "input_cost_per_image"])?,
        PricedMedium::Video => {
            stated.video_second = media(&["output_cost_per_video_per_second", "output_cost_per_second"])?;
        }
        PricedMedium::Speech => {
            stated.speech_characters = price(members, "input_cost_per_character", PriceUnit::Character)?;
            // No provider says how many tokens a speech has.
            return Ok(stated.speech_characters.map(|_| ListedModel::new(stated)));
        }
        PricedMedium::Transcription => {
            // Some entries state one price under both names, others 0 under one of them.
            let seconds = [media(&["input_cost_per_second"])?, media(&["output_cost_per_second"])?];
            stated.audio_second = seconds.into_iter().flatten().reduce(f64::max);
        }
    }
    let by_range = ranges(members)?;
    let (mut tokens, tiers) = match (token_price(members, "", None)?, by_range) {
        (Some(tokens), _) => (Some(tokens), tiers(members, tokens)?),
        (None, Some((tokens, tiers))) => (Some(tokens), tiers),
        (None, None) => (None, Vec::new()),
    };
    // Rankings that are billed by the query have token prices of 0, but aren't free.
    let per_query = match members.get("mode").and_then(Value::as_str) {
        Some("rerank") => price(members, "input_cost_per_query", PriceUnit::ImageOrSecond)?,
        _ => None,
    };
    if let (PricedMedium::Transcription, Some(tokens)) = (mode, &mut tokens) {
        // Nearly all that it reads is a sound.
        let audio = price(members, "input_cost_per_audio_token", PriceUnit::Token)?;
        tokens.input = audio.unwrap_or(tokens.input);
        if tokens.input > 0.0 || tokens.output > 0.0 {
            // The seconds of such a list are the provider's estimate.
            stated.audio_second = None;
        }
    }
    let media = [stated.image, stated.video_second, stated.audio_second];
    if per_query.is_some_and(|price| price > 0.0) || tokens.is_none() && media.iter().all(Option::is_none) {
        return Ok(None);
    }
    (stated.tokens, stated.tiers) = (tokens.unwrap_or_default(), tiers);
    let mut model = ListedModel::new(stated);
    model.context = limit(members, "max_input_tokens")?;
    model.max_output = limit(members, "max_output_tokens")?;
    Ok(Some(model))
}

/// The token prices in the members with this suffix. Missing ones are as in `before`, if given.
fn token_price(
    members: &Members,
    ending: &str,
    before: Option<TokenPrice>,
) -> Result<Option<TokenPrice>, String> {
    let stated = |name: &str| price(members, &format!("{name}{ending}"), PriceUnit::Token);
    let (input, output) = (stated(INPUT)?, stated(OUTPUT)?);
    let cached = match stated(CACHED_INPUT)? {
        None if ending.is_empty() => price(members, CACHE_HIT, PriceUnit::Token)?,
        cached => cached,
    };
    let stated_or = |stated: Option<f64>, of: fn(TokenPrice) -> f64| stated.or(before.map(of));
    let (input, output) =
        match (stated_or(input, |before| before.input), stated_or(output, |before| before.output)) {
            (Some(input), Some(output)) => (input, output),
            (None, None) => return Ok(None),
            (Some(_), None) => return Err(format!("{OUTPUT} is missing")),
            (None, Some(_)) => return Err(format!("{INPUT} is missing")),
        };
    let mut tokens = TokenPrice::new(input, output);
    tokens.cached_input = cached.or(before.and_then(|before| before.cached_input));
    tokens.cache_write = stated(CACHE_WRITE)?.or(before.and_then(|before| before.cache_write));
    tokens.reasoning = stated(REASONING)?.or(before.and_then(|before| before.reasoning));
    Ok(Some(tokens))
}

/// The prices for large prompts: members such as `input_cost_per_token_above_200k_tokens`. Each replaces one price and keeps
/// the others as for smaller prompts.
fn tiers(members: &Members, base: TokenPrice) -> Result<Vec<TieredPrice>, String> {
    let thousands = |name: &String| {
        let of = |member: &str| name.strip_prefix(member)?.strip_prefix("_above_")?.strip_suffix("k_tokens");
        let size = [INPUT, OUTPUT, CACHED_INPUT, CACHE_WRITE, REASONING].into_iter().find_map(of)?;
        // Three digits more than any model's context.
        (size.len() <= 6).then(|| size.parse::<u64>().ok())?.filter(|size| *size > 0)
    };
    let sizes: BTreeSet<u64> = members.keys().filter_map(thousands).collect();
    let mut before = base;
    let mut tiers = Vec::new();
    for size in sizes {
        if let Some(tokens) = token_price(members, &format!("_above_{size}k_tokens"), Some(before))? {
            tiers.push(TieredPrice::new(size * 1000, tokens));
            before = tokens;
        }
    }
    Ok(tiers)
}

/// The prices in `tiered_pricing`: one per range of prompt sizes.
fn ranges(members: &Members) -> Result<Option<(TokenPrice, Vec<TieredPrice>)>, String> {
    let Some(ranges) = members.get("tiered_pricing").and_then(Value::as_array) else { return Ok(None) };
    let mut tiers = Vec::new();
    for range in ranges {
        let empty = Map::new();
        let prices = range.as_object().unwrap_or(&empty);
        let begins = prices.get("range").and_then(|range| whole(range.get(0)?));
        let (Some(above), Some(tokens)) = (begins, token_price(prices, "", None)?) else { return Ok(None) };
        tiers.push(TieredPrice::new(above, tokens));
    }
    tiers.sort_by_key(|tier| tier.above);
    if tiers.windows(2).any(|pair| pair[0].above == pair[1].above) {
        return Err("two ranges of tiered_pricing start at the same size".to_owned());
    }
    match tiers.split_first() {
        Some((first, rest)) if first.above == 0 => Ok(Some((first.tokens, rest.to_vec()))),
        _ => Ok(None),
    }
}
