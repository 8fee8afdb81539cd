//! The `gatewright` program with all its commands, under another name: wheel and tarball of the client have a `gatewright`
//! of their own, which starts this one for the commands of a gateway.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gatewright_cli::main(std::env::args_os()))
}
