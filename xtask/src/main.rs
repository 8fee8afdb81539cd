//! Developer commands: `cargo xtask <command>`.

#![expect(clippy::print_stderr, reason = "a command-line program reports to its user")]

mod artefacts;
mod bench;
mod building;
mod checkkit;
mod clients;
mod codegen;
mod demo;
mod deny;
mod deploy;
mod fuzz;
mod generated_requests;
mod guides;
mod hostile_service;
mod local_gateway;
mod migration;
mod other_api;
mod other_server;
mod package;
mod process;
mod promise;
mod readme;
mod rooms;
mod runtimes;
mod soak;
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
    /// Generate all code and docs from spec/
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
    /// Fuzz the parsers for a bounded time
    Fuzz {
        /// Target to fuzz instead of all: a file of fuzz/targets, without its extension
        target: Option<String>,
        /// Seconds for all targets together
        #[arg(long, default_value_t = 120)]
        seconds: u64,
    },
    /// Send many requests and read many stream events from one process, and watch its memory
    Soak {
        #[arg(long, default_value_t = 100_000)]
        requests: u64,
        #[arg(long, default_value_t = 10_000_000)]
        events: u64,
        /// rust, python or node, instead of all
        #[arg(long)]
        language: Option<String>,
    },
    /// Measure ours beside others, with optimised builds, in one run
    Bench {
        /// What to measure
        #[arg(value_enum)]
        subject: bench::Subject,
        #[command(flatten)]
        settings: bench::Settings,
    },
    /// Write the optimised wheel and npm tarball to dist/
    Package,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Codegen { check, root } => codegen::run(&root.unwrap_or_else(process::root), check),
        Command::Demo => demo::run_demo(),
        Command::Test { steps } => test::run_tests(&steps),
        Command::Fuzz { target, seconds } => fuzz::run_fuzz(target.as_deref(), seconds),
        Command::Soak { requests, events, language } => soak::run_soak(requests, events, language.as_deref()),
        Command::Bench { subject, settings } => bench::run_bench(subject, &settings),
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
