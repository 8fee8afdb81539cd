//! The generator, as `cargo xtask codegen` runs it: from `spec/` to every generated file, in phases.
//!
//! load → lint → build (the model) → lint the model → lower (the documents that follow from the specification, what
//! progenitor can take among them) → emit → client docs → write or check. Each phase is a module. Load, client docs and write use the
//! disk; the others are pure functions. Emitters take the model and the lowered documents, never those of `spec/`. Specifications don't
//! describe the names that clients have in addition to the operations: `client_docs` reads them from the sources of the clients.

#![expect(clippy::print_stderr, clippy::print_stdout, reason = "a command-line program reports to its user")]

mod build;
mod catalog;
mod client_docs;
mod document;
mod emit;
mod error_statuses;
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
mod vocabulary;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

use self::emit::{Emitter, Input};
use self::load::Sources;
use self::lower::Lowered;
use self::model::{Api, File};
use self::target::Target;
use self::write::Output;

/// Generates code and documents from a specification
#[derive(Parser)]
#[command(name = "codegen")]
struct Arguments {
    /// The repository of Gatewright, which clients of another specification do not need
    #[arg(long, value_name = "DIR", default_value = ".")]
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
    /// The specification: OpenAPI 3.0 or 3.1, in YAML or JSON
    #[arg(long, value_name = "FILE")]
    spec: PathBuf,
    /// Folder of the clients: a Rust crate, a Python and a Node package
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Name of the crate and of the packages
    #[arg(long, value_name = "NAME", default_value = "api_client", value_parser = package_name)]
    name: String,
    /// JSON that says where the clients go and what they import, see `target.rs`; without it they are packages of their own
    #[arg(long, value_name = "FILE", conflicts_with = "name", hide = true)]
    target: Option<PathBuf>,
}

/// A name that is an identifier in three languages.
fn package_name(name: &str) -> Result<String> {
    let is_word = names::snake(name) == name && !name.starts_with(|c: char| c.is_ascii_digit());
    if name.is_empty() || !is_word || names::rust(name) != name {
        bail!("a package is named in snake_case, such as `my_api`, and not by a keyword");
    }
    Ok(name.to_owned())
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
        Command::Clients(another) => generate_clients(another),
        Command::Operations => {
            println!("{}", serde_json::to_string(&callables(root)?)?);
            Ok(())
        }
    }
}

/// Generates everything from the sources below `root` and writes it, or with `check` only compares.
fn generate_all(root: &Path, check: bool) -> Result<()> {
    let mut output = Output::default();
    output.add(generate(&Sources::read(root)?, emit::ALL)?)?;
    output.add(generate(&Sources::operator_api(root)?, emit::OPERATOR_API)?)?;
    output.add(client_docs::emit(root, &output)?)?;
    if check {
        return output.check(root);
    }
    print_changed(&output.write(root)?);
    Ok(())
}

/// What these emitters make of the sources.
fn generate(sources: &Sources, emitters: &[Emitter]) -> Result<Vec<File>> {
    let (api, lowered) = prepare(sources)?;
    Input::new(&api, &lowered).files(emitters)
}

/// The clients of another specification in Rust, Python and TypeScript, with the packages around them unless `target` says
/// where they go.
fn generate_clients(Another { spec, out, name, target: file }: &Another) -> Result<()> {
    let target = match file {
        Some(file) => Target::read(file)?,
        None => Target::of_package(name),
    };
    let sources = Sources::of_others(spec, target)?;
    for note in sources.adopted.iter().flatten() {
        eprintln!("note: {}{note}", sources.openapi.name);
    }
    let (api, lowered) = prepare(&sources)?;
    let input = Input::new(&api, &lowered);
    let mut output = Output::default();
    output.add(input.files(emit::CLIENTS)?)?;
    if file.is_none() {
        output.add(input.files(emit::PACKAGE)?)?;
        write::write_missing(out, &emit::packages::manifests(&api))?;
    }
    print_changed(&output.write_clients(out, &api.source)?);
    Ok(())
}

/// Says which files a run changed.
fn print_changed(changed: &[String]) {
    if changed.is_empty() {
        eprintln!("every generated file was up to date");
    }
    for path in changed {
        eprintln!("changed {path}");
    }
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

/// Lints, builds and lowers.
fn prepare(sources: &Sources) -> Result<(Api, Lowered)> {
    stop_at(&lint::lint_sources(sources))?;
    let api = build::build(sources)?;
    stop_at(&lint::lint_model(sources, &api))?;
    let lowered = lower::lower(sources, &api)?;
    Ok((api, lowered))
}

/// Fails with all problems, if there are any.
fn stop_at(problems: &[lint::Problem]) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        problems.iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect();
    let counted = if list.len() == 1 { "problem" } else { "problems" };
    bail!("{}\n{} {counted} in the specification", list.join("\n"), list.len())
}
