//! `gatewright report show`.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gatewright::report::{ProtocolReport, annotations, terminal};

use super::input;
use super::profile::ProfileOption;
use crate::exit::Exit;
use crate::places;
use crate::terminal::colour;

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// text: for a terminal; github: one GitHub Actions annotation per failed check
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    format: ShowFormat,
    /// Print JSON: the document in canonical form
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    profile: ProfileOption,
    /// Report, or additional checks such as report.protocols.json; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShowFormat {
    Text,
    Github,
}

pub(super) fn run(arguments: &ShowArguments) -> Exit {
    let validator = arguments.profile.validator(false)?;
    let document = input::document(&arguments.file, &validator)?;
    if arguments.json {
        let canonical = validator.canonical(&document);
        let canonical = canonical.map_err(|outcome| input::refused(&arguments.file, &document, &outcome))?;
        places::write(&canonical, None)?;
        return Ok(0);
    }
    let text = if ProtocolReport::recognizes(&document) {
        let checks = input::protocols_of(&arguments.file, &document, &validator)?;
        match arguments.format {
            ShowFormat::Text => format!("{}\n\n{}", checks.headline(), checks.to_text(colour(&io::stdout()))),
            ShowFormat::Github => checks.to_annotations(),
        }
    } else {
        let report = input::report_of(&arguments.file, &document, &validator)?;
        match arguments.format {
            ShowFormat::Text => terminal(&report, colour(&io::stdout())),
            ShowFormat::Github => annotations(&report),
        }
    };
    places::write(&text, None)?;
    Ok(0)
}
