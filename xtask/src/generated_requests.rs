//! Requests that Schemathesis makes of the specification, valid ones and broken ones: to the simulator, and to a gateway
//! whose models are at upstreams of every kind. Each answer has a status, a type and a form that the specification
//! allows, none says that the gateway failed, and broken requests are refused.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::artefacts::{create_venv, target};
use crate::local_gateway::LocalGateway;
use crate::process::{command, root, run, step};

/// All of its checks, but for:
/// - `positive_data_acceptance`: rules that no schema states refuse requests that fit the schemas, such as limits of models, calls
///   without results, page tokens that nobody gave out, and responses that were never stored;
/// - `object_level_authorization`: it needs a key of somebody else; `gateway/tests/it/keys.rs` has one;
/// - `ignored_auth` and `missing_required_header`: they know 401 alone, and the native protocol answers 400 and 403 to a wrong and a
///   missing key (`gateway/tests/it/auth.rs`);
/// - `use_after_free` and `ensure_resource_availability`: they follow what was made from operation to operation, in a phase that needs
///   links in the specification.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,negative_data_rejection,\
                      unsupported_method,allow_header_conformance";
/// Requests of each operation in the phase that makes them at random.
const RANDOM: &str = "30";
/// So that each run makes the same requests.
const SEED: &str = "1";
/// Kinds of upstreams, and the paths of their base URLs.
const KINDS: [(&str, &str); 5] =
    [("chat", "/v1"), ("responses", "/v1"), ("messages", "/v1"), ("native", "/v1beta"), ("gatewright", "")];
/// The models that `tests/requests/hooks.py` puts into requests.
const MODELS: [&str; 3] = ["model-sol", "model-breeze", "model-cedar"];

/// Sends them.
pub(crate) fn send() -> Result<()> {
    step("install Schemathesis", install)?;
    let folder = target().join("requests");
    fs::create_dir_all(&folder)?;
    let simulator = LocalGateway::start()?;
    step("to the simulator", || send_to(&folder, &simulator))?;
    let configured = folder.join("every-kind.toml");
    fs::write(&configured, configuration(&folder, &simulator)?)?;
    let gateway = LocalGateway::start_with(&["--config", &configured.display().to_string()])?;
    step("to a gateway with upstreams of every kind", || send_to(&folder, &gateway))
}

fn venv() -> PathBuf {
    target().join("schemathesis-venv")
}

fn install() -> Result<()> {
    create_venv(&venv())?;
    let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", "-r"];
    run(command(venv().join("bin/python")).args(quietly).arg(root().join("tests/requests/requirements.txt")))
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
    run(command(venv().join("bin/schemathesis"))
        // It writes beside itself what it found.
        .current_dir(folder)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", root().join("tests/requests"))
        .arg("--config-file")
        .arg(root().join("tests/requests/schemathesis.toml"))
        .arg("run")
        .arg(root().join("spec/generated/openapi-3.2.json"))
        .args(["--url", gateway.address(), "--header", &format!("Authorization: Bearer {}", gateway.key())])
        .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--max-examples", RANDOM])
        .args(["--seed", SEED, "--workers", "1", "--warnings", "off", "--continue-on-failure"]))
}
