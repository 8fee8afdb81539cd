//! `cargo xtask torture`: gateways under load and faults, and a checker of the responses to their clients. The program
//! is `tests/torture`; this builds it and the gateway.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::artefacts::{PROGRAM, build_programs, program, target};
use crate::process::{command, run};

/// How long faults are injected in the run that is part of `cargo xtask test`. Each kind occurs at least once;
/// whatever was accepted then takes about half a minute to finish.
const SHORT_SECONDS: u64 = 45;
/// Its faults and its load are always the same.
const SHORT_SEED: u64 = 1;

/// The torture test's package and program.
pub(crate) const TORTURE: (&str, &str) = ("gatewright-test-torture", "gatewright-test-torture");

/// How to run it.
#[derive(Args)]
pub(crate) struct TortureSettings {
    /// How long there are faults
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number that faults and load follow from, to repeat a run. Default: any
    #[arg(long)]
    seed: Option<u64>,
    /// For how many seconds counters and bucket are also away at a time. Default: never longer than four
    #[arg(long, value_name = "SECONDS")]
    absent: Option<u64>,
    /// A built gatewright to torture, such as the one that was published. Default: a debug build, whose clocks can also be wrong
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// The run that is part of `cargo xtask test`.
pub(crate) fn run_short() -> Result<()> {
    run_torture(&TortureSettings {
        seconds: SHORT_SECONDS,
        seed: Some(SHORT_SEED),
        absent: None,
        program: None,
    })
}

/// Runs for some time.
pub(crate) fn run_torture(settings: &TortureSettings) -> Result<()> {
    match settings.program {
        Some(_) => build_programs(&[TORTURE])?,
        None => build_all()?,
    }
    let mut torture = command(target().join("debug").join(TORTURE.1));
    torture.args(["run", "--seconds", &settings.seconds.to_string(), "--program"]);
    torture.arg(settings.program.clone().unwrap_or_else(program));
    torture.arg("--folder").arg(target().join("torture"));
    for (name, number) in [("--seed", settings.seed), ("--absent", settings.absent)] {
        if let Some(number) = number {
            torture.args([name, &number.to_string()]);
        }
    }
    run(&mut torture)
}

/// Checks the history of a run again.
pub(crate) fn check(history: &Path) -> Result<()> {
    build_all()?;
    run(command(target().join("debug").join(TORTURE.1)).arg("check").arg(history))
}

fn build_all() -> Result<()> {
    build_programs(&[PROGRAM, TORTURE])
}
