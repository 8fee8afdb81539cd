//! A report in a terminal: verdict, matrix, and what went wrong.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::matrix::{Headline, Matrix, duration, model_name, participle, tally};
use crate::model::{Check, CheckId, Report, Status};
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

/// As in the report, but failures stand out even without colour.
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
    // Lays out cells as plain text first: colour escapes take no space.
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

/// Most reasons of skipped cells that are told.
const MOST_REASONS: usize = 4;

fn explanations(text: &mut String, report: &Report, colour: bool) {
    let failed = causes(report, Status::Fail);
    if !failed.is_empty() {
        text.push('\n');
    }
    for cause in failed {
        told(text, Status::Fail, &cause.cells(), &cause.explanation(), colour);
    }
    let skipped = causes(report, Status::Skip);
    let count: usize = skipped.iter().map(|cause| cause.checks.len()).sum();
    match skipped.as_slice() {
        [] => {}
        [cause] if count == 1 => {
            text.push('\n');
            told(text, Status::Skip, &cause.cells(), &cause.explanation(), colour);
        }
        several => {
            let reason = |cause: &Cause<'_>| match several.len() {
                1 => cause.explanation(),
                _ => format!("{} ({})", cause.explanation(), cause.checks.len()),
            };
            let mut reasons: Vec<String> = several.iter().take(MOST_REASONS).map(reason).collect();
            if several.len() > MOST_REASONS {
                reasons.push("…".to_owned());
            }
            text.push('\n');
            told(text, Status::Skip, &format!("{count} cells"), &reasons.join("; "), colour);
        }
    }
}

fn told(text: &mut String, status: Status, cells: &str, explanation: &str, colour: bool) {
    let word = paint(word(status), code_of(status), colour);
    writeln!(text, "{word} {cells}: {explanation}").expect("writing to a string succeeds");
}

/// Cells with one explanation.
struct Cause<'r> {
    /// That of the first cell.
    first: String,
    /// That of all, without the model's name and with [`COUNT`] in the place of each count.
    general: String,
    /// The least and the most of each count.
    counts: Vec<(u64, u64)>,
    checks: Vec<&'r Check>,
}

impl Cause<'_> {
    /// In words that hold for all its cells: with `213 to 219 bytes` where they differ in that.
    fn explanation(&self) -> String {
        let one_model = self.checks.iter().all(|check| check.model == self.checks[0].model);
        if one_model && self.counts.iter().all(|(least, most)| least == most) {
            return self.first.clone();
        }
        let mut words = self.general.split(COUNT);
        let mut text = words.next().unwrap_or_default().to_owned();
        for (words, (least, most)) in words.zip(&self.counts) {
            let until = if least == most { String::new() } else { format!(" to {most}") };
            write!(text, "{least}{until}{words}").expect("writing to a string succeeds");
        }
        text
    }

    /// `responses_text model-sol, model-terra; responses_stream model-sol`.
    fn cells(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for check in &self.checks {
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
}

/// What stands for a count. No text that has become visible holds it.
const COUNT: char = '\0';
/// What is counted where an answer ends too early or too late: one cause, however much of each answer had come.
const COUNTED: [&str; 3] = ["bytes", "events", "ms"];

/// The text with its counts taken out.
fn counted(text: &str) -> (String, Vec<u64>) {
    let (mut words, mut counts) = (String::with_capacity(text.len()), Vec::new());
    let mut rest = text.split(' ').peekable();
    while let Some(word) = rest.next() {
        let next = rest.peek();
        let unit = next.map_or("", |next| next.trim_end_matches(|end: char| !end.is_alphanumeric()));
        match word.parse() {
            Ok(count) if COUNTED.contains(&unit) => {
                words.push(COUNT);
                counts.push(count);
            }
            _ => words.push_str(word),
        }
        if next.is_some() {
            words.push(' ');
        }
    }
    (words, counts)
}

/// The cells of a status by their explanation, in the order of the report. One that differs only in the model's name, or
/// in how much had come, is the same.
fn causes(report: &Report, status: Status) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for check in report.checks.iter().filter(|check| check.status == status) {
        let explanation = check.in_words().unwrap_or_default();
        let general = match check.model.as_deref() {
            Some(model) if !model.is_empty() => explanation.replace(model, "the model"),
            _ => explanation.clone(),
        };
        let (general, counts) = counted(&visible(&general));
        let place = *places.entry(general.clone()).or_insert(causes.len());
        match causes.get_mut(place) {
            None => {
                let counts = counts.into_iter().map(|count| (count, count)).collect();
                let first = visible(&explanation).into_owned();
                causes.push(Cause { first, general, counts, checks: vec![check] });
            }
            Some(cause) => {
                for (known, count) in cause.counts.iter_mut().zip(counts) {
                    *known = (known.0.min(count), known.1.max(count));
                }
                cause.checks.push(check);
            }
        }
    }
    // Cells of one check stand together.
    for cause in &mut causes {
        cause.checks.sort_by_key(|check| CheckId::ALL.iter().position(|id| *id == check.id));
    }
    causes
}
