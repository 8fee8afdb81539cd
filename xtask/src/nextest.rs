//! Runs the Rust tests of the workspace with nextest.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::artefacts::{is_built, target};
use crate::building::build;
use crate::process::{cargo, output, step};

/// The packages of the workspace, with all their features.
const PACKAGES: [&str; 2] = ["--workspace", "--all-features"];

/// Builds the tests, and records what nextest needs to run them without cargo.
pub(crate) fn build_tests() -> Result<()> {
    step("build the tests", || build(cargo().args(["nextest", "run", "--no-run"]).args(PACKAGES)))?;
    let mut list = cargo();
    list.args(["nextest", "list", "--list-type", "binaries-only", "--message-format", "json"]).args(PACKAGES);
    std::fs::create_dir_all(target().join("test"))?;
    std::fs::write(binaries(), output(&mut list)?)?;
    let described =
        output(cargo().args(["metadata", "--format-version", "1", "--all-features", "--locked"]))?;
    Ok(std::fs::write(metadata(), described)?)
}

/// `cargo nextest run`. If the step `build` has just built the tests, nextest does not call cargo, whose lock another step
/// may hold.
pub(crate) fn run_tests() -> Result<Command> {
    let mut run = cargo();
    run.args(["nextest", "run"]);
    if is_built() {
        run.arg("--binaries-metadata").arg(binaries()).arg("--cargo-metadata").arg(metadata());
    } else {
        build(cargo().args(["nextest", "run", "--no-run"]).args(PACKAGES))?;
        run.args(PACKAGES);
    }
    Ok(run)
}

fn binaries() -> PathBuf {
    target().join("test/binaries.json")
}

fn metadata() -> PathBuf {
    target().join("test/metadata.json")
}
