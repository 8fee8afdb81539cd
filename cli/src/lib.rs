//! The `gatewright` program as a function, so that the Python and Node packages carry it too.
//!
//! One module per command. Exit codes: 0 done, 1 failed or a document is invalid, 2 wrong usage, wrong
//! configuration or a file that cannot be read, 3 a report that cannot be written, 130 interrupted, 141 the reader of the output went away.

mod chat;
mod check;
mod image;
mod models;
mod outcome;
mod report;
mod serve;
mod video;

use std::ffi::OsString;
use std::future::Future;

use clap::{Args, Parser, Subcommand};
use gatewright::Client;

use crate::outcome::{Failure, Outcome};

/// Talks to a Gatewright gateway, runs one, and validates compatibility reports
#[derive(Debug, Parser)]
#[command(name = "gatewright", bin_name = "gatewright", version, max_term_width = 100, after_help = ENVIRONMENT)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

const ENVIRONMENT: &str = "Environment:
  GATEWRIGHT_BASE_URL  Address of the gateway (default http://127.0.0.1:8080)
  GATEWRIGHT_API_KEY   API key; commands that call a gateway take it from here alone, so that no
                       list of processes shows it
  NO_COLOR             Set to anything: no colours";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway with an embedded simulated provider
    Serve(serve::Arguments),
    /// Check whether a service is compatible, and write the report
    Check(check::Arguments),
    /// Work with compatibility reports
    Report(report::Arguments),
    /// Ask a model; the answer is written as it arrives
    Chat(chat::Arguments),
    /// List the models that the key reaches
    Models(models::Arguments),
    /// Make images and save them
    Image(image::Arguments),
    /// Make a video: submit, wait, save
    Video(video::Arguments),
}

/// Where the gateway is, for commands that call one.
#[derive(Debug, Args)]
struct Target {
    /// Address of the gateway, without /v1
    #[arg(long, value_name = "URL", env = gatewright::BASE_URL_VARIABLE, hide_env = true)]
    base_url: Option<String>,
}

impl Target {
    fn client(&self) -> Result<Client, Failure> {
        let builder = Client::builder();
        let builder = match self.base_url.as_deref().map(str::trim) {
            Some(url) if !url.is_empty() => builder.base_url(url),
            _ => builder,
        };
        Ok(builder.build()?)
    }
}

/// Runs the program. args: the whole command line, the program's name first. Returns the exit code.
pub fn main<I>(args: I) -> u8
where
    I: IntoIterator<Item = OsString>,
{
    let program = match Program::try_parse_from(args) {
        Ok(program) => program,
        Err(error) => {
            // Help and version arrive here too. If they cannot be printed there is nobody to tell.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(outcome::USAGE);
        }
    };
    let result = match program.command {
        Command::Report(arguments) => report::run(&arguments),
        Command::Check(arguments) => on_runtime(check::run(arguments)),
        Command::Serve(arguments) => on_runtime(serve::run(arguments)),
        Command::Chat(arguments) => on_runtime(interruptible(chat::run(arguments))),
        Command::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        Command::Image(arguments) => on_runtime(interruptible(image::run(arguments))),
        Command::Video(arguments) => on_runtime(interruptible(video::run(arguments))),
    };
    outcome::exit_code(result)
}

fn on_runtime(command: impl Future<Output = Outcome>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("no threads to run on: {error}")))?;
    let outcome = runtime.block_on(command);
    // What still runs is of no use to anybody, and must not hold the exit up.
    runtime.shutdown_background();
    outcome
}

/// Ends the command on Ctrl-C, also where the program is not the whole process (Python, Node).
async fn interruptible(command: impl Future<Output = Outcome>) -> Outcome {
    tokio::select! {
        outcome = command => outcome,
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}
