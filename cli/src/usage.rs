//! `gatewright usage`: reports usage by key, model, upstream and day.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use gatewright_gateway::{UsageQuery, UsageRow};

use crate::exit::{Exit, Failure};
use crate::json;
use crate::operator::OperatorTarget;
use crate::table;

#[derive(Debug, Args)]
pub(crate) struct UsageArguments {
    /// First day (UTC), such as 2026-07-31 [default: 29 days before the last]
    #[arg(long, value_name = "DAY")]
    from: Option<String>,
    /// Last day [default: today]
    #[arg(long, value_name = "DAY")]
    to: Option<String>,
    /// Only this key: its name or id
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Grouping of the rows: any of day, key, model, upstream, separated by commas [default: all]
    #[arg(long, value_name = "NAMES")]
    by: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: UsageFormat,
    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    place: OperatorTarget,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UsageFormat {
    Table,
    Csv,
    /// An earlier spelling of `--json`.
    #[value(hide = true)]
    Json,
}

pub(crate) async fn run(arguments: UsageArguments) -> Exit {
    let mut query = UsageQuery::default();
    (query.from, query.to, query.key, query.by) = (arguments.from, arguments.to, arguments.key, arguments.by);
    let rows = arguments.place.open().await?.usage(query).await?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    match arguments.format {
        _ if arguments.json => json::write(&mut out, &rows)?,
        UsageFormat::Json => json::write(&mut out, &rows)?,
        UsageFormat::Table => table(&mut out, &rows)?,
        UsageFormat::Csv => csv(&mut out, &rows)?,
    }
    out.flush()?;
    Ok(0)
}

fn table(out: &mut impl Write, rows: &[UsageRow]) -> io::Result<()> {
    let heads = [
        "DAY",
        "KEY",
        "MODEL",
        "UPSTREAM",
        "REQUESTS",
        "FAILED",
        "LATENCY",
        "ESTIMATED",
        "UNPRICED",
        "INPUT",
        "CACHED",
        "OUTPUT",
        "COST",
    ];
    let text = |name: &Option<String>| match name.as_deref() {
        None => "-".to_owned(),
        // Failed requests that name no model, or that no upstream got.
        Some("") => "(none)".to_owned(),
        Some(name) => name.to_owned(),
    };
    let row = |row: &UsageRow| {
        [
            text(&row.day),
            text(if row.name.is_some() { &row.name } else { &row.key }),
            text(&row.model),
            text(&row.upstream),
            row.requests.to_string(),
            row.failed.to_string(),
            latency(row),
            row.estimated.to_string(),
            row.unpriced.to_string(),
            row.input_tokens.to_string(),
            row.cached_tokens.to_string(),
            row.output_tokens.to_string(),
            cost(row),
        ]
    };
    let rows: Vec<_> = std::iter::once(heads.map(str::to_owned)).chain(rows.iter().map(row)).collect();
    table::write(out, &rows, 4..13)
}

/// The mean latency; a dash if no request was timed.
fn latency(row: &UsageRow) -> String {
    match row.latency_ms.checked_div(row.timed) {
        Some(mean) => format!("{mean}ms"),
        None => "-".to_owned(),
    }
}

/// The known cost; a dash if no request has a known cost.
fn cost(row: &UsageRow) -> String {
    if row.requests > 0 && row.unpriced == row.requests { "-".to_owned() } else { format!("{:.6}", row.cost) }
}

fn csv(out: &mut impl Write, rows: &[UsageRow]) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => Failure::from(error),
            _ => Failure::Failed("a row cannot be written as CSV".to_owned()),
        })?;
    }
    Ok(writer.flush()?)
}
