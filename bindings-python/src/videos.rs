//! Waits for a video task, one poll at a time; Python handles the results.

use std::mem;
use std::process;
use std::sync::Arc;

use gatewright::{Error, ErrorKind, operations};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::asyncio::{self, Pending};
use crate::client::EngineClient;
use crate::error;
use crate::options;
use crate::waiting::block_on;

/// A wait of the core. It belongs to the process that began it, like its connections.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct VideoWatch {
    pid: u32,
    /// None only while it is dropped.
    watch: Option<Arc<Mutex<gatewright::VideoWatch>>>,
}

impl Drop for VideoWatch {
    fn drop(&mut self) {
        if self.pid != process::id() {
            // The connections belong to the parent.
            mem::forget(self.watch.take());
        }
    }
}

#[pymethods]
impl VideoWatch {
    /// options: those of the wait, except its callback. submitted: whether the gateway has just accepted the task.
    #[new]
    #[pyo3(signature = (client, task_id, options, *, submitted=false))]
    fn new(
        py: Python<'_>,
        client: &EngineClient,
        task_id: &str,
        options: &Bound<'_, PyDict>,
        submitted: bool,
    ) -> PyResult<Self> {
        let wait = options::wait_options(options)?;
        let client = client.client(py)?;
        let watch = gatewright::contain(|| {
            let watch = client.watch_video(task_id, &wait);
            Ok(if submitted { watch.submitted() } else { watch })
        });
        let watch = watch.map_err(|error| error::to_python(py, &error))?;
        Ok(Self { pid: process::id(), watch: Some(Arc::new(Mutex::new(watch))) })
    }

    /// The task at the next poll; None after the poll that found it completed.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let found = block_on(py, look_up(self.watch(py)?))?;
        let found = found.map_err(|error| error::to_python(py, &error))?;
        found.map(|task| task.into_python(py)).transpose()
    }

    /// Like `next`; its outcome settles a future of `event_loop`.
    fn next_async(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Pending> {
        asyncio::spawn(py, event_loop, look_up(self.watch(py)?), |py, found| match found {
            Some(task) => task.into_python(py),
            None => Ok(py.None()),
        })
    }
}

impl VideoWatch {
    fn watch(&self, py: Python<'_>) -> PyResult<Arc<Mutex<gatewright::VideoWatch>>> {
        match &self.watch {
            Some(watch) if self.pid == process::id() => Ok(Arc::clone(watch)),
            _ => {
                let message = "the wait was started in another process: start one here";
                Err(error::of_kind(py, ErrorKind::Configuration, message))
            }
        }
    }
}

async fn look_up(watch: Arc<Mutex<gatewright::VideoWatch>>) -> Result<Option<Answer>, Error> {
    let found = watch.lock().await.next().await?;
    found.map(|task| Answer::parse(&operations::RETRIEVE_VIDEO, task)).transpose()
}
