//! Waiting for a video task, one look-up at a time: what is done with what each finds is Python's.

use std::mem;
use std::process;
use std::sync::Arc;

use gatewright::{Error, ErrorKind, WaitOptions, operations};
use pyo3::prelude::*;
use tokio::sync::Mutex;

use crate::answer::Answer;
use crate::asyncio::{self, Pending};
use crate::client::NativeClient;
use crate::error;
use crate::options;
use crate::runtime::block_on;

/// A wait of the core. Belongs to the process that began it, as its connections do.
#[pyclass(frozen, module = "gatewright._native")]
pub(crate) struct VideoWatch {
    pid: u32,
    /// Always there but while it is dropped.
    watch: Option<Arc<Mutex<gatewright::VideoWatch>>>,
}

impl Drop for VideoWatch {
    fn drop(&mut self) {
        if self.pid != process::id() {
            // Leaves a parent's connections alone.
            mem::forget(self.watch.take());
        }
    }
}

#[pymethods]
impl VideoWatch {
    /// interval, timeout: seconds. submitted: whether the gateway has just taken the task.
    #[new]
    #[pyo3(signature = (client, task_id, interval, timeout, *, submitted=false))]
    fn new(
        py: Python<'_>,
        client: &NativeClient,
        task_id: &str,
        interval: f64,
        timeout: f64,
        submitted: bool,
    ) -> PyResult<Self> {
        let wait = WaitOptions {
            interval: options::duration("interval", interval)?,
            timeout: options::duration("timeout", timeout)?,
            ..WaitOptions::default()
        };
        let client = client.client(py)?;
        let watch = gatewright::contain(|| {
            let watch = client.watch_video(task_id, &wait);
            Ok(if submitted { watch.submitted() } else { watch })
        });
        let watch = watch.map_err(|error| error::to_python(py, &error))?;
        Ok(Self { pid: process::id(), watch: Some(Arc::new(Mutex::new(watch))) })
    }

    /// The task as the next look-up finds it; None after the one that found it completed.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let found = block_on(py, look_up(self.watch(py)?))?;
        let found = found.map_err(|error| error::to_python(py, &error))?;
        found.map(|task| task.into_python(py)).transpose()
    }

    /// As `next`; its outcome settles a future on `event_loop`.
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
                let message = "the wait was begun in another process: begin one here";
                Err(error::of_kind(py, ErrorKind::Configuration, message))
            }
        }
    }
}

async fn look_up(watch: Arc<Mutex<gatewright::VideoWatch>>) -> Result<Option<Answer>, Error> {
    let found = watch.lock().await.next().await?;
    found.map(|task| Answer::parse(&operations::RETRIEVE_VIDEO, task)).transpose()
}
