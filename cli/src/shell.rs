//! `gatewright completions` and `gatewright man`: what shells and manuals need to know about the program.

mod script;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::{Exit, Failure, print_message};

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// Folder for the pages, one per command, such as man1; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn completions(arguments: &Completions, program: Command) -> Exit {
    let mut out = io::stdout().lock();
    out.write_all(script::script(arguments.shell, program).as_bytes())?;
    out.flush()?;
    Ok(0)
}

pub(crate) fn manual(arguments: &Manual, program: Command) -> Exit {
    let folder = &arguments.folder;
    // A page states its release, not its date, so that it is reproducible.
    let program = program.disable_help_subcommand(true);
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program, folder))
        .map_err(|error| Failure::Usage(format!("cannot write to {}: {error}", folder.display())))?;
    print_message(&format!("wrote the pages to {}", folder.display()));
    Ok(0)
}
