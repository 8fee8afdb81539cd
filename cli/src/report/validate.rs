//! `gatewright report validate`: validates any number of documents on all cores and prints results in input order.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use gatewright::report::{MAX_FINDINGS, Outcome as Verdict, Pool, SARIF_FOOT, sarif_head};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::input::{Input, Reading, inputs, say_unreadable, size, title};
use super::profile::ProfileOption;
use crate::exit::{Exit, FAILED, Failure, USAGE};
use crate::terminal::colour;

/// Output is buffered up to this size, …
const HELD_BYTES: usize = 64 << 10;
/// … or for this long.
const HELD_TIME: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// text: diagnostics with source lines; json: one object per document, one per line; sarif: one SARIF 2.1.0
    /// log; github: GitHub Actions annotations
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Count advisories (such as wrong tallies or duplicates) as violations
    #[arg(long)]
    strict: bool,
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
    /// Reports: files, folders (every .json, .ndjson and .jsonl file below) or patterns; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
    Sarif,
    Github,
}

/// One document in the `json` format.
#[derive(Serialize)]
struct Record<'a> {
    file: &'a str,
    /// Line on which the document begins, if the file holds one per line.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// The name of a document: its file and its line.
type Name = (String, Option<usize>);

/// The result of validating one document.
struct Judgement {
    text: String,
    valid: bool,
    /// Length of the document, in bytes.
    bytes: usize,
}

pub(super) fn run(arguments: &Arguments) -> Exit {
    let &Arguments { format, quiet, .. } = arguments;
    let most = arguments.max_findings.map_or(MAX_FINDINGS, |most| most as usize);
    let validator = arguments.profile.builder()?.strict(arguments.strict).max_findings(most).build();
    let reading = Reading { by_line: arguments.ndjson, max_bytes: validator.max_bytes() };
    let colour = colour(&io::stdout());
    let make = move |name: &Name, document: &[u8], verdict: Verdict| {
        let verdict = verdict.from_line(name.1.unwrap_or(1));
        let clean = verdict.violations.is_empty() && verdict.advisories.is_empty();
        let text =
            if quiet && clean { String::new() } else { described(format, name, document, &verdict, colour) };
        Judgement { text, valid: verdict.valid, bytes: document.len() }
    };
    let pool = Pool::new(&validator, arguments.jobs.into(), true, make)
        .map_err(|error| Failure::Failed(format!("cannot start threads: {error}")))?;
    let mut out = Out::new(&arguments.files);
    let mut code = 0;
    let mut results = 0_u64;
    if format == Format::Sarif {
        out.write(&sarif_head())?;
    }
    let sources =
        inputs(&arguments.files, reading).map(|Input { name, line, source }| ((name, line), source));
    for judged in pool.run(sources) {
        match judged.result {
            Ok(Judgement { text, valid, bytes }) => {
                if format == Format::Sarif && results > 0 && !text.is_empty() {
                    out.write(",\n")?;
                }
                results += u64::from(!text.is_empty());
                out.write(&text)?;
                if !valid && code == 0 {
                    code = FAILED;
                }
                out.advance(bytes);
            }
            Err(error) => {
                out.flush()?;
                out.progress.suspend(|| say_unreadable(&judged.key.0, &error));
                code = USAGE;
            }
        }
    }
    if format == Format::Sarif {
        out.write(SARIF_FOOT)?;
    }
    out.flush()?;
    out.progress.finish_and_clear();
    Ok(code)
}

fn described(format: Format, name: &Name, document: &[u8], verdict: &Verdict, colour: bool) -> String {
    let (file, line) = name;
    match format {
        Format::Json => {
            let record = Record { file, line: *line, verdict };
            serde_json::to_string(&record).expect("strings and numbers serialise") + "\n"
        }
        Format::Text => {
            let file = title(file);
            let place = line.map(|line| format!(":{line}")).unwrap_or_default();
            let findings = verdict.to_text(file, document, colour);
            format!("{findings}{file}{place}: {}\n", summary(verdict))
        }
        Format::Sarif => verdict.to_sarif(title(file)),
        Format::Github => verdict.to_annotations(title(file)),
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
struct Out {
    held: Vec<u8>,
    since: Instant,
    progress: ProgressBar,
}

impl Out {
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

    /// Advances the bar by one document of this many bytes.
    fn advance(&self, bytes: usize) {
        self.progress.inc(if self.progress.length().is_some() { bytes as u64 } else { 1 });
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.held.extend_from_slice(text.as_bytes());
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
