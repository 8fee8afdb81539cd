//! `gatewright report sarif`.

use std::path::PathBuf;

use clap::Args;

use super::input;
use super::profile::ProfileOption;
use crate::exit::Exit;
use crate::places::{self, is_stdin};

/// The name that the log has for a report from standard input.
const UNNAMED: &str = "report.json";

#[derive(Debug, Args)]
pub(super) struct SarifArguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &SarifArguments) -> Exit {
    let inputs = [("FILE", Some(&*arguments.file)), ("--profile", arguments.profile.file())];
    places::keep(&inputs, arguments.out.as_deref())?;
    let validator = arguments.profile.validator(false)?;
    let document = input::document(&arguments.file, &validator)?;
    // First, for its messages.
    input::report_of(&arguments.file, &document, &validator)?;
    let name = arguments.file.to_string_lossy();
    let name: &str = if is_stdin(&arguments.file) { UNNAMED } else { &name };
    let log = validator.sarif(&document, name);
    let log = log.map_err(|outcome| input::refused(&arguments.file, &document, &outcome))?;
    places::write(&log, arguments.out.as_deref())?;
    Ok(0)
}
