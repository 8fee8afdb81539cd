//! Reads reports from files, folders, patterns and standard input, with one document per file or one per line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use gatewright::report::{Block, Blocks, Line, Lines, Outcome, ProtocolReport, Report, Source, Validator};
use walkdir::WalkDir;

use crate::exit::{Failure, print_message};
use crate::places::is_stdin;

/// A document and its name.
pub(super) struct Input {
    /// The file as given on the command line, or its path below the given folder; `-` for standard input.
    pub(super) name: String,
    /// Line on which the document begins, if the file has one document per line.
    pub(super) line: Option<usize>,
    pub(super) source: Source,
}

/// The name of an input in messages.
pub(super) fn title(name: &str) -> &str {
    if name == "-" { "<stdin>" } else { name }
}

/// Reads a file. Errors: it cannot be read, or has more than `max_bytes`.
pub(super) fn read_file(file: &Path, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let failure = |problem: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot read {}: {problem}", file.display()))
    };
    let bytes = bounded(file, max_bytes).map_err(|error| failure(&error))?;
    if bytes.len() as u64 > max_bytes {
        return Err(failure(&format!("it is larger than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// Reads a file or standard input, but no more than is needed to see that it exceeds the limit.
fn bounded(file: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let bound = max_bytes.saturating_add(1);
    if is_stdin(file) {
        io::stdin().lock().take(bound).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(bound).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Reads one document without validating it.
pub(super) fn document(file: &Path, validator: &Validator) -> Result<Vec<u8>, Failure> {
    bounded(file, validator.max_bytes() as u64)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", file.display())))
}

/// Reads one valid report. The violations of an invalid one go to standard error.
pub(crate) fn report(file: &Path, validator: &Validator) -> Result<Report, Failure> {
    report_of(file, &document(file, validator)?, validator)
}

/// The report in a document. Errors: it is invalid, or contains additional checks.
pub(super) fn report_of(file: &Path, document: &[u8], validator: &Validator) -> Result<Report, Failure> {
    if ProtocolReport::recognizes(document) {
        let name = file.to_string_lossy();
        return Err(Failure::Usage(format!(
            "{} contains additional checks, not a report: show, html, validate and fmt of `gatewright report` read it",
            title(&name)
        )));
    }
    validator.read(document).map_err(|outcome| refused(file, document, &outcome))
}

/// Reads a document of additional checks. Errors: it is invalid.
pub(super) fn protocols_of(
    file: &Path,
    document: &[u8],
    validator: &Validator,
) -> Result<ProtocolReport, Failure> {
    validator.read_protocols(document).map_err(|outcome| refused(file, document, &outcome))
}

/// The failure for an invalid document, with its violations as `validate` prints them.
pub(super) fn refused(file: &Path, document: &[u8], outcome: &Outcome) -> Failure {
    let name = file.to_string_lossy();
    let name = title(&name);
    let kind = if ProtocolReport::recognizes(document) { "document of additional checks" } else { "report" };
    // Without colors: `fmt --check --json` prints the message, too.
    let findings = outcome.to_text(name, document, false);
    Failure::Usage(format!("{name} is not a valid {kind}\n{}", findings.trim_end()))
}

/// How `inputs` reads files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Treats every file as one document per line, whatever its name.
    pub(super) by_line: bool,
    /// Maximum size of a document, in bytes.
    pub(super) max_bytes: usize,
}

/// All documents that the arguments name, in the order of the arguments; in folders, sorted by name. Opens each file
/// only when its turn comes.
///
/// A folder means the files below it that end in `.json`, `.ndjson` or `.jsonl`. An argument that is not a file and
/// holds `*`, `?` or `[` is a pattern. A folder or pattern without files, or a file of lines without a document, is
/// reported on standard error and yields `Source::Failed`, like any input that cannot be read.
pub(super) fn inputs(places: &[PathBuf], reading: Reading) -> impl Iterator<Item = Input> {
    places.iter().flat_map(|place| files(place)).flat_map(move |file| match file {
        Ok(file) => documents(file, reading),
        Err((name, error)) => one(name, Source::Failed(error)),
    })
}

/// Total size of the files that the arguments name, in bytes; `None` if standard input is among them.
pub(super) fn size(places: &[PathBuf]) -> Option<u64> {
    if places.iter().any(|place| is_stdin(place)) {
        return None;
    }
    let files = places.iter().flat_map(|place| files(place)).flatten();
    Some(files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum())
}

pub(super) type Files = Box<dyn Iterator<Item = Result<PathBuf, (String, io::Error)>>>;

/// The files that an argument names.
pub(super) fn files(place: &Path) -> Files {
    let name = place.to_string_lossy().into_owned();
    if is_stdin(place) || place.is_file() {
        return Box::new(std::iter::once(Ok(place.to_owned())));
    }
    if place.is_dir() {
        return or_nothing(folder(place), name, "the folder has no .json, .ndjson or .jsonl file");
    }
    if !place.exists()
        && name.contains(['*', '?', '['])
        && let Ok(found) = glob::glob(&name)
    {
        let found = found.filter(|path| path.as_ref().is_ok_and(|path| path.is_file()) || path.is_err());
        let files =
            found.map(|path| path.map_err(|error| (error.path().display().to_string(), error.into())));
        return or_nothing(Box::new(files), name, "no file matches this pattern");
    }
    // Opening it later reports the error.
    Box::new(std::iter::once(Ok(place.to_owned())))
}

fn folder(place: &Path) -> Files {
    let entries = WalkDir::new(place).sort_by_file_name().into_iter();
    Box::new(entries.filter_map(|entry| match entry {
        Ok(entry) => (!entry.file_type().is_dir() && is_report(entry.path())).then(|| Ok(entry.into_path())),
        Err(error) => {
            let name = error.path().unwrap_or(Path::new("")).display().to_string();
            Some(Err((name, error.into())))
        }
    }))
}

/// The files, or an error if there are none.
fn or_nothing(files: Files, name: String, problem: &'static str) -> Files {
    let mut files = files.peekable();
    if files.peek().is_none() {
        let error = io::Error::new(io::ErrorKind::NotFound, problem);
        return Box::new(std::iter::once(Err((name, error))));
    }
    Box::new(files)
}

fn is_report(file: &Path) -> bool {
    is_lines(file) || file.extension().is_some_and(|extension| extension == "json")
}

fn is_lines(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "ndjson" || extension == "jsonl")
}

type Inputs = Box<dyn Iterator<Item = Input>>;

fn one(name: String, source: Source) -> Inputs {
    Box::new(std::iter::once(Input { name, line: None, source }))
}

fn documents(file: PathBuf, reading: Reading) -> Inputs {
    let name = file.to_string_lossy().into_owned();
    let max_bytes = reading.max_bytes;
    match (is_stdin(&file), reading.by_line || is_lines(&file)) {
        (false, false) => one(name, Source::File(file)),
        (true, false) => match bounded(&file, max_bytes as u64) {
            Ok(document) => one(name, Source::Bytes(document)),
            Err(error) => one(name, Source::Failed(error)),
        },
        (true, true) => lines(name, Lines::new(BufReader::new(io::stdin()), max_bytes)),
        (false, true) => match File::open(&file) {
            Ok(open) => lines(name, Lines::new(BufReader::new(open), max_bytes)),
            Err(error) => one(name, Source::Failed(error)),
        },
    }
}

fn lines<R: BufRead + 'static>(name: String, lines: Lines<R>) -> Inputs {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return one(name, Source::Failed(no_document()));
    }
    Box::new(lines.map(move |line| match line {
        Ok(Line { number, bytes, .. }) => {
            Input { name: name.clone(), line: Some(number), source: Source::Bytes(bytes) }
        }
        Err(error) => Input { name: name.clone(), line: None, source: Source::Failed(error) },
    }))
}

/// A job of a thread that validates documents.
pub(super) enum InputJob {
    Document(String, Source),
    /// Lines of the file with this name.
    Lines(String, Block),
}

/// The documents of [`inputs`], with files of lines in blocks.
pub(super) fn work(places: &[PathBuf], reading: Reading) -> impl Iterator<Item = InputJob> {
    places.iter().flat_map(|place| files(place)).flat_map(move |file| match file {
        Ok(file) if reading.by_line || is_lines(&file) => blocks(&file, reading.max_bytes),
        Ok(file) => Box::new(
            documents(file, reading).map(|Input { name, source, .. }| InputJob::Document(name, source)),
        ),
        Err((name, error)) => failed(name, error),
    })
}

type InputJobs = Box<dyn Iterator<Item = InputJob>>;

fn failed(name: String, error: io::Error) -> InputJobs {
    Box::new(std::iter::once(InputJob::Document(name, Source::Failed(error))))
}

fn blocks(file: &Path, max_bytes: usize) -> InputJobs {
    let name = file.to_string_lossy().into_owned();
    let reader: Box<dyn Read> = if is_stdin(file) {
        Box::new(io::stdin())
    } else {
        match File::open(file) {
            Ok(file) => Box::new(file),
            Err(error) => return failed(name, error),
        }
    };
    let mut blocks = Blocks::new(reader, max_bytes).peekable();
    if blocks.peek().is_none() {
        return failed(name, no_document());
    }
    Box::new(blocks.map(move |block| match block {
        Ok(block) => InputJob::Lines(name.clone(), block),
        Err(error) => InputJob::Document(name.clone(), Source::Failed(error)),
    }))
}

fn no_document() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the file has no document")
}

/// Reports on standard error that an input cannot be read.
pub(super) fn say_unreadable(name: &str, error: &io::Error) {
    print_message(&format!("cannot read {}: {error}", title(name)));
}
