//! `gatewright report junit`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::junit;

use super::input;
use super::profile::ProfileOption;
use crate::exit::Exit;
use crate::places;

#[derive(Debug, Args)]
pub(super) struct JunitArguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &JunitArguments) -> Exit {
    let inputs = [("FILE", Some(&*arguments.file)), ("--profile", arguments.profile.file())];
    places::keep(&inputs, arguments.out.as_deref())?;
    let report = input::report(&arguments.file, &arguments.profile.validator(false)?)?;
    places::write(&junit(&report), arguments.out.as_deref())?;
    Ok(0)
}
