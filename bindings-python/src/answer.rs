//! A whole response: parsed without the interpreter, then converted to a record, a list, text, bytes or None.

use std::sync::Arc;

use bytes::Bytes;
use gatewright::operations::ResponseBody;
use gatewright::{Error, Operation, RawResponse};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::document::Document;
use crate::error::caught;
use crate::record;
use crate::response::Metadata;

/// A parsed body with its response metadata.
pub(crate) struct Answer {
    content: Content,
    pub(crate) metadata: Arc<Metadata>,
    iterable: Option<&'static str>,
}

/// The content of the body.
enum Content {
    Json(Document),
    Nothing,
    Text(String),
    Bytes(Bytes),
}

impl Answer {
    /// Parses the body of an operation's response. Errors: Decode, with the status, headers and body of the response.
    pub(crate) fn parse(operation: &Operation, response: RawResponse) -> Result<Self, Error> {
        let content = match operation.response {
            ResponseBody::Object | ResponseBody::Array => {
                Content::Json(response.read(operation, Document::parse_body)?)
            }
            ResponseBody::Nothing => Content::Nothing,
            ResponseBody::Text(_) => Content::Text(response.text(operation)?.to_owned()),
            ResponseBody::Bytes(_) => Content::Bytes(response.body.clone()),
        };
        let request_id = response.request_id().map(str::to_owned);
        let RawResponse { status, headers, attempts, elapsed, .. } = response;
        let metadata = Arc::new(Metadata { status, headers, request_id, attempts, elapsed });
        Ok(Self { content, metadata, iterable: operation.iterable })
    }

    /// The content as a Python value. A panic raises InternalError.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        caught(py, || {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Answer);
            match self.content {
                Content::Json(document) => {
                    record::response_to_python(py, document, self.metadata, self.iterable)
                }
                Content::Nothing => Ok(py.None()),
                Content::Text(text) => Ok(PyString::new(py, &text).into_any().unbind()),
                Content::Bytes(bytes) => Ok(PyBytes::new(py, &bytes).into_any().unbind()),
            }
        })
    }
}
