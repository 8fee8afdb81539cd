//! Developer commands: `cargo xtask <command>`.

#![expect(clippy::print_stderr, reason = "a command-line program reports to its user")]

mod artefacts;
mod checkkit;
mod codegen;
mod demo;
mod local_gateway;
mod package;
mod process;
mod promise;
mod readme;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Gatewright")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate everything that follows from spec/
    Codegen {
        /// Write nothing; fail and list the files that differ from what would be generated
        #[arg(long)]
        check: bool,
        /// Repository to work on, instead of this one
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
    /// Build everything, start a gateway, and tell the same story from Rust, Python and Node
    Demo,
    /// Run every test, in all three languages
    Test {
        /// Steps to run instead of all; an unknown name lists them
        #[arg(value_name = "STEP")]
        steps: Vec<String>,
    },
    /// Write the optimised wheel and npm tarball to dist/
    Package,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Codegen { check, root } => codegen::run(&root.unwrap_or_else(process::root), check),
        Command::Demo => demo::run_demo(),
        Command::Test { steps } => test::run_tests(&steps),
        Command::Package => package::run_package(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
