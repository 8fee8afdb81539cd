//! `gatewright report schema`.

use std::path::PathBuf;

use clap::Args;

use super::profile::ProfileOption;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Where to write it; standard output without it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    super::keep(&[("--profile", arguments.profile.file())], arguments.out.as_deref())?;
    super::write(&arguments.profile.validator(false)?.schema(), arguments.out.as_deref())?;
    Ok(0)
}
