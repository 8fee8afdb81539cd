//! `gatewright report trend`.

use std::path::PathBuf;

use clap::Args;
use gatewright::report::{Pool, Trend};

use super::input::{Input, Reading, files, inputs};
use super::profile::ProfileOption;
use crate::exit::{Exit, Failure, USAGE, print_message};
use crate::places;

#[derive(Debug, Args)]
pub(super) struct TrendArguments {
    #[command(flatten)]
    profile: ProfileOption,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Reports: files, folders or patterns, as for `validate`. The page shows the 20 endpoints with the newest
    /// reports, at most 1,000 reports in all, and lists invalid documents
    #[arg(value_name = "DIR", required = true)]
    places: Vec<PathBuf>,
}

pub(super) fn run(arguments: &TrendArguments) -> Exit {
    places::keep(&[("--profile", arguments.profile.file())], arguments.out.as_deref())?;
    if arguments.out.is_some() {
        for place in &arguments.places {
            for file in files(place).flatten() {
                places::keep(&[("DIR", Some(&file))], arguments.out.as_deref())?;
            }
        }
    }
    let validator = arguments.profile.validator(false)?;
    let reading = Reading { by_line: false, max_bytes: validator.max_bytes() };
    let reader = validator.clone();
    let make = move |_: &String, document: &[u8], _| {
        reader.read(document).map_err(|outcome| {
            let first = outcome.violations.first();
            first.map_or_else(|| "not a valid report".to_owned(), |violation| violation.message.clone())
        })
    };
    let pool = Pool::new(&validator, 0, true, make)
        .map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
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
                print_message(&format!("cannot read {}: {error}", judged.key));
                trend.refuse(&judged.key, &error.to_string());
                code = USAGE;
            }
        }
    }
    if trend.is_empty() {
        return Err(Failure::Usage("no valid report was found".to_owned()));
    }
    places::write(&trend.to_html(), arguments.out.as_deref())?;
    Ok(code)
}
