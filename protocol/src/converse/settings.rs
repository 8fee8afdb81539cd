//! Settings of a request: limits, sampling, thinking, the format of the answer.

use serde_json::{Map, Number, Value, json};

use super::features::ModelFeatures;
use crate::Defaults;
use crate::conversation::{Conversation, Format, Located, ThinkingBudget};
use crate::members::{RequestWriter, object};
use crate::messages::{SUMMARIZED, ThinkingPlan, enforced, plan_thinking, shows_thoughts};
use crate::model_rules::accepted_sampling;

/// Maximum temperature.
const MAX_TEMPERATURE: f64 = 1.0;
/// Minimum `topP` with thinking.
const MIN_TOP_P: f64 = 0.95;
/// Maximum number of pairs of `requestMetadata`.
const MAX_METADATA: usize = 16;
/// Maximum length of a name or a value there.
const MAX_METADATA_BYTES: usize = 256;

/// Writes the settings.
pub(super) fn write(
    conversation: &Conversation,
    features: ModelFeatures,
    defaults: Defaults,
    writer: &mut RequestWriter<'_>,
    body: &mut Map<String, Value>,
) {
    let mut settings = ConverseSettings { features, ..ConverseSettings::default() };
    let plan = settings.thinking(conversation, defaults, writer);
    settings.stop(conversation, writer);
    settings.sampling(conversation, plan.budget.is_some(), writer);
    settings.format(conversation, writer);
    settings.tier(conversation, writer);
    settings.metadata(conversation, writer);
    lose_others(conversation, writer);
    let ConverseSettings { inference, additional, output, request, .. } = settings;
    for (name, object) in [
        ("inferenceConfig", inference),
        ("additionalModelRequestFields", additional),
        ("outputConfig", output),
    ] {
        if !object.is_empty() {
            body.insert(name.to_owned(), object.into());
        }
    }
    body.extend(request);
}

#[derive(Default)]
struct ConverseSettings {
    features: ModelFeatures,
    /// `inferenceConfig`.
    inference: Map<String, Value>,
    /// `additionalModelRequestFields`.
    additional: Map<String, Value>,
    /// `outputConfig`.
    output: Map<String, Value>,
    /// Fields of the request itself.
    request: Map<String, Value>,
}

impl ConverseSettings {
    /// Writes the maximum number of tokens, and how many of them are for thinking.
    fn thinking<'c>(
        &mut self,
        conversation: &'c Conversation,
        defaults: Defaults,
        writer: &mut RequestWriter<'_>,
    ) -> ThinkingPlan<'c> {
        let given = conversation.max_tokens.as_ref().map(|max| max.value);
        let plan = if self.features.messages_settings {
            plan_thinking(conversation, writer.target(), given, defaults.thinking)
        } else {
            lose_thinking(conversation, writer);
            ThinkingPlan::default()
        };
        for at in &plan.lost {
            writer.lose((*at).clone());
        }
        // Thinking counts towards the limit. Without a limit, the model's own applies.
        let needed = (plan.tokens > 0).then(|| defaults.max_tokens.saturating_add(plan.tokens));
        if let Some(max) = given.or(needed) {
            self.inference.insert("maxTokens".to_owned(), max.into());
        }
        let thinking = match plan.budget {
            Some(ThinkingBudget::Tokens(tokens)) => {
                Some(json!({ "type": "enabled", "budget_tokens": tokens }))
            }
            Some(ThinkingBudget::Adaptive) if shows_thoughts(&conversation.reasoning) => {
                Some(json!({ "type": "adaptive", "display": SUMMARIZED }))
            }
            Some(ThinkingBudget::Adaptive) => Some(json!({ "type": "adaptive" })),
            Some(ThinkingBudget::Off) | None => None,
        };
        self.additional.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
        self.output.extend(plan.effort.map(|effort| ("effort".to_owned(), effort.into())));
        // Thoughts are shown in full, and not at all if the model doesn't think.
        if let Some(summary) = &conversation.reasoning.summary
            && !matches!(summary.value.as_str(), "auto" | "none")
        {
            writer.lose(summary.at.clone());
        }
        plan
    }

    fn stop(&mut self, conversation: &Conversation, writer: &mut RequestWriter<'_>) {
        let mut sequences = Vec::with_capacity(conversation.stop.len());
        for sequence in &conversation.stop {
            // Servers reject a whitespace-only sequence.
            if sequence.value.trim().is_empty() {
                writer.lose(sequence.at.clone());
            } else {
                sequences.push(sequence.value.as_str());
            }
        }
        if !sequences.is_empty() {
            self.inference.insert("stopSequences".to_owned(), sequences.into());
            // Requests the stop sequence that was reached. Servers ignore the path if their model doesn't report it.
            self.request.insert("additionalModelResponseFieldPaths".to_owned(), json!(["/stop_sequence"]));
        }
    }

    /// Writes the sampling parameters. `thinks`: with thinking, models reject most of them.
    fn sampling(&mut self, conversation: &Conversation, thinks: bool, writer: &mut RequestWriter<'_>) {
        let sampling = accepted_sampling(conversation, writer);
        let is_possible =
            |number: f64| (0.0..=MAX_TEMPERATURE).contains(&number) && (!thinks || number >= 1.0);
        let temperature = sampling.temperature.as_ref().filter(|given| is_possible(float(given)));
        // Newer models accept only one of the two. A temperature of 1 is their default.
        let is_one_of_two = self.features.messages_settings && sampling.top_p.is_some();
        let temperature = temperature.filter(|given| !is_one_of_two || float(given) < MAX_TEMPERATURE);
        let least = if thinks { MIN_TOP_P } else { 0.0 };
        let top_p = sampling.top_p.as_ref().filter(|given| (least..=1.0).contains(&float(given)));
        let top_p = top_p.filter(|_| !is_one_of_two || temperature.is_none());
        let top_k = sampling.top_k.as_ref().filter(|_| self.features.messages_settings && !thinks);
        let mut write = |object: &mut Map<String, Value>,
                         name: &str,
                         written: Option<&Located<Number>>,
                         given: &Option<Located<Number>>| {
            match (written, given) {
                (Some(written), _) => drop(object.insert(name.to_owned(), written.value.clone().into())),
                (None, Some(given)) => writer.lose(given.at.clone()),
                (None, None) => {}
            }
        };
        write(&mut self.inference, "temperature", temperature, &sampling.temperature);
        write(&mut self.inference, "topP", top_p, &sampling.top_p);
        write(&mut self.additional, "top_k", top_k, &sampling.top_k);
        for given in [&sampling.frequency_penalty, &sampling.presence_penalty].into_iter().flatten() {
            // No penalty is this protocol's behavior anyway.
            if float(given) != 0.0 {
                writer.lose(given.at.clone());
            }
        }
        if let Some(seed) = &sampling.seed {
            writer.lose(seed.at.clone());
        }
    }

    fn format(&mut self, conversation: &Conversation, writer: &mut RequestWriter<'_>) {
        let Some(given) = &conversation.format else { return };
        match &given.value {
            Format::Text => {}
            Format::JsonSchema { name, description, schema, .. } => {
                let schema = enforced(schema, &given.at, writer).to_string();
                let mut definition = object([("schema", schema.into())]);
                definition.extend(name.as_ref().map(|name| ("name".to_owned(), name.as_str().into())));
                let description = description.as_ref().map(|description| description.value.as_str());
                definition.extend(description.map(|text| ("description".to_owned(), text.into())));
                let format = json!({ "type": "json_schema", "structure": { "jsonSchema": definition } });
                self.output.insert("textFormat".to_owned(), format);
            }
            Format::JsonObject | Format::OneOf(_) | Format::Other(_) => writer.lose(given.at.clone()),
        }
    }

    fn tier(&mut self, conversation: &Conversation, writer: &mut RequestWriter<'_>) {
        let Some(tier) = &conversation.service_tier else { return };
        match tier.value.as_str() {
            "auto" => {}
            word @ ("default" | "flex" | "priority" | "reserved") => {
                self.request.insert("serviceTier".to_owned(), json!({ "type": word }));
            }
            _ => writer.lose(tier.at.clone()),
        }
    }

    fn metadata(&mut self, conversation: &Conversation, writer: &mut RequestWriter<'_>) {
        let Some(metadata) = &conversation.metadata else { return };
        let is_right = |(name, value): (&String, &Value)| {
            !name.is_empty() && is_metadata(name) && value.as_str().is_some_and(is_metadata)
        };
        if metadata.value.is_empty() {
            return;
        }
        if metadata.value.len() <= MAX_METADATA && metadata.value.iter().all(is_right) {
            self.request.insert("requestMetadata".to_owned(), metadata.value.clone().into());
        } else {
            writer.lose(metadata.at.clone());
        }
    }
}

fn float(given: &Located<Number>) -> f64 {
    given.value.as_f64().unwrap_or_default()
}

/// Whether servers accept a name or a value of `requestMetadata`.
fn is_metadata(text: &str) -> bool {
    let is_right = |byte: u8| {
        byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b":_@$#=/+,-.".contains(&byte)
    };
    text.len() <= MAX_METADATA_BYTES && text.bytes().all(is_right)
}

/// Reports thinking settings that the model does not support.
fn lose_thinking(conversation: &Conversation, writer: &mut RequestWriter<'_>) {
    let reasoning = &conversation.reasoning;
    let budget =
        reasoning.budget.as_ref().filter(|budget| budget.value != ThinkingBudget::Off).map(|it| &it.at);
    let effort = reasoning.effort.as_ref().filter(|effort| effort.value != "none").map(|it| &it.at);
    for at in budget.into_iter().chain(effort.filter(|effort| budget != Some(effort))) {
        writer.lose(at.clone());
    }
}

/// Reports what the protocol can't express at all.
fn lose_others(conversation: &Conversation, writer: &mut RequestWriter<'_>) {
    let choices = conversation.choices.as_ref().filter(|choices| choices.value != 1).map(|it| &it.at);
    let others = [
        choices,
        conversation.logprobs.as_ref().map(|it| &it.at),
        conversation.verbosity.as_ref().map(|it| &it.at),
        conversation.user.as_ref().map(|it| &it.at),
    ];
    for at in others.into_iter().flatten() {
        writer.lose(at.clone());
    }
}
