//! Writes requests of the messages protocol.

use serde_json::{Map, Number, Value};

use super::schema::enforced;
use super::thinking::ThinkingPlan;
use super::{arrangement, thinking, tools};
use crate::conversation::{Conversation, Format, Located, Protocol};
use crate::members::{RequestWriter, object};
use crate::model_rules::accepted_sampling;
use crate::{Defaults, EncodedRequest, user};

/// Maximum temperature of this protocol.
const MAX_TEMPERATURE: f64 = 1.0;
/// Maximum length of a user id, in characters.
const MAX_USER: usize = 256;
/// Minimum `top_p` with thinking.
const LEAST_TOP_P: f64 = 0.95;

/// Writes a provider's request.
pub(crate) fn request_out(conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
    let mut writer = RequestWriter::new(conversation, Protocol::Messages);
    let mut body = object([("model", conversation.model.as_str().into())]);
    let (system, messages) = if writer.is_same() {
        arrangement::as_it_was(conversation, &mut writer)
    } else {
        arrangement::arranged(conversation, &mut writer)
    };
    if let Some(system) = system {
        body.insert("system".to_owned(), system);
    }
    body.insert("messages".to_owned(), messages.into());
    tools::write(conversation, &mut writer, &mut body);
    let plan = write_limits(conversation, defaults, &mut writer, &mut body);
    write_stop(conversation, &mut writer, &mut body);
    write_sampling(conversation, plan.budget.is_some(), &mut writer, &mut body);
    write_output_config(conversation, plan.effort, &mut writer, &mut body);
    if let Some(user) = &conversation.user {
        let id = if writer.is_same() {
            user.value.as_str().into()
        } else {
            user::id_without_contact(&user.value, MAX_USER)
        };
        writer.set(&mut body, "metadata", object([("user_id", id.into())]), "/metadata");
    } else {
        writer.set(&mut body, "metadata", Map::new(), "/metadata");
    }
    write_tier(conversation, &mut writer, &mut body);
    lose_others(conversation, &mut writer);
    if conversation.stream {
        body.insert("stream".to_owned(), true.into());
    }
    writer.complete(&mut body, "");
    writer.finish(body)
}

/// Writes the maximum number of tokens, and how many of them are for thinking.
fn write_limits<'c>(
    conversation: &'c Conversation,
    defaults: Defaults,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) -> ThinkingPlan<'c> {
    let given = conversation.max_tokens.as_ref().map(|max| max.value);
    if writer.is_same() {
        if let Some(max) = given {
            body.insert("max_tokens".to_owned(), max.into());
        }
        let budget = conversation.reasoning.budget.as_ref().map(|budget| budget.value);
        if let Some(budget) = budget {
            thinking::write_back(budget, writer, body);
        }
        return ThinkingPlan { budget, ..ThinkingPlan::default() };
    }
    let plan = thinking::plan(conversation, Protocol::Messages, given, defaults.thinking);
    for at in &plan.lost {
        writer.lose((*at).clone());
    }
    // Thinking counts towards the limit: if the client sets none, it is added to the answer's.
    let max = given.unwrap_or_else(|| defaults.max_tokens.saturating_add(plan.tokens));
    body.insert("max_tokens".to_owned(), max.into());
    if let Some(budget) = plan.budget {
        thinking::write_shown(budget, &conversation.reasoning, writer, body);
    }
    plan
}

fn write_stop(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let mut sequences = Vec::with_capacity(conversation.stop.len());
    for sequence in &conversation.stop {
        // Providers reject a whitespace-only sequence.
        if writer.is_same() || !sequence.value.trim().is_empty() {
            sequences.push(sequence.value.as_str());
        } else {
            writer.lose(sequence.at.clone());
        }
    }
    if !sequences.is_empty() {
        body.insert("stop_sequences".to_owned(), sequences.into());
    }
}

/// Writes the sampling parameters. `thinks`: with thinking, providers reject most of them.
fn write_sampling(
    conversation: &Conversation,
    thinks: bool,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let sampling = accepted_sampling(conversation, writer);
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    let is_same = writer.is_same();
    // Newer models accept only one of the two. A temperature of 1 is their default.
    let both = sampling.temperature.as_ref().zip(sampling.top_p.as_ref()).filter(|_| !is_same);
    let temperature_is_possible =
        |number: f64| number <= MAX_TEMPERATURE && (!thinks || number >= MAX_TEMPERATURE);
    let (prefers_temperature, prefers_top_p) = both.map_or((true, true), |(temperature, _)| {
        let number = float(&temperature.value);
        let says_something = temperature_is_possible(number) && number < MAX_TEMPERATURE;
        (says_something, !says_something)
    });
    let mut write = |name: &str, given: &Option<Located<Number>>, is_possible: &dyn Fn(f64) -> bool| {
        let Some(number) = given else { return };
        if is_same || is_possible(float(&number.value)) {
            body.insert(name.to_owned(), number.value.clone().into());
        } else {
            writer.lose(number.at.clone());
        }
    };
    write("temperature", &sampling.temperature, &|temperature| {
        prefers_temperature && temperature_is_possible(temperature)
    });
    write("top_p", &sampling.top_p, &|top_p| prefers_top_p && (!thinks || top_p >= LEAST_TOP_P));
    write("top_k", &sampling.top_k, &|_| !thinks);
    for given in [&sampling.frequency_penalty, &sampling.presence_penalty].into_iter().flatten() {
        // No penalty is this protocol's behavior anyway.
        if float(&given.value) != 0.0 {
            writer.lose(given.at.clone());
        }
    }
    if let Some(seed) = &sampling.seed {
        writer.lose(seed.at.clone());
    }
}

/// Writes the effort and the text format. `effort`: for a client of another protocol.
fn write_output_config(
    conversation: &Conversation,
    effort: Option<&str>,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    // Thoughts are shown in full, and not at all if the model doesn't think.
    if let Some(summary) = &conversation.reasoning.summary
        && !matches!(summary.value.as_str(), "auto" | "none")
    {
        writer.lose(summary.at.clone());
    }
    let mut config = Map::new();
    let given = conversation.reasoning.effort.as_ref().filter(|_| writer.is_same());
    if let Some(effort) = given.map(|effort| effort.value.as_str()).or(effort) {
        config.insert("effort".to_owned(), effort.into());
    }
    if let Some(given) = &conversation.format {
        let at: &str = if writer.is_same() { &given.at } else { "/output_config/format" };
        let written = match &given.value {
            Format::Text => None,
            Format::JsonSchema { description, schema, .. } => {
                if let Some(description) = description {
                    writer.lose(description.at.clone());
                }
                let schema =
                    if writer.is_same() { schema.clone() } else { enforced(schema, &given.at, writer) };
                let mut format = object([("type", "json_schema".into()), ("schema", schema)]);
                writer.complete(&mut format, at);
                Some(Value::Object(format))
            }
            Format::Other(value) if writer.is_same() => Some(value.clone()),
            Format::JsonObject | Format::OneOf(_) | Format::Other(_) => {
                writer.lose(given.at.clone());
                None
            }
        };
        if let Some(written) = written {
            let (object, name) =
                if at == "/output_format" { (&mut *body, "output_format") } else { (&mut config, "format") };
            object.insert(name.to_owned(), written);
        }
    }
    writer.set(body, "output_config", config, "/output_config");
}

fn write_tier(conversation: &Conversation, writer: &mut RequestWriter<'_>, body: &mut Map<String, Value>) {
    let Some(tier) = &conversation.service_tier else { return };
    let word = match tier.value.as_str() {
        "auto" => "auto",
        "default" => "standard_only",
        _ => return writer.lose(tier.at.clone()),
    };
    body.insert("service_tier".to_owned(), word.into());
}

/// Reports what this protocol can't express at all.
fn lose_others(conversation: &Conversation, writer: &mut RequestWriter<'_>) {
    if let Some(choices) = conversation.choices.as_ref().filter(|choices| choices.value != 1) {
        writer.lose(choices.at.clone());
    }
    if let Some(logprobs) = &conversation.logprobs {
        writer.lose(logprobs.at.clone());
    }
    if let Some(verbosity) = &conversation.verbosity {
        writer.lose(verbosity.at.clone());
    }
    if let Some(metadata) = &conversation.metadata {
        writer.lose(metadata.at.clone());
    }
}
