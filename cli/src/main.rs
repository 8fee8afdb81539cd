//! The gatewright program; all of it is in the library, which the Python and Node packages run too.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gatewright_cli::main(std::env::args_os()))
}
