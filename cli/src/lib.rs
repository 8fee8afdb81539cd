//! The `gatewright` program as a library, so that the Python and Node packages can ship it.
//!
//! Each command has a module. Exit codes: 0 success; 1 failure, or an invalid document; 2 wrong usage or configuration,
//! or an unreadable file; 3 a report that cannot be written; 130 interrupted; 141 the reader closed the output.

mod chat;
mod check;
mod config;
mod exit;
mod image;
mod import;
mod keys;
mod models;
mod operator;
mod places;
mod report;
mod seconds;
mod serve;
mod signals;
mod store;
mod table;
mod target;
mod terminal;
mod usage;
mod video;
mod webhooks;

use std::ffi::OsString;
use std::future::Future;

use clap::{Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::signals::interruptible;

/// Call or run a Gatewright gateway, check compatibility, and work with compatibility reports
#[derive(Debug, Parser)]
#[command(name = "gatewright", bin_name = "gatewright", version, max_term_width = 100, after_help = ENVIRONMENT)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

const ENVIRONMENT: &str = "Environment:
  GATEWRIGHT_BASE_URL  URL of the gateway (default http://127.0.0.1:8080)
  GATEWRIGHT_API_KEY   API key; commands that call a gateway read it only from here, so that no
                       process list shows it
  NO_COLOR             Turns colours off, whatever its value";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway; without a configuration file, with an embedded simulated provider
    Serve(serve::Arguments),
    /// Work with the configuration file of a gateway
    Config(config::Arguments),
    /// Make, list, rotate and revoke keys of a gateway
    Keys(keys::Arguments),
    /// Report the usage of a gateway by key, model, upstream and day
    Usage(usage::Arguments),
    /// Look after what a gateway keeps: check, copy and move it
    Store(store::Arguments),
    /// List the notifications of a gateway, have them delivered again, or receive some
    Webhooks(webhooks::Arguments),
    /// Check whether a service is compatible, and write a report
    Check(check::Arguments),
    /// Make a configuration file of that of another gateway
    Import(import::Arguments),
    /// Work with compatibility reports
    Report(report::Arguments),
    /// Send a prompt to a model and print the answer as it arrives
    Chat(chat::Arguments),
    /// List the models available to the key
    Models(models::Arguments),
    /// Generate images and save them
    Image(image::Arguments),
    /// Generate a video: submit the task, wait, save the file
    Video(video::Arguments),
}

/// Runs the program. args: the full command line, with the program name first. Returns the exit code.
pub fn main<I>(args: I) -> u8
where
    I: IntoIterator<Item = OsString>,
{
    let program = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(error) => {
            // Help and version arrive here, too. A failure to print them has no place to be reported.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
        }
    };
    let result = match program.command {
        Command::Config(arguments) => config::run(arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Check(arguments) => on_runtime(check::run(arguments)),
        Command::Serve(arguments) => on_runtime(serve::run(arguments)),
        Command::Keys(arguments) => on_runtime(interruptible(keys::run(arguments))),
        Command::Store(arguments) => on_runtime(interruptible(store::run(arguments))),
        Command::Webhooks(arguments) => on_runtime(interruptible(webhooks::run(arguments))),
        Command::Usage(arguments) => on_runtime(interruptible(usage::run(arguments))),
        Command::Chat(arguments) => on_runtime(interruptible(chat::run(arguments))),
        Command::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        Command::Image(arguments) => on_runtime(interruptible(image::run(arguments))),
        Command::Video(arguments) => on_runtime(interruptible(video::run(arguments))),
    };
    exit::exit_code(result)
}

fn on_runtime(command: impl Future<Output = Exit>) -> Exit {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    let exit = runtime.block_on(command);
    // Tasks that still run are no longer needed and must not delay the exit.
    runtime.shutdown_background();
    exit
}
