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
use crate::operator::OperatorTarget;
use crate::signals::interruptible;
use crate::{on_runtime, places};

/// The default name of a configuration file.
const FILE: &str = "gatewright.toml";
/// Maximum number of models that a warning about a key names.
const MAX_MODELS_NAMED: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Write a starter configuration file, with every key and its default in comments
    Init(Init),
    /// Check a configuration file
    ///
    /// Prints every problem as FILE:LINE:COLUMN: KEY: MESSAGE. A missing secret is only a warning, because it may exist where the
    /// gateway runs; so is a model without a price. Exits with 0 if the file is valid, else with 1.
    Check(Check),
    /// List the models that the upstreams of a configuration file offer
    ///
    /// Queries every upstream with its first key. Prints a note on standard error for each target whose upstream does not list
    /// the model: some upstreams serve models that they do not list. Exits with 1 if an upstream returns no list.
    Models(Models),
    /// Write the JSON Schema of configuration files, for editors
    Schema(Schema),
    /// Validate a document with upstreams, families and models, and publish it to the gateways that share a store
    ///
    /// The document becomes a revision in the store. Gateways with store.shared_config = true in their own file apply it within
    /// two seconds, unless they lack a secret that it names; `gatewright nodes` shows which revision each one uses.
    Push(shared::Push),
    /// Write the shared document, or an earlier revision of it
    Show(shared::Show),
    /// List the revisions of the shared document, newest first
    History(shared::History),
    /// Publish an earlier revision of the shared document again
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
    /// Also warn about keys with a cost budget that may use models without a price. --data, --store or --base-url says where the
    /// keys are
    #[arg(long)]
    keys: bool,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Args)]
struct Schema {
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: ConfigArguments) -> Exit {
    match arguments.command {
        ConfigCommand::Init(arguments) => init(&arguments),
        ConfigCommand::Check(arguments) => on_runtime(interruptible(check(arguments))),
        ConfigCommand::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        ConfigCommand::Schema(arguments) => schema(&arguments),
        ConfigCommand::Push(arguments) => on_runtime(interruptible(shared::push(arguments))),
        ConfigCommand::Show(arguments) => on_runtime(interruptible(shared::show(arguments))),
        ConfigCommand::History(arguments) => on_runtime(interruptible(shared::history(arguments))),
        ConfigCommand::Rollback(arguments) => on_runtime(interruptible(shared::rollback(arguments))),
    }
}

fn init(arguments: &Init) -> Exit {
    let file = &arguments.file;
    if !places::is_stdin(file) && !arguments.force && file.exists() {
        let message =
            format!("{} already exists; choose another file, or replace it with --force", file.display());
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
                writeln!(out, "{} is valid: {}", visible(&path), file.config.offer())?;
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
            "the cost budget of key {:?} does not limit its use of {first}{more}: a target has no price; set one, or restrict \
                the key to other models",
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
