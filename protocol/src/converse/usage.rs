//! Token counts.

use serde_json::{Map, Value};

use crate::conversation::Usage;
use crate::usage_object::UsageObject;

/// Fields of a `usage` that are read, or follow from them.
pub(super) const KNOWN: [&str; 7] = [
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cacheReadInputTokens",
    "cacheWriteInputTokens",
    // Older names of servers.
    "cacheReadInputTokenCount",
    "cacheWriteInputTokenCount",
];

/// Reads a `usage`. None: it isn't an object.
pub(super) fn read(usage: impl UsageObject) -> Option<Usage> {
    let names = [
        "inputTokens",
        "outputTokens",
        "cacheReadInputTokens",
        "cacheReadInputTokenCount",
        "cacheWriteInputTokens",
        "cacheWriteInputTokenCount",
    ];
    let ([input, output, read, older_read, written, older_written], []) = usage.read(names, [])?;
    let (cached, cache_write) = (read.or(older_read), written.or(older_written));
    // The protocol counts cached tokens separately.
    let elsewhere = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    let input = input.map(|input| input.saturating_add(elsewhere));
    Some(Usage { input, output, cached, cache_write, reasoning: None })
}

/// The tier that served a request, in neutral form.
pub(super) fn tier(document: &Map<String, Value>) -> Option<String> {
    document.get("serviceTier")?["type"].as_str().map(str::to_owned)
}
