//! Tortures gateways: real ones, under load, with faults of all kinds, and checks that everything their clients learned has an
//! explanation. `cargo xtask torture` builds and starts it.

#![expect(clippy::print_stderr, reason = "a command-line program reports to its user")]

mod checker;
mod clients;
mod disk;
mod expected;
mod faults;
mod figures;
mod history;
mod load;
mod networks;
mod node;
mod receiver;
mod stalls;
mod summary;
mod upstream;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};

use crate::checker::{Promises, Verdict};
use crate::clients::Clients;
use crate::faults::Step;
use crate::history::{Event, History, Line};
use crate::load::Load;
use crate::stalls::Stalls;
use crate::summary::Summary;
use crate::world::{ADMIN_KEY, KEY, World};

/// What the gateways promise today.
const PROMISES: Promises = Promises { shared_replays: true, shared_limits: true };
/// The rules assume that processes are not kept from running for longer.
const MAX_STALL: Duration = Duration::from_secs(1);
/// How many violations are shown, and how many lines of each.
const MAX_SHOWN: usize = 10;
const MAX_LINES: usize = 6;
/// How many characters of a line are shown.
const MAX_LINE_CHARS: usize = 400;

#[derive(Parser)]
#[command(about = "Gateways under load and faults, and a checker of what their clients learned")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Torture gateways for some time, and judge their responses to clients
    Run {
        /// The built gatewright program
        #[arg(long)]
        program: PathBuf,
        /// How long faults occur
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The seed of the faults and the load. Default: random
        #[arg(long)]
        seed: Option<u64>,
        /// For how many seconds counters and bucket are also away at a time. Default: never that long
        #[arg(long, value_name = "SECONDS")]
        absent: Option<u64>,
        /// Where to leave the history and the logs if something was found
        #[arg(long)]
        folder: PathBuf,
    },
    /// Measure what requests and tasks cost one to three gateways, with no faults
    Figures {
        /// The built gatewright program, an optimized build
        #[arg(long)]
        program: PathBuf,
    },
    /// Judge the history of a run again
    Check {
        /// history.jsonl of a run
        history: PathBuf,
    },
}

fn main() -> ExitCode {
    _ = rustls::crypto::ring::default_provider().install_default();
    let result = match Arguments::parse().command {
        Command::Run { program, seconds, seed, absent, folder } => {
            let seed = seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
            let time = Duration::from_secs(seconds);
            let plan = faults::plan(seed, time, absent.map(Duration::from_secs));
            run(&program, &plan, time, seed, &folder)
        }
        Command::Figures { program } => program
            .canonicalize()
            .with_context(|| format!("there is no {}", program.display()))
            .and_then(|program| figures::measure(&program)),
        Command::Check { history } => {
            history::read(&history).and_then(|lines| show(&lines, &checker::check(&lines, PROMISES)))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(program: &Path, plan: &[Step], time: Duration, seed: u64, folder: &Path) -> Result<()> {
    let program = program.canonicalize().with_context(|| format!("there is no {}", program.display()))?;
    std::fs::create_dir_all(folder)?;
    let folder = folder.canonicalize()?;
    let mut folder = tempfile::Builder::new().prefix("run-").tempdir_in(folder)?;
    eprintln!("seed {seed}, {} s, in {}", time.as_secs(), folder.path().display());
    let result = torture(&program, folder.path(), plan, time, seed);
    if result.is_err() {
        folder.disable_cleanup(true);
        eprintln!("seed {seed}: history.jsonl and the logs of the nodes stay in {}", folder.path().display());
    }
    result
}

fn torture(program: &Path, folder: &Path, plan: &[Step], time: Duration, seed: u64) -> Result<()> {
    let history = Arc::new(History::create(&folder.join("history.jsonl"))?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut world = World::start(program, folder, time, &history, &runtime, true)?;
    let clients = Clients::new(Arc::clone(&history), world.urls(), KEY, ADMIN_KEY)?;
    let load = Load::new(clients, Arc::clone(&world.receiver), world.hook.clone(), seed);
    let stalls = Stalls::watch();
    let working = runtime.block_on(async { load.start() });
    let started = Instant::now();
    for step in plan {
        sleep(step.at.saturating_sub(started.elapsed()));
        world.is_well()?;
        eprintln!("{:7.1} s  {} {:?}", started.elapsed().as_secs_f64(), verb(step.begins), step.fault);
        world.take(*step)?;
    }
    sleep(time.saturating_sub(started.elapsed()));
    history.add(Event::Quiet);
    eprintln!("{:7.1} s  quiet", started.elapsed().as_secs_f64());
    let settled = runtime.block_on(load.settle(working));
    let well = world.is_well().and_then(|()| world.stop()).and_then(|()| world.check_stores());
    let lines = history.take();
    eprintln!("{:7.1} s  over: {:?}", started.elapsed().as_secs_f64(), load.ends());
    eprintln!("{} requests to the bucket, {} lines of history", world.bucket_answered(), lines.len());
    let stalled = stalls.longest();
    eprintln!("the machine stalled for up to {:.1} s", stalled.as_secs_f64());
    eprintln!("peak memory of the nodes: {:?} MiB", world.peaks_of_memory());
    let shown = show(&lines, &checker::check(&lines, PROMISES));
    if stalled > MAX_STALL {
        shown.with_context(|| {
            format!("the machine stalled for {stalled:.1?}, which may be the cause: run this again when it is idle")
        })?;
    } else {
        shown?;
    }
    settled.and(well)
}

fn verb(begins: bool) -> &'static str {
    if begins { "begins" } else { "ends  " }
}

/// Shows a verdict. Errors: there is a violation.
fn show(lines: &[Line], verdict: &Verdict) -> Result<()> {
    eprintln!("{}", Summary::of(lines));
    eprintln!("the checker looked at {} things", verdict.looked_at);
    eprintln!(
        "usage: {} requests answered, {} of them when the store did not have it yet and their gateway ended",
        verdict.answered.requests, verdict.answered.endangered
    );
    for violation in verdict.violations.iter().take(MAX_SHOWN) {
        eprintln!("violation of {violation}");
        for number in violation.lines.iter().take(MAX_LINES) {
            let line = serde_json::to_string(&lines[*number]).expect("plain values");
            let shown: String = line.chars().take(MAX_LINE_CHARS).collect();
            eprintln!("  {}: {shown}", number + 1);
        }
    }
    match verdict.violations.len() {
        0 => Ok(()),
        count => bail!("{count} answers that no order of events explains"),
    }
}
