//! The training workload of the instrumented program: a gateway's typical work. Anything missing here counts
//! as code that never runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::artefacts::target;
use crate::bench::{RunningPeer, build_load, free_port, load, start_ours, start_stub};
use crate::process::{command, output, root, run};

/// Kinds of upstreams that the simulator acts as; the path of their base URL, and its model.
const KINDS: [(&str, &str, &str); 5] = [
    ("chat", "/v1", "model-sol"),
    ("responses", "/v1", "model-terra"),
    ("messages", "/v1", "model-breeze"),
    ("native", "/v1beta", "model-cedar"),
    ("gatewright", "", "model-sol"),
];

/// Upstreams that the stub acts as: it responds at once, and benchmarks use it.
const STUBS: [&str; 2] = ["chat", "messages"];

/// Number of reports in the file to validate.
const REPORTS: usize = 20_000;

/// Serves, and writes the counts to a folder.
pub(super) fn train(program: &Path, counts: &Path) -> Result<()> {
    build_load()?;
    let folder = target().join("guided/training");
    fs::create_dir_all(&folder)?;
    let authority = certificate(&folder)?;
    let counted = || {
        let mut counted = command(program);
        counted.env("LLVM_PROFILE_FILE", counts.join("%p-%m.profraw")).env("SSL_CERT_FILE", &authority);
        counted
    };
    let stub = start_stub()?;
    let encrypted = format!("localhost:{}", free_port()?);
    let simulator = start_ours(counted, "simulator", &simulating(&encrypted, &folder), "")?;
    let gateway = start_ours(counted, "gateway", &relaying(&stub, &simulator, &encrypted, &folder)?, "")?;
    relay(&gateway)?;
    convert(&gateway)?;
    create(&simulator)?;
    run(counted()
        .args(["check", "--full", "--base-url", &format!("http://{}", simulator.host), "--out"])
        .arg(folder.join("report.json"))
        .env("GATEWRIGHT_API_KEY", &simulator.key)
        .stdout(Stdio::null()))?;
    judge(counted, &folder)?;
    gateway.end()?;
    simulator.end()
}

/// A certificate of this machine, and its key.
fn certificate(folder: &Path) -> Result<std::path::PathBuf> {
    let place = folder.join("certificate.pem");
    output(
        command("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args([
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
                "-addext",
                "subjectAltName=DNS:localhost",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-keyout",
            ])
            .arg(folder.join("key.pem"))
            .arg("-out")
            .arg(&place)
            .stderr(Stdio::null()),
    )
    .context("openssl makes no certificate")?;
    Ok(place)
}

/// The configuration of a gateway that simulates, with and without TLS.
fn simulating(encrypted: &str, folder: &Path) -> String {
    let port = encrypted.rsplit(':').next().unwrap_or_default();
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ntls = {{ listen = \"127.0.0.1:{port}\", certificate = \"{}\", key = \"{}\" }}\n\
         [simulator]\nevent_delay = \"0ms\"\nvideo_time = \"100ms\"\n",
        folder.join("certificate.pem").display(),
        folder.join("key.pem").display()
    )
}

/// The configuration of a gateway with upstreams of each kind, each with a model of its name.
fn relaying(stub: &RunningPeer, simulator: &RunningPeer, encrypted: &str, folder: &Path) -> Result<String> {
    let key = folder.join("upstream-key");
    fs::write(&key, &simulator.key)?;
    let mut config =
        "[server]\nlisten = \"127.0.0.1:0\"\n[limits]\nmax_connections_per_peer = 1024\n".to_owned();
    for kind in STUBS {
        write!(
            config,
            "[upstreams.stub-{kind}]\nkind = \"{kind}\"\nbase_url = \"http://{}/v1\"\n",
            stub.host
        )?;
        for model in ["plain", "chunks-2000", "paced-50-20"] {
            write!(
                config,
                "[models.{model}-{kind}]\nfamily = \"family_one\"\ntranslate_responses = true\n\
                 targets = [{{ upstream = \"stub-{kind}\", model = \"{model}\" }}]\n"
            )?;
        }
    }
    for (kind, path, model) in KINDS {
        for (name, address) in [
            (kind.to_owned(), format!("http://{}", simulator.host)),
            (format!("{kind}-tls"), format!("https://{encrypted}")),
        ] {
            write!(
                config,
                "[upstreams.{name}]\nkind = \"{kind}\"\nbase_url = \"{address}{path}\"\nkey = {{ file = \"{}\" }}\n\
                 [models.{name}]\nfamily = \"family_one\"\ntranslate_responses = true\n\
                 targets = [{{ upstream = \"{name}\", model = \"{model}\" }}]\n",
                key.display()
            )?;
        }
    }
    Ok(config)
}

/// Relays as in the benchmarks: sequential requests, many concurrent ones, streams.
fn relay(gateway: &RunningPeer) -> Result<()> {
    for kind in STUBS {
        for (measure, model, count) in [
            ("latency", "plain", 3000),
            ("throughput", "plain", 0),
            ("first-byte", "plain", 500),
            ("chunks", "chunks-2000", 10),
            ("crowd", "paced-50-20", 200),
        ] {
            let mut load = load(gateway, "/v1/chat/completions", measure, count);
            output(load.args(["--model", &format!("{model}-{kind}")]))?;
        }
    }
    Ok(())
}

/// Calls each kind of upstream in each protocol, for complete answers and for streams.
fn convert(gateway: &RunningPeer) -> Result<()> {
    let stubs = STUBS.map(|kind| format!("plain-{kind}"));
    let kinds = KINDS.iter().flat_map(|(kind, ..)| [(*kind).to_owned(), format!("{kind}-tls")]);
    for model in kinds.chain(stubs) {
        for (path, streamed, body) in requests(&model) {
            for (measure, path, count) in [("latency", &path, 200), ("first-byte", &streamed, 100)] {
                let mut load = load(gateway, path, measure, count);
                output(load.args(["--body", &body.to_string()]))?;
            }
        }
    }
    Ok(())
}

/// One conversation with a tool, in each protocol: the path, that of its stream, and the body.
fn requests(model: &str) -> [(String, String, Value); 4] {
    let (system, question) = ("Answer in a sentence.", "What is the weather in Oslo, and what in Rome?");
    let (name, about) = ("weather", "The weather at a place");
    let schema =
        json!({ "type": "object", "properties": { "place": { "type": "string" } }, "required": ["place"] });
    let same = |path: &str, body| (path.to_owned(), path.to_owned(), body);
    [
        same(
            "/v1/chat/completions",
            json!({
                "model": model, "max_tokens": 500, "temperature": 0.5,
                "messages": [{ "role": "system", "content": system }, { "role": "user", "content": question }],
                "tools": [{ "type": "function", "function": { "name": name, "description": about, "parameters": schema } }],
            }),
        ),
        same(
            "/v1/messages",
            json!({
                "model": model, "max_tokens": 500, "system": system,
                "messages": [{ "role": "user", "content": [{ "type": "text", "text": question }] }],
                "tools": [{ "name": name, "description": about, "input_schema": schema }],
            }),
        ),
        same(
            "/v1/responses",
            json!({
                "model": model, "instructions": system, "input": question,
                "tools": [{ "type": "function", "name": name, "description": about, "parameters": schema }],
            }),
        ),
        (
            format!("/v1beta/models/{model}:generateContent"),
            format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
            json!({
                "systemInstruction": { "parts": [{ "text": system }] },
                "contents": [{ "role": "user", "parts": [{ "text": question }] }],
                "tools": [{ "functionDeclarations": [{ "name": name, "description": about, "parameters": schema }] }],
            }),
        ),
    ]
}

/// Requests images from the simulator, which draws them.
fn create(simulator: &RunningPeer) -> Result<()> {
    let body = json!({ "model": "image_model_2", "prompt": "a river", "size": "1024x1024" });
    output(load(simulator, "/v1/images/generations", "latency", 10).args(["--body", &body.to_string()]))?;
    Ok(())
}

/// Validates reports, valid and invalid ones.
fn judge(counted: impl Fn() -> Command, folder: &Path) -> Result<()> {
    for (name, expected) in [("good", 0), ("broken", 1)] {
        let report: Value =
            serde_json::from_slice(&fs::read(root().join(format!("examples/reports/{name}.json")))?)?;
        let lines = folder.join(format!("{name}.ndjson"));
        fs::write(&lines, format!("{report}\n").repeat(REPORTS))?;
        let status = counted()
            .args(["report", "validate", "--format", "json"])
            .arg(&lines)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()?;
        ensure!(status.code() == Some(expected), "the verdict on {name} reports ended with {status}");
    }
    Ok(())
}
