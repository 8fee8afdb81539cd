//! The agent's command line, and an environment without the user's configuration.

use std::ffi::OsString;
use std::path::Path;

use serde_json::Value;

use gatewright::ApiKey;

/// Name of the program on the PATH.
pub(crate) const PROGRAM: &str = "codex";
/// Variable with the key. The program hides variables with this prefix from the shells that it starts.
const KEY_VARIABLE: &str = "KIT_KEY";
/// Variable that is always passed on: without it, no interpreter is found.
pub(crate) const BASE_ENVIRONMENT: &str = "PATH";

/// Features of the program to turn off. The service under test controls the program: with a shell, the program could
/// read the user's files and send them to the service. A version that does not know a feature says so and continues.
const TOOLS: [&str; 14] = [
    "shell_tool",
    "unified_exec",
    "view_image",
    "multi_agent",
    "multi_agent_v2",
    "apps",
    "browser_use",
    "browser_use_external",
    "computer_use",
    "image_generation",
    "goals",
    "sleep_tool",
    "hooks",
    "skill_search",
];

/// The arguments for one prompt. They disable tools, retries, updates, telemetry and the user's configuration.
pub(super) fn arguments(base_url: &str, model: &str, folder: &Path, prompt: &str) -> Vec<String> {
    let quoted = |text: &str| Value::from(text).to_string();
    let provider = format!(
        "model_providers.kit={{name=\"kit\",base_url={},env_key=\"{KEY_VARIABLE}\",wire_api=\"responses\",\
         request_max_retries=0,stream_max_retries=0,supports_websockets=false}}",
        quoted(base_url),
    );
    let folder = folder.to_string_lossy();
    let without_tools = TOOLS.iter().flat_map(|tool| ["-c".to_owned(), format!("features.{tool}=false")]);
    let before = [
        "exec",
        "--json",
        "--ephemeral",
        "--skip-git-repo-check",
        "--ignore-user-config",
        "--ignore-rules",
        "-s",
        "read-only",
        "-C",
        &folder,
        "-m",
        model,
        "-c",
        "model_provider=\"kit\"",
        "-c",
        &provider,
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "analytics.enabled=false",
        "-c",
        "shell_environment_policy.exclude=[\"KIT_*\"]",
        "--disable",
        "plugins",
        "--disable",
        "unbounded_connection_retries",
        "-c",
        "web_search=\"disabled\"",
    ];
    let after = ["--", prompt];
    let owned = |argument: &str| argument.to_owned();
    before.into_iter().map(owned).chain(without_tools).chain(after.map(owned)).collect()
}

/// The whole environment of the program.
pub(super) fn environment(
    passed: &[(String, OsString)],
    home: &Path,
    key: &ApiKey,
) -> Vec<(String, OsString)> {
    let mut environment = passed.to_vec();
    for name in ["HOME", "CODEX_HOME"] {
        environment.push((name.to_owned(), home.into()));
    }
    environment.push((KEY_VARIABLE.to_owned(), key.expose().into()));
    environment
}
