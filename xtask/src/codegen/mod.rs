//! `cargo xtask codegen`: from `spec/` to every generated file, in phases.
//!
//! load → lint → build (the model) → lower (what progenitor can take) → emit → write or check. Each phase is a
//! module and a pure function, but for the first and the last, which read and write files.

mod build;
mod emit;
#[cfg(test)]
mod fixture;
mod lint;
mod load;
mod lower;
mod model;
mod names;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use anyhow::{Result, bail};

use self::load::Sources;
use self::write::Output;

/// Generates everything from the sources below `root` and writes it, or with `check` only compares.
pub(crate) fn run(root: &Path, check: bool) -> Result<()> {
    let output = generate(&Sources::read(root)?)?;
    if check { output.check(root) } else { output.write(root) }
}

/// All generated files.
fn generate(sources: &Sources) -> Result<Output> {
    let mut problems = lint::lint(&sources.openapi);
    problems.extend(lint::lint_errors(&sources.errors));
    stop_at(&problems)?;
    let api = build::build(sources)?;
    stop_at(&[lint::lint_nulls(&api), lint::lint_statuses(&sources.openapi, &api)].concat())?;
    let lowered = lower::lower(&sources.openapi, &api)?;
    let (rust, signatures) = emit::rust::emit(&lowered)?;
    let mut output = Output::default();
    for files in [
        emit::openapi::emit(&api, &lowered)?,
        rust,
        emit::operations::emit(&api),
        emit::error_kinds::emit(&api),
        emit::catalog::emit(&api),
        emit::resources::emit(&api, &signatures),
        emit::requests::emit(&api, &sources.openapi)?,
        emit::presence::emit(&api, &sources.openapi)?,
        emit::routes::emit(&api),
        emit::docs::emit(&api, &sources.report),
        emit::python::emit(&api),
        emit::typescript::emit(&api),
    ] {
        output.add(files)?;
    }
    Ok(output)
}

fn stop_at(problems: &[lint::Problem]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
    bail!("{}\n{} problem(s) in the specification", list.join("\n"), list.len())
}
