//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::PathBuf;

use gatewright::{Client, Error, SaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asyncio::{self, Pending};
use crate::client::EngineClient;
use crate::error;
use crate::options;
use crate::serialize;
use crate::waiting::block_on;

/// Saves what a record points to; returns the size of the file. kind: `image` (2.11) or `video` (2.7).
#[pyfunction]
pub(crate) fn save(
    py: Python<'_>,
    client: &EngineClient,
    kind: &str,
    record: &Bound<'_, PyAny>,
    path: PathBuf,
    options: &Bound<'_, PyDict>,
) -> PyResult<u64> {
    let saving = Saving::new(kind, record, path, options)?.run(client.client(py)?);
    block_on(py, saving)?.map_err(|error| error::to_python(py, &error))
}

/// Like `save`; the size settles a future of `event_loop`.
#[pyfunction]
pub(crate) fn save_async(
    py: Python<'_>,
    client: &EngineClient,
    kind: &str,
    record: &Bound<'_, PyAny>,
    path: PathBuf,
    options: &Bound<'_, PyDict>,
    event_loop: &Bound<'_, PyAny>,
) -> PyResult<Pending> {
    let saving = Saving::new(kind, record, path, options)?.run(client.client(py)?);
    asyncio::spawn(py, event_loop, saving, |py, bytes| Ok(bytes.into_pyobject(py)?.into_any().unbind()))
}

#[derive(Clone, Copy)]
enum Kind {
    Image,
    Video,
}

struct Saving {
    kind: Kind,
    record: Vec<u8>,
    path: PathBuf,
    options: SaveOptions,
}

impl Saving {
    fn new(
        kind: &str,
        record: &Bound<'_, PyAny>,
        path: PathBuf,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let kind = match kind {
            "image" => Kind::Image,
            "video" => Kind::Video,
            _ => return Err(PyValueError::new_err(format!("there is nothing to save of a {kind}"))),
        };
        let options = options::save_options(options)?;
        Ok(Self { kind, record: serialize::to_json(record)?, path, options })
    }

    async fn run(self, client: Client) -> Result<u64, Error> {
        let saved = match self.kind {
            Kind::Image => client.save_image(&self.record, &self.path, self.options).await?,
            Kind::Video => client.save_video(&self.record, &self.path, self.options).await?,
        };
        Ok(saved.bytes)
    }
}
