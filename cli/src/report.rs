//! `gatewright report validate`: judges compatibility reports (specification 2.12).

use std::fs::File;
use std::io::{self, IsTerminal as _, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use gatewright::report::{MAX_BYTES, Outcome as Verdict, Validator};
use serde::Serialize;

use crate::outcome::{FAILED, Outcome, USAGE, say};

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
    /// trailing, empty, size.
    Validate(Validate),
}

#[derive(Debug, Args)]
struct Validate {
    /// text: diagnostics with source lines; json: one object per file and line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Count advisories (tallies, duplicates and the like) as violations
    #[arg(long)]
    strict: bool,
    /// Reports; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// One line of the json format.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Command::Validate(arguments) = &arguments.command;
    validate(arguments)
}

fn validate(arguments: &Validate) -> Outcome {
    let validator = Validator::builder().strict(arguments.strict).build();
    let stdout = io::stdout();
    let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut out = io::BufWriter::new(stdout.lock());
    let mut code = 0;
    for file in &arguments.files {
        let document = match read(file) {
            Ok(document) => document,
            Err(error) => {
                out.flush()?;
                say(&format!("cannot read {}: {error}", file.display()));
                code = USAGE;
                continue;
            }
        };
        let verdict = validator.check(&document);
        let name = file.to_string_lossy();
        match arguments.format {
            Format::Json => {
                serde_json::to_writer(&mut out, &Line { file: &name, verdict: &verdict })
                    .map_err(io::Error::from)?;
                writeln!(out)?;
            }
            Format::Text => {
                let name = if is_stdin(file) { "<stdin>" } else { &name };
                out.write_all(verdict.to_text(name, &document, colour).as_bytes())?;
                writeln!(out, "{name}: {}", summary(&verdict))?;
            }
        }
        if !verdict.valid && code == 0 {
            code = FAILED;
        }
    }
    out.flush()?;
    Ok(code)
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// A file's bytes; of one over the validator's bound just enough to be refused.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    fn bounded(source: impl Read) -> io::Result<Vec<u8>> {
        let mut document = Vec::new();
        source.take(MAX_BYTES as u64 + 1).read_to_end(&mut document)?;
        Ok(document)
    }
    if is_stdin(file) { bounded(io::stdin().lock()) } else { bounded(File::open(file)?) }
}

fn summary(verdict: &Verdict) -> String {
    let count = |number: usize, one: &str, many: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {many}"),
    };
    let state = if verdict.valid { "valid" } else { "invalid" };
    let mut found = Vec::new();
    if !verdict.violations.is_empty() {
        found.push(count(verdict.violations.len(), "violation", "violations"));
    }
    if !verdict.advisories.is_empty() {
        found.push(count(verdict.advisories.len(), "advisory", "advisories"));
    }
    if found.is_empty() { state.to_owned() } else { format!("{state} ({})", found.join(", ")) }
}
