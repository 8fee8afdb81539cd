//! `gatewright report diff`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatewright::report::{Diff, Thresholds};

use super::input::report;
use super::profile::ProfileOption;
use crate::outcome::{FAILED, Outcome};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// text: what got worse first; json: one object; html: a page
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// What ends the command with 1: worse (a cell passed and does not, or fails now), slower, model (another one
    /// answers)
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT", default_value = "worse")]
    fail_on: Vec<FailOn>,
    /// Slower is longer by more than this many percent, and by more than --slower-ms
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().percent)]
    slower_percent: u64,
    /// Slower is longer by more than this many milliseconds, and by more than --slower-percent
    #[arg(long, value_name = "N", default_value_t = Thresholds::default().ms)]
    slower_ms: u64,
    #[command(flatten)]
    profile: ProfileOption,
    /// Where to write it; standard output without it
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
enum Format {
    Text,
    Json,
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Nothing does
    Never,
    Worse,
    Slower,
    Model,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let inputs = [
        ("OLD", Some(&*arguments.old)),
        ("NEW", Some(&*arguments.new)),
        ("--profile", arguments.profile.file()),
    ];
    super::keep(&inputs, arguments.out.as_deref())?;
    let validator = arguments.profile.validator(false)?;
    let (old, new) = (report(&arguments.old, &validator)?, report(&arguments.new, &validator)?);
    let thresholds = Thresholds { percent: arguments.slower_percent, ms: arguments.slower_ms };
    let diff = Diff::of(&old, &new, thresholds);
    let text = match arguments.format {
        Format::Text => diff.to_text(arguments.out.is_none() && super::colour(&io::stdout())),
        Format::Json => diff.to_json() + "\n",
        Format::Html => diff.to_html(),
    };
    super::write(&text, arguments.out.as_deref())?;
    let failed = arguments.fail_on.iter().any(|what| match what {
        FailOn::Never => false,
        FailOn::Worse => !diff.worse.is_empty(),
        FailOn::Slower => !diff.slower.is_empty(),
        FailOn::Model => !diff.other_model.is_empty(),
    });
    Ok(if failed { FAILED } else { 0 })
}
