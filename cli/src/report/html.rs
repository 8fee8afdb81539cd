//! `gatewright report html`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::{ProtocolReport, html, html_with_protocols};

use super::evidence;
use super::input;
use super::profile::ProfileOption;
use crate::exit::{Exit, Failure};
use crate::places;

#[derive(Debug, Args)]
pub(super) struct HtmlArguments {
    /// Folder with the evidence of the check kit, which the page shows in its cells and links to
    #[arg(long, value_name = "DIR")]
    evidence: Option<PathBuf>,
    /// Additional checks of the same run, for a section of the page
    #[arg(long, value_name = "FILE")]
    protocols: Option<PathBuf>,
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Report, or additional checks such as report.protocols.json; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(super) fn run(arguments: &HtmlArguments) -> Exit {
    let inputs = [
        ("FILE", Some(&*arguments.file)),
        ("--protocols", arguments.protocols.as_deref()),
        ("--profile", arguments.profile.file()),
    ];
    places::keep(&inputs, arguments.out.as_deref())?;
    let validator = arguments.profile.validator(false)?;
    let document = input::document(&arguments.file, &validator)?;
    let page = if ProtocolReport::recognizes(&document) {
        if arguments.evidence.is_some() || arguments.protocols.is_some() {
            let message =
                "--evidence and --protocols add to the page of a report, and FILE contains additional checks";
            return Err(Failure::Usage(message.to_owned()));
        }
        input::protocols_of(&arguments.file, &document, &validator)?.to_html()
    } else {
        let report = input::report_of(&arguments.file, &document, &validator)?;
        let evidence = match &arguments.evidence {
            Some(folder) => evidence::read(folder, arguments.out.as_deref())?,
            None => Vec::new(),
        };
        match &arguments.protocols {
            Some(file) => {
                let document = input::document(file, &validator)?;
                let checks = input::protocols_of(file, &document, &validator)?;
                html_with_protocols(&report, &evidence, &checks)
            }
            None => html(&report, &evidence),
        }
    };
    places::write(&page, arguments.out.as_deref())?;
    Ok(0)
}
