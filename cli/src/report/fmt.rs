//! `gatewright report fmt`.

use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::Validator;

use super::input::{document, refused, title};
use crate::exit::{Exit, FAILED, Failure, USAGE, print_message};
use crate::places::{self, is_stdin};

#[derive(Debug, Args)]
pub(super) struct FmtArguments {
    /// Only list the files that are not in canonical form; write nothing
    #[arg(long)]
    check: bool,
    /// Reports, valid or not, to rewrite in place; - formats standard input to standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &FmtArguments) -> Exit {
    let validator = Validator::default();
    let mut code = 0;
    for file in &arguments.files {
        match one(file, arguments.check, &validator) {
            Ok(true) => {}
            Ok(false) => {
                print_message(&format!("{} is not in canonical form", title(&file.to_string_lossy())));
                code = code.max(FAILED);
            }
            // The remaining files are still formatted.
            Err(Failure::Usage(message)) => {
                print_message(&message);
                code = USAGE;
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(code)
}

/// Formats one file. Returns whether it is in canonical form now.
fn one(file: &Path, check: bool, validator: &Validator) -> Result<bool, Failure> {
    let document = document(file, validator)?;
    let canonical = validator.canonical(&document).map_err(|outcome| refused(file, &document, &outcome))?;
    let same = canonical.as_bytes() == document;
    if check {
        return Ok(same);
    }
    // A file already in canonical form keeps its modification time.
    if !same || is_stdin(file) {
        places::write(&canonical, Some(file))?;
    }
    Ok(true)
}
