//! `gatewright report`: works with compatibility reports (specification 2.12), one module per command.

mod diff;
pub(crate) mod evidence;
mod explain;
mod fmt;
mod html;
pub(crate) mod input;
mod junit;
mod new;
pub(crate) mod profile;
mod sarif;
mod schema;
mod show;
mod trend;
mod validate;

use clap::{Args, Subcommand};

use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    #[command(subcommand)]
    command: ReportCommand,
}

#[derive(Debug, Subcommand)]
enum ReportCommand {
    /// Validate reports
    ///
    /// Exits with 0 if all are valid, 1 if any is invalid, 2 if a file cannot be read. A document that is not
    /// JSON is invalid; the rule of its violation says why: syntax, duplicate_key, encoding, depth, number,
    /// trailing, empty, size. `gatewright report explain RULE` explains a rule.
    Validate(validate::ValidateArguments),
    /// Print a report: the verdict, a matrix of checks and models, the failures
    ///
    /// Exits with 0 whatever the verdict, if the report could be read.
    Show(show::ShowArguments),
    /// Render a report as an HTML page: one file, no scripts
    Html(html::HtmlArguments),
    /// Compare two reports: what got better, worse or slower, and which cells were answered by another model
    ///
    /// Exits with 1 if it finds a change that --fail-on names, else with 0.
    Diff(diff::DiffArguments),
    /// Write a report as JUnit XML
    Junit(junit::JunitArguments),
    /// Write the failed checks of a report as a SARIF log, for code scanning
    Sarif(sarif::SarifArguments),
    /// Render many reports over time as an HTML page: passes, durations and tokens
    Trend(trend::TrendArguments),
    /// Rewrite reports in canonical form
    ///
    /// The canonical form has members in schema order, two spaces per level, and integers as digits. With --check,
    /// nothing is written, and the exit code is 1 if any file is not in canonical form.
    Fmt(fmt::FmtArguments),
    /// Write a valid report in which every cell is skipped, as a starting point
    New(new::NewArguments),
    /// Write the JSON Schema of reports, for editors
    Schema(schema::SchemaArguments),
    /// Explain a validation rule or a check, or list all
    Explain(explain::ExplainArguments),
}

pub(crate) fn run(arguments: &ReportArguments) -> Exit {
    match &arguments.command {
        ReportCommand::Validate(arguments) => validate::run(arguments),
        ReportCommand::Show(arguments) => show::run(arguments),
        ReportCommand::Html(arguments) => html::run(arguments),
        ReportCommand::Diff(arguments) => diff::run(arguments),
        ReportCommand::Junit(arguments) => junit::run(arguments),
        ReportCommand::Sarif(arguments) => sarif::run(arguments),
        ReportCommand::Trend(arguments) => trend::run(arguments),
        ReportCommand::Fmt(arguments) => fmt::run(arguments),
        ReportCommand::New(arguments) => new::run(arguments),
        ReportCommand::Schema(arguments) => schema::run(arguments),
        ReportCommand::Explain(arguments) => explain::run(arguments),
    }
}
