//! Requests that Schemathesis generates from the specification, valid and broken ones: to the simulator, and to a gateway
//! whose models are at upstreams of every kind. Each response must have a status, a type and a form that the
//! specification allows, and must not report a failure of the gateway; broken requests must be rejected, including those
//! without a key. What a request creates is followed from operation to operation, and no other user can access it.
//! `tests/requests/schemathesis.toml` lists the disabled checks, with reasons.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::artefacts::{install_into, target};
use crate::clients::plays_everything;
use crate::local_gateway::LocalGateway;
use crate::process::{command, root, run, step};

/// Requests per operation in the phases that generate them randomly: after each change, and each night.
const RANDOM: [&str; 2] = ["8", "100"];
/// The phases that must run, the last of which goes from operation to operation.
const PHASES: [&str; 4] = ["examples", "coverage", "fuzzing", "stateful"];
/// So that each run generates the same requests.
const SEED: &str = "1";
/// Kinds of upstreams, with the paths of their base URLs.
const KINDS: [(&str, &str); 5] =
    [("chat", "/v1"), ("responses", "/v1"), ("messages", "/v1"), ("native", "/v1beta"), ("gatewright", "")];
/// The models that `tests/requests/hooks.py` puts into requests.
const MODELS: [&str; 3] = ["model-sol", "model-breeze", "model-cedar"];

/// Sends the requests.
pub(crate) fn send() -> Result<()> {
    step("install Schemathesis", install)?;
    let folder = target().join("requests");
    fs::create_dir_all(&folder)?;
    let simulator = LocalGateway::start_managed(&[])?;
    step("to the simulator", || send_to(&folder, &simulator))?;
    let configured = folder.join("every-kind.toml");
    fs::write(&configured, configuration(&folder, &simulator)?)?;
    let gateway = LocalGateway::start_managed(&["--config", &configured.display().to_string()])?;
    step("to a gateway with upstreams of every kind", || send_to(&folder, &gateway))
}

fn venv() -> PathBuf {
    target().join("schemathesis-venv")
}

fn install() -> Result<()> {
    install_into(&venv(), &[root().join("tests/requests/requirements.txt")])
}

/// Each model is at upstreams of all kinds, which take turns.
fn configuration(folder: &Path, simulator: &LocalGateway) -> Result<String> {
    let key = folder.join("upstream.key").display().to_string();
    fs::write(&key, simulator.key())?;
    let mut text = String::new();
    for (kind, path) in KINDS {
        let base_url = format!("{}{path}", simulator.address());
        writeln!(
            text,
            "[upstreams.{kind}]\nkind = {kind:?}\nbase_url = {base_url:?}\nkey = {{ file = {key:?} }}"
        )?;
    }
    let targets =
        KINDS.map(|(kind, _)| format!("{{ upstream = {kind:?}, model = \"model-sol\" }}")).join(", ");
    for model in MODELS {
        writeln!(text, "[models.{model}]\ntranslate_responses = true\ntargets = [{targets}]")?;
    }
    Ok(text)
}

fn send_to(folder: &Path, gateway: &LocalGateway) -> Result<()> {
    write_keys(&folder.join("keys.json"), gateway)?;
    let report = folder.join("report.json");
    let random = RANDOM[usize::from(plays_everything())];
    run(command(venv().join("bin/schemathesis"))
        // It writes its findings next to itself, and reads the keys from there.
        .current_dir(folder)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", root().join("tests/requests"))
        .arg("--config-file")
        .arg(root().join("tests/requests/schemathesis.toml"))
        .arg("run")
        .arg(root().join("spec/generated/openapi-3.2.json"))
        .args(["--url", gateway.address(), "--phases", &PHASES.join(","), "--max-examples", random])
        .args(["--seed", SEED, "--workers", "1", "--warnings", "off", "--continue-on-failure"])
        .args(["--report", "json", "--report-json-path"])
        .arg(&report))?;
    expect_all_ran(&serde_json::from_slice(&fs::read(report)?)?)
}

/// The file with both users of `schemathesis.toml`, in the format of Web Fuzzing Commons.
fn write_keys(path: &Path, gateway: &LocalGateway) -> Result<()> {
    let user = |name: &str, key: &str| {
        let header = json!({ "name": "Authorization", "value": format!("Bearer {key}") });
        json!({ "name": name, "fixedHeaders": [header] })
    };
    let users = [user("one", gateway.key()), user("other", &gateway.further_key("other")?)];
    Ok(fs::write(path, json!({ "auth": users }).to_string())?)
}

/// It succeeds even if it skipped a phase, such as one for which it found no links.
fn expect_all_ran(report: &Value) -> Result<()> {
    for phase in PHASES {
        let status = report["phases"][phase]["status"].as_str().context("the report lacks a phase")?;
        if status != "success" {
            bail!("the phase {phase} ended with {status:?}: {}", report["phases"][phase]["skip_reason"]);
        }
    }
    let operations = &report["operations"];
    if report["complete"] != true || operations["tested"] != operations["total"] {
        bail!("not every operation was tested: {operations}");
    }
    Ok(())
}
