//! A report in a terminal: verdict, matrix, and what went wrong.

use std::fmt::Write as _;

use crate::causes::{Cause, causes};
use crate::matrix::{Headline, Matrix, duration, model_name, participle, tally};
use crate::model::{Check, Report, Status};
use gatewright_safe::visible::visible;

const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RESET: &str = "\x1b[0m";

/// Spaces between two columns.
const GAP: usize = 2;

/// The report as text: verdict and address, the matrix of checks and models, each cause of failures with the cells that it
/// is the cause of, and a line for what was skipped.
///
/// colour: whether to add terminal escapes. The text contains no other control characters, whatever the report
/// contains.
///
/// ```
/// use gatewright_report::{Profile, Report, terminal};
///
/// let report = Report::skeleton(&Profile::default(), "https://gateway.example.com");
/// assert!(terminal(&report, false).contains("models_endpoint"));
/// ```
pub fn terminal(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    head(&mut text, report, colour);
    matrix(&mut text, report, colour);
    explanations(&mut text, report, colour);
    text
}

fn paint(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("{code}{text}{RESET}") } else { text.to_owned() }
}

fn code_of(status: Status) -> &'static str {
    match status {
        Status::Pass => GREEN,
        Status::Fail => RED,
        Status::Skip => DIM,
    }
}

/// As in the report, but failures stand out even without color.
fn word(status: Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "FAIL",
        Status::Skip => "skip",
    }
}

fn head(text: &mut String, report: &Report, colour: bool) {
    let Headline { verdict, remarks } = Headline::of(report);
    let counts = tally(report).map(|(status, count)| format!("{count} {}", participle(status)));
    writeln!(
        text,
        "{}{remarks}  {}  {}\n{} {}, {}\n",
        paint(&word(verdict).to_uppercase(), code_of(verdict), colour),
        paint(&visible(&report.address()), BOLD, colour),
        counts.join(", "),
        visible(&report.kit.name),
        visible(&report.kit.version),
        visible(&report.generated_at),
    )
    .expect("writing to a string succeeds");
}

fn matrix(text: &mut String, report: &Report, colour: bool) {
    let matrix = Matrix::of(report);
    // Lays out cells as plain text first: color escapes take no space.
    let mut table: Vec<Vec<(String, Option<Status>)>> = Vec::new();
    let mut heading = vec![(String::new(), None)];
    heading.extend(matrix.columns.iter().map(|model| (visible(model_name(*model)).into_owned(), None)));
    table.push(heading);
    for row in &matrix.rows {
        let mut line = vec![(row.id.name().to_owned(), None)];
        line.extend(row.cells.iter().map(|cell| {
            let results: Vec<String> = cell.iter().map(|(_, check)| result(check)).collect();
            let failed = cell.iter().find(|(_, check)| check.status == Status::Fail);
            let status = failed.or(cell.first()).map(|(_, check)| check.status);
            (results.join(", "), status)
        }));
        table.push(line);
    }
    let width = |column: usize| table.iter().map(|line| line[column].0.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=matrix.columns.len()).map(width).collect();
    for line in &table {
        let mut blank = 0;
        for ((cell, status), width) in line.iter().zip(&widths) {
            if !cell.is_empty() {
                text.push_str(&" ".repeat(blank));
                blank = 0;
                text.push_str(&match status {
                    Some(status) => paint(cell, code_of(*status), colour),
                    None => cell.clone(),
                });
            }
            // Padding only before the next cell, so that no line ends in spaces.
            blank += width - cell.chars().count() + GAP;
        }
        text.push('\n');
    }
}

fn result(check: &Check) -> String {
    match check.duration_ms {
        Some(ms) if check.status != Status::Skip => format!("{} {}", word(check.status), duration(ms)),
        _ => word(check.status).to_owned(),
    }
}

/// Maximum number of reasons for skipped cells that are shown.
const MAX_REASONS: usize = 4;

fn explanations(text: &mut String, report: &Report, colour: bool) {
    let failed = causes(report, Status::Fail);
    if !failed.is_empty() {
        text.push('\n');
    }
    for cause in failed {
        write_cells(text, Status::Fail, &cells(&cause), &cause.explanation(), colour);
    }
    let skipped = causes(report, Status::Skip);
    let count: usize = skipped.iter().map(|cause| cause.cells.len()).sum();
    match skipped.as_slice() {
        [] => {}
        [cause] if count == 1 => {
            text.push('\n');
            write_cells(text, Status::Skip, &cells(cause), &cause.explanation(), colour);
        }
        several => {
            let reason = |cause: &Cause<'_>| match several.len() {
                1 => cause.explanation(),
                _ => format!("{} ({})", cause.explanation(), cause.cells.len()),
            };
            let mut reasons: Vec<String> = several.iter().take(MAX_REASONS).map(reason).collect();
            if several.len() > MAX_REASONS {
                reasons.push("…".to_owned());
            }
            text.push('\n');
            write_cells(text, Status::Skip, &format!("{count} cells"), &reasons.join("; "), colour);
        }
    }
}

fn write_cells(text: &mut String, status: Status, cells: &str, explanation: &str, colour: bool) {
    let word = paint(word(status), code_of(status), colour);
    writeln!(text, "{word} {cells}: {explanation}").expect("writing to a string succeeds");
}

/// `responses_text model-sol, model-terra; responses_stream model-sol`.
fn cells(cause: &Cause<'_>) -> String {
    let mut text = String::new();
    let mut last = None;
    for (_, check) in &cause.cells {
        if last == Some(check.id) {
            text.push_str(", ");
        } else {
            let between = if last.is_some() { "; " } else { "" };
            write!(text, "{between}{} ", check.id).expect("writing to a string succeeds");
        }
        last = Some(check.id);
        text.push_str(&visible(model_name(check.model.as_deref())));
    }
    text
}
