//! Webhooks: passes bodies and headers from Python to the core's verification.

use gatewright::webhook::{self, Secret};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::document::Document;
use crate::error::{self, caught};
use crate::record;

/// Verifies a webhook and returns its record. secrets: text, several, or None for those in the environment.
#[pyfunction]
pub(crate) fn unwrap_webhook(
    py: Python<'_>,
    body: &Bound<'_, PyAny>,
    headers: &Bound<'_, PyAny>,
    secrets: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Webhook);
        let (body, headers) = (raw(body)?, pairs(headers)?);
        let secrets = secrets.map(texts).transpose()?;
        let verified = secrets
            .map_or_else(Secret::from_env, |texts| texts.iter().map(|text| Secret::new(text)).collect())
            .and_then(|secrets: Vec<Secret>| webhook::verify(&body, headers, &secrets));
        verified.map_err(|error| error::to_python(py, &error))?;
        to_record(py, &body)
    })
}

/// The record of an unsigned webhook.
#[pyfunction]
pub(crate) fn read_webhook(py: Python<'_>, body: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Webhook);
        let body = raw(body)?;
        webhook::check_record(&body).map_err(|error| error::to_python(py, &error))?;
        to_record(py, &body)
    })
}

fn to_record(py: Python<'_>, body: &[u8]) -> PyResult<Py<PyAny>> {
    let document = Document::parse_bytes(body).map_err(PyValueError::new_err)?;
    Ok(record::to_python(py, document)?.unbind())
}

/// The body as it arrived. Text is encoded as UTF-8.
fn raw(body: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = body.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    if let Ok(text) = body.cast::<PyString>() {
        return Ok(text.to_str()?.as_bytes().to_vec());
    }
    if let Ok(bytes) = body.cast::<PyByteArray>() {
        return Ok(bytes.to_vec());
    }
    if body.is_instance_of::<PyMemoryView>() {
        return body.call_method0("tobytes")?.extract();
    }
    Err(PyTypeError::new_err(format!(
        "body must be the webhook as it arrived, in bytes or text, not {}: its signature covers those bytes, and parsing and \
            serializing them again changes them. Pass request.body (Django), request.get_data() (Flask) or await \
         request.body() (Starlette, FastAPI)",
        body.get_type().name()?
    )))
}

/// The relevant headers, from a mapping or pairs, as text or bytes. A list of values counts as several headers.
fn pairs(headers: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Vec<u8>)>> {
    let items = match headers.getattr_opt("items")? {
        Some(items) => items.call0()?,
        None => headers.clone(),
    };
    let mut pairs = Vec::new();
    for item in items.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
        let Some(name) = bytes(&name)?.and_then(|name| String::from_utf8(name).ok()) else { continue };
        // The values of other headers are ignored.
        if !webhook::is_header(&name) {
            continue;
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for value in value.try_iter()? {
                pairs.push((name.clone(), header_value(&name, &value?)?));
            }
        } else {
            let value = header_value(&name, &value)?;
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

fn header_value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    bytes(value)?.ok_or_else(|| PyTypeError::new_err(format!("the header {name} is not text")))
}

/// Text or bytes.
fn bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Some(text.to_str()?.as_bytes().to_vec()));
    }
    Ok(value.cast::<PyBytes>().ok().map(|bytes| bytes.as_bytes().to_vec()))
}

fn texts(secrets: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if secrets.is_instance_of::<PyString>() { Ok(vec![secrets.extract()?]) } else { secrets.extract() }
}
