//! What comes with a response besides its body: status, headers, request id, attempts, time taken.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Metadata of one response, shared by its records.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) request_id: Option<String>,
    pub(crate) attempts: u32,
    pub(crate) elapsed: Duration,
}

/// The same, for Python.
#[pyclass(frozen, module = "gatewright")]
pub(crate) struct ResponseInfo {
    metadata: Arc<Metadata>,
}

impl ResponseInfo {
    pub(crate) fn new(metadata: Arc<Metadata>) -> Self {
        Self { metadata }
    }
}

#[pymethods]
impl ResponseInfo {
    /// HTTP status.
    #[getter]
    fn status_code(&self) -> u16 {
        self.metadata.status
    }

    /// Headers by lower-case name; values of a repeated one are joined by `, `.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        headers_to_python(py, &self.metadata.headers)
    }

    /// The gateway's id of this request, if it sent one.
    #[getter]
    fn request_id(&self) -> Option<&str> {
        self.metadata.request_id.as_deref()
    }

    /// Requests it took, retries included.
    #[getter]
    fn attempts(&self) -> u32 {
        self.metadata.attempts
    }

    /// Seconds from the call to the response (of a stream: to its headers).
    #[getter]
    fn elapsed(&self) -> f64 {
        self.metadata.elapsed.as_secs_f64()
    }

    fn __repr__(&self) -> String {
        format!(
            "ResponseInfo(status_code={}, request_id={:?}, attempts={})",
            self.metadata.status,
            self.metadata.request_id.as_deref().unwrap_or("none"),
            self.metadata.attempts
        )
    }
}

fn headers_to_python<'py>(py: Python<'py>, headers: &HeaderMap) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        dict.set_item(name.as_str(), values.join(", "))?;
    }
    Ok(dict)
}
