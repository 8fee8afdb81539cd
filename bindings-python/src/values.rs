//! Converts values from and to Python: times, counts, addresses, pairs of texts.

use std::time::Duration;

use gatewright::{ClientBuilder, time_of_seconds};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde_json::{Map, Value};

use crate::not_given::NotGiven;
use crate::serialize;

pub(crate) fn unknown(name: &str) -> PyErr {
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))
}

pub(crate) fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract()
}

pub(crate) fn switch(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.extract()
}

pub(crate) fn path(value: &Bound<'_, PyAny>) -> PyResult<std::path::PathBuf> {
    value.extract()
}

pub(crate) fn pairs(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    read_pairs(&to_dict(value.clone())?)
}

/// Members of a JSON object from a mapping.
pub(crate) fn members(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    gatewright::members_of_json(&serialize::to_json(value)?)
        .map_err(|error| PyValueError::new_err(format!("{name} cannot be sent: {error}")))
}

/// An address; False means no proxy, whatever the environment says.
pub(crate) fn proxy(builder: ClientBuilder, value: &Bound<'_, PyAny>) -> PyResult<ClientBuilder> {
    Ok(match value.cast::<PyBool>() {
        Ok(flag) if !flag.is_true() => builder.no_proxy(),
        _ => builder.proxy(text(value)?),
    })
}

pub(crate) fn set_seconds(dict: &Bound<'_, PyDict>, name: &str, time: Option<Duration>) -> PyResult<()> {
    time.map_or(Ok(()), |time| dict.set_item(name, time.as_secs_f64()))
}

/// Pairs as a dict, in order; a repeated name gets a list of its values.
pub(crate) fn set_pairs(
    dict: &Bound<'_, PyDict>,
    name: &str,
    pairs: &[(String, String)],
    keeps: impl Fn(&str) -> bool,
) -> PyResult<()> {
    let named = PyDict::new(dict.py());
    for (name, value) in pairs.iter().filter(|(name, _)| keeps(name)) {
        match named.get_item(name)? {
            None => named.set_item(name, PyList::new(dict.py(), [value])?)?,
            Some(values) => values.cast::<PyList>()?.append(value)?,
        }
    }
    if named.is_empty() { Ok(()) } else { dict.set_item(name, named) }
}

/// Members of a JSON object as Python values.
pub(crate) fn json<'py>(py: Python<'py>, members: &Map<String, Value>) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(members).expect("a JSON object is always text");
    py.import("json")?.call_method1("loads", (text,))
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

/// Parameters as text. None and NOT_GIVEN are omitted; a list repeats the name.
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
        "{name}: a parameter must be a string or a number, not {}",
        value.get_type().name()?
    )))
}

/// Seconds from Python; infinity means no limit.
pub(crate) fn seconds(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let number = value.extract().map_err(|refused: PyErr| {
        let py = value.py();
        if refused.is_instance_of::<PyOverflowError>(py) {
            return PyValueError::new_err(format!(
                "{name} must be a number of seconds above 0, not one of that size"
            ));
        }
        match value.get_type().name() {
            Ok(kind) => PyTypeError::new_err(format!("{name} must be a number of seconds, not {kind}")),
            Err(error) => error,
        }
    })?;
    time_of_seconds(number).ok_or_else(|| {
        PyValueError::new_err(format!("{name} must be a number of seconds above 0, not {number}"))
    })
}

/// A whole number from Python.
pub(crate) fn count<'py, T: FromPyObjectOwned<'py, Error = PyErr>>(
    name: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|refused: PyErr| {
        if refused.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{name} must be a whole number from 0, and not too large"));
        }
        match value.get_type().name() {
            Ok(kind) => PyTypeError::new_err(format!("{name} must be a whole number from 0, not {kind}")),
            Err(error) => error,
        }
    })
}
