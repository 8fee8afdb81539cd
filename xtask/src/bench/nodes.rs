//! `cargo xtask bench nodes`: what requests and tasks cost one to three gateways that share a store. The program that
//! measures is `tests/torture`, which starts them.

use anyhow::Result;

use crate::artefacts::target;
use crate::process::{cargo, command, run, step};

const PACKAGE: &str = "gatewright-test-torture";

/// Measures, and prints the table of docs/scaling.md.
pub(super) fn run_nodes() -> Result<()> {
    step("build the gateway and the load", || {
        run(cargo().args(["build", "--release", "-p", "gatewright-cli", "-p", PACKAGE]))
    })?;
    let programs = target().join("release");
    run(command(programs.join(PACKAGE)).args(["figures", "--program"]).arg(programs.join("gatewright")))
}
