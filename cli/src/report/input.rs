//! Where reports come from: files, folders, patterns, standard input, one document each or one per line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use gatewright::report::{Line, Lines, Outcome, Report, Source, Validator};
use walkdir::WalkDir;

use crate::outcome::{Failure, say};

/// A document, and what to call it.
pub(super) struct Input {
    /// File or folder as it was named, with the way inside a folder; `-` for standard input.
    pub(super) name: String,
    /// Line of the file on which it begins, where that holds one document per line.
    pub(super) line: Option<usize>,
    pub(super) source: Source,
}

pub(super) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// What people call an input in text.
pub(super) fn title(name: &str) -> &str {
    if name == "-" { "<stdin>" } else { name }
}

/// A file's bytes. Errors: it cannot be read, or has more than `max_bytes`.
pub(super) fn read_file(file: &Path, max_bytes: u64) -> Result<Vec<u8>, Failure> {
    let failure = |problem: &dyn std::fmt::Display| {
        Failure::Usage(format!("cannot read {}: {problem}", file.display()))
    };
    let bytes = bounded(file, max_bytes).map_err(|error| failure(&error))?;
    if bytes.len() as u64 > max_bytes {
        return Err(failure(&format!("it has more than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// The bytes of a file or of standard input; of one over the bound just enough to be refused.
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

/// The document of one file, for commands that need no report of it.
pub(super) fn document(file: &Path, validator: &Validator) -> Result<Vec<u8>, Failure> {
    bounded(file, validator.max_bytes() as u64)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", file.display())))
}

/// The valid report of one file. What is wrong with one that is not goes to standard error.
pub(crate) fn report(file: &Path, validator: &Validator) -> Result<Report, Failure> {
    let document = document(file, validator)?;
    validator.read(&document).map_err(|outcome| refused(file, &document, &outcome))
}

/// Says what is wrong with a document, as `validate` does, and makes that the end of the command.
pub(super) fn refused(file: &Path, document: &[u8], outcome: &Outcome) -> Failure {
    let name = file.to_string_lossy();
    let name = title(&name);
    let findings = outcome.to_text(name, document, super::colour(&io::stderr()));
    Failure::Usage(format!("{name} is no valid report\n{}", findings.trim_end()))
}

/// What `inputs` reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Every file holds one document per line, whatever its name.
    pub(super) by_line: bool,
    /// Largest document, in bytes.
    pub(super) max_bytes: usize,
}

/// All documents that the arguments name, in their order; in folders by name. Nothing is opened before its turn.
///
/// A folder stands for the files below it that end in `.json`, `.ndjson` or `.jsonl`; an argument that is no file and
/// holds `*`, `?` or `[` is a pattern. A folder or pattern without any file, and a file of lines without any document, is
/// said on standard error, and `Source::Failed` like all that cannot be read.
pub(super) fn inputs(places: &[PathBuf], reading: Reading) -> impl Iterator<Item = Input> {
    places.iter().flat_map(|place| files(place)).flat_map(move |file| match file {
        Ok(file) => documents(file, reading),
        Err((name, error)) => one(name, Source::Failed(error)),
    })
}

/// Bytes of all files that the arguments name; none where standard input is among them, whose end nobody knows.
pub(super) fn size(places: &[PathBuf]) -> Option<u64> {
    if places.iter().any(|place| is_stdin(place)) {
        return None;
    }
    let files = places.iter().flat_map(|place| files(place)).flatten();
    Some(files.filter_map(|file| file.metadata().ok()).map(|found| found.len()).sum())
}

pub(super) type Files = Box<dyn Iterator<Item = Result<PathBuf, (String, io::Error)>>>;

/// The files that an argument stands for.
pub(super) fn files(place: &Path) -> Files {
    let name = place.to_string_lossy().into_owned();
    if is_stdin(place) || place.is_file() {
        return Box::new(std::iter::once(Ok(place.to_owned())));
    }
    if place.is_dir() {
        return or_nothing(folder(place), name, "no .json, .ndjson or .jsonl file in this folder");
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
    // Opening it tells what is wrong.
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

/// The files, or, if there are none, that.
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
        let error = io::Error::new(io::ErrorKind::UnexpectedEof, "no document in this file");
        return one(name, Source::Failed(error));
    }
    Box::new(lines.map(move |line| match line {
        Ok(Line { number, bytes, .. }) => {
            Input { name: name.clone(), line: Some(number), source: Source::Bytes(bytes) }
        }
        Err(error) => Input { name: name.clone(), line: None, source: Source::Failed(error) },
    }))
}

/// Says that an input cannot be read.
pub(super) fn say_unreadable(name: &str, error: &io::Error) {
    say(&format!("cannot read {}: {error}", title(name)));
}
