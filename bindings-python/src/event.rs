//! One event of a stream, converted from what the core has read to a Python value.

use gatewright::Frame;
use gatewright::read_ahead::Read;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::document::Document;
use crate::raw_event::RawEvent;
use crate::record;

/// One event at a level.
pub(crate) enum Event {
    Json(Document),
    Raw(Frame),
    Text(String),
}

impl Event {
    /// The event as a Python value.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Json(document) => record::to_python(py, document),
            Self::Raw(frame) => Ok(Bound::new(py, RawEvent::new(frame))?.into_any()),
            Self::Text(text) => Ok(PyString::new(py, &text).into_any()),
        }
    }

    /// Converts an item that was read, without the interpreter. Errors: the position where it is malformed.
    pub(crate) fn make(read: Read) -> Result<Self, String> {
        match read {
            Read::Chunk(text) => Document::parse(text).map(Self::Json),
            Read::Frame(frame) => Ok(Self::Raw(frame)),
            Read::Text(text) => Ok(Self::Text(text)),
            _ => Err("a level of another version".to_owned()),
        }
    }
}
