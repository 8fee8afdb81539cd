//! Options of a client and of a call, between Python's dictionaries and the core. What they are is generated from
//! `spec/options.json`; how a value of a kind is read is in values.rs.

use gatewright::{ClientBuilder, RequestOptions, SaveOptions, WaitOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::generated::options as generated;

/// Whether the value of a header or query parameter of this name is taken for a secret.
#[pyfunction]
pub(crate) fn is_secret_name(name: &str) -> bool {
    gatewright::is_secret_name(name)
}

/// A builder told what `settings` say; their names are those of `Client`'s arguments.
pub(crate) fn configured(settings: &Bound<'_, PyDict>) -> PyResult<ClientBuilder> {
    let mut builder = gatewright::Client::builder();
    for (name, value) in settings {
        if !value.is_none() {
            builder = generated::tell(builder, name.cast::<PyString>()?.to_str()?, &value)?;
        }
    }
    Ok(builder)
}

/// The options of a call; their names are those of `CallOptions`.
pub(crate) fn call_options(options: &Bound<'_, PyDict>) -> PyResult<RequestOptions> {
    read(options, generated::set)
}

/// The options of a wait, except its callback; their names are those of `WaitOptions`.
pub(crate) fn wait_options(options: &Bound<'_, PyDict>) -> PyResult<WaitOptions> {
    read(options, generated::set_wait)
}

/// The options of saving a file; their names are those of `SaveOptions`.
pub(crate) fn save_options(options: &Bound<'_, PyDict>) -> PyResult<SaveOptions> {
    read(options, generated::set_save)
}

/// Options by their names; None is as if it were left out.
fn read<T: Default>(
    options: &Bound<'_, PyDict>,
    set: impl Fn(&mut T, &str, &Bound<'_, PyAny>) -> PyResult<()>,
) -> PyResult<T> {
    let mut read = T::default();
    for (name, value) in options {
        if !value.is_none() {
            set(&mut read, name.cast::<PyString>()?.to_str()?, &value)?;
        }
    }
    Ok(read)
}

/// The options of a call as [`call_options`] reads them. secrets: whether what is secret by its name goes along.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    options: &RequestOptions,
    secrets: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    generated::given(options, &dict, |name| secrets || !gatewright::is_secret_name(name))?;
    Ok(dict)
}
