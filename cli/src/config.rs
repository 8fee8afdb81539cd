//! `gatewright config`: works with the configuration file of a gateway, and with the configuration that gateways share.

mod models;
mod shared;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use gatewright::visible::visible;
use gatewright_gateway::{
    Config, ConfigFile, Key, Problem, Problems, ProviderChoice, ProviderSetup, STARTING_FILE, config_schema,
    models_outside_budget,
};
use serde_json::{Value, json};

use self::models::Models;
use crate::exit::{Exit, FAILED, Failure, print_message};
use crate::json;
use crate::operator::OperatorTarget;
use crate::provider_choice::{self, ProviderParser};
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
    /// Write a configuration file: with upstreams and models for --provider, else with every key and its default in comments
    ///
    /// For --provider, the models are those that the provider lists if its key is set, and those that this program knows; a
    /// message says what you still have to fill in.
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
    /// Provider to put into the file; with =URL if it is at an address of your own; repeatable; see gatewright providers
    #[arg(long, value_name = "NAME[=URL]", value_parser = ProviderParser, hide_possible_values = true)]
    provider: Vec<ProviderChoice>,
    /// Write only those models of --provider that this program knows, without requesting the provider's list
    #[arg(long, requires = "provider")]
    known_models: bool,
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
    /// Print JSON: an array with an object for each file
    #[arg(long)]
    json: bool,
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
        ConfigCommand::Init(arguments) => on_runtime(interruptible(init(arguments))),
        ConfigCommand::Check(arguments) => on_runtime(interruptible(check(arguments))),
        ConfigCommand::Models(arguments) => on_runtime(interruptible(models::run(arguments))),
        ConfigCommand::Schema(arguments) => schema(&arguments),
        ConfigCommand::Push(arguments) => on_runtime(interruptible(shared::push(arguments))),
        ConfigCommand::Show(arguments) => on_runtime(interruptible(shared::show(arguments))),
        ConfigCommand::History(arguments) => on_runtime(interruptible(shared::history(arguments))),
        ConfigCommand::Rollback(arguments) => on_runtime(interruptible(shared::rollback(arguments))),
    }
}

async fn init(arguments: Init) -> Exit {
    let file = &arguments.file;
    if !places::is_stdin(file) && !arguments.force && file.exists() {
        let message =
            format!("{} already exists; choose another file, or replace it with --force", file.display());
        return Err(Failure::Usage(message));
    }
    if arguments.provider.is_empty() {
        places::write(STARTING_FILE, Some(file))?;
        return Ok(0);
    }
    let source = provider_choice::models(arguments.known_models);
    let setup = ProviderSetup::of(&arguments.provider, source).await;
    places::write(setup.text(), Some(file))?;
    for note in setup.notes() {
        print_message(&note.to_string());
    }
    for missing in setup.missing() {
        print_message(&format!("still missing in the file: {missing}"));
    }
    Ok(0)
}

async fn check(arguments: Check) -> Exit {
    let looks_at_keys = arguments.keys || arguments.place.is_given();
    let keys = if looks_at_keys { arguments.place.open().await?.list(false).await? } else { Vec::new() };
    let checked: Vec<CheckedFile> = arguments.files.iter().map(|path| CheckedFile::of(path, &keys)).collect();
    let code = if checked.iter().all(|file| file.result.is_ok()) { 0 } else { FAILED };
    let mut out = io::stdout().lock();
    if arguments.json {
        json::write(&mut out, &checked.iter().map(CheckedFile::json).collect::<Vec<_>>())?;
        return Ok(code);
    }
    let mut err = io::stderr().lock();
    for file in &checked {
        // A message starts its own line, so that editors can find its position.
        for warning in &file.warnings {
            _ = writeln!(err, "{}", visible(&format!("{warning} (warning)")));
        }
        match &file.result {
            Ok(offer) => writeln!(out, "{} is valid: {offer}", visible(&file.path))?,
            Err(problems) => {
                for line in problems.to_string().lines() {
                    _ = writeln!(err, "{}", visible(line));
                }
            }
        }
    }
    Ok(code)
}

/// What was found in a configuration file.
struct CheckedFile {
    path: String,
    warnings: Vec<Problem>,
    /// The number of its upstreams and models, in words. Errors: what is wrong with it.
    result: Result<String, Problems>,
}

impl CheckedFile {
    fn of(path: &Path, keys: &[Key]) -> Self {
        let name = path.display().to_string();
        match ConfigFile::check(path) {
            Ok(file) => {
                let of_keys = keys.iter().filter_map(|key| outside_budget(&file.config, key));
                let of_keys: Vec<Problem> = of_keys.map(|message| Problem::of_file(&name, message)).collect();
                let offer = file.config.offer();
                let warnings = file.warnings.into_iter().chain(file.unpriced).chain(of_keys).collect();
                Self { path: name, warnings, result: Ok(offer) }
            }
            Err(problems) => Self { path: name, warnings: Vec::new(), result: Err(problems) },
        }
    }

    fn json(&self) -> Value {
        let list = |problems: &[Problem]| -> Vec<Value> {
            let object = |problem: &Problem| {
                let (line, column) = problem.place.unzip();
                json!({
                    "file": problem.file, "line": line, "column": column, "key": problem.key, "message": problem.message,
                })
            };
            problems.iter().map(object).collect()
        };
        json!({
            "file": self.path,
            "valid": self.result.is_ok(),
            "problems": self.result.as_ref().err().map_or_else(Vec::new, |problems| list(problems.as_ref())),
            "warnings": list(&self.warnings),
        })
    }
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
