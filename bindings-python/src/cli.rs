//! The `gatewright` program, for the console script.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the program with these arguments, the first its own name; returns the exit code.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| gatewright_cli::main(arguments))
}
