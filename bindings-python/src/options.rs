//! Options of a client and of a call, between Python's dictionaries and the core. They are generated from
//! `spec/options.json`; values.rs reads the values of each kind.

use gatewright::{ClientBuilder, RequestOptions, SaveOptions, WaitOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::generated::options as generated;

/// Whether the value of a header or query parameter of this name is treated as a secret.
#[pyfunction]
pub(crate) fn is_secret_name(name: &str) -> bool {
    gatewright::is_secret_name(name)
}

/// The idempotency key of a later round of a loop; `round` is counted from 0.
#[pyfunction]
pub(crate) fn key_of_round(key: &str, round: usize) -> String {
    gatewright::key_of_round(key, round)
}

/// A builder with these `settings`, which are named like `Client`'s arguments.
pub(crate) fn configured(settings: &Bound<'_, PyDict>) -> PyResult<ClientBuilder> {
    let mut builder = gatewright::Client::builder();
    for (name, value) in settings {
        if !value.is_none() {
            builder = generated::tell(builder, name.cast::<PyString>()?.to_str()?, &value)?;
        }
    }
    Ok(builder)
}

/// The options of a call, named as in `CallOptions`.
pub(crate) fn call_options(options: &Bound<'_, PyDict>) -> PyResult<RequestOptions> {
    read(options, generated::set)
}

/// The options of a wait, except its callback, named as in `WaitOptions`.
pub(crate) fn wait_options(options: &Bound<'_, PyDict>) -> PyResult<WaitOptions> {
    read(options, generated::set_wait)
}

/// The options for saving a file, named as in `SaveOptions`.
pub(crate) fn save_options(options: &Bound<'_, PyDict>) -> PyResult<SaveOptions> {
    read(options, generated::set_save)
}

/// Options by name; None counts as omitted.
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

/// The options of a call in the form that [`call_options`] reads. secrets: whether to include values that are
/// secret by their name.
pub(crate) fn to_python<'py>(
    py: Python<'py>,
    options: &RequestOptions,
    secrets: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    generated::given(options, &dict, |name| secrets || !gatewright::is_secret_name(name))?;
    Ok(dict)
}
