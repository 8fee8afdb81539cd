//! The `gatewright` program, for the console script.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::error::caught;

/// Runs the program with these arguments, the first its own name; returns the exit code. folders: called for the folders
/// where the server's package may have put its program. A panic raises InternalError.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python passes it so")]
pub(crate) fn run_program(py: Python<'_>, arguments: Vec<OsString>, folders: Py<PyAny>) -> PyResult<u8> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Program);
        let folders = || -> Vec<PathBuf> {
            // Without them, the program is only searched on PATH.
            Python::attach(|py| folders.call0(py)?.extract(py)).unwrap_or_default()
        };
        Ok(py.detach(|| gatewright_cli::main_beside(arguments, folders)))
    })
}
