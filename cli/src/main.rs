//! The `gatewright` program. The library does all the work; the Python and Node packages run the same library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gatewright_cli::main(std::env::args_os()))
}
