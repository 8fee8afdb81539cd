//! The generator, as `cargo xtask codegen` runs it: from `spec/` to every generated file, in phases.
//!
//! load → lint → build (the model) → lower (the documents that follow from the specification, what progenitor can take
//! among them) → emit → write or check. Each phase is a module and a pure function, but for the first and the last,
//! which read and write files. Emitters take the model and what lowering made, never the documents of `spec/`. What clients
//! have beside the operations is in no specification: `surface` reads it from their sources, once all else is generated.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a command-line program reports to its user")]

mod api_docs;
mod build;
mod catalog;
mod emit;
mod errors;
#[cfg(test)]
mod fixture;
mod lint;
mod load;
mod lower;
mod model;
mod names;
mod options;
mod schema;
mod target;
#[cfg(test)]
mod tests;
mod validate;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use self::load::Sources;
use self::lower::Lowered;
use self::model::Api;
use self::target::Target;
use self::write::Output;

/// Generates code and documents from a specification
#[derive(Parser)]
#[command(name = "codegen")]
struct Arguments {
    /// The repository
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that comes from spec/
    Generate {
        /// Write nothing; fail and list the files that differ from what would be generated
        #[arg(long)]
        check: bool,
    },
    /// The clients of another specification
    Clients(Another),
    /// Every operation of spec/, as callers in Python and Node name it, in JSON
    Operations,
}

#[derive(Args)]
struct Another {
    /// The specification, from the repository
    #[arg(value_name = "OPENAPI")]
    openapi: PathBuf,
    /// JSON that says where the clients go and what they import, see `target.rs`
    #[arg(long, value_name = "FILE")]
    home: PathBuf,
    /// Folder of the clients
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { root, command }: &Arguments) -> Result<()> {
    match command {
        Command::Generate { check } => generate_all(root, *check),
        Command::Clients(Another { openapi, home, into }) => {
            generate_clients(root, openapi, Target::read(home)?, into)
        }
        Command::Operations => {
            println!("{}", serde_json::to_string(&callables(root)?)?);
            Ok(())
        }
    }
}

/// Generates everything from the sources below `root` and writes it, or with `check` only compares.
fn generate_all(root: &Path, check: bool) -> Result<()> {
    let mut output = generate(&Sources::read(root)?)?;
    let surface = api_docs::parts(root, &output)?;
    output.add_parts(surface)?;
    if check { output.check(root) } else { output.write(root) }
}

/// The clients of another specification, written below `folder`: Rust, Python and TypeScript where `home` has them, and
/// `operations.json`, the rows that debug builds of the bindings take.
fn generate_clients(root: &Path, openapi: &Path, home: Target, folder: &Path) -> Result<()> {
    let sources = Sources::of(root, openapi, home)?;
    let (api, lowered) = prepare(&sources)?;
    let (rust, signatures) = emit::rust::emit(&api, &lowered)?;
    let mut output = Output::default();
    for files in [
        rust,
        emit::operations::emit(&api),
        emit::resources::emit(&api, &signatures),
        emit::python::clients(&api),
        emit::typescript::clients(&api),
    ] {
        output.add(files)?;
    }
    output.write(folder)?;
    std::fs::write(folder.join("operations.json"), emit::operations::rows(&api).to_string())
        .with_context(|| format!("cannot write to {}", folder.display()))
}

/// An operation as callers name it: where it is on the client, and the method there.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Callable {
    python: (String, String),
    node: (String, String),
}

/// Every operation of `spec/`.
fn callables(root: &Path) -> Result<Vec<Callable>> {
    let (api, _) = prepare(&Sources::read(root)?)?;
    let named = api.operations.iter().map(|operation| {
        let place = |case: fn(&str) -> String| {
            let parts = operation.resource.iter().map(|part| case(part));
            ["client".to_owned()].into_iter().chain(parts).collect::<Vec<_>>().join(".")
        };
        Callable {
            python: (place(str::to_owned), operation.name.clone()),
            node: (place(names::camel), names::camel(&operation.name)),
        }
    });
    Ok(named.collect())
}

/// The model and what progenitor takes, of sources that keep every rule.
fn prepare(sources: &Sources) -> Result<(Api, Lowered)> {
    let mut problems = lint::lint(&sources.openapi);
    problems.extend(lint::lint_errors(&sources.errors));
    stop_at(sources, &problems)?;
    let api = build::build(sources)?;
    stop_at(
        sources,
        &[
            lint::lint_nulls(&api),
            lint::lint_statuses(&sources.openapi, &api),
            lint::lint_options(&api.options, &api.errors),
        ]
        .concat(),
    )?;
    let lowered = lower::lower(&sources.openapi, &api)?;
    Ok((api, lowered))
}

/// All generated files.
fn generate(sources: &Sources) -> Result<Output> {
    let (api, lowered) = prepare(sources)?;
    let (rust, signatures) = emit::rust::emit(&api, &lowered)?;
    let mut output = Output::default();
    for files in [
        emit::openapi::emit(&lowered)?,
        rust,
        emit::operations::emit(&api),
        emit::error_kinds::emit(&api),
        emit::catalog::emit(&api)?,
        emit::resources::emit(&api, &signatures),
        emit::presence::emit(&api)?,
        emit::forms::emit(&api),
        emit::conveniences::emit(&api)?,
        emit::report::emit(&api)?,
        emit::routes::emit(&api),
        emit::docs::emit(&api),
        emit::languages::emit(&api, &signatures),
        emit::python::emit(&api),
        emit::typescript::emit(&api),
        emit::options::emit(&api),
    ] {
        output.add(files)?;
    }
    output.add(vec![emit::checker::emit(&lower::checker(&sources.report)?)])?;
    output.add(vec![emit::checker::emit_suite(&lower::suite(&sources.suite))])?;
    output.add_parts(emit::options::parts(&api))?;
    Ok(output)
}

fn stop_at(sources: &Sources, problems: &[lint::Problem]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let place = |problem: &lint::Problem| problem.place.replacen(load::OPENAPI, &sources.name, 1);
    let list: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", place(problem), problem.message)).collect();
    let counted = if list.len() == 1 { "problem" } else { "problems" };
    bail!("{}\n{} {counted} in the specification", list.join("\n"), list.len())
}
