//! Validates many reports on the core's threads.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use gatewright::report::{Outcome, Pool, PoolResult, Source};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::caught;
use crate::interpreter;
use crate::report::ReportValidator;
use crate::report_verdict::{Verdict, verdict};
use crate::waiting::SIGNAL_TICK;

/// Threads that validate documents; see the core's `Pool`.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct ReportPool {
    // Locked only for operations that don't wait, or with the interpreter released.
    pool: Mutex<Pool<(), Outcome>>,
}

/// Index, verdict, and why the document could not be read.
type Fetched<'py> = (usize, Option<Verdict<'py>>, Option<String>);

#[pymethods]
impl ReportPool {
    #[new]
    fn new(py: Python<'_>, validator: &ReportValidator, threads: usize, ordered: bool) -> PyResult<Self> {
        let make = |(): &(), _: &[u8], outcome: Outcome| {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Report);
            outcome
        };
        caught(py, || {
            let pool = Pool::new(&validator.validator, threads, ordered, make)
                .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
            Ok(Self { pool: Mutex::new(pool) })
        })
    }

    /// Submits a document: its bytes or the path of a file. Returns whether there is room for another before a result
    /// is fetched.
    fn submit(&self, py: Python<'_>, document: Option<Vec<u8>>, path: Option<PathBuf>) -> PyResult<bool> {
        let source = match (document, path) {
            (Some(document), _) => Source::Bytes(document),
            (None, path) => Source::File(path.unwrap_or_default()),
        };
        let submit = || {
            let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
            pool.submit((), source);
            pool.has_room()
        };
        caught(py, || Ok(interpreter::detached(py, submit)))
    }

    /// The next result, or nothing if none is pending. Waits with the interpreter released, and handles signals.
    fn fetch<'py>(&self, py: Python<'py>) -> PyResult<Option<Fetched<'py>>> {
        caught(py, || {
            loop {
                let (judged, pending) = interpreter::detached(py, || {
                    let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
                    (pool.fetch(Some(SIGNAL_TICK)), pool.pending())
                });
                match judged {
                    Some(PoolResult { index, result: Ok(outcome), .. }) => {
                        return Ok(Some((index, verdict(py, &outcome)?, None)));
                    }
                    Some(PoolResult { index, result: Err(error), .. }) => {
                        return Ok(Some((index, None, Some(error.to_string()))));
                    }
                    None if pending == 0 => return Ok(None),
                    None => py.check_signals()?,
                }
            }
        })
    }
}
