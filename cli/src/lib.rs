//! The `gatewright` program as a library, so that the Python and Node packages can ship it.
//!
//! Each command has a module. Code that commands share is in `amount`, `exit`, `json`, `one_of`, `places`, `running`, `seconds`,
//! `signals`, `state`, `table`, `target` and `terminal`; `examples` is for the help, and `shell` generates completions and manuals. Commands of the
//! gateway are behind the feature `server`: wheel and addon leave them to `gatewright-server` (`server_package`).
//! The exit codes are listed in the table in `docs/guides/command-line.md`.
//!
//! The library has no stable interface: the program `gatewright` is what people use; for calls from Rust there is the
//! crate `gatewright`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod amount;
mod chat;
mod check;
#[cfg(feature = "server")]
mod config;
#[cfg(feature = "server")]
mod data_folder;
mod doctor;
mod examples;
mod exit;
mod image;
#[cfg(feature = "server")]
mod import;
mod json;
#[cfg(feature = "server")]
mod keys;
#[cfg(feature = "server")]
mod local_keys;
mod models;
#[cfg(feature = "server")]
mod nodes;
mod one_of;
#[cfg(feature = "server")]
mod operator;
mod places;
#[cfg(feature = "server")]
mod prices;
#[cfg(feature = "server")]
mod provider_choice;
#[cfg(feature = "server")]
mod providers;
mod report;
mod running;
mod seconds;
#[cfg(feature = "server")]
mod serve;
#[cfg(any(test, not(feature = "server")))]
mod server_package;
mod shell;
mod signals;
mod state;
#[cfg(feature = "server")]
mod store;
mod table;
mod target;
mod terminal;
#[cfg(feature = "server")]
mod usage;
mod video;
#[cfg(feature = "server")]
mod webhooks;

use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{ArgAction, ColorChoice, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::signals::interruptible;

/// Call or run a Gatewright gateway, check compatibility, and work with compatibility reports
#[derive(Debug, Parser)]
#[command(
    name = "gatewright",
    bin_name = "gatewright",
    version,
    disable_version_flag = true,
    max_term_width = 100
)]
#[command(after_help = ENVIRONMENT)]
struct Program {
    /// When to use colors
    #[arg(long, value_name = "WHEN", global = true, default_value = "auto")]
    color: ColorChoice,
    // In place of clap's own, which has no second letter. The last one in the help, as that one is.
    /// Print version
    #[arg(long, short = 'V', short_alias = 'v', action = ArgAction::Version, display_order = 1000)]
    version: (),
    #[command(subcommand)]
    command: Command,
}

const ENVIRONMENT: &str = "Environment:
  GATEWRIGHT_BASE_URL  URL of the gateway (default: the gateway that you run on
                       this machine, else http://127.0.0.1:8080)
  GATEWRIGHT_API_KEY   API key (default: the saved key of that gateway); it is no
                       option, so that no process list shows it
  NO_COLOR             Turns colors off, whatever its value
  CLICOLOR_FORCE       Turns colors on even without a terminal, unless it is 0";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a gateway; without a configuration file, with an embedded simulated provider
    #[cfg(feature = "server")]
    Serve(serve::ServeArguments),
    /// Work with the configuration file of a gateway
    #[cfg(feature = "server")]
    Config(config::ConfigArguments),
    /// List the built-in providers, or show one
    ///
    /// An upstream with provider = "NAME" uses the settings of that provider, except for keys that it sets itself. NAME prints
    /// these settings as a configuration fragment to copy and edit, with the pages that document them.
    #[cfg(feature = "server")]
    Providers(providers::ProvidersArguments),
    /// Create a file with prices and limits of models
    #[cfg(feature = "server")]
    Prices(prices::PricesArguments),
    /// Create, list, rotate and revoke keys of a gateway
    #[cfg(feature = "server")]
    Keys(keys::KeysArguments),
    /// Report the usage of a gateway by key, model, upstream and day
    #[cfg(feature = "server")]
    Usage(usage::UsageArguments),
    /// Maintain the store of a gateway: check, back up and move it
    #[cfg(feature = "server")]
    Store(store::StoreArguments),
    /// List the gateways that share a store
    #[cfg(feature = "server")]
    Nodes(nodes::NodesArguments),
    /// List, redeliver or receive the webhook notifications of a gateway
    #[cfg(feature = "server")]
    Webhooks(webhooks::WebhooksArguments),
    /// Check whether a service is compatible, and write a report
    Check(check::CheckArguments),
    /// Convert the configuration file of another gateway
    #[cfg(feature = "server")]
    Import(import::ImportArguments),
    /// Work with compatibility reports
    Report(report::ReportArguments),
    /// Talk to a model; with a prompt, print its answer as it arrives
    Chat(chat::ChatArguments),
    /// Diagnose why calls to a gateway fail, and suggest fixes
    Doctor(doctor::DoctorArguments),
    /// List the models available to the key
    Models(models::ModelsArguments),
    /// Generate images and save them
    Image(image::ImageArguments),
    /// Generate a video: submit the task, wait, save the file
    Video(video::VideoArguments),
    /// Print a script that completes commands and options in a shell
    Completions(shell::Completions),
    /// Write the manual pages
    Man(shell::Manual),
    /// Print version
    #[command(hide = true)]
    Version,
    #[cfg(not(feature = "server"))]
    #[command(flatten)]
    Server(server_package::ServerCommand),
}

/// The program, for parsing the command line.
fn program() -> clap::Command {
    examples::with_examples(Program::command())
}

fn parse(arguments: Vec<OsString>) -> Result<Program, clap::Error> {
    let mut program = program().color(terminal::requested_color(&arguments));
    let matches = program.try_get_matches_from_mut(arguments)?;
    Program::from_arg_matches(&matches).map_err(|error| error.format(&mut program))
}

/// Runs the program. args: the full command line, with the program name first. Returns the exit code.
pub fn main<I>(args: I) -> u8
where
    I: IntoIterator<Item = OsString>,
{
    main_beside(args, Vec::new)
}

/// Like [`main`], for packages that come without the server. folders: the folders in which the server's package may have
/// installed `gatewright-server`. It is called only if a command needs the server; these folders are searched before PATH.
#[cfg_attr(feature = "server", expect(unused_variables, reason = "this program runs all commands itself"))]
pub fn main_beside<I>(args: I, folders: impl FnOnce() -> Vec<PathBuf>) -> u8
where
    I: IntoIterator<Item = OsString>,
{
    let args: Vec<OsString> = args.into_iter().collect();
    let program = match parse(args.clone()) {
        Ok(program) => program,
        Err(error) => {
            // Help and version also end up here. If printing them fails, there is nowhere to report it.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
        }
    };
    terminal::choose(program.color);
    // Determined only for the commands that need them.
    #[cfg(not(feature = "server"))]
    let folders = match program.command {
        Command::Server(_) | Command::Completions(_) | Command::Man(_) => folders(),
        _ => Vec::new(),
    };
    #[cfg(not(feature = "server"))]
    if matches!(program.command, Command::Completions(_) | Command::Man(_))
        && let Some(described) = server_package::describe(args.get(1..).unwrap_or_default(), &folders)
    {
        return exit::exit_code(described);
    }
    let result = match program.command {
        #[cfg(feature = "server")]
        Command::Config(arguments) => config::run(arguments),
        #[cfg(feature = "server")]
        Command::Import(arguments) => import::run(&arguments),
        #[cfg(feature = "server")]
        Command::Providers(arguments) => providers::run(&arguments),
        #[cfg(feature = "server")]
        Command::Prices(arguments) => on_runtime(interruptible(prices::run(arguments))),
        Command::Report(arguments) => report::run(&arguments),
        Command::Check(arguments) => on_runtime(check::run(arguments)),
        #[cfg(feature = "server")]
        Command::Serve(arguments) => on_runtime(serve::run(arguments)),
        #[cfg(feature = "server")]
        Command::Keys(arguments) => on_runtime(interruptible(keys::run(arguments))),
        #[cfg(feature = "server")]
        Command::Store(arguments) => on_runtime(interruptible(store::run(arguments))),
        #[cfg(feature = "server")]
        Command::Nodes(arguments) => on_runtime(interruptible(nodes::run(arguments))),
        #[cfg(feature = "server")]
        Command::Webhooks(arguments) => on_runtime(interruptible(webhooks::run(arguments))),
        #[cfg(feature = "server")]
        Command::Usage(arguments) => on_runtime(interruptible(usage::run(arguments))),
        Command::Chat(arguments) => on_runtime(chat::run(arguments)),
        Command::Doctor(arguments) => on_runtime(interruptible(doctor::run(arguments))),
        Command::Completions(arguments) => shell::completions(&arguments, self::program()),
        Command::Man(arguments) => shell::manual(&arguments, self::program()),
        Command::Version => print_version(),
        Command::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        Command::Image(arguments) => on_runtime(interruptible(image::run(arguments))),
        Command::Video(arguments) => on_runtime(video::run(arguments)),
        #[cfg(not(feature = "server"))]
        Command::Server(_) => server_package::run(args.get(1..).unwrap_or_default(), &folders),
    };
    exit::exit_code(result)
}

fn print_version() -> Exit {
    writeln!(io::stdout().lock(), "{}", program().render_version().trim_end())?;
    Ok(0)
}

fn on_runtime(command: impl Future<Output = Exit>) -> Exit {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    let exit = runtime.block_on(command);
    // Tasks that still run are no longer needed and must not delay the exit.
    runtime.shutdown_background();
    exit
}
