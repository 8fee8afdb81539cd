//! The programs of coding agents, each of another protocol: one prompt, one answer, through the gateway.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::outcomes::{Outcomes, Row};
use super::upstreams::Upstreams;
use crate::artefacts::target;
use crate::local_gateway::LocalGateway;
use crate::process::{command, missing, root};

/// How long an agent may take.
const LIMIT: Duration = Duration::from_secs(90);
const ANSWER: &str = "the agent works";
/// Variables that an agent sees, besides its own.
const INHERITED: [&str; 3] = ["PATH", "TMPDIR", "LANG"];
/// Without it, the agent asks which way to sign in.
const NATIVE_SETTINGS: &str = r#"{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "privacy": { "usageStatisticsEnabled": false },
  "telemetry": { "enabled": false },
  "general": { "enableAutoUpdate": false }
}"#;

/// An agent of a protocol.
struct Agent {
    package: &'static str,
    /// Model of the simulator that serves its protocol.
    model: &'static str,
    /// The operation that it calls.
    operation: &'static str,
    command: fn(&LocalGateway, &str, &Path) -> Result<Command>,
}

const AGENTS: [Agent; 3] = [
    Agent {
        package: "@openai/codex",
        model: "model-terra",
        operation: "create_response",
        command: responses,
    },
    Agent {
        package: "@anthropic-ai/claude-code",
        model: "model-breeze",
        operation: "create_message",
        command: messages,
    },
    Agent {
        package: "@google/gemini-cli",
        model: "model-cedar",
        operation: "stream_generate_content",
        command: native,
    },
];

/// Lets each agent answer through each upstream.
pub(super) fn work(upstreams: &Upstreams, outcomes: &mut Outcomes) {
    for agent in &AGENTS {
        let simulator = ("simulator", &upstreams.simulator, agent.model.to_owned());
        let kinds = Upstreams::kinds().map(|kind| (kind, &upstreams.middle, format!("via-{kind}")));
        for (upstream, gateway, model) in std::iter::once(simulator).chain(kinds) {
            outcomes.add(Row {
                upstream: upstream.to_owned(),
                client: format!("agent: {}", agent.package),
                scenario: "agent".to_owned(),
                skipped: None,
                failed: agent.try_once(gateway, &model).err().map(|error| format!("{error:#}")),
            });
        }
    }
}

impl Agent {
    /// Errors: it did not answer, or not by its protocol.
    fn try_once(&self, gateway: &LocalGateway, model: &str) -> Result<()> {
        let home = target().join("clients/home");
        if home.exists() {
            std::fs::remove_dir_all(&home)?;
        }
        std::fs::create_dir_all(home.join("work"))?;
        let mut command = (self.command)(gateway, model, &home)?;
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(inherited).env("HOME", &home).current_dir(home.join("work"));
        let before = answered(gateway, self.operation)?;
        let (status, printed) = bounded(&mut command, &home)?;
        if !status.is_some_and(|status| status.success()) || !printed.contains(ANSWER) {
            let status = status.map_or_else(|| "no end".to_owned(), |status| status.to_string());
            bail!("{status}, and it printed:\n{printed}");
        }
        if answered(gateway, self.operation)? <= before {
            bail!("it answered without {}", self.operation);
        }
        Ok(())
    }
}

fn program(folder: &str, name: &str) -> Command {
    let mut command = command(root().join(folder).join("node_modules/.bin").join(name));
    command.env_clear();
    command
}

fn prompt() -> String {
    format!("Reply with exactly: {ANSWER}")
}

#[expect(clippy::unnecessary_wraps, reason = "another agent needs a file")]
fn responses(gateway: &LocalGateway, model: &str, home: &Path) -> Result<Command> {
    let mut codex = program("tests/agent", "codex");
    let provider = format!(
        "model_providers.gateway={{name=\"gateway\",base_url=\"{}/v1\",env_key=\"AGENT_KEY\",wire_api=\"responses\",\
         request_max_retries=0,stream_max_retries=0,supports_websockets=false}}",
        gateway.address()
    );
    codex.args(["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config"]);
    codex.args([
        "--ignore-rules",
        "-s",
        "read-only",
        "-m",
        model,
        "-c",
        "model_provider=\"gateway\"",
        "-c",
        &provider,
    ]);
    codex.args(["-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false"]);
    codex.args(["--disable", "plugins", "--disable", "unbounded_connection_retries"]).arg(prompt());
    codex.env("AGENT_KEY", gateway.key()).env("CODEX_HOME", home);
    Ok(codex)
}

#[expect(clippy::unnecessary_wraps, reason = "another agent needs a file")]
fn messages(gateway: &LocalGateway, model: &str, _home: &Path) -> Result<Command> {
    let mut claude = program("tests/clients/agents", "claude");
    claude.args(["--output-format", "json", "-p"]).arg(prompt());
    claude.env("ANTHROPIC_BASE_URL", gateway.address()).env("ANTHROPIC_AUTH_TOKEN", gateway.key());
    claude.env("ANTHROPIC_MODEL", model).env("ANTHROPIC_SMALL_FAST_MODEL", model);
    claude.envs([("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"), ("DISABLE_AUTOUPDATER", "1")]);
    Ok(claude)
}

fn native(gateway: &LocalGateway, model: &str, home: &Path) -> Result<Command> {
    let settings = home.join(".gemini");
    std::fs::create_dir_all(&settings)?;
    std::fs::write(settings.join("settings.json"), NATIVE_SETTINGS)?;
    let mut gemini = program("tests/clients/agents", "gemini");
    gemini.args(["--output-format", "json", "-m", model, "-p"]).arg(prompt());
    gemini.env("GOOGLE_GEMINI_BASE_URL", gateway.address()).env("GEMINI_API_KEY", gateway.key());
    gemini.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    Ok(gemini)
}

/// Runs a command in a process group of its own, which is killed at the limit and at the end. Returns its status, if
/// it ended, and all that it printed.
fn bounded(command: &mut Command, folder: &Path) -> Result<(Option<ExitStatus>, String)> {
    let path: PathBuf = folder.join("printed");
    let printed = File::create(&path)?;
    command.stdin(Stdio::null()).stdout(printed.try_clone()?).stderr(printed).process_group(0);
    let mut child = command.spawn().with_context(|| missing(command))?;
    let started = Instant::now();
    let mut status = None;
    while status.is_none() && started.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(50));
        status = child.try_wait()?;
    }
    // Fails if nothing of the group is left.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    child.wait()?;
    Ok((status, String::from_utf8_lossy(&std::fs::read(path)?).into_owned()))
}

/// How often a gateway has answered an operation with success, by its metrics.
fn answered(gateway: &LocalGateway, operation: &str) -> Result<u64> {
    let address = gateway.address().strip_prefix("http://").context("the gateway speaks plain HTTP")?;
    let mut socket = TcpStream::connect(address)?;
    write!(socket, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut metrics = String::new();
    socket.read_to_string(&mut metrics)?;
    let name = format!("gatewright_requests_total{{operation=\"{operation}\",status=\"200\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    // A counter appears with the first answer.
    Ok(count.map_or(Ok(0), str::parse)?)
}
