//! `gatewright config`: works with the configuration file of a gateway, and with the configuration that gateways share.

mod models;
mod shared;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use gatewright::visible::visible;
use gatewright_gateway::{Config, ConfigFile, Key, STARTING_FILE, config_schema, models_outside_budget};

use self::models::Models;
use crate::exit::{Exit, FAILED, Failure};
use crate::operator::Place;
use crate::signals::interruptible;
use crate::{on_runtime, places};

/// The default name of a configuration file.
const FILE: &str = "gatewright.toml";
/// Maximum number of models that a warning about a key names.
const MAX_MODELS_NAMED: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a configuration file to start from: comments that state every key and its default
    Init(Init),
    /// Check a configuration file
    ///
    /// Prints everything that is wrong as FILE:LINE:COLUMN: KEY: MESSAGE. A secret that is not there is a warning, since
    /// it may be there where the gateway runs, and so are models without a price. Exits with 0 if the file is right, else with 1.
    Check(Check),
    /// List the models that the upstreams of a configuration file offer
    ///
    /// Asks every upstream, with its first key. A target whose upstream does not list its model is told on standard
    /// error: not all upstreams list all that they serve. Exits with 1 if an upstream gives no list.
    Models(Models),
    /// Write the JSON Schema of configuration files, for editors
    Schema(Schema),
    /// Check a document with upstreams, families and models, and give it to the gateways that share a store
    ///
    /// It becomes a revision in the store. Gateways whose own file says store.shared_config = true use it within two seconds, each
    /// if it has the secrets that the document names; `gatewright nodes` shows which revision each uses.
    Push(shared::Push),
    /// Write the document that gateways share
    Show(shared::Show),
    /// List the revisions of the document that gateways share, the newest first
    History(shared::History),
    /// Make an earlier revision of the document that gateways share the newest one
    Rollback(shared::Rollback),
}

#[derive(Debug, Args)]
struct Init {
    /// Output file; - means standard output
    #[arg(default_value = FILE)]
    file: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct Check {
    /// Configuration files
    #[arg(default_value = FILE)]
    files: Vec<PathBuf>,
    /// Also warn of keys with a budget of money that may use models without a price. The keys are where --data, --store or --base-url
    /// says
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct Schema {
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> Exit {
    match arguments.command {
        Command::Init(arguments) => init(&arguments),
        Command::Check(arguments) => on_runtime(interruptible(check(arguments))),
        Command::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        Command::Schema(arguments) => schema(&arguments),
        Command::Push(arguments) => on_runtime(interruptible(shared::push(arguments))),
        Command::Show(arguments) => on_runtime(interruptible(shared::show(arguments))),
        Command::History(arguments) => on_runtime(interruptible(shared::history(arguments))),
        Command::Rollback(arguments) => on_runtime(interruptible(shared::rollback(arguments))),
    }
}

fn init(arguments: &Init) -> Exit {
    let file = &arguments.file;
    if !places::is_stdin(file) && !arguments.force && file.exists() {
        let message =
            format!("{} exists already; name another file, or replace it with --force", file.display());
        return Err(Failure::Usage(message));
    }
    places::write(STARTING_FILE, Some(file))?;
    Ok(0)
}

async fn check(arguments: Check) -> Exit {
    let looks_at_keys = arguments.keys || arguments.place.is_given();
    let keys = if looks_at_keys { arguments.place.open().await?.list(false).await? } else { Vec::new() };
    let (mut out, mut err) = (io::stdout().lock(), io::stderr().lock());
    let mut code = 0;
    for path in &arguments.files {
        // A message starts its own line, so that editors can find its position.
        match ConfigFile::check(path) {
            Ok(file) => {
                for warning in file.warnings.iter().chain(&file.unpriced) {
                    _ = writeln!(err, "{}", visible(&format!("{warning} (warning)")));
                }
                let path = path.display().to_string();
                for warning in keys.iter().filter_map(|key| outside_budget(&file.config, key)) {
                    _ = writeln!(err, "{}", visible(&format!("{path}: {warning} (warning)")));
                }
                writeln!(out, "{} is right: {}", visible(&path), file.config.offer())?;
            }
            Err(problems) => {
                for line in problems.to_string().lines() {
                    _ = writeln!(err, "{}", visible(line));
                }
                code = FAILED;
            }
        }
    }
    Ok(code)
}

/// The warning about a key whose cost budget doesn't cover everything it may use.
fn outside_budget(config: &Config, key: &Key) -> Option<String> {
    let models = models_outside_budget(config, key);
    let first =
        models.iter().take(MAX_MODELS_NAMED).map(|id| format!("{id:?}")).collect::<Vec<_>>().join(", ");
    let more = match models.len().saturating_sub(MAX_MODELS_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!models.is_empty()).then(|| {
        format!(
            "the key {:?} has a budget of money, which does not limit its use of {first}{more}: no price is known of a target; give it \
             one, or the key scopes without it",
            key.name
        )
    })
}

fn schema(arguments: &Schema) -> Exit {
    let text = serde_json::to_string_pretty(config_schema())
        .map_err(|error| Failure::Failed(format!("cannot write the schema: {error}")))?;
    places::write(&(text + "\n"), arguments.out.as_deref())?;
    Ok(0)
}
