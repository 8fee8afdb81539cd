//! The check kit: a run in progress, polled for its events.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewright::report::ProtocolReport;
use gatewright::whole_file::write_file;
use gatewright_checkkit::{
    ApiKey, BackgroundRun, CheckKit, Next, Options, RunResult, write_evidence, write_protocols,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{self, caught};
use crate::interpreter;

/// A run on its own threads. Dropping it cancels it.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct CheckRun {
    run: BackgroundRun,
}

#[pymethods]
impl CheckRun {
    /// Begins a run. options: the kit's options as a JSON object. Raises ValueError if the kit rejects them.
    #[new]
    fn new(py: Python<'_>, options: &str, api_key: &str) -> PyResult<Self> {
        let begin = || {
            let key = ApiKey::trimmed(api_key).map_err(|error| error.to_string())?;
            let options = Options::read(options).map_err(|refused| refused.to_string())?;
            let kit = CheckKit::new(options, &key).map_err(|refused| refused.to_string())?;
            BackgroundRun::start(kit).map_err(|error| format!("no thread for the run: {error}"))
        };
        caught(py, || Ok(Self { run: interpreter::detached(py, begin).map_err(PyValueError::new_err)? }))
    }

    /// Whether the run continues, and the next event as JSON, if one arrives within this time.
    fn next(&self, py: Python<'_>, wait_ms: u64) -> PyResult<(bool, Option<String>)> {
        caught(py, || {
            Ok(match interpreter::detached(py, || self.run.next(Duration::from_millis(wait_ms))) {
                Next::Event(event) => {
                    (true, Some(serde_json::to_string(&event).expect("strings and numbers serialise")))
                }
                Next::Pending => (true, None),
                Next::Done => (false, None),
            })
        })
    }

    /// Ends the run early; the report is still complete.
    fn cancel(&self) {
        self.run.cancel();
    }

    /// The report in canonical form, the evidence as a JSON array, the additional checks if there are any, and whether the run
    /// was cut short. Call it once the run is done.
    fn result(&self, py: Python<'_>) -> PyResult<(String, String, Option<String>, bool)> {
        caught(py, || {
            let finished = self.finished(py)?;
            let evidence: Vec<_> = finished.evidence.iter().map(|(_, evidence)| evidence).collect();
            let evidence = serde_json::to_string(&evidence).expect("strings serialise");
            let protocols = finished.protocols.as_ref().map(ProtocolReport::to_json);
            Ok((finished.report.to_json(), evidence, protocols, finished.interrupted))
        })
    }

    /// Writes the report, whole or not at all. Raises OSError.
    #[expect(clippy::needless_pass_by_value, reason = "a path arrives owned")]
    fn write_report(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.write(py, &path, |finished| write_file(&path, finished.report.to_json().as_bytes()))
    }

    /// Writes the additional checks, whole or not at all. Raises OSError.
    #[expect(clippy::needless_pass_by_value, reason = "a path arrives owned")]
    fn write_protocols(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.write(py, &path, |finished| write_protocols(&path, finished.protocols.as_ref()))
    }

    /// Writes one file per piece of evidence, and returns their names. Raises OSError.
    #[expect(clippy::needless_pass_by_value, reason = "a path arrives owned")]
    fn write_evidence(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<String>> {
        self.write(py, &folder, |finished| write_evidence(&folder, &finished.evidence))
    }
}

impl CheckRun {
    fn write<T: Send>(
        &self,
        py: Python<'_>,
        place: &Path,
        write: impl FnOnce(&RunResult) -> io::Result<T> + Send,
    ) -> PyResult<T> {
        caught(py, || {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Check);
            let finished = self.finished(py)?;
            interpreter::detached(py, || write(finished))
                .map_err(|error| PyOSError::new_err(format!("cannot write {}: {error}", place.display())))
        })
    }

    fn finished(&self, py: Python<'_>) -> PyResult<&RunResult> {
        let finished =
            self.run.finished().ok_or_else(|| PyRuntimeError::new_err("the run has not finished"))?;
        finished.map_err(|broke| error::to_python(py, broke))
    }
}
