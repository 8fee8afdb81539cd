//! `gatewright report validate`: validates any number of documents on all cores and prints results in input order.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use gatewright::report::{MAX_FINDINGS, Outcome as Verdict, SARIF_FOOT, Validator, Workers, sarif_head};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::input::{InputJob, Reading, say_unreadable, size, title, work};
use super::profile::ProfileOption;
use crate::exit::{Exit, FAILED, Failure, USAGE};
use crate::terminal::colour;

/// Output is buffered up to this size, …
const HELD_BYTES: usize = 64 << 10;
/// … or for this long.
const HELD_TIME: Duration = Duration::from_millis(100);

/// Separator between two results of a SARIF log.
const BETWEEN_RESULTS: &[u8] = b",\n";

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, Args)]
pub(super) struct ValidateArguments {
    /// text: diagnostics with source lines; sarif: one SARIF 2.1.0 log; github: GitHub Actions annotations
    #[arg(long, value_enum, default_value_t = ValidateFormat::Text)]
    format: ValidateFormat,
    /// Print JSON: one object per document, one per line
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Count advisories (such as wrong tallies or duplicates) as violations
    #[arg(long)]
    strict: bool,
    /// Reject model and kit names other than those of the specification, or of --profile
    #[arg(long)]
    strict_names: bool,
    #[command(flatten)]
    profile: ProfileOption,
    /// Read every file as one report per line, not only .ndjson and .jsonl files
    #[arg(long)]
    ndjson: bool,
    /// Print only reports with problems
    #[arg(long, short)]
    quiet: bool,
    /// Documents to validate in parallel, at most 64; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u8).range(0..=64))]
    jobs: u8,
    /// Violations to list per report, and advisories likewise, 1 to 100000; the rest is only counted [default: 1000]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_findings: Option<u32>,
    /// Reports and additional checks: files, folders (every .json, .ndjson and .jsonl file below) or patterns; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ValidateFormat {
    Text,
    Sarif,
    Github,
    /// Also an earlier spelling of `--json`.
    #[value(hide = true)]
    Json,
}

/// One document in the `json` format.
#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    /// Line on which the document begins, if the file has one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// How documents are judged.
struct ValidationRun {
    validator: Validator,
    format: ValidateFormat,
    quiet: bool,
    colour: bool,
}

/// The results of some documents.
#[derive(Default)]
struct ValidationResults {
    text: Vec<u8>,
    invalid: bool,
    documents: u64,
    /// Length of the documents, in bytes.
    bytes: u64,
    /// The file that could not be read, and why.
    unreadable: Option<(String, io::Error)>,
}

pub(super) fn run(arguments: &ValidateArguments) -> Exit {
    let &ValidateArguments { json, quiet, .. } = arguments;
    let format = if json { ValidateFormat::Json } else { arguments.format };
    let most = arguments.max_findings.map_or(MAX_FINDINGS, |most| most as usize);
    let validator = arguments
        .profile
        .builder()?
        .own_names(!arguments.strict_names)
        .strict(arguments.strict)
        .max_findings(most)
        .build();
    let reading = Reading { by_line: arguments.ndjson, max_bytes: validator.max_bytes() };
    let judge = ValidationRun { validator, format, quiet, colour: colour(&io::stdout()) };
    let workers = Workers::new(arguments.jobs.into(), true, move |work| judge.judge(work))
        .map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    let mut out = ProgressOutput::new(&arguments.files);
    let mut code = 0;
    let mut is_first = true;
    if format == ValidateFormat::Sarif {
        out.write(sarif_head().as_bytes())?;
    }
    for judgement in workers.run(work(&arguments.files, reading)) {
        let ValidationResults { text, invalid, documents, bytes, unreadable } = judgement;
        if let Some((name, error)) = unreadable {
            out.flush()?;
            out.progress.suspend(|| say_unreadable(&name, &error));
            code = USAGE;
            continue;
        }
        if !text.is_empty() {
            if format == ValidateFormat::Sarif && !is_first {
                out.write(BETWEEN_RESULTS)?;
            }
            is_first = false;
            out.write(&text)?;
        }
        if invalid && code == 0 {
            code = FAILED;
        }
        out.advance(documents, bytes);
    }
    if format == ValidateFormat::Sarif {
        out.write(SARIF_FOOT.as_bytes())?;
    }
    out.flush()?;
    out.progress.finish_and_clear();
    Ok(code)
}

impl ValidationRun {
    fn judge(&self, work: InputJob) -> ValidationResults {
        let mut judgement = ValidationResults::default();
        match work {
            InputJob::Document(name, source) => match source.read(self.validator.max_bytes()) {
                Ok(document) => self.add(&name, None, &document, &mut judgement),
                Err(error) => judgement.unreadable = Some((name, error)),
            },
            InputJob::Lines(name, block) => {
                for (number, line) in block.lines() {
                    self.add(&name, Some(number), line, &mut judgement);
                }
            }
        }
        judgement
    }

    fn add(&self, file: &str, line: Option<usize>, document: &[u8], to: &mut ValidationResults) {
        let verdict = self.validator.check(document).from_line(line.unwrap_or(1));
        to.invalid |= !verdict.valid;
        to.documents += 1;
        to.bytes += document.len() as u64;
        if self.quiet && verdict.is_clean() {
            return;
        }
        let known = to.text.len();
        if self.format == ValidateFormat::Sarif && known > 0 {
            to.text.extend_from_slice(BETWEEN_RESULTS);
        }
        let before = to.text.len();
        self.describe(file, line, document, &verdict, &mut to.text);
        if to.text.len() == before {
            to.text.truncate(known);
        }
    }

    fn describe(
        &self,
        file: &str,
        line: Option<usize>,
        document: &[u8],
        verdict: &Verdict,
        to: &mut Vec<u8>,
    ) {
        let text = match self.format {
            ValidateFormat::Json => {
                let record = Record { file, line, verdict };
                serde_json::to_writer(&mut *to, &record).expect("strings and numbers serialize");
                "\n".to_owned()
            }
            ValidateFormat::Text => {
                let file = title(file);
                let place = line.map(|line| format!(":{line}")).unwrap_or_default();
                let findings = verdict.to_text(file, document, self.colour);
                format!("{findings}{file}{place}: {}\n", summary(verdict))
            }
            ValidateFormat::Sarif => verdict.to_sarif(title(file)),
            ValidateFormat::Github => verdict.to_annotations(title(file)),
        };
        to.extend_from_slice(text.as_bytes());
    }
}

fn summary(verdict: &Verdict) -> String {
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let state = if verdict.valid { "valid" } else { "invalid" };
    let violations = verdict.violations.len() + verdict.more_violations;
    let advisories = verdict.advisories.len() + verdict.more_advisories;
    let mut found = Vec::new();
    if violations > 0 {
        found.push(count(violations, "violation", "violations"));
    }
    if advisories > 0 {
        found.push(count(advisories, "advisory", "advisories"));
    }
    if found.is_empty() { state.to_owned() } else { format!("{state} ({})", found.join(", ")) }
}

/// Standard output, with a progress bar on standard error if that is a terminal.
struct ProgressOutput {
    held: Vec<u8>,
    since: Instant,
    progress: ProgressBar,
}

impl ProgressOutput {
    /// files: the inputs to validate.
    fn new(files: &[PathBuf]) -> Self {
        let style = |template: &str| ProgressStyle::with_template(template).expect("the templates are sound");
        let progress = if !io::stderr().is_terminal() {
            ProgressBar::hidden()
        } else if let Some(bytes) = size(files) {
            let style = style("{wide_bar} {bytes} of {total_bytes}, {eta} to go");
            ProgressBar::new(bytes).with_style(style)
        } else {
            ProgressBar::new_spinner().with_style(style("{spinner} {human_pos} reports in {elapsed}"))
        };
        Self { held: Vec::new(), since: Instant::now(), progress }
    }

    /// Advances the bar by this many documents and bytes.
    fn advance(&self, documents: u64, bytes: u64) {
        self.progress.inc(if self.progress.length().is_some() { bytes } else { documents });
    }

    fn write(&mut self, text: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(text);
        if self.held.len() >= HELD_BYTES || self.since.elapsed() >= HELD_TIME {
            return self.flush();
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.since = Instant::now();
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.progress.suspend(|| {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&held)?;
            stdout.flush()
        })
    }
}
