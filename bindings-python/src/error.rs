//! The core's one error as a Python exception of the class generated for its kind.

use gatewright::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::record;

/// The exception: message, and what the gateway said about the failure as attributes.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

/// The same, for a kind and message of the binding's own.
pub(crate) fn of_kind(py: Python<'_>, kind: ErrorKind, message: &str) -> PyErr {
    to_python(py, &Error::new(kind, message))
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let class = py.import("gatewright.generated.errors")?.getattr(error.kind().class())?;
    let details = PyDict::new(py);
    details.set_item("status_code", error.status())?;
    details.set_item("request_id", error.request_id())?;
    details.set_item("code", error.code())?;
    details.set_item("param", error.param())?;
    details.set_item("type", error.error_type())?;
    details.set_item("retry_after", error.retry_after().map(|delay| delay.as_secs_f64()))?;
    details.set_item("body", body(py, error)?)?;
    details.set_item("operation", error.operation())?;
    details.set_item("attempts", error.attempts())?;
    let violations = serde_json::to_vec(error.violations()).expect("strings serialise");
    details.set_item("violations", record::parse_plain(py, &violations)?)?;
    let exception = class.call((error.message(),), Some(&details))?;
    let raised = PyErr::from_value(exception);
    if let Some(source) = std::error::Error::source(error) {
        raised.set_cause(py, Some(pyo3::exceptions::PyOSError::new_err(chain(source))));
    }
    Ok(raised)
}

/// The body as parsed JSON in plain dicts and lists, else as text; what is not UTF-8 as bytes.
fn body<'py>(py: Python<'py>, error: &Error) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(body) = error.body() else { return Ok(None) };
    Ok(Some(match (record::parse_plain(py, body), std::str::from_utf8(body)) {
        (Ok(value), _) => value,
        (Err(_), Ok(text)) => text.into_pyobject(py)?.into_any(),
        (Err(_), Err(_)) => PyBytes::new(py, body).into_any(),
    }))
}

/// A cause and its causes, on one line.
fn chain(source: &dyn std::error::Error) -> String {
    let mut text = source.to_string();
    let mut next = source.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
