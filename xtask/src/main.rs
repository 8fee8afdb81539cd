//! Developer commands: `cargo xtask <command>`.
//!
//! `test/` runs the steps of a test in parallel (decision 0066), and `changed` knows which of them a change can break. `package/`
//! builds and checks what registries get, `release/` sets its version. `workflows` checks `.github/`, `pins` that what scripts
//! and images fetch is pinned; `advisories` audits the lock files.

#![expect(clippy::print_stderr, reason = "a command-line program reports to its user")]

mod advisories;
mod artefacts;
mod bench;
mod book;
mod building;
mod changed;
mod checkkit;
mod clients;
mod codegen;
mod console;
mod container;
mod database;
mod demo;
mod deny;
mod deploy;
mod doc_examples;
#[cfg(test)]
mod environment;
mod fences;
mod fuzz;
mod generated_requests;
mod guides;
mod hostile_service;
mod installed;
mod layering;
mod local_gateway;
mod migration;
mod nextest;
mod other_api;
mod other_server;
mod package;
mod pages;
mod pgo;
mod pictures;
mod pins;
mod process;
mod promise;
mod providers;
mod readme;
mod reference;
mod release;
#[cfg(test)]
mod rules;
mod runtimes;
#[cfg(test)]
mod security_matrix;
mod setup;
mod soak;
mod terminal_pictures;
mod test;
mod torture;
mod transcript;
mod walkthrough;
mod workflows;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::package::Form;

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
    /// Install what a fresh machine lacks
    Setup,
    /// Make the files of the gateway's console of console/app
    Console {
        /// Write nothing; fail and list the files that differ from what would be made
        #[arg(long, conflicts_with = "pictures")]
        check: bool,
        /// Take the pictures of docs/pictures instead
        #[arg(long)]
        pictures: bool,
    },
    /// Build everything, start a gateway, and tell the same story from Rust, Python and Node
    Demo,
    /// Run every test, in all three languages
    Test {
        /// Steps to run instead of all; an unknown name lists them. `container` runs only by its name: it needs podman, and builds
        /// the image of deploy/Containerfile, unless GATEWRIGHT_IMAGE names one. So does `advisories`: it needs the network
        #[arg(value_name = "STEP")]
        steps: Vec<String>,
        /// Only the steps that the changes since a commit or branch can break
        #[arg(long, value_name = "BASE", num_args = 0..=1, default_missing_value = "origin/main")]
        #[arg(conflicts_with = "steps")]
        changed: Option<String>,
        /// Only the unit tests of the crates that have changed since a commit or branch
        #[arg(long, value_name = "BASE", num_args = 0..=1, default_missing_value = "origin/main")]
        #[arg(conflicts_with_all = ["steps", "changed"])]
        fast: Option<String>,
        /// The suites of the clients on the packages in a folder, such as dist/, installed as users install them, instead of on debug builds.
        /// STEP is then python, node, runtimes or soak; without it, all of them run
        #[arg(long, value_name = "DIR", conflicts_with_all = ["changed", "fast", "keep_going"])]
        packages: Option<PathBuf>,
        /// Interpreter for the wheels of --packages
        #[arg(long, value_name = "PROGRAM", requires = "packages", default_value = "python3")]
        python: String,
        /// Run all steps, also after one has failed
        #[arg(long)]
        keep_going: bool,
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
    /// Write the wheels and npm tarballs of this checkout to dist/, compiled in minutes
    Package {
        /// Target to build for, instead of that of this machine: TRIPLE of bindings-node/platforms.json
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
        /// As they are published: small and fast, compiled in about an hour of processor time, and linted
        #[arg(long, conflicts_with = "source")]
        release: bool,
        /// An experiment (decision 0065): build the server's program with a profile of what it does; takes more than twice as long, and needs
        /// llvm-profdata and openssl
        #[arg(long, requires = "release")]
        guided: bool,
        /// The source distribution and the crates instead, each built from its archive alone
        #[arg(long, conflicts_with = "target")]
        source: bool,
    },
    /// Give all packages a new version, date the changelog, commit and tag
    Release {
        version: semver::Version,
        /// Say what would be done, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Write the pages of docs/providers from config/providers
    Providers {
        /// Write nothing; fail and list the pages that differ from what would be written
        #[arg(long)]
        check: bool,
    },
    /// Write docs/reference/configuration.md from the configuration of the gateway
    Reference {
        /// Write nothing; fail if the page differs from what would be written
        #[arg(long)]
        check: bool,
    },
    /// Build the documentation as a site, and check its links
    Book {
        /// Open it in the browser
        #[arg(long)]
        open: bool,
        /// Also put it into a folder with the sites of other versions, as the folder of this version and as latest
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
    /// Take the pictures of docs/pictures anew: of reports in Debian's chromium, of commands in a terminal
    Pictures,
    /// Kill, stop and starve gateways under load, and check the responses that their clients got
    Torture {
        #[command(flatten)]
        settings: torture::TortureSettings,
        /// Judge the history of a run again, instead
        #[arg(long, value_name = "FILE", conflicts_with = "TortureSettings")]
        history: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Codegen { check, root } => codegen::generate(&root.unwrap_or_else(process::root), check),
        Command::Console { pictures: true, .. } => console::take_pictures(),
        Command::Console { check, .. } => console::generate(check),
        Command::Demo => demo::run_demo(),
        Command::Setup => setup::run_setup(),
        Command::Test { changed: Some(base), keep_going, .. } => test::run_changed(&base, keep_going),
        Command::Test { fast: Some(base), .. } => test::run_fast(&base),
        Command::Test { packages: Some(dist), python, steps, .. } => {
            package::run_suites(&dist, &python, &steps)
        }
        Command::Test { steps, keep_going, .. } => test::run_tests(&steps, keep_going),
        Command::Fuzz { target, seconds } => fuzz::run_fuzz(target.as_deref(), seconds),
        Command::Soak { requests, events, language } => soak::run_soak(requests, events, language.as_deref()),
        Command::Bench { subject, settings } => bench::run_bench(subject, &settings, pgo::program),
        Command::Package { source: true, .. } => package::run_source(),
        Command::Package { target, release, guided, source: false } => {
            let form = if release { Form::Published { guided } } else { Form::Local };
            package::run_package(target.as_deref(), form)
        }
        Command::Release { version, dry_run } => release::release(&process::root(), &version, dry_run),
        Command::Providers { check } => providers::generate(check),
        Command::Reference { check } => reference::generate(check),
        Command::Book { open, into } => book::run_book(open, into.as_deref()),
        Command::Pictures => pages::take_pictures(),
        Command::Torture { history: Some(history), .. } => torture::check(&history),
        Command::Torture { settings, history: None } => torture::run_torture(&settings),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
