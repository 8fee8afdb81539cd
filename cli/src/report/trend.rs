//! `gatewright report trend`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::{Pool, Trend};

use super::input::{Input, Reading, files, inputs};
use super::profile::ProfileOption;
use crate::outcome::{Failure, Outcome, USAGE, say};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Where to write the page; standard output without it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Reports: files, folders, patterns, as for validate. Drawn are the newest 1,000 of the 20 addresses with the
    /// newest reports; documents that are no valid reports are named on the page
    #[arg(value_name = "DIR", required = true)]
    places: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    super::keep(&[("--profile", arguments.profile.file())], arguments.out.as_deref())?;
    if arguments.out.is_some() {
        for place in &arguments.places {
            for file in files(place).flatten() {
                super::keep(&[("DIR", Some(&file))], arguments.out.as_deref())?;
            }
        }
    }
    let validator = arguments.profile.validator(false)?;
    let reading = Reading { by_line: false, max_bytes: validator.max_bytes() };
    let reader = validator.clone();
    let make = move |_: &String, document: &[u8], _| {
        reader.read(document).map_err(|outcome| {
            let first = outcome.violations.first();
            first.map_or_else(|| "no valid report".to_owned(), |violation| violation.message.clone())
        })
    };
    let pool = Pool::new(&validator, 0, true, make)
        .map_err(|error| Failure::Failed(format!("no threads to read on: {error}")))?;
    let mut trend = Trend::default();
    let sources = inputs(&arguments.places, reading).map(|Input { name, line, source }| {
        let name = line.map(|line| format!("{name}:{line}")).unwrap_or(name);
        (name, source)
    });
    let mut code = 0;
    for judged in pool.run(sources) {
        match judged.result {
            Ok(Ok(report)) => trend.add(&judged.key, &report),
            Ok(Err(why)) => trend.refuse(&judged.key, &why),
            Err(error) => {
                say(&format!("cannot read {}: {error}", judged.key));
                trend.refuse(&judged.key, &error.to_string());
                code = USAGE;
            }
        }
    }
    if trend.is_empty() {
        return Err(Failure::Usage("there is no valid report to draw".to_owned()));
    }
    super::write(&trend.to_html(), arguments.out.as_deref())?;
    Ok(code)
}
