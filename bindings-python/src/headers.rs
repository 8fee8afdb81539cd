//! Headers for Python.

use http::HeaderMap;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// By lower-case name; values of a repeated one are joined by `, `. Bytes that are not UTF-8 become U+FFFD.
pub(crate) fn headers_to_python<'py>(py: Python<'py>, headers: &HeaderMap) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for name in headers.keys() {
        let values: Vec<_> =
            headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        dict.set_item(name.as_str(), values.join(", "))?;
    }
    Ok(dict)
}

/// Name and value, from a dict that [`headers_to_python`] created and a callback has changed.
pub(crate) fn pairs_of(headers: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    headers.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect()
}
