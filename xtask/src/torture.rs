//! `cargo xtask torture`: gateways under load and faults, and a checker of the responses to their clients. The program
//! is `tests/torture`; this builds it and the gateway.

use std::path::Path;

use anyhow::Result;

use crate::artefacts::{PROGRAM, build_programs, program, target};
use crate::process::{command, run};

/// How long faults are injected in the run that is part of `cargo xtask test`. Each kind occurs at least once;
/// whatever was accepted then takes about half a minute to finish.
const SHORT_SECONDS: u64 = 45;
/// Its faults and its load are always the same.
const SHORT_SEED: u64 = 1;

/// The torture test's package and program.
pub(crate) const TORTURE: (&str, &str) = ("gatewright-test-torture", "gatewright-test-torture");

/// The run that is part of `cargo xtask test`.
pub(crate) fn run_short() -> Result<()> {
    run_torture(SHORT_SECONDS, Some(SHORT_SEED))
}

/// Runs for some time. `seed`: determines faults and load; random if not given.
pub(crate) fn run_torture(seconds: u64, seed: Option<u64>) -> Result<()> {
    build_all()?;
    let mut torture = command(target().join("debug").join(TORTURE.1));
    torture.args(["run", "--seconds", &seconds.to_string(), "--program"]).arg(program());
    torture.arg("--folder").arg(target().join("torture"));
    if let Some(seed) = seed {
        torture.args(["--seed", &seed.to_string()]);
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
