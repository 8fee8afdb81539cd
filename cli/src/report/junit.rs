//! `gatewright report junit`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::junit;

use super::profile::ProfileOption;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Where to write it; standard output without it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let inputs = [("FILE", Some(&*arguments.file)), ("--profile", arguments.profile.file())];
    super::keep(&inputs, arguments.out.as_deref())?;
    let report = super::input::report(&arguments.file, &arguments.profile.validator(false)?)?;
    super::write(&junit(&report), arguments.out.as_deref())?;
    Ok(0)
}
