//! One event of a stream as it was framed, before its data is parsed.

use gatewright::Frame;
use pyo3::prelude::*;

/// An event as the server wrote it, including `[DONE]`, heartbeats and errors.
#[pyclass(frozen, module = "gatewright")]
pub(crate) struct RawEvent {
    frame: Frame,
}

impl RawEvent {
    pub(crate) fn new(frame: Frame) -> Self {
        Self { frame }
    }
}

#[pymethods]
impl RawEvent {
    /// The event's name; None if it has none.
    #[getter]
    fn event(&self) -> Option<&str> {
        self.frame.event.as_deref()
    }

    /// Its data, lines joined; None for a block without any.
    #[getter]
    fn data(&self) -> Option<&str> {
        self.frame.data.as_deref()
    }

    /// The current id.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.frame.id.as_deref()
    }

    /// Seconds that the client should wait before it reconnects.
    #[getter]
    fn retry(&self) -> Option<f64> {
        self.frame.retry.map(|retry| retry.as_secs_f64())
    }

    /// Comments that came before its end.
    #[getter]
    fn comments(&self) -> Vec<String> {
        self.frame.comments.clone()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let Frame { event, data, id, comments, .. } = &self.frame;
        let shown = (event, data, id.as_deref(), self.retry(), comments).into_pyobject(py)?;
        Ok(format!("RawEvent{}", shown.repr()?))
    }
}
