//! Tests the check kit in realistic use: the program, the real coding agent, a third-party server, another validator.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::artefacts::{npm_ci, program, target};
use crate::hostile_service::{CONTENT, HostileService};
use crate::local_gateway::LocalGateway;
use crate::nextest;
use crate::other_server::OtherServer;
use crate::process::{command, files_of, output, root, run};

/// The tests of the kit that produce the most varied reports.
const REPORTING_TESTS: [&str; 4] = ["scenarios", "misbehaving", "agents", "cancellation"];
/// The models of section 2.12.
const MODELS: [&str; 3] = ["model-sol", "model-terra", "model-luna"];
/// Faults of the gateway that make the agent fail. The kit's own tests cover the others.
const FAULTS_FOR_THE_AGENT: [&str; 5] = ["status=503", "truncate", "stream_error", "no_terminal", "bad_json"];

/// Runs the kit against the gateway and another server, and validates every report with ajv.
pub(crate) fn check_with_others() -> Result<()> {
    for folder in ["peers", "agent"] {
        npm_ci(&root().join("tests").join(folder))?;
    }
    let reports = target().join("checkkit-reports");
    if reports.exists() {
        std::fs::remove_dir_all(&reports)?;
    }
    std::fs::create_dir_all(&reports)?;
    eprintln!("    the gateway, with the agent");
    let gateway = LocalGateway::start()?;
    let mut check = check_command(&reports, "gateway");
    check.args(["--full", "--agent-mode", "all-models", "--agent-program"]).arg(agent());
    run(gateway.reach_from(&mut check))?;
    expect_passes(&reports.join("gateway.json"), 16)?;
    for fault in FAULTS_FOR_THE_AGENT {
        eprintln!("    the agent, on a gateway with {fault}");
        expect_failing_agent(&reports, fault)?;
    }
    eprintln!("    the agent, on a service that tries to read its user's files");
    expect_nothing_read(&reports)?;
    eprintln!("    another maker's server");
    let other = OtherServer::start("server.mjs", &MODELS)?;
    let mut check = check_command(&reports, "other");
    check.args(["--full", "--base-url", &other.address]).env("GATEWRIGHT_API_KEY", "any-key");
    run(&mut check)?;
    expect_passes(&reports.join("other.json"), 13)?;
    eprintln!("    the reports of the tests");
    let tests = REPORTING_TESTS.map(|name| format!("test({name})")).join(" | ");
    run(nextest::run_tests()?
        .args(["--status-level", "fail"])
        .args(["-E", &format!("package(gatewright-checkkit) & ({tests})")])
        .env("GATEWRIGHT_KEEP_REPORTS", &reports))?;
    judge_by_ajv(&reports)
}

fn check_command(reports: &Path, name: &str) -> Command {
    let mut check = command(program());
    let place = |extension: &str| reports.join(format!("{name}{extension}"));
    check.arg("check").arg("--out").arg(place(".json")).arg("--html").arg(place(".html"));
    check.arg("--evidence").arg(place("-evidence"));
    check
}

/// The agent's pinned program.
fn agent() -> PathBuf {
    root().join("tests/agent/node_modules/.bin/codex")
}

/// Only the agent's cell fails, with an error of the agent.
fn expect_failing_agent(reports: &Path, fault: &str) -> Result<()> {
    let faulty = format!("{fault}@create_response");
    let gateway = LocalGateway::start_with(&["--fault", &faulty])?;
    let report = reports.join(format!("agent-{fault}.json"));
    let mut check = command(program());
    check.args(["check", "--only", "agent_cli_smoke", "--agent-mode", "one-model", "--agent-program"]);
    check.arg(agent()).arg("--out").arg(&report);
    let status = gateway.reach_from(&mut check).stdout(Stdio::null()).status()?;
    let document: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let checks = document["checks"].as_array().context("a report has checks")?;
    let failed: Vec<&Value> = checks.iter().filter(|check| check["status"] == "fail").collect();
    match failed.as_slice() {
        [only] if status.code() == Some(1) && only["error"]["category"] == "agent" => Ok(()),
        _ => bail!("{fault}: expected the agent's cell to fail ({status}), found {failed:?}"),
    }
}

/// A service that orders the agent to read a file does not get its content.
fn expect_nothing_read(reports: &Path) -> Result<()> {
    let secret = target().join("checkkit-secret.txt");
    std::fs::write(&secret, CONTENT)?;
    let service = HostileService::start(&secret)?;
    let mut check = command(program());
    check.args(["check", "--only", "agent_cli_smoke", "--agent-mode", "one-model", "--agent-program"]);
    check.arg(agent()).arg("--out").arg(reports.join("agent-hostile.json"));
    check.args(["--base-url", &service.address]).env("GATEWRIGHT_API_KEY", "any-key");
    let status = check.stdout(Stdio::null()).status()?;
    let requests = service.requests();
    if requests.len() < HostileService::ORDERS {
        bail!("the agent asked {} times ({status}): it did not follow every order", requests.len());
    }
    if let Some(request) = requests.iter().find(|request| request.contains(CONTENT)) {
        bail!("the agent leaked a file: {request}");
    }
    Ok(())
}

fn expect_passes(report: &Path, expected: u64) -> Result<()> {
    let document: Value = serde_json::from_slice(&std::fs::read(report)?)?;
    let summary = &document["summary"];
    if summary["passed"] != expected || summary["failed"] != 0 {
        bail!("{}: expected {expected} checks to pass, found {summary}", report.display());
    }
    Ok(())
}

fn judge_by_ajv(reports: &Path) -> Result<()> {
    let files: Vec<PathBuf> = files_of(reports, "json")?;
    let mut judge = command("node");
    judge.args(["tests/peers/ajv.mjs", "spec/report.schema.json"]).args(&files);
    let verdicts = output(&mut judge)?;
    let mut judged = 0;
    for (file, line) in files.iter().zip(verdicts.lines()) {
        let verdict: Value = serde_json::from_str(line)?;
        if verdict["valid"] != true {
            bail!("{}: ajv says {line}", file.display());
        }
        judged += 1;
    }
    // The scenarios alone write far more.
    if judged != files.len() || judged < 200 {
        bail!("ajv judged {judged} of {} reports", files.len());
    }
    eprintln!("    ajv agrees about {judged} reports");
    Ok(())
}
