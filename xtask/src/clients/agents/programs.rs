//! How each program is called, and how its output is parsed.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use super::{Scenario, WRITTEN};
use crate::process::{command, root};

/// A document that agents must produce.
const PLACES: &str = r#"{
  "type": "object",
  "properties": { "the_city": { "type": "string" }, "days": { "type": "array", "items": { "type": "integer" } } },
  "required": ["the_city", "days"],
  "additionalProperties": false
}"#;
/// Without this, the agent asks how to sign in.
const NATIVE_SETTINGS: &str = r#"{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "privacy": { "usageStatisticsEnabled": false },
  "telemetry": { "enabled": false },
  "general": { "enableAutoUpdate": false }
}"#;

/// The program of an agent.
pub(super) struct Agent {
    pub(super) package: &'static str,
    pub(super) protocol: &'static str,
    /// The operation that it uses.
    pub(super) operation: &'static str,
    /// What it can't do, and why.
    pub(super) lacks: &'static [(Scenario, &'static str)],
    /// Whether it retries a 429 only if the response says how long to wait.
    pub(super) needs_wait: bool,
    pub(super) command: fn(&AgentCall<'_>) -> Result<Command>,
    /// The prompt with calls of its tools that read `notes.txt` and write `copy.txt` in a folder.
    pub(super) calls: fn(&Path) -> String,
    /// Processes a line of its output.
    pub(super) parse_line: fn(&mut AgentOutput, &Value),
}

pub(super) const AGENTS: [Agent; 3] = [
    Agent {
        package: "@openai/codex",
        protocol: "responses",
        operation: "create_response",
        lacks: &[(Scenario::Stream, "`codex exec` reads streams, but prints whole messages only")],
        needs_wait: true,
        command: responses,
        calls: |_| {
            let cmd = format!("cat notes.txt; printf '{WRITTEN}' > copy.txt");
            format!("Call exec_command({}).", serde_json::json!({ "cmd": cmd }))
        },
        parse_line: AgentOutput::responses,
    },
    Agent {
        package: "@anthropic-ai/claude-code",
        protocol: "messages",
        operation: "create_message",
        lacks: &[],
        needs_wait: false,
        command: messages,
        calls: |work| {
            let read = serde_json::json!({ "file_path": work.join("notes.txt") });
            let write = serde_json::json!({ "file_path": work.join("copy.txt"), "content": WRITTEN });
            format!("Call Read({read}), then Write({write}).")
        },
        parse_line: AgentOutput::messages,
    },
    Agent {
        package: "@google/gemini-cli",
        protocol: "native",
        operation: "stream_generate_content",
        lacks: &[(Scenario::Structured, "the program takes no schema")],
        needs_wait: false,
        command: native,
        calls: |_| {
            let write = serde_json::json!({ "file_path": "copy.txt", "content": WRITTEN });
            format!("Call read_file({{\"file_path\": \"notes.txt\"}}), then write_file({write}).")
        },
        parse_line: AgentOutput::native,
    },
];

/// One run of a program.
pub(super) struct AgentCall<'a> {
    pub(super) scenario: Scenario,
    pub(super) url: String,
    pub(super) key: String,
    pub(super) model: String,
    pub(super) prompt: String,
    /// Its folder, with a subfolder `work` that it works in.
    pub(super) home: &'a Path,
}

/// What a program printed for its user.
#[derive(Debug, Default)]
pub(super) struct AgentOutput {
    pub(super) answer: String,
    /// Number of pieces that were shown.
    pub(super) pieces: usize,
    pub(super) document: Option<Value>,
    /// Whether it reported a failure: some exit with success even then.
    pub(super) failed: bool,
}

impl AgentOutput {
    pub(super) fn read(printed: &str, parse_line: fn(&mut Self, &Value)) -> Self {
        let mut parsed = Self::default();
        for line in printed.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            parse_line(&mut parsed, &line);
        }
        parsed
    }

    fn responses(&mut self, line: &Value) {
        if line["type"] == "item.completed" && line["item"]["type"] == "agent_message" {
            line["item"]["text"].as_str().unwrap_or_default().clone_into(&mut self.answer);
            self.document = serde_json::from_str(&self.answer).ok();
        }
    }

    fn messages(&mut self, line: &Value) {
        self.pieces += usize::from(line["event"]["delta"]["type"] == "text_delta");
        if line["type"] == "result" {
            line["result"].as_str().unwrap_or_default().clone_into(&mut self.answer);
            self.document = line.get("structured_output").cloned();
        }
    }

    fn native(&mut self, line: &Value) {
        if line["type"] == "message" && line["role"] == "assistant" {
            self.answer += line["content"].as_str().unwrap_or_default();
            self.pieces += 1;
        }
        self.failed |= line["type"] == "result" && line["status"] == "error";
    }
}

fn program(folder: &str, name: &str) -> Command {
    let mut command = command(root().join(folder).join("node_modules/.bin").join(name));
    command.env_clear();
    command
}

fn responses(turn: &AgentCall<'_>) -> Result<Command> {
    let mut codex = program("tests/agent", "codex");
    // It treats 429 as a broken stream.
    let retries = if turn.scenario == Scenario::RateLimit { 2 } else { 0 };
    let provider = format!(
        "model_providers.gateway={{name=\"gateway\",base_url=\"{}/v1\",env_key=\"AGENT_KEY\",wire_api=\"responses\",\
         request_max_retries=0,stream_max_retries={retries},supports_websockets=false}}",
        turn.url
    );
    // Its sandbox needs kernel features that not every machine has.
    let sandbox = if turn.scenario == Scenario::Tools { "danger-full-access" } else { "read-only" };
    codex.args(["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config"]);
    codex.args(["--ignore-rules", "-s", sandbox, "-m", &turn.model]);
    codex.args(["-c", "model_provider=\"gateway\"", "-c", &provider]);
    codex.args(["-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false"]);
    codex.args(["--disable", "plugins", "--disable", "unbounded_connection_retries"]);
    match turn.scenario {
        Scenario::Structured => {
            let schema = turn.home.join("schema.json");
            fs::write(&schema, PLACES)?;
            codex.arg("--output-schema").arg(schema);
        }
        Scenario::Image => {
            codex.args(["-i", "picture.png"]);
        }
        _ => {}
    }
    codex.arg("--").arg(&turn.prompt);
    codex.env("AGENT_KEY", &turn.key).env("CODEX_HOME", turn.home);
    Ok(codex)
}

#[expect(clippy::unnecessary_wraps, reason = "another agent needs a file")]
fn messages(turn: &AgentCall<'_>) -> Result<Command> {
    let mut claude = program("tests/clients/agents", "claude");
    claude.args(["--output-format", "stream-json", "--verbose", "--include-partial-messages"]);
    let mut prompt = turn.prompt.clone();
    match turn.scenario {
        Scenario::Tools => {
            claude.args(["--allowedTools", "Read,Write"]);
        }
        Scenario::Structured => {
            claude.args(["--json-schema", PLACES]);
        }
        Scenario::Image => {
            let picture = serde_json::json!({ "file_path": turn.home.join("work/picture.png") });
            prompt = format!("Call Read({picture}). {prompt}");
        }
        _ => {}
    }
    claude.arg("-p").arg(prompt);
    claude.env("ANTHROPIC_BASE_URL", &turn.url).env("ANTHROPIC_AUTH_TOKEN", &turn.key);
    claude.env("ANTHROPIC_MODEL", &turn.model).env("ANTHROPIC_SMALL_FAST_MODEL", &turn.model);
    claude.envs([("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")]);
    Ok(claude)
}

fn native(turn: &AgentCall<'_>) -> Result<Command> {
    let settings = turn.home.join(".gemini");
    fs::create_dir_all(&settings)?;
    fs::write(settings.join("settings.json"), NATIVE_SETTINGS)?;
    let mut gemini = program("tests/clients/agents", "gemini");
    gemini.args(["--output-format", "stream-json", "-m", &turn.model]);
    if turn.scenario == Scenario::Tools {
        gemini.args(["--approval-mode", "yolo"]);
    }
    let picture = if turn.scenario == Scenario::Image { " @picture.png" } else { "" };
    gemini.arg("-p").arg(format!("{}{picture}", turn.prompt));
    gemini.env("GOOGLE_GEMINI_BASE_URL", &turn.url).env("GEMINI_API_KEY", &turn.key);
    gemini.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    Ok(gemini)
}
