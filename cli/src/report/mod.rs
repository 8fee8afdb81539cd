//! `gatewright report`: everything about compatibility reports (specification 2.12), one module per command.

mod diff;
pub(crate) mod evidence;
mod explain;
mod fmt;
mod html;
pub(crate) mod input;
mod junit;
mod new;
pub(crate) mod profile;
mod schema;
mod show;
mod trend;
mod validate;

use std::io::{self, IsTerminal, Write as _};
use std::path::Path;

use clap::{Args, Subcommand};

use crate::outcome::{Failure, Outcome};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check reports against section 2.12 of the specification
    ///
    /// Exits with 0 if all are valid, 1 if some are not, 2 if a file cannot be read. A document that is no
    /// JSON is invalid; the rule of its violation says why: syntax, duplicate_key, encoding, depth, number,
    /// trailing, empty, size. `gatewright report explain RULE` tells more about a rule.
    Validate(validate::Arguments),
    /// Print a report: verdict, checks by models, what went wrong
    ///
    /// Exits with 0 if the report could be shown, whatever its verdict.
    Show(show::Arguments),
    /// Make a page of a report: one file, without scripts
    Html(html::Arguments),
    /// Compare two reports: what got better, worse or slower, and who answers as another model
    ///
    /// Exits with 0 if nothing that --fail-on names happened, else with 1.
    Diff(diff::Arguments),
    /// Write a report as JUnit XML
    Junit(junit::Arguments),
    /// Make a page of many reports over time: passes, times and tokens
    Trend(trend::Arguments),
    /// Write reports in canonical form
    ///
    /// Members in the order of the schema, two spaces per level, integers as digits. With --check nothing is written,
    /// and the exit code is 1 if a file is not in that form.
    Fmt(fmt::Arguments),
    /// Write a valid report to start from, in which every cell is skipped
    New(new::Arguments),
    /// Write the JSON Schema of reports, for editors
    Schema(schema::Arguments),
    /// Explain a rule that a document can break, or list all rules
    Explain(explain::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Validate(arguments) => validate::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Html(arguments) => html::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Junit(arguments) => junit::run(arguments),
        Command::Trend(arguments) => trend::run(arguments),
        Command::Fmt(arguments) => fmt::run(arguments),
        Command::New(arguments) => new::run(arguments),
        Command::Schema(arguments) => schema::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
    }
}

/// Whether to write colours there.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Errors: the place that is written to is one of the files that are read, which would be lost.
fn keep(inputs: &[(&str, Option<&Path>)], out: Option<&Path>) -> Result<(), Failure> {
    let Some(out) = out.filter(|out| !input::is_stdin(out)) else { return Ok(()) };
    let replaced = |file: &Path| !input::is_stdin(file) && gatewright_checkkit::same_place(file, out);
    match inputs.iter().find(|(_, file)| file.is_some_and(replaced)) {
        Some((name, _)) => Err(same_file(name, "--out", out)),
        None => Ok(()),
    }
}

/// Two arguments that must not, name the same file.
pub(crate) fn same_file(one: &str, other: &str, file: &Path) -> Failure {
    Failure::Usage(format!(
        "{one} and {other} are the same file, {}: one would replace the other; give another place",
        file.display()
    ))
}

/// Writes text to a file, whole or not at all, or to standard output.
fn write(text: &str, place: Option<&Path>) -> Result<(), Failure> {
    match place {
        Some(place) if !input::is_stdin(place) => gatewright_checkkit::write_file(place, text.as_bytes())
            .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", place.display()))),
        _ => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            Ok(stdout.flush()?)
        }
    }
}
