//! `cargo xtask soak`: measures whether the memory of a long-lived client stays constant. One process per language
//! sends many requests and reads many stream events, against a server that costs next to nothing; its resident memory
//! is recorded over time.

mod memory;
mod server;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, Examples};
use crate::process::{command, root, step};
use memory::Curve;
use server::SoakServer;

/// The values of `--language`.
pub(crate) const LANGUAGES: [&str; 3] = ["rust", "python", "node"];

/// Maximum growth between the second and the last quarter of a phase, in MiB. In the full run this is 168 bytes per
/// request and less than two per event, which is below the variation of allocators and collectors.
const BOUND_MIB: u64 = 8;

/// The run of the test step, and its bound: a short run ends before an engine's caches are full. It finds a leak of 8
/// KiB per request, or of 84 bytes per event.
const SHORT_REQUESTS: u64 = 4_000;
const SHORT_EVENTS: u64 = 400_000;
const SHORT_BOUND_MIB: u64 = 16;

/// What runs the programs of Python and Node, with the packages that it finds.
pub(crate) struct Programs {
    /// The interpreter.
    pub(crate) python: PathBuf,
    /// The script, which imports the package that lies around it.
    pub(crate) node: PathBuf,
}

impl Programs {
    /// Those of this checkout.
    fn of_checkout() -> Self {
        let node = root().join("tests/soak/soak.mjs");
        Self { python: artefacts::venv(&root()).join("bin/python"), node }
    }

    fn of(&self, language: &str) -> Command {
        match language {
            "rust" => artefacts::example("soak"),
            "python" => {
                let mut python = command(&self.python);
                python.arg(root().join("tests/soak/soak.py"));
                python
            }
            _ => {
                let mut node = command("node");
                // Each measurement follows a garbage collection, so it only counts memory in use.
                node.arg("--expose-gc").arg(&self.node);
                node
            }
        }
    }
}

/// How much a run does, and what is allowed to grow.
struct Extent {
    requests: u64,
    events: u64,
    bound_mib: u64,
}

const SHORT: Extent = Extent { requests: SHORT_REQUESTS, events: SHORT_EVENTS, bound_mib: SHORT_BOUND_MIB };

/// The run that is part of `cargo xtask test`, with the artifacts of `cargo xtask test build`.
pub(crate) fn run_short() -> Result<()> {
    run_short_on(&Programs::of_checkout(), &LANGUAGES)
}

/// The same, in some languages with other packages than the checkout's.
pub(crate) fn run_short_on(programs: &Programs, languages: &[&str]) -> Result<()> {
    soak(programs, languages, &SHORT)
}

/// A run of any length.
pub(crate) fn run_soak(requests: u64, events: u64, language: Option<&str>) -> Result<()> {
    let chosen: Vec<&str> =
        LANGUAGES.into_iter().filter(|name| language.is_none_or(|only| only == *name)).collect();
    if chosen.is_empty() {
        bail!("there is no language {:?}; there are {}", language.unwrap_or_default(), LANGUAGES.join(", "));
    }
    soak(&Programs::of_checkout(), &chosen, &Extent { requests, events, bound_mib: BOUND_MIB })
}

/// Runs the program of each language. Fails if the memory of any grows past the bound.
fn soak(programs: &Programs, languages: &[&str], extent: &Extent) -> Result<()> {
    if languages.contains(&"rust") {
        artefacts::build_engines(Examples::One("soak"))?;
    }
    let Extent { requests, events, bound_mib } = extent;
    let server = SoakServer::start()?;
    let mut grown = Vec::new();
    for language in languages {
        let title = format!("soak {language}: {requests} requests, {events} stream events");
        let program = programs.of(language);
        for curve in step(&title, || watch(language, program, extent, &server))? {
            eprintln!("    {curve}");
            if !curve.is_flat() {
                grown.push(format!("{language}, {}", curve.phase()));
            }
        }
    }
    if !grown.is_empty() {
        bail!("memory grew by more than {bound_mib} MiB after the warm-up: {}", grown.join("; "));
    }
    Ok(())
}

/// Starts the program of a language, and records its memory at each line that it prints: `PHASE DONE`.
fn watch(language: &str, mut program: Command, extent: &Extent, server: &SoakServer) -> Result<Vec<Curve>> {
    let mut child = program
        .args([extent.requests.to_string(), extent.events.to_string()])
        .env("GATEWRIGHT_BASE_URL", server.address())
        .env("GATEWRIGHT_API_KEY", "soak")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start the soak program of {language}"))?;
    let started = Instant::now();
    let mut curves: Vec<Curve> = Vec::new();
    for line in BufReader::new(child.stdout.take().context("a piped output")?).lines() {
        let line = line?;
        let (phase, done) =
            line.rsplit_once(' ').with_context(|| format!("not a line of progress: {line:?}"))?;
        if curves.last().is_none_or(|curve| curve.phase() != phase) {
            curves.push(Curve::new(phase, extent.bound_mib, started.elapsed()));
        }
        let curve = curves.last_mut().expect("one was pushed");
        // Programs print faster than a busy machine reads: the last lines may be read after their program has ended.
        if let Some(resident) = memory::resident_bytes(child.id())? {
            curve.add(done.parse()?, resident, started.elapsed());
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the soak program of {language} ended with {status}");
    }
    if curves.is_empty() {
        bail!("the soak program of {language} reported no progress");
    }
    Ok(curves)
}
