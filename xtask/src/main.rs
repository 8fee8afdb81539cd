//! Developer commands: `cargo xtask <command>`.

mod codegen;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Gatewright")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generate everything that follows from spec/
    Codegen {
        /// Write nothing; fail and list the files that differ from what would be generated
        #[arg(long)]
        check: bool,
        /// Repository to work on, instead of this one
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Codegen { check, root } => codegen::run(&root.unwrap_or_else(repository), check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "a command-line program reports to its user")]
            {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The repository this program was built from.
fn repository() -> PathBuf {
    let xtask = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().map_or_else(|| xtask.clone(), PathBuf::from)
}
