//! The `gatewright` program, for the console script.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::error::caught;

/// Runs the program with these arguments, the first its own name; returns the exit code. A panic raises InternalError.
#[pyfunction]
pub(crate) fn run_program(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Program);
        Ok(py.detach(|| gatewright_cli::main(arguments)))
    })
}
