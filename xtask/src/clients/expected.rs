//! What must be run, stated separately from the code that runs it: if a client is no longer found, or skips
//! scenarios, the test fails.

use std::collections::BTreeMap;

/// Gateways with their upstreams.
const PLACES: usize = 19;
/// Scenarios that all players run.
const SCENARIOS: usize = 10;
const PLAYED_BY_PLAYERS: [&str; 21] = [
    "Node: openai, chat",
    "Node: openai, responses",
    "Node: @anthropic-ai/sdk, messages",
    "Node: @google/genai, native",
    "Node: @ai-sdk/openai, chat",
    "Node: @ai-sdk/openai, responses",
    "Node: @ai-sdk/openai-compatible, chat",
    "Node: @ai-sdk/anthropic, messages",
    "Node: @ai-sdk/google, native",
    "Python: anthropic, messages",
    "Python: google-genai, native",
    "Python: openai, chat",
    "Python: openai, responses",
    "Python: langchain-openai, chat",
    "Python: langchain-openai, responses",
    "Python: langchain-anthropic, messages",
    "Python: langchain-google-genai, native",
    "Python: litellm, chat",
    "Python: litellm, responses",
    "Python: litellm, messages",
    "Python: litellm, native",
];
const AGENTS: [&str; 3] =
    ["agent: @openai/codex", "agent: @anthropic-ai/claude-code", "agent: @google/gemini-cli"];
/// Scenarios that agents run.
const BY_AN_AGENT: usize = PLACES * 9;
/// Clients of the players that also generate images.
const DRAW: [&str; 5] = [
    "Node: openai, chat",
    "Node: @ai-sdk/openai, chat",
    "Node: @ai-sdk/openai-compatible, chat",
    "Python: openai, chat",
    "Python: litellm, chat",
];

/// Skipped by every client that generates images: at upstreams of messages and native, ours, our strict ones, and
/// third-party ones.
const SKIPPED_BY_DRAWING: (&str, usize) = ("draw: its protocol has no images to ask for", 8);
/// Additional scenarios that a client skips.
const SKIPPED: [(&str, &str, usize); 9] = [
    ("Python: litellm, native", "tools: litellm drops calls of its own proxy", 1),
    ("Python: litellm, native", "streamed_tools: litellm drops calls of its own proxy", 1),
    (
        "Python: litellm, native",
        "tools: the server ends a call with FUNCTION_CALL, where litellm drops it",
        1,
    ),
    (
        "Python: litellm, native",
        "streamed_tools: the server ends a call with FUNCTION_CALL, where litellm drops it",
        1,
    ),
    (AGENTS[0], "stream: `codex exec` reads streams, but prints whole messages only", PLACES),
    (AGENTS[2], "structured: the program takes no schema", PLACES),
    (AGENTS[0], "image: the proxy drops pictures of native requests", 1),
    (AGENTS[1], "image: the proxy drops pictures of native requests", 1),
    (AGENTS[2], "image: the proxy drops pictures of native requests", 1),
];

/// The expected outcomes, besides that nothing fails.
pub(super) struct Expected {
    /// By client: the number of its rows, including skipped ones.
    pub(super) rows: BTreeMap<String, usize>,
    /// By client, scenario and reason: how often it is skipped.
    pub(super) skipped: BTreeMap<String, usize>,
}

/// The expectations for all clients.
pub(super) fn of_everything() -> Expected {
    let players = PLAYED_BY_PLAYERS.map(|client| {
        let scenarios = SCENARIOS + usize::from(DRAW.contains(&client));
        (client, PLACES * scenarios)
    });
    let rows = players.into_iter().chain(AGENTS.map(|agent| (agent, BY_AN_AGENT)));
    let (undrawn, places) = SKIPPED_BY_DRAWING;
    let of_drawing = DRAW.into_iter().map(|client| (client, undrawn, places));
    let skipped = of_drawing.chain(SKIPPED);
    Expected {
        rows: rows.map(|(client, rows)| (client.to_owned(), rows)).collect(),
        skipped: skipped.map(|(client, what, times)| (format!("{client}, {what}"), times)).collect(),
    }
}
