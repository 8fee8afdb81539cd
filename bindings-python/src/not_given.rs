//! `NOT_GIVEN`: the default of every optional argument, distinct from None, which is sent.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The class of the one value `NOT_GIVEN`.
#[pyclass(frozen, module = "gatewright")]
pub(crate) struct NotGiven;

#[pymethods]
impl NotGiven {
    #[new]
    fn the_one(py: Python<'_>) -> PyResult<Py<Self>> {
        Self::instance(py)
    }

    #[expect(clippy::unused_self, reason = "a slot of the type")]
    fn __bool__(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "a slot of the type")]
    fn __repr__(&self) -> &'static str {
        "NOT_GIVEN"
    }

    /// Pickled by name, so that it stays the same value after a round trip.
    #[expect(clippy::unused_self, reason = "a slot of the type")]
    fn __reduce__(&self) -> &'static str {
        "NOT_GIVEN"
    }
}

impl NotGiven {
    /// `NOT_GIVEN` itself.
    pub(crate) fn instance(py: Python<'_>) -> PyResult<Py<Self>> {
        static INSTANCE: PyOnceLock<Py<NotGiven>> = PyOnceLock::new();
        Ok(INSTANCE.get_or_try_init(py, || Py::new(py, Self))?.clone_ref(py))
    }
}
