//! `gatewright report schema`.

use std::path::PathBuf;

use clap::Args;

use super::profile::ProfileOption;
use crate::exit::Exit;
use crate::places;

#[derive(Debug, Args)]
pub(super) struct SchemaArguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &SchemaArguments) -> Exit {
    places::keep(&[("--profile", arguments.profile.file())], arguments.out.as_deref())?;
    places::write(&arguments.profile.validator(false)?.schema(), arguments.out.as_deref())?;
    Ok(0)
}
