//! The `gatewright` program, run inside the Node process.

use std::ffi::OsString;

use napi_derive::napi;

/// Runs the program with the arguments after its name and returns its exit code. Blocks until it is done; signals
/// keep their default meaning unless the program handles them.
#[napi(catch_unwind)]
pub(crate) fn run_program(arguments: Vec<String>) -> u8 {
    let name = std::iter::once(OsString::from("gatewright"));
    gatewright_cli::main(name.chain(arguments.into_iter().map(OsString::from)))
}
