//! What well-known models reject although their protocol has it, by their names. The rules apply to translated requests: their
//! clients wrote them for other models.

use std::borrow::Cow;

use serde_json::Number;

use crate::conversation::{Conversation, Located, Sampling, ThinkingBudget};
use crate::effort::{budget_of, effort_of};
use crate::members::RequestWriter;

/// The least thinking of a model that always thinks, in tokens.
const LEAST_THINKING: u64 = 128;
/// Models of this version and later ones have no sampling parameters.
const FIRST_CLAUDE_WITH_FIXED_SAMPLING: (u32, u32) = (4, 7);
const FIRST_GPT_WITH_FIXED_SAMPLING: (u32, u32) = (5, 6);

/// The sampling parameters that the model accepts. Those that it rejects are reported, unless they are its defaults.
///
/// Sources: platform.openai.com/docs/guides/latest-model (GPT-5.1 has them only without reasoning), khoj-ai/khoj#1377 (GPT-5.6),
/// platform.claude.com/docs/en/about-claude/models/migration-guide (since Opus 4.7), google-gemini/cookbook#1290 (penalties since
/// Gemini 2.5).
pub(super) fn accepted_sampling<'c>(
    conversation: &'c Conversation,
    writer: &mut RequestWriter<'_>,
) -> Cow<'c, Sampling> {
    let (has_fixed_sampling, has_no_penalties) =
        (has_fixed_sampling(conversation), has_no_penalties(&conversation.model));
    if writer.is_same() || !has_fixed_sampling && !has_no_penalties {
        return Cow::Borrowed(&conversation.sampling);
    }
    let mut sampling = conversation.sampling.clone();
    let mut omit = |given: &mut Option<Located<Number>>, default: Option<f64>| {
        if let Some(given) = given.take()
            && given.value.as_f64() != default
        {
            writer.lose(given.at);
        }
    };
    omit(&mut sampling.frequency_penalty, Some(0.0));
    omit(&mut sampling.presence_penalty, Some(0.0));
    if has_fixed_sampling {
        omit(&mut sampling.temperature, Some(1.0));
        omit(&mut sampling.top_p, Some(1.0));
        omit(&mut sampling.top_k, None);
    }
    Cow::Owned(sampling)
}

/// Whether the model has no sampling parameters. Versions decide rather than names, so that a newer model of a family is treated like its
/// predecessor.
fn has_fixed_sampling(conversation: &Conversation) -> bool {
    let id = name(&conversation.model);
    if let Some((_, rest)) = id.split_once("claude-") {
        // A preview of a new family has no version yet.
        return version(rest).is_none_or(|version| version >= FIRST_CLAUDE_WITH_FIXED_SAMPLING);
    }
    if let Some(rest) = id.strip_prefix("gpt-") {
        return match version(rest.split('-').next().unwrap_or_default()) {
            Some(version) if version >= FIRST_GPT_WITH_FIXED_SAMPLING => true,
            Some((5, 0)) => !rest.contains("-chat"),
            Some(version) if version > (5, 0) => {
                thinks(conversation) || rest.contains("-pro") || rest.contains("-codex")
            }
            _ => false,
        };
    }
    ["o1", "o3", "o4-mini"].iter().any(|name| is_version_of(id, name))
}

/// The version in a part of a model's id, such as 4 and 7 of `opus-4-7-20260416`, or 5 and 0 of `sonnet-5`.
fn version(rest: &str) -> Option<(u32, u32)> {
    let words = rest.split(|letter: char| !letter.is_ascii_alphanumeric());
    // Longer numbers are dates.
    let mut numbers =
        words.map(|word| word.trim_start_matches('v').parse().ok().filter(|number| *number < 100));
    let major = numbers.by_ref().flatten().next()?;
    Some((major, numbers.next().flatten().unwrap_or_default()))
}

/// Whether the model knows no penalties.
fn has_no_penalties(id: &str) -> bool {
    ["gemini-2.5", "gemini-3"].iter().any(|family| name(id).starts_with(family))
}

/// The least number of thinking tokens that the model accepts.
///
/// Source: ai.google.dev/gemini-api/docs/thinking ("128 to 32768", "Cannot disable thinking").
pub(super) fn least_thinking(model: &str) -> u64 {
    if is_version_of(name(model), "gemini-2.5-pro") { LEAST_THINKING } else { 0 }
}

/// Whether the request turns thinking on.
fn thinks(conversation: &Conversation) -> bool {
    let wanted = &conversation.reasoning;
    match (&wanted.effort, &wanted.budget) {
        (Some(effort), _) => budget_of(&effort.value) != Some(0),
        (None, Some(Located { value: ThinkingBudget::Tokens(tokens), .. })) => {
            effort_of(*tokens) != effort_of(0)
        }
        (None, _) => false,
    }
}

/// The id of a model without what a gateway or cloud writes before it.
fn name(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// Whether an id is this name, alone or followed by more, such as a size or a date.
fn is_version_of(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::conversation::Protocol;
    use crate::{Defaults, EncodedRequest};

    /// The request of a chat client for a model, as a provider of this protocol gets it.
    fn written(protocol: Protocol, model: &str, more: &Value) -> EncodedRequest {
        let mut request = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] });
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let client = if protocol == Protocol::Chat { Protocol::Messages } else { Protocol::Chat };
        let mut conversation = client.request_in(request, "mine", false).expect("a request");
        conversation.model = model.to_owned();
        let defaults = Defaults { max_tokens: 64, ..Defaults::default() };
        protocol.request_out(&conversation, defaults)
    }

    #[test]
    fn sampling_is_omitted_for_models_with_their_own() {
        let sampling = json!({ "max_tokens": 9, "temperature": 0.5, "top_p": 0.5 });
        let temperature = |protocol, model: &str, more: &Value| {
            let EncodedRequest { body, dropped } = written(protocol, model, more);
            let sent = [&body["temperature"], &body["inferenceConfig"]["temperature"]];
            let is_sent = sent.into_iter().any(Value::is_number);
            assert_ne!(is_sent, dropped.iter().any(|at| at == "/temperature"), "{model}: {body} {dropped:?}");
            is_sent
        };
        for (protocol, model, expected) in [
            (Protocol::Chat, "gpt-4.1", true),
            (Protocol::Chat, "o3-mini-2025-01-31", false),
            (Protocol::Chat, "o30", true),
            (Protocol::Chat, "openai/gpt-5", false),
            (Protocol::Responses, "gpt-5-mini", false),
            (Protocol::Responses, "gpt-5-chat-latest", true),
            (Protocol::Responses, "gpt-5.1", true),
            (Protocol::Responses, "gpt-5.2-pro", false),
            (Protocol::Responses, "gpt-5.6-luna", false),
            (Protocol::Responses, "gpt-6", false),
            (Protocol::Chat, "gpt-4o-2024-08-06", true),
            (Protocol::Chat, "gpt-oss-120b", true),
            (Protocol::Converse, "anthropic.claude-v2:1", true),
            (Protocol::Messages, "claude-3-7-sonnet-20250219", true),
            (Protocol::Messages, "claude-sonnet-4-20250514", true),
            (Protocol::Messages, "claude-opus-4-6", true),
            (Protocol::Messages, "claude-opus-4-7", false),
            (Protocol::Chat, "anthropic/claude-opus-4.8", false),
            (Protocol::Messages, "claude-sonnet-5", false),
            (Protocol::Messages, "claude-mythos-preview", false),
            (Protocol::Converse, "eu.anthropic.claude-opus-4-8-v1:0", false),
            (Protocol::Converse, "anthropic.claude-3-5-sonnet-20240620-v1:0", true),
        ] {
            assert_eq!(temperature(protocol, model, &sampling), expected, "{model}");
        }
        let thinking = json!({ "temperature": 0.5, "reasoning_effort": "low" });
        assert!(!temperature(Protocol::Responses, "gpt-5.1", &thinking));
    }

    #[test]
    fn default_sampling_is_omitted_without_a_report() {
        let defaults =
            json!({ "temperature": 1, "top_p": 1.0, "frequency_penalty": 0, "presence_penalty": 0.0 });
        for (protocol, model) in [(Protocol::Responses, "gpt-5"), (Protocol::Native, "gemini-2.5-flash")] {
            let EncodedRequest { body, dropped } = written(protocol, model, &defaults);
            let config = &body["generationConfig"];
            for name in ["temperature", "top_p", "frequency_penalty"] {
                assert!(body[name].is_null(), "{body}");
            }
            assert!(config["frequencyPenalty"].is_null() && config["presencePenalty"].is_null(), "{body}");
            assert!(dropped.is_empty(), "{dropped:?}");
        }
    }

    #[test]
    fn penalties_are_omitted_where_there_are_none() {
        for (model, expected) in [("gemini-2.0-flash", true), ("models/gemini-2.5-flash", false)] {
            let EncodedRequest { body, dropped } =
                written(Protocol::Native, model, &json!({ "presence_penalty": 0.5, "frequency_penalty": 0 }));
            let config = &body["generationConfig"];
            assert_eq!(config["presencePenalty"].is_number(), expected, "{body}");
            assert_eq!(dropped.is_empty(), expected, "{dropped:?}");
            assert!(config["frequencyPenalty"].is_null(), "no penalty is the default: {body}");
        }
    }

    #[test]
    fn thinking_is_not_switched_off_where_that_is_impossible() {
        for (model, effort, budget, is_reported) in [
            ("gemini-2.5-flash", "none", 0, false),
            ("gemini-2.5-pro", "none", 128, true),
            ("gemini-2.5-pro-preview-06-05", "none", 128, true),
            ("gemini-2.5-pro", "low", 1024, false),
        ] {
            let EncodedRequest { body, dropped } =
                written(Protocol::Native, model, &json!({ "reasoning_effort": effort }));
            let config = &body["generationConfig"]["thinkingConfig"];
            assert_eq!(config["thinkingBudget"], budget, "{model}: {body}");
            assert_eq!(dropped.iter().any(|at| at == "/reasoning_effort"), is_reported, "{dropped:?}");
        }
    }
}
