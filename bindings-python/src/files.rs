//! Saves the files that images and video tasks point to. The core does all the work.

use std::path::PathBuf;

use gatewright::{Client, Error, SaveOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use crate::asyncio::{self, Pending};
use crate::client::EngineClient;
use crate::document::{Json, Node};
use crate::error;
use crate::options;
use crate::record::Record;
use crate::serialize;
use crate::waiting::block_on;

/// Saves the file that a record points to, and returns its size. kind: `image` (2.11) or `video` (2.7).
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

/// The file to save.
enum Source {
    /// An image of a response.
    Record(Py<Record>),
    /// The members of an image that is a dict.
    Members { url: Option<PyBackedStr>, b64_json: Option<PyBackedStr> },
    /// The JSON of any other image.
    Image(Vec<u8>),
    /// The JSON of a task.
    Video(Vec<u8>),
}

impl Source {
    /// The image without conversion if its members have the right types: its data may be long. For all others, the core
    /// reports errors from their JSON.
    fn image(image: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(record) = image.cast_exact::<Record>() {
            let object = record.get().object();
            let is_text = |name| object.member(name).is_none_or(is_text_or_null);
            if is_text("url") && is_text("b64_json") {
                return Ok(Self::Record(record.clone().unbind()));
            }
        } else if let Ok(members) = image.cast_exact::<PyDict>()
            && let (Ok(url), Ok(b64_json)) = (text(members, "url"), text(members, "b64_json"))
        {
            return Ok(Self::Members { url, b64_json });
        }
        Ok(Self::Image(serialize::to_json(image)?))
    }

    fn video(task: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::Video(serialize::to_json(task)?))
    }
}

fn is_text_or_null(value: Node<'_>) -> bool {
    matches!(value.json(), Json::Text(_) | Json::Null)
}

/// A member of a dict. Errors: it is neither text nor None.
fn text(members: &Bound<'_, PyDict>, name: &str) -> PyResult<Option<PyBackedStr>> {
    members.get_item(name)?.map_or(Ok(None), |value| value.extract())
}

struct Saving {
    source: Source,
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
        let source = match kind {
            "image" => Source::image,
            "video" => Source::video,
            _ => return Err(PyValueError::new_err(format!("a {kind} has nothing to save"))),
        };
        let options = options::save_options(options)?;
        Ok(Self { source: source(record)?, path, options })
    }

    async fn run(self, client: Client) -> Result<u64, Error> {
        let (path, options) = (&*self.path, self.options);
        let saved = match &self.source {
            Source::Record(record) => {
                let member = |name| record.get().object().member(name).and_then(Node::text);
                let (url, b64_json) = (member("url"), member("b64_json"));
                client.save_image_contents(url.as_deref(), b64_json.as_deref(), path, options).await?
            }
            Source::Members { url, b64_json } => {
                client.save_image_contents(url.as_deref(), b64_json.as_deref(), path, options).await?
            }
            Source::Image(json) => client.save_image(json, path, options).await?,
            Source::Video(json) => client.save_video(json, path, options).await?,
        };
        Ok(saved.bytes)
    }
}
