//! `gatewright report diff`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatewright::report::{Diff, Thresholds};

use super::input::report;
use super::profile::ProfileOption;
use crate::exit::{Exit, FAILED};
use crate::places;
use crate::terminal::colour;

#[derive(Debug, Args)]
pub(super) struct DiffArguments {
    /// text: regressions first; html: a page
    #[arg(long, value_enum, default_value_t = DiffFormat::Text)]
    format: DiffFormat,
    /// Print JSON: one object
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Changes that cause exit code 1: worse (a cell no longer passes, or a skipped one fails), not-run (a cell passed, and
    /// the new run was not asked for it), slower, model (another model responds), never
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT", default_value = "worse")]
    fail_on: Vec<FailOn>,
    /// Report a cell as slower if it takes this many percent longer and also exceeds --slower-ms
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().percent)]
    slower_percent: u64,
    /// Report a cell as slower if it takes this many milliseconds longer and also exceeds --slower-percent
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().ms)]
    slower_ms: u64,
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The old report; - is standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// The new report
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DiffFormat {
    Text,
    Html,
    /// An earlier spelling of `--json`.
    #[value(hide = true)]
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// No change causes exit code 1
    Never,
    Worse,
    NotRun,
    Slower,
    Model,
}

pub(super) fn run(arguments: &DiffArguments) -> Exit {
    let inputs = [
        ("OLD", Some(&*arguments.old)),
        ("NEW", Some(&*arguments.new)),
        ("--profile", arguments.profile.file()),
    ];
    places::keep(&inputs, arguments.out.as_deref())?;
    let validator = arguments.profile.validator(false)?;
    let (old, new) = (report(&arguments.old, &validator)?, report(&arguments.new, &validator)?);
    let thresholds = Thresholds { percent: arguments.slower_percent, ms: arguments.slower_ms };
    let diff = Diff::of(&old, &new, thresholds);
    let text = match arguments.format {
        _ if arguments.json => diff.to_json() + "\n",
        DiffFormat::Text => diff.to_text(arguments.out.is_none() && colour(&io::stdout())),
        DiffFormat::Json => diff.to_json() + "\n",
        DiffFormat::Html => diff.to_html(),
    };
    places::write(&text, arguments.out.as_deref())?;
    let failed = arguments.fail_on.iter().any(|what| match what {
        FailOn::Never => false,
        FailOn::Worse => !diff.worse.is_empty(),
        FailOn::NotRun => !diff.not_run.is_empty(),
        FailOn::Slower => !diff.slower.is_empty(),
        FailOn::Model => !diff.other_model.is_empty(),
    });
    Ok(if failed { FAILED } else { 0 })
}
