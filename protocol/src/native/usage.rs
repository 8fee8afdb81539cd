//! Token counts. Thinking tokens are separate from the candidates' here, and part of the output in the neutral form.

use serde_json::{Map, Value, json};

use crate::conversation::Usage;
use crate::usage_object::{UsageObject, sum};

/// Reads a `usageMetadata`. None: it isn't an object.
pub(super) fn read(usage: impl UsageObject) -> Option<Usage> {
    let names = [
        "promptTokenCount",
        "toolUsePromptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
    ];
    let ([prompt, tools, candidates, thoughts, cached], []) = usage.read(names, [])?;
    Some(Usage {
        input: sum(prompt, tools),
        output: sum(candidates, thoughts),
        cached,
        cache_write: None,
        reasoning: thoughts,
    })
}

/// Writes a `usageMetadata`.
pub(super) fn write(usage: Usage) -> Value {
    let mut written = Map::new();
    let mut set = |name: &str, count: Option<u64>| {
        written.extend(count.map(|count| (name.to_owned(), json!(count))));
    };
    let thoughts = usage.reasoning.unwrap_or(0);
    set("promptTokenCount", usage.input);
    set("candidatesTokenCount", usage.output.map(|output| output.saturating_sub(thoughts)));
    set("totalTokenCount", Some(usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0))));
    set("cachedContentTokenCount", usage.cached);
    set("thoughtsTokenCount", usage.reasoning);
    Value::Object(written)
}
