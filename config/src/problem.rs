//! Problems in a configuration file, with their positions.

use std::fmt;
use std::path::PathBuf;

/// Maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 50;

/// A problem of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named by the caller.
    pub file: String,
    /// Line and column, from 1; `None` if the file can't be read.
    pub place: Option<(usize, usize)>,
    /// The key, such as `upstreams.one.kind`; empty if the file is not TOML.
    pub key: String,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl Problem {
    /// A problem of a whole file.
    pub fn of_file(file: &str, message: String) -> Self {
        Self { file: file.to_owned(), place: None, key: String::new(), message }
    }
}

/// `gatewright.toml:12:3: upstreams.one.kind: …`, or `--provider ollama: …`
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.file)?;
        if let Some((line, column)) = self.place {
            write!(formatter, "{line}:{column}:")?;
        }
        if !self.key.is_empty() {
            write!(formatter, " {}:", self.key)?;
        }
        write!(formatter, " {}", self.message)
    }
}

/// All problems of a configuration file, in the order of the file.
#[derive(Debug)]
pub struct Problems {
    problems: Vec<Problem>,
    files: Vec<PathBuf>,
}

impl Problems {
    /// Sorts them by their place.
    pub fn new(mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.place);
        Self { problems, files: Vec::new() }
    }

    /// Appends the problems of another file.
    pub(super) fn and(mut self, other: Option<Self>) -> Self {
        self.problems.extend(other.into_iter().flat_map(|other| other.problems));
        self
    }

    pub(super) fn naming(self, files: Vec<PathBuf>) -> Self {
        Self { files, ..self }
    }

    /// The files that the configuration refers to, as far as it could be read: keys and certificates. A missing one may be
    /// the problem.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

impl AsRef<[Problem]> for Problems {
    fn as_ref(&self) -> &[Problem] {
        &self.problems
    }
}

/// A line for each problem; only the first ones if there are many.
impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().take(MAX_PROBLEMS).enumerate() {
            let end = if at == 0 { "" } else { "\n" };
            write!(formatter, "{end}{problem}")?;
        }
        match self.problems.len().saturating_sub(MAX_PROBLEMS) {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Problems {}
