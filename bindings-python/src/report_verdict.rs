//! Verdicts as Python values: none for a clean document, which most are, otherwise one tuple per finding.

use gatewright::report::{Outcome, Violation};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// The members of `report.Outcome`, each finding with those of `report.Violation`.
pub(crate) type Verdict<'py> = (bool, Bound<'py, PyList>, Bound<'py, PyList>, usize, usize);

/// A verdict; nothing if the document is clean.
pub(crate) fn verdict<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Option<Verdict<'py>>> {
    if outcome.is_clean() {
        return Ok(None);
    }
    let (violations, advisories) = (findings(py, &outcome.violations)?, findings(py, &outcome.advisories)?);
    Ok(Some((outcome.valid, violations, advisories, outcome.more_violations, outcome.more_advisories)))
}

fn findings<'py>(py: Python<'py>, findings: &[Violation]) -> PyResult<Bound<'py, PyList>> {
    let tuples: Vec<_> = findings.iter().map(|finding| members(py, finding)).collect::<PyResult<_>>()?;
    PyList::new(py, tuples)
}

fn members<'py>(py: Python<'py>, finding: &Violation) -> PyResult<Bound<'py, PyTuple>> {
    let Violation { pointer, line, column, rule, property, expected, found, message, section, .. } = finding;
    (pointer, line, column, rule, property, expected, found, message, section).into_pyobject(py)
}
