//! `gatewright report new`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::{Report, Validator};

use super::profile::ProfileOption;
use crate::exit::{Exit, Failure};
use crate::places;

#[derive(Debug, Args)]
pub(super) struct NewArguments {
    /// Absolute URI of the service
    #[arg(
        long = "base-url",
        alias = "endpoint",
        value_name = "URL",
        default_value = "https://gateway.example.com"
    )]
    endpoint: String,
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &NewArguments) -> Exit {
    places::keep(&[("--profile", arguments.profile.file())], arguments.out.as_deref())?;
    let profile = arguments.profile.read()?;
    let report = Report::skeleton(&profile, &arguments.endpoint).to_json();
    let validator = Validator::builder().profile(&profile).build();
    if let Some(violation) = validator.check(report.as_bytes()).violations.first() {
        return Err(Failure::Usage(violation.message.clone()));
    }
    places::write(&report, arguments.out.as_deref())?;
    Ok(0)
}
