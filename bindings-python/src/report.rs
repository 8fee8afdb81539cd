//! Reports: takes bytes, and returns verdicts as tuples and pages as text.

use std::path::PathBuf;

use gatewright::report::{Diff, EvidenceFile, Outcome, Thresholds, Validator, junit};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::caught;
use crate::interpreter;
use crate::report_verdict::{Verdict, verdict};

/// Length up to which a document is validated without releasing the interpreter, in bytes: that takes no longer than
/// getting it back from other threads.
const SHORT_BYTES: usize = 64 << 10;

/// Whether bytes are a blank line.
#[pyfunction]
pub(crate) fn is_blank_line(line: &[u8]) -> bool {
    gatewright::report::is_blank_line(line)
}

/// A validator with its settings. Keep it, since creating one compiles the schema.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct ReportValidator {
    pub(crate) validator: Validator,
}

/// The output, or why there is none: on one line, with the verdict.
type Made<'py> = (Option<String>, Option<(String, Option<Verdict<'py>>)>);

#[pymethods]
impl ReportValidator {
    #[new]
    #[pyo3(signature = (*, strict=false, own_names=false, models=None, kit_name=None, max_bytes=None, max_findings=None))]
    fn new(
        py: Python<'_>,
        strict: bool,
        own_names: bool,
        models: Option<Vec<String>>,
        kit_name: Option<String>,
        max_bytes: Option<usize>,
        max_findings: Option<usize>,
    ) -> PyResult<Self> {
        let mut builder = Validator::builder().strict(strict).own_names(own_names);
        if let Some(models) = models {
            builder = builder.models(models);
        }
        if let Some(name) = kit_name {
            builder = builder.kit_name(name);
        }
        if let Some(max_bytes) = max_bytes {
            builder = builder.max_bytes(max_bytes);
        }
        if let Some(max_findings) = max_findings {
            builder = builder.max_findings(max_findings);
        }
        caught(py, || Ok(Self { validator: interpreter::detached(py, || builder.build()) }))
    }

    /// Largest document that is read, in bytes.
    #[getter]
    fn max_bytes(&self) -> usize {
        self.validator.max_bytes()
    }

    /// The verdict; nothing if the document is clean.
    fn validate<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<Verdict<'py>>> {
        within(py, || {
            let document = document.as_bytes();
            let check = || self.validator.check(document);
            let is_short = document.len() <= SHORT_BYTES;
            verdict(py, &if is_short { check() } else { interpreter::detached(py, check) })
        })
    }

    /// The page of a document. evidence: folder with the check kit's evidence; page: where the page will be, for links;
    /// protocols: the additional checks beside a report.
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]
    fn html<'py>(
        &self,
        py: Python<'py>,
        document: &Bound<'py, PyBytes>,
        evidence: Option<PathBuf>,
        page: Option<PathBuf>,
        protocols: Option<&Bound<'py, PyBytes>>,
    ) -> PyResult<Made<'py>> {
        within(py, || {
            let evidence = match evidence {
                Some(folder) => {
                    let files =
                        interpreter::detached(py, || EvidenceFile::read_folder(&folder, page.as_deref()));
                    files.map_err(|error| PyOSError::new_err(error.to_string()))?
                }
                None => Vec::new(),
            };
            let (document, protocols) = (document.as_bytes(), protocols.map(PyBytesMethods::as_bytes));
            made(py, interpreter::detached(py, || self.validator.html(document, &evidence, protocols)))
        })
    }

    /// JUnit XML.
    fn junit<'py>(&self, py: Python<'py>, document: &Bound<'py, PyBytes>) -> PyResult<Made<'py>> {
        within(py, || {
            let document = document.as_bytes();
            let read = || self.validator.read(document).map(|report| junit(&report));
            made(py, interpreter::detached(py, read))
        })
    }

    /// The failed checks as a SARIF log. path: the name of the document in it.
    fn sarif<'py>(&self, py: Python<'py>, document: &Bound<'py, PyBytes>, path: &str) -> PyResult<Made<'py>> {
        within(py, || {
            let document = document.as_bytes();
            made(py, interpreter::detached(py, || self.validator.sarif(document, path)))
        })
    }

    /// Workflow commands of GitHub Actions for the failed checks.
    fn annotations<'py>(&self, py: Python<'py>, document: &Bound<'py, PyBytes>) -> PyResult<Made<'py>> {
        within(py, || {
            let document = document.as_bytes();
            made(py, interpreter::detached(py, || self.validator.annotations(document)))
        })
    }

    /// The canonical form.
    fn canonical<'py>(&self, py: Python<'py>, document: &Bound<'py, PyBytes>) -> PyResult<Made<'py>> {
        within(py, || {
            let document = document.as_bytes();
            made(py, interpreter::detached(py, || self.validator.canonical(document)))
        })
    }

    /// The comparison of two reports: JSON text, or a page. thresholds: percent and milliseconds.
    fn diff<'py>(
        &self,
        py: Python<'py>,
        old: &Bound<'py, PyBytes>,
        new: &Bound<'py, PyBytes>,
        thresholds: (u64, u64),
        as_html: bool,
    ) -> PyResult<Made<'py>> {
        let (old, new) = (old.as_bytes(), new.as_bytes());
        let thresholds = Thresholds { percent: thresholds.0, ms: thresholds.1 };
        within(py, || {
            let text = interpreter::detached(py, || {
                let (old, new) = (self.validator.read(old)?, self.validator.read(new)?);
                let diff = Diff::of(&old, &new, thresholds);
                Ok(if as_html { diff.to_html() } else { diff.to_json() })
            });
            made(py, text)
        })
    }
}

/// Runs work on a report; a panic raises InternalError.
fn within<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Report);
        work()
    })
}

fn made(py: Python<'_>, text: Result<String, Box<Outcome>>) -> PyResult<Made<'_>> {
    Ok(match text {
        Ok(text) => (Some(text), None),
        Err(outcome) => (None, Some((outcome.summary(), verdict(py, &outcome)?))),
    })
}
