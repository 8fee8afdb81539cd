//! The report validator: bytes in, the verdict as a record out.

use gatewright::report::Validator;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::interpreter;
use crate::record;

/// A validator with its settings; made to be kept, since it compiles the schema.
#[pyclass(frozen, module = "gatewright._native")]
pub(crate) struct ReportValidator {
    validator: Validator,
}

#[pymethods]
impl ReportValidator {
    #[new]
    #[pyo3(signature = (*, strict=false, models=None, kit_name=None, max_bytes=None))]
    fn new(
        py: Python<'_>,
        strict: bool,
        models: Option<Vec<String>>,
        kit_name: Option<String>,
        max_bytes: Option<usize>,
    ) -> Self {
        let mut builder = Validator::builder().strict(strict);
        if let Some(models) = models {
            builder = builder.models(models);
        }
        if let Some(name) = kit_name {
            builder = builder.kit_name(name);
        }
        if let Some(max_bytes) = max_bytes {
            builder = builder.max_bytes(max_bytes);
        }
        Self { validator: interpreter::detached(py, || builder.build()) }
    }

    /// The verdict in plain dicts and lists: valid, violations, advisories.
    fn validate<'py>(&self, py: Python<'py>, document: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyAny>> {
        let document = document.as_bytes();
        let outcome = interpreter::detached(py, || self.validator.check(document).to_json());
        record::parse_plain(py, outcome.as_bytes())
    }
}
