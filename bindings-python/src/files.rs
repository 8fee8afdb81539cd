//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::PathBuf;

use gatewright::{Client, Error, SaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::asyncio::{self, Pending};
use crate::client::EngineClient;
use crate::error;
use crate::runtime::block_on;
use crate::serialize;
use crate::values;

/// overwrite, max_bytes, timeout in seconds.
type Options<'py> = (bool, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Saves what a record points to; gives the size of the file. kind: `image` (2.11) or `video` (2.7).
#[pyfunction]
pub(crate) fn save(
    py: Python<'_>,
    client: &EngineClient,
    kind: &str,
    record: &Bound<'_, PyAny>,
    path: PathBuf,
    options: Options<'_>,
) -> PyResult<u64> {
    let saving = Saving::new(kind, record, path, options)?.run(client.client(py)?);
    block_on(py, saving)?.map_err(|error| error::to_python(py, &error))
}

/// As `save`; the size settles a future on `event_loop`.
#[pyfunction]
pub(crate) fn save_async(
    py: Python<'_>,
    client: &EngineClient,
    kind: &str,
    record: &Bound<'_, PyAny>,
    path: PathBuf,
    options: Options<'_>,
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
        (overwrite, max_bytes, timeout): Options<'_>,
    ) -> PyResult<Self> {
        let kind = match kind {
            "image" => Kind::Image,
            "video" => Kind::Video,
            _ => return Err(PyValueError::new_err(format!("there is nothing to save of a {kind}"))),
        };
        let mut options = SaveOptions { overwrite, ..SaveOptions::default() };
        if let Some(bytes) = max_bytes {
            options.max_bytes = values::count("max_bytes", &bytes)?;
        }
        options.timeout = timeout.map(|seconds| values::seconds("timeout", &seconds)).transpose()?;
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
