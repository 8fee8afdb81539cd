//! `gatewright report show`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatewright::report::{annotations, terminal};

use super::profile::ProfileOption;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// text: for a terminal; github: an annotation of GitHub Actions for each failed check
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    profile: ProfileOption,
    /// Report; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Github,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let report = super::input::report(&arguments.file, &arguments.profile.validator(false)?)?;
    let text = match arguments.format {
        Format::Text => terminal(&report, super::colour(&io::stdout())),
        Format::Github => annotations(&report),
    };
    super::write(&text, None)?;
    Ok(0)
}
