//! `gatewright report fmt`.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use gatewright::report::Validator;
use serde_json::json;

use super::input::{document, refused, title};
use crate::exit::{Exit, FAILED, Failure, USAGE, print_message};
use crate::json;
use crate::places::{self, is_stdin};

#[derive(Debug, Args)]
pub(super) struct FmtArguments {
    /// Only list the files that are not in canonical form; write nothing
    #[arg(long)]
    check: bool,
    /// With --check, print JSON: an array with an object for each file
    #[arg(long, requires = "check")]
    json: bool,
    /// Reports, valid or not, to rewrite in place; - formats standard input to standard output
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &FmtArguments) -> Exit {
    let validator = Validator::default();
    let mut code = 0;
    let mut results = Vec::new();
    for file in &arguments.files {
        let name = file.to_string_lossy();
        match one(file, arguments.check, &validator) {
            Ok(is_canonical) => {
                results.push(json!({ "file": name, "canonical": is_canonical, "error": null }));
                if is_canonical {
                    continue;
                }
                code = code.max(FAILED);
                if !arguments.json {
                    print_message(&format!("{} is not in canonical form", title(&name)));
                }
            }
            // The remaining files are still formatted.
            Err(Failure::Usage(message)) => {
                print_message(&message);
                results.push(json!({ "file": name, "canonical": null, "error": message }));
                code = USAGE;
            }
            Err(failure) => return Err(failure),
        }
    }
    if arguments.json {
        json::write(&mut io::stdout().lock(), &results)?;
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
