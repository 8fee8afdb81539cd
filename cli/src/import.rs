//! `gatewright import`: converts another gateway's configuration file to one of ours.

mod litellm;
mod writing;

#[cfg(test)]
pub(crate) use self::litellm::mixed;

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::exit::{Exit, Failure, print_message};
use crate::places;

/// Maximum size of a configuration that is read, in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    #[command(subcommand)]
    command: ImportCommand,
}

#[derive(Debug, Subcommand)]
enum ImportCommand {
    /// Convert a config.yaml of LiteLLM's proxy
    ///
    /// Settings without a counterpart are listed on standard error. Keys written in the file itself are not copied: the result
    /// refers to variables instead.
    Litellm(ImportSource),
}

#[derive(Debug, Args)]
struct ImportSource {
    /// The configuration file of the other gateway; - means standard input
    file: PathBuf,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &ImportArguments) -> Exit {
    let ImportCommand::Litellm(source) = &arguments.command;
    places::keep(&[("the file", Some(&source.file))], source.out.as_deref())?;
    let text = read(&source.file)?;
    let imported = litellm::import(&text, &name_of(&source.file))
        .map_err(|why| Failure::Usage(format!("{}: {why}", source.file.display())))?;
    places::write(&imported.text, source.out.as_deref())?;
    for note in &imported.notes {
        print_message(note);
    }
    Ok(0)
}

/// The name of the source in the result.
fn name_of(file: &Path) -> String {
    if places::is_stdin(file) {
        return "standard input".to_owned();
    }
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn read(file: &Path) -> Result<String, Failure> {
    let cannot = |why: String| Failure::Usage(format!("cannot read {}: {why}", file.display()));
    let mut text = String::new();
    let read = if places::is_stdin(file) {
        io::stdin().lock().take(MAX_FILE_BYTES + 1).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text))
    };
    read.map_err(|error| cannot(error.to_string()))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(cannot(format!("it is larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}
