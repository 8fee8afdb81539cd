//! `cargo xtask codegen`: runs the generator, which is the crate `codegen/`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::artefacts::{is_built, target};
use crate::process::{cargo, command, output, root, run};

/// Generates everything from the specification of a checkout and writes it; with `check`, only compares.
pub(crate) fn generate(checkout: &Path, check: bool) -> Result<()> {
    run(generator(checkout).arg("generate").args(check.then_some("--check")))
}

/// Writes the clients for another specification into a folder. `target`: a file with their places and imports.
pub(crate) fn generate_clients(openapi: &Path, target: &Path, into: &Path) -> Result<()> {
    let mut call = generator(&root());
    call.arg("clients").arg("--spec").arg(openapi).arg("--target").arg(target).arg("--out").arg(into);
    run(&mut call)
}

/// An operation as callers name it: its place on the client, and the method there.
#[derive(Debug, Deserialize)]
pub(crate) struct Callable {
    pub python: (String, String),
    pub node: (String, String),
}

/// Every operation of `spec/`.
pub(crate) fn callables() -> Result<Vec<Callable>> {
    let listed = output(generator(&root()).arg("operations"))?;
    serde_json::from_str(&listed).context("the generator lists operations in another form")
}

/// The generator's package and program.
pub(crate) const GENERATOR: (&str, &str) = ("gatewright-codegen", "codegen");

/// This checkout's generator, for another checkout or this one.
fn generator(checkout: &Path) -> Command {
    let mut generator = if is_built() {
        command(target().join("debug").join(GENERATOR.1))
    } else {
        let mut run = cargo();
        run.args(["run", "--quiet", "--package", GENERATOR.0, "--"]);
        run
    };
    generator.arg("--root").arg(checkout);
    generator
}
