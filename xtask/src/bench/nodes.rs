//! `cargo xtask bench nodes`: the cost of requests and tasks with one to three gateways that share a store. The
//! benchmark program is `tests/torture`, which starts them.

use anyhow::Result;

use crate::artefacts::target;
use crate::process::{cargo, command, run, step};

const PACKAGE: &str = "gatewright-test-torture";

/// Runs the benchmark, and prints the table of docs/scaling.md.
pub(super) fn run_nodes() -> Result<()> {
    step("build the gateway and the load", || {
        // Separately: in one build with the load generator, the gateway would get features that only that one requires of
        // its dependencies, and would be rebuilt for the next benchmark.
        let apart = [&["gatewright-cli", "gatewright-bench"][..], &[PACKAGE]];
        apart.iter().try_for_each(|packages| {
            run(cargo()
                .args(["build", "--release"])
                .args(packages.iter().flat_map(|package| ["-p", package])))
        })
    })?;
    let programs = target().join("release");
    run(command(programs.join(PACKAGE)).args(["figures", "--program"]).arg(programs.join("gatewright")))
}
