//! Metadata of a response: status, headers, request id, attempts, time taken.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyType};

use crate::headers::headers_to_python;

/// Metadata of one response, shared by its record and its error.
#[derive(Debug, PartialEq)]
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

/// The parts of a pickle: status, headers as name and value, request id, attempts, seconds.
type Parts<'py> = (u16, Vec<(String, Bound<'py, PyBytes>)>, Option<String>, u32, f64);

#[pymethods]
impl ResponseInfo {
    /// From the parts that `__reduce__` returns.
    #[new]
    fn from_parts(
        status: u16,
        headers: Vec<(String, Bound<'_, PyBytes>)>,
        request_id: Option<String>,
        attempts: u32,
        elapsed: f64,
    ) -> PyResult<Self> {
        let mut read = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let refused = || PyValueError::new_err(format!("{name:?} is not a header name"));
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| refused())?;
            read.append(HeaderName::try_from(&name).map_err(|_| refused())?, value);
        }
        let elapsed =
            Duration::try_from_secs_f64(elapsed).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self::new(Arc::new(Metadata { status, headers: read, request_id, attempts, elapsed })))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, Parts<'py>) {
        let Metadata { status, headers, request_id, attempts, elapsed } = &*slf.get().metadata;
        let pairs = headers
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), PyBytes::new(slf.py(), value.as_bytes())));
        let parts = (*status, pairs.collect(), request_id.clone(), *attempts, elapsed.as_secs_f64());
        (slf.get_type(), parts)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| *self.metadata == *other.get().metadata)
    }

    /// HTTP status.
    #[getter]
    fn status_code(&self) -> u16 {
        self.metadata.status
    }

    /// Headers by lower-case name; the values of a repeated header are joined by `, `.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        headers_to_python(py, &self.metadata.headers)
    }

    /// The gateway's id of this request, if it sent one.
    #[getter]
    fn request_id(&self) -> Option<&str> {
        self.metadata.request_id.as_deref()
    }

    /// Number of requests, including retries.
    #[getter]
    fn attempts(&self) -> u32 {
        self.metadata.attempts
    }

    /// Seconds from the call to the response; for a stream, to its headers.
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
