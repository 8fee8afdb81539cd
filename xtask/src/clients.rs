//! Third-party clients, pinned, against gateways with upstreams of every kind: `tests/clients`.

mod agents;
mod expected;
mod litellm;
mod outcomes;
mod upstreams;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use self::outcomes::Outcomes;
use self::upstreams::Upstreams;
use crate::artefacts::{self, npm_ci, python, target, venv};
use crate::local_gateway::LocalGateway;
use crate::process::{command, files_of, missing, root, run, shown, step};
use crate::walkthrough::{PageEnvironment, run_page};

/// A program that runs the scenarios with several clients, one after another.
struct Player {
    /// Its failing models are its own, so that a breaker that it opens doesn't affect others.
    name: &'static str,
    /// Name of the client in the table.
    language: &'static str,
    modules: &'static [&'static str],
}

const PLAYERS: [Player; 3] = [
    Player { name: "node", language: "Node", modules: &["official_sdks", "ai_sdk"] },
    Player { name: "official", language: "Python", modules: &["official_sdks"] },
    Player { name: "frameworks", language: "Python", modules: &["langchain_models", "litellm_calls"] },
];

/// Set to run every scenario with every client at every upstream.
const EVERYTHING: &str = "GATEWRIGHT_EVERY_SCENARIO";
/// Otherwise, each client runs each scenario at one upstream out of this many.
const SHARE: usize = 4;

/// Runs the scenarios with every client against every upstream, and prints which passed.
pub(crate) fn serve_them() -> Result<()> {
    let share = if plays_everything() { 1 } else { SHARE };
    let folder = root().join("tests/clients");
    step("install the clients", || {
        install(&folder)?;
        litellm::install()
    })?;
    let upstreams = Upstreams::start(&PLAYERS.map(|player| player.name))?;
    step("the official SDKs of the native protocol, in depth", || {
        let reach = |mut program: Command, script: &str| {
            run(upstreams.simulator.reach_from(program.arg(folder.join("native").join(script))))
        };
        reach(python(), "official.py")?;
        reach(command("node"), "official.mjs")
    })?;
    let mut outcomes = Outcomes::default();
    step("the scenarios", || {
        let printed: Vec<Result<String>> = std::thread::scope(|scope| {
            let running =
                PLAYERS.each_ref().map(|player| scope.spawn(|| play(&folder, player, share, &upstreams)));
            running.into_iter().map(|thread| thread.join().expect("a player's thread")).collect()
        });
        for (player, lines) in PLAYERS.iter().zip(printed) {
            outcomes.read(player.language, &lines?)?;
        }
        Ok(())
    })?;
    step("the agents", || agents::work(&upstreams, share, &mut outcomes))?;
    outcomes.judge(&expected::of_everything(), share)
}

/// Whether long scenarios are run completely, as each night.
pub(crate) fn plays_everything() -> bool {
    std::env::var_os(EVERYTHING).is_some()
}

/// The pages that are run with the clients.
pub(crate) fn pages() -> Result<Vec<PathBuf>> {
    files_of(&root().join("docs/clients"), "md")
}

/// Runs the pages of docs/clients, each with the clients of its environment.
pub(crate) fn run_pages() -> Result<()> {
    let folder = root().join("tests/clients");
    step("install the clients", || install(&folder))?;
    let agents = agents_venv();
    artefacts::install_into(&agents, &[folder.join("requirements-agents.txt")])?;
    let gateway = LocalGateway::start()?;
    for page in pages()? {
        let text = std::fs::read_to_string(&page)?;
        let environment = text.lines().next().and_then(|line| line.strip_prefix("<!-- environment: "));
        let environment = match environment.and_then(|rest| rest.strip_suffix(" -->")) {
            Some("frameworks") => frameworks(),
            Some("agents") => agents.clone(),
            Some(other) => bail!("{}: there is no environment {other:?}", page.display()),
            None => venv(&root()),
        };
        let surroundings = PageEnvironment {
            programs: vec![
                environment.join("bin"),
                folder.join("agents/node_modules/.bin"),
                root().join("tests/agent/node_modules/.bin"),
            ],
            packages: Some(folder.join("node_modules")),
            // Otherwise model prices and newer releases are looked up elsewhere.
            variables: vec![
                ("LITELLM_LOCAL_MODEL_COST_MAP", "True".to_owned()),
                ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ],
        };
        run_page(&page, &surroundings, Some(&gateway))?;
    }
    Ok(())
}

fn install(folder: &Path) -> Result<()> {
    artefacts::pip_install(&folder.join("requirements.txt"))?;
    artefacts::install_into(&frameworks(), &[folder.join("requirements-frameworks.txt")])?;
    npm_ci(folder)?;
    npm_ci(&folder.join("agents"))?;
    npm_ci(&root().join("tests/agent"))
}

/// The venv for agent SDKs and for frameworks that require the newest official SDKs.
fn agents_venv() -> PathBuf {
    target().join("agents-venv")
}

/// The venv for the frameworks that need older releases of the official SDKs than we test.
fn frameworks() -> PathBuf {
    target().join("clients-venv")
}

/// The output of a player: a line of JSON for each scenario.
fn play(folder: &Path, player: &Player, share: usize, upstreams: &Upstreams) -> Result<String> {
    let mut program = match player.name {
        "node" => command("node"),
        "frameworks" => command(frameworks().join("bin/python")),
        _ => python(),
    };
    let script = if player.language == "Node" { "node/play.mjs" } else { "python/play.py" };
    program.arg(folder.join(script)).arg(upstreams.targets()).args([&share.to_string(), player.name]);
    program.args(player.modules);
    // Otherwise model prices are fetched.
    program.env("LITELLM_LOCAL_MODEL_COST_MAP", "True").env("PYTHONWARNINGS", "ignore");
    let output =
        program.stdin(Stdio::null()).stderr(Stdio::piped()).output().with_context(|| missing(&program))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}\n{complaint}", shown(&program), output.status);
    }
    String::from_utf8(output.stdout).context("the output is not UTF-8")
}
