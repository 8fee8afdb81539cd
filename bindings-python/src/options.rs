//! What a caller says about a client and about one call: from Python's keyword arguments to the core's options.

use std::time::Duration;

use gatewright::{ClientBuilder, RequestOptions, time_of_seconds};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::not_given::NotGiven;
use crate::serialize;

/// Whether the value of a header or query parameter of this name is taken for a secret.
#[pyfunction]
pub(crate) fn is_secret_name(name: &str) -> bool {
    gatewright::is_secret_name(name)
}

/// A builder told what `settings` say; their names are those of `Client`'s arguments.
pub(crate) fn configured(settings: &Bound<'_, PyDict>) -> PyResult<ClientBuilder> {
    let mut builder = gatewright::Client::builder();
    for (name, value) in settings {
        let name = name.cast::<PyString>()?.to_str()?;
        if value.is_none() {
            continue;
        }
        let seconds = || seconds(name, &value);
        let text = || value.extract::<String>();
        builder = match name {
            "base_url" => builder.base_url(text()?),
            "timeout" => builder.timeout(seconds()?),
            "connect_timeout" => builder.connect_timeout(seconds()?),
            "first_byte_timeout" => builder.first_byte_timeout(seconds()?),
            "idle_timeout" => builder.idle_timeout(seconds()?),
            "event_timeout" => builder.event_timeout(seconds()?),
            "max_retries" => builder.max_retries(count(name, &value)?),
            "max_body_bytes" => builder.max_body_bytes(count(name, &value)?),
            "max_connections" => builder.max_connections(count(name, &value)?),
            "pool_timeout" => builder.pool_timeout(seconds()?),
            "max_idle_connections" => builder.max_idle_connections(count(name, &value)?),
            "idle_connection_timeout" => builder.idle_connection_timeout(seconds()?),
            "proxy" => match value.cast::<PyBool>() {
                // False: none, whatever the environment says.
                Ok(flag) if !flag.is_true() => builder.no_proxy(),
                _ => builder.proxy(text()?),
            },
            "ca_bundle" => builder.ca_bundle(path(&value)?),
            "client_certificate" => builder.client_certificate(path(&value)?),
            "default_headers" => builder.default_headers(read_pairs(&to_dict(value)?)?),
            "default_query" => builder.default_query(read_pairs(&to_dict(value)?)?),
            "validate" => builder.validate(value.extract()?),
            "user_agent" => builder.user_agent(text()?),
            _ => return Err(unknown(name)),
        };
    }
    Ok(builder)
}

/// The options of a call; their names are those of `CallOptions`.
pub(crate) fn call_options(options: &Bound<'_, PyDict>) -> PyResult<RequestOptions> {
    let mut read = RequestOptions::default();
    for (name, value) in options {
        let name = name.cast::<PyString>()?.to_str()?;
        if value.is_none() {
            continue;
        }
        match name {
            "timeout" => read.timeout = Some(seconds(name, &value)?),
            "first_byte_timeout" => read.first_byte_timeout = Some(seconds(name, &value)?),
            "idle_timeout" => read.idle_timeout = Some(seconds(name, &value)?),
            "event_timeout" => read.event_timeout = Some(seconds(name, &value)?),
            "max_retries" => read.max_retries = Some(count(name, &value)?),
            "extra_headers" => read.extra_headers = read_pairs(&to_dict(value)?)?,
            "extra_query" => read.extra_query = read_pairs(&to_dict(value)?)?,
            "extra_body" => {
                let members = serialize::to_json(&value)?;
                read.extra_body =
                    Some(serde_json::from_slice(&members).map_err(|error| {
                        PyValueError::new_err(format!("extra_body cannot be sent: {error}"))
                    })?);
            }
            "idempotency_key" => read.idempotency_key = Some(value.extract()?),
            "validate" => read.validate = Some(value.extract()?),
            _ => return Err(unknown(name)),
        }
    }
    Ok(read)
}

fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))
}

fn path(value: &Bound<'_, PyAny>) -> PyResult<std::path::PathBuf> {
    value.extract()
}

fn to_dict(mapping: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyDict>> {
    match mapping.cast_into::<PyDict>() {
        Ok(dict) => Ok(dict),
        Err(other) => {
            let mapping = other.into_inner().cast_into::<PyMapping>()?;
            let dict = PyDict::new(mapping.py());
            dict.update(&mapping)?;
            Ok(dict)
        }
    }
}

/// Parameters as text. None and NOT_GIVEN are left out; a list repeats the name.
pub(crate) fn read_pairs(parameters: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let mut pairs = Vec::with_capacity(parameters.len());
    for (name, value) in parameters {
        let name: String = name.extract()?;
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for element in value.try_iter()? {
                pairs.push((name.clone(), parameter_text(&name, &element?)?));
            }
        } else if !value.is_none() && !value.is_instance_of::<NotGiven>() {
            let text = parameter_text(&name, &value)?;
            pairs.push((name, text));
        }
    }
    Ok(pairs)
}

fn parameter_text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    Err(PyTypeError::new_err(format!(
        "{name}: a parameter is text or a number, not {}",
        value.get_type().name()?
    )))
}

/// Seconds from Python; infinity means no limit.
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let number = value.extract().map_err(|refused: PyErr| {
        let py = value.py();
        if refused.is_instance_of::<PyOverflowError>(py) {
            return PyValueError::new_err(format!(
                "{name} is a number of seconds above 0, not one of that size"
            ));
        }
        match value.get_type().name() {
            Ok(kind) => PyTypeError::new_err(format!("{name} is a number of seconds, not {kind}")),
            Err(error) => error,
        }
    })?;
    duration(name, number)
}

/// A whole number from Python.
pub(crate) fn count<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|refused: PyErr| {
        if refused.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!(
                "{name} is a whole number from 0, and not too large a one"
            ));
        }
        match value.get_type().name() {
            Ok(kind) => PyTypeError::new_err(format!("{name} is a whole number from 0, not {kind}")),
            Err(error) => error,
        }
    })
}

/// As [`seconds`], of a number.
pub(crate) fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    time_of_seconds(seconds)
        .ok_or_else(|| PyValueError::new_err(format!("{name} is a number of seconds above 0, not {seconds}")))
}
