//! `gatewright report fmt`.

use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::Validator;

use super::input::{document, is_stdin, refused};
use crate::outcome::{FAILED, Failure, Outcome, USAGE, say};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Write nothing; name the files that are not in canonical form
    #[arg(long)]
    check: bool,
    /// Reports, valid or not, each rewritten in its place; - is standard input, written to standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let validator = Validator::default();
    let mut code = 0;
    for file in &arguments.files {
        match one(file, arguments.check, &validator) {
            Ok(true) => {}
            Ok(false) => {
                say(&format!("{} is not in canonical form", super::input::title(&file.to_string_lossy())));
                code = code.max(FAILED);
            }
            // The others are written all the same.
            Err(Failure::Usage(message)) => {
                say(&message);
                code = USAGE;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(code)
}

/// Whether the file is in canonical form now.
fn one(file: &Path, check: bool, validator: &Validator) -> Result<bool, Failure> {
    let document = document(file, validator)?;
    let canonical = validator.canonical(&document).map_err(|outcome| refused(file, &document, &outcome))?;
    let same = canonical.as_bytes() == document;
    if check {
        return Ok(same);
    }
    // A file that is right already keeps its date.
    if !same || is_stdin(file) {
        super::write(&canonical, Some(file))?;
    }
    Ok(true)
}
