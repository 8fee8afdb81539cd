//! The core's error as a Python exception of the class generated for its kind.

use std::sync::Arc;

use gatewright::{Error, ErrorKind};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::callbacks;
use crate::document::Document;
use crate::record;
use crate::response::{Metadata, ResponseInfo};

/// The exception: its message, and what the gateway reported about the failure as attributes. If a callback raised
/// an exception, that one.
pub(crate) fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    callbacks::raised_within(py, error).unwrap_or_else(|| build(py, error).unwrap_or_else(|failure| failure))
}

/// Runs code that may raise within the interpreter; its panics raise InternalError.
pub(crate) fn caught<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    gatewright::contain(|| Ok(work())).unwrap_or_else(|broke| Err(to_python(py, &broke)))
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
    let partial = error.partial().map(|partial| Document::parse_bytes(partial)).transpose();
    let partial = partial.map_err(pyo3::exceptions::PyValueError::new_err)?;
    details.set_item("partial", partial.map(|partial| record::to_python(py, partial)).transpose()?)?;
    if let Some(received) = error.received() {
        let class = py.import("gatewright._received")?.getattr("Received")?;
        details.set_item("received", class.call1((received.events, received.bytes))?)?;
    }
    details.set_item("response", response(error))?;
    let exception = class.call((error.message(),), Some(&details))?;
    // The exception's text names the method as callers write it; `operation` remains the id.
    if let Some(operation) = error.operation().and_then(gatewright::runtime::operation_by_id) {
        exception.setattr("_method", operation.qualified_name())?;
    }
    let raised = PyErr::from_value(exception);
    if let Some(source) = std::error::Error::source(error) {
        raised.set_cause(py, Some(cause(py, source)?));
    }
    Ok(raised)
}

/// The response behind the error, if there was one.
fn response(error: &Error) -> Option<ResponseInfo> {
    let metadata = Metadata {
        status: error.status()?,
        headers: error.headers()?.clone(),
        request_id: error.request_id().map(str::to_owned),
        attempts: error.attempts(),
        elapsed: error.elapsed()?,
    };
    Some(ResponseInfo::new(Arc::new(metadata)))
}

/// The body as parsed JSON in plain dicts and lists, or as text if it isn't JSON or would cost far more than a
/// typical error; as bytes if it isn't UTF-8.
fn body<'py>(py: Python<'py>, error: &Error) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(body) = error.body() else { return Ok(None) };
    if gatewright::is_light(body)
        && let Ok(value) = record::parse_plain(py, body)
    {
        return Ok(Some(value));
    }
    Ok(Some(match std::str::from_utf8(body) {
        Ok(text) => text.into_pyobject(py)?.into_any(),
        Err(_) => PyBytes::new(py, body).into_any(),
    }))
}

/// The cause of the error, as the exception that Python's own calls would raise: with the system's error number, if
/// it has one, and therefore of the corresponding class.
fn cause(py: Python<'_>, source: &(dyn std::error::Error + 'static)) -> PyResult<PyErr> {
    let number = source.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
    let Some(number) = number else { return Ok(PyOSError::new_err(chain(source))) };
    let text = py.import("os")?.getattr("strerror")?.call1((number,))?.unbind();
    Ok(PyOSError::new_err((number, text)))
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
