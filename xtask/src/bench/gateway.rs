//! `cargo xtask bench gateway`: what a gateway adds to a request, compared with other gateways. All relay to the same
//! stub on this machine, and so does nginx, as the floor; the order changes from round to round.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::Settings;
use super::awake::keep_awake;
use super::compare;
use super::peers::{self, MODELS, RunningPeer, first_line, is_installed};
use crate::artefacts::target;
use crate::process::{cargo, command, output, root, run, step};

/// The benchmarked path.
const CHAT: &str = "/v1/chat/completions";

/// One kind of measurement.
struct Measure {
    /// Its name in `load`.
    name: &'static str,
    model: &'static str,
    count: usize,
    /// The figures shown: name, unit, whether higher is better.
    figures: &'static [(&'static str, &'static str)],
}

const MEASURES: &[Measure] = &[
    Measure {
        name: "latency",
        model: "plain",
        count: 2000,
        figures: &[("p50_us", "µs, one at a time, p50"), ("cpu_us", "µs of CPU time per request")],
    },
    Measure {
        name: "throughput",
        model: "plain",
        count: 0,
        figures: &[("requests_s", "requests/s at 16 connections"), ("memory_mb", "MB afterwards")],
    },
    Measure {
        name: "first-byte",
        model: "plain",
        count: 300,
        figures: &[("p50_us", "µs to the first byte of a stream")],
    },
    Measure {
        name: "chunks",
        model: "chunks-2000",
        count: 10,
        figures: &[("cpu_us", "µs of CPU time per chunk")],
    },
    Measure {
        name: "crowd",
        model: "paced-50-20",
        count: 1000,
        figures: &[
            ("memory_mb", "MB, 1,000 streams at once"),
            ("longest_gap_ms", "ms, longest gap among them"),
        ],
    },
];

/// Options for our key.
const LIMITS: [&str; 6] = [
    "--requests-per-minute",
    "--tokens-per-minute",
    "--concurrent-requests",
    "--tokens-per-day",
    "--tokens-per-month",
    "--cost-per-day",
];

/// Medians by measurement and gateway.
type Figures = BTreeMap<(usize, &'static str), BTreeMap<&'static str, Vec<f64>>>;

/// Runs the benchmark. `program`: builds the gateway as in the packages, with or without a profile.
pub(super) fn run_gateway(settings: &Settings, program: fn(guided: bool) -> Result<PathBuf>) -> Result<()> {
    build_load()?;
    let (ours, before) = match &settings.compare {
        Some(commit) => {
            let [ours, before] = compare::programs(commit)?;
            (ours, Some(before))
        }
        None => (step("build the gateway as packaged", || program(settings.guided))?, None),
    };
    let stub = start_stub()?;
    let start =
        |program: &Path, name, kind| start_ours(|| command(program), name, &relaying(&stub, kind), CHAT);
    let mut gateways = vec![start(&ours, "relayed", "chat")?, start(&ours, "translated", "messages")?];
    if let Some(before) = before {
        gateways.extend([
            start(&before, "relayed before", "chat")?,
            start(&before, "translated before", "messages")?,
        ]);
    }
    if settings.peers {
        let title =
            if is_installed() { "start the peers" } else { "install and start the peers (takes minutes)" };
        step(title, || {
            for start in [peers::tensorzero, peers::portkey, peers::litellm] {
                gateways.push(start(&stub.host)?);
            }
            Ok(())
        })?;
    }
    gateways.push(peers::nginx(&stub.host)?);
    gateways.push(stub);
    let rounds = settings.rounds;
    let _awake = settings.awake.then(keep_awake).transpose()?;
    let mut figures = Figures::new();
    for round in 0..rounds {
        step(&format!("round {} of {rounds}", round + 1), || measure(&mut gateways, &mut figures))?;
        gateways.rotate_left(1);
    }
    show(&figures);
    Ok(())
}

fn release(program: &str) -> PathBuf {
    target().join("release").join(program)
}

/// Builds the programs for [`start_stub`] and [`load`].
pub(crate) fn build_load() -> Result<()> {
    step("build the stub and the load", || {
        run(cargo().args(["build", "--release", "-p", "gatewright-bench"]))
    })
}

pub(crate) fn start_stub() -> Result<RunningPeer> {
    let mut child =
        command(release("stub")).stdout(Stdio::piped()).spawn().context("cannot start the stub")?;
    let port = first_line(&mut child)?;
    Ok(RunningPeer::new("the stub itself", child, format!("127.0.0.1:{port}"), CHAT))
}

/// The configuration of a gateway in front of the stub, as an upstream of a kind.
fn relaying(stub: &RunningPeer, kind: &str) -> String {
    let models = MODELS.iter().map(|model| {
        format!("[models.\"{model}\"]\nfamily = \"family_one\"\ntargets = [{{ upstream = \"stub\" }}]\n")
    });
    format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n\n[limits]\nmax_connections = 4096\nmax_connections_per_peer = 4096\n\n\
         [upstreams.stub]\nkind = \"{kind}\"\nbase_url = \"http://{}/v1\"\n\n{}",
        stub.host,
        models.collect::<String>()
    )
}

/// Our gateway, with usage and a key that has limits of every kind, which are never reached. `program`: its
/// command.
pub(crate) fn start_ours(
    program: impl Fn() -> Command,
    name: &'static str,
    config: &str,
    path: &'static str,
) -> Result<RunningPeer> {
    let folder = root().join("target/bench").join(name);
    fs::create_dir_all(&folder)?;
    let (file, data) = (folder.join("gatewright.toml"), folder.join("data"));
    fs::write(&file, config)?;
    if data.exists() {
        fs::remove_dir_all(&data)?;
    }
    let mut create = program();
    create.args(["keys", "create", "bench", "--json", "--data"]).arg(&data);
    for limit in LIMITS {
        create.args([limit, "1000000000"]);
    }
    let key: Value = serde_json::from_str(&output(&mut create)?)?;
    let mut child = program()
        .args(["serve", "--json", "--config"])
        .arg(&file)
        .arg("--data")
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the gateway")?;
    let ready: Value = serde_json::from_str(&first_line(&mut child)?).context("the gateway did not start")?;
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let host = text(&ready, "listening").trim_start_matches("http://").to_owned();
    let mut running = RunningPeer::new(name, child, host, path);
    running.key = text(&key, "secret");
    Ok(running)
}

/// The program that sends load to a path of a gateway.
pub(crate) fn load(gateway: &RunningPeer, path: &str, measure: &str, count: usize) -> Command {
    let mut load = command(release("load"));
    load.args(["--host", &gateway.host, "--path", path, "--key", &gateway.key])
        .args(["--pid", &gateway.pid.to_string(), "--measure", measure])
        .args(["--count", &count.to_string()]);
    load
}

fn measure(gateways: &mut [RunningPeer], figures: &mut Figures) -> Result<()> {
    for (at, measure) in MEASURES.iter().enumerate() {
        for gateway in &mut *gateways {
            let mut load = load(gateway, gateway.path, measure.name, measure.count);
            load.args(["--model", &format!("{}{}", gateway.prefix, measure.model)]);
            for header in &gateway.headers {
                load.args(["--header", header]);
            }
            let measured: Value = match output(&mut load) {
                Ok(measured) => serde_json::from_str(&measured)?,
                Err(error) => {
                    eprintln!("    {} did not finish {}: {error}", gateway.name, measure.name);
                    continue;
                }
            };
            let samples = figures.entry((at, gateway.name)).or_default();
            for (figure, _) in measure.figures {
                samples.entry(*figure).or_default().extend(measured[*figure].as_f64());
            }
        }
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn show(figures: &Figures) {
    for (at, measure) in MEASURES.iter().enumerate() {
        for (figure, unit) in measure.figures {
            eprintln!("\n{unit}");
            let of = |name: &str| {
                let ((..), samples) =
                    figures.iter().find(|((place, other), _)| *place == at && *other == name)?;
                Some(median(samples.get(figure)?))
            };
            let ours = of("relayed");
            let direct = of("the stub itself");
            for ((place, name), samples) in figures {
                let Some(values) = samples.get(figure).filter(|_| *place == at) else { continue };
                let value = median(values);
                let ratio = ours.map_or(f64::NAN, |ours| value / ours);
                let added = direct.map_or(f64::NAN, |direct| value - direct);
                eprintln!("  {name:17} {value:12.1}   {ratio:8.2} × relayed   {added:+12.1} to the stub");
            }
        }
    }
}
