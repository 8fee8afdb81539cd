//! `gatewright report html`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::html;

use super::evidence;
use super::input;
use super::profile::ProfileOption;
use crate::exit::Exit;
use crate::places;

#[derive(Debug, Args)]
pub(super) struct HtmlArguments {
    /// Folder with the evidence of the check kit, which the page shows in its cells and links to
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &HtmlArguments) -> Exit {
    let inputs = [("FILE", Some(&*arguments.file)), ("--profile", arguments.profile.file())];
    places::keep(&inputs, arguments.out.as_deref())?;
    let report = input::report(&arguments.file, &arguments.profile.validator(false)?)?;
    let evidence = match &arguments.evidence {
        Some(folder) => evidence::read(folder, arguments.out.as_deref())?,
        None => Vec::new(),
    };
    places::write(&html(&report, &evidence), arguments.out.as_deref())?;
    Ok(0)
}
