//! A whole answer: parsed off the interpreter, a record on it.

use std::sync::Arc;

use gatewright::{Error, Operation, RawResponse};
use pyo3::prelude::*;

use crate::error::caught;
use crate::generated::conveniences::ITERABLE;
use crate::record::{self, Value};
use crate::response::Metadata;

/// A parsed body and what came with it.
pub(crate) struct Answer {
    value: Value,
    metadata: Arc<Metadata>,
    iterable: Option<&'static str>,
}

impl Answer {
    /// Reads the body of an operation's answer. Errors: Decode, with the answer's status, headers and body.
    pub(crate) fn parse(operation: &Operation, response: RawResponse) -> Result<Self, Error> {
        let value =
            record::parse(&response.body).map_err(|reason| response.undecodable(operation, reason))?;
        let request_id = response.request_id().map(str::to_owned);
        let RawResponse { status, headers, attempts, elapsed, .. } = response;
        let metadata = Arc::new(Metadata { status, headers, request_id, attempts, elapsed });
        let iterable = ITERABLE.iter().find(|(id, _)| *id == operation.id).map(|(_, member)| *member);
        Ok(Self { value, metadata, iterable })
    }

    /// The record. A panic raises InternalError.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        caught(py, || {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::Place::Answer);
            record::response_to_python(py, self.value, self.metadata, self.iterable)
        })
    }
}
