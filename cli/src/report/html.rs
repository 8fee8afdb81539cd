//! `gatewright report html`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::html;

use super::evidence;
use super::profile::ProfileOption;
use crate::outcome::Outcome;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folder with the evidence of the check kit: shown in the cells, and linked
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    profile: ProfileOption,
    /// Where to write the page; standard output without it
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
    let evidence = match &arguments.evidence {
        Some(folder) => evidence::read(folder, arguments.out.as_deref())?,
        None => Vec::new(),
    };
    super::write(&html(&report, &evidence), arguments.out.as_deref())?;
    Ok(0)
}
