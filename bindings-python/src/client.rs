//! The client below both Python clients: converts Python arguments to a call of the core, and its response to Python.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gatewright::runtime::{as_asked, operation_by_id};
use gatewright::{Call, ClientBuilder, ErrorKind, Operation, RequestOptions};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::answer::Answer;
use crate::asyncio::{self, Pending};
use crate::callbacks::{KeyCallable, PythonMiddleware};
use crate::error;
use crate::file_argument;
use crate::fork_guard;
use crate::options;
use crate::response::{Metadata, ResponseInfo};
use crate::runtime::runtime;
use crate::serialize;
use crate::stream::{EngineStream, Reader};
use crate::values;
use crate::waiting::block_on;

/// Ends the error of a client without a key, after "set GATEWRIGHT_API_KEY".
const WAY_TO_GIVE_A_KEY: &str = ", or pass `api_key=…`";

/// Adds operations of another API, which a generated package does when it is imported. Errors: ValueError.
#[pyfunction]
pub(crate) fn register_operations(json: &str) -> PyResult<()> {
    gatewright::runtime::register(json).map_err(PyValueError::new_err)
}

/// Path, query and header parameters of a call: each a dict by wire name, or None.
type Parameters<'py> = (Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>);

/// A client of the core, with options of its own. Clients derived from one another share connections.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct EngineClient {
    shared: Arc<Shared>,
    options: RequestOptions,
    /// The list to which the metadata of responses is added, if requested.
    responses: Option<Py<PyList>>,
}

/// The state that derived clients share. A forked child rebuilds it.
struct Shared {
    builder: ClientBuilder,
    base_url: String,
    /// The key as text, if the client includes it when pickled.
    key: Option<String>,
    live: Mutex<LiveClient>,
}

/// The core's client and its process. No client once it is closed.
struct LiveClient {
    pid: u32,
    client: Option<gatewright::Client>,
}

impl LiveClient {
    /// Never drops a parent's client: this would close connections that the parent uses.
    fn forget_parent(&mut self) {
        if self.pid != fork_guard::ask() {
            mem::forget(self.client.take());
        }
    }
}

impl Drop for LiveClient {
    fn drop(&mut self) {
        self.forget_parent();
    }
}

#[pymethods]
impl EngineClient {
    /// settings: named like `Client`'s arguments. key: the key as text; None for that of the environment. callbacks:
    /// its `key` is a callable that returns the key, or None; `middleware` is a list. The caller keeps it alive.
    /// keep_key: whether the property `key` returns the text.
    #[new]
    #[pyo3(signature = (settings, key, callbacks, *, keep_key=false))]
    fn new(
        settings: &Bound<'_, PyDict>,
        mut key: Option<String>,
        callbacks: &Bound<'_, PyAny>,
        keep_key: bool,
    ) -> PyResult<Self> {
        let py = settings.py();
        let mut builder = options::configured(settings)?;
        if let Some(key) = &key {
            builder = builder.api_key(key.clone());
        }
        let callable = callbacks.getattr("key")?;
        if !callable.is_none() {
            if !callable.is_callable() {
                let kind = callable.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "api_key must be a string or a callable, not {kind}"
                )));
            }
            builder = builder.api_key_provider(Arc::new(KeyCallable::new(callbacks)?));
        } else if keep_key && key.is_none() {
            key = std::env::var(gatewright::API_KEY_VARIABLE).ok();
        }
        for index in 0..callbacks.getattr("middleware")?.len()? {
            builder = builder.middleware(Arc::new(PythonMiddleware::new(callbacks, index)?));
        }
        let client = gatewright::contain(|| builder.clone().build_saying(WAY_TO_GIVE_A_KEY));
        let client = client.map_err(|error| error::to_python(py, &error))?;
        let base_url = client.base_url().to_owned();
        let live = Mutex::new(LiveClient { pid: fork_guard::ask(), client: Some(client) });
        let shared = Shared { builder, base_url, key: key.filter(|_| keep_key), live };
        Ok(Self { shared: Arc::new(shared), options: RequestOptions::default(), responses: None })
    }

    /// A client with these options on top of this client's, on the same connections.
    fn with_options(&self, py: Python<'_>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let options = options::call_options(options)?.over(&self.options);
        let responses = self.responses.as_ref().map(|list| list.clone_ref(py));
        Ok(Self { shared: Arc::clone(&self.shared), options, responses })
    }

    /// This client; the metadata of its responses is added to the list.
    fn noting(&self, responses: Py<PyList>) -> Self {
        Self { shared: Arc::clone(&self.shared), options: self.options.clone(), responses: Some(responses) }
    }

    /// The options of this client's calls, in the form that `with_options` takes. secrets: whether they include headers
    /// and query parameters that are secret by their name.
    fn options<'py>(&self, py: Python<'py>, secrets: bool) -> PyResult<Bound<'py, PyDict>> {
        options::to_python(py, &self.options, secrets)
    }

    /// The key, if the client keeps it.
    #[getter]
    fn key(&self) -> Option<&str> {
        self.shared.key.as_deref()
    }

    /// Address of the gateway, without a trailing slash.
    #[getter]
    fn base_url(&self) -> &str {
        &self.shared.base_url
    }

    /// Sends a call and waits for its response.
    fn call(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let answer = block_on(py, answer(client, call))?.map_err(|error| error::to_python(py, &error))?;
        note(py, self.responses.as_ref(), &answer.metadata)?;
        answer.into_python(py)
    }

    /// Sends a call; its result settles a future of `event_loop`.
    fn call_async(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: &Bound<'_, PyDict>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let responses = self.responses.as_ref().map(|list| list.clone_ref(py));
        asyncio::spawn(py, event_loop, answer(client, call), move |py, answer| {
            note(py, responses.as_ref(), &answer.metadata)?;
            answer.into_python(py)
        })
    }

    /// Sends a call and waits until its stream begins.
    fn open(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<EngineStream> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let stream = block_on(py, async move { client.open(call).await })?;
        let stream = stream.map_err(|error| error::to_python(py, &error))?;
        let stream = EngineStream::new(Reader::Thread(runtime(py)?), stream);
        note(py, self.responses.as_ref(), stream.metadata())?;
        Ok(stream)
    }

    /// Sends a call; its stream settles a future of `event_loop`.
    fn open_async(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: &Bound<'_, PyDict>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let opened = async move {
            let stream = client.open(call).await?;
            Ok(EngineStream::new(Reader::EventLoop, stream))
        };
        let responses = self.responses.as_ref().map(|list| list.clone_ref(py));
        asyncio::spawn(py, event_loop, opened, move |py, stream| {
            note(py, responses.as_ref(), stream.metadata())?;
            Ok(Py::new(py, stream)?.into_any())
        })
    }

    /// Closes the idle connections of all clients that share them. Calls in progress continue; new ones are refused.
    fn close(&self) {
        let mut live = self.shared.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.forget_parent();
        live.client = None;
    }
}

impl EngineClient {
    /// The core's client; a forked child creates a new one. As with the runtime, taking the lock needs the interpreter,
    /// so no fork leaves it locked.
    pub(crate) fn client(&self, py: Python<'_>) -> PyResult<gatewright::Client> {
        self.current().map_err(|error| error::to_python(py, &error))
    }

    /// Runs no Python code, so that the interpreter stays with this thread while it holds the lock.
    fn current(&self) -> Result<gatewright::Client, gatewright::Error> {
        let mut live = self.shared.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.client.is_some() && live.pid != fork_guard::ask() {
            let client = gatewright::contain(|| self.shared.builder.clone().build_saying(WAY_TO_GIVE_A_KEY))?;
            *live = LiveClient { pid: fork_guard::ask(), client: Some(client) };
        }
        match &live.client {
            None => Err(gatewright::Error::new(ErrorKind::Configuration, "the client is closed")),
            Some(client) if self.options == RequestOptions::default() => Ok(client.clone()),
            Some(client) => Ok(client.with_options(self.options.clone())),
        }
    }
}

/// Adds the metadata of a response to the list, if there is one.
fn note(py: Python<'_>, responses: Option<&Py<PyList>>, metadata: &Arc<Metadata>) -> PyResult<()> {
    responses.map_or(Ok(()), |list| list.bind(py).append(ResponseInfo::new(Arc::clone(metadata))))
}

async fn answer(client: gatewright::Client, call: Call) -> Result<Answer, gatewright::Error> {
    let operation = call.operation;
    Answer::parse(operation, client.call(call).await?)
}

fn read_call(
    operation: &str,
    (path, query, headers): Parameters<'_>,
    body: Option<&Bound<'_, PyDict>>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Call> {
    let operation: &'static Operation = operation_by_id(operation)
        .ok_or_else(|| PyValueError::new_err(format!("there is no operation {operation}")))?;
    let pairs = |parameters: Option<Bound<'_, PyDict>>| {
        parameters.map_or_else(|| Ok(Vec::new()), |parameters| values::read_pairs(&parameters))
    };
    let mut options = options::call_options(options)?;
    if let Some(headers) = headers {
        // The headers of the options come later and override them.
        options.extra_headers.splice(0..0, values::read_pairs(&headers)?);
    }
    let mut call = Call::new(operation).options(options);
    call.path = pairs(path)?;
    call.query = pairs(query)?;
    let mut body = body.cloned();
    if !operation.form.is_empty()
        && let Some(members) = &body
    {
        // After everything else: a file object can be read only once.
        let (others, files) = file_argument::split_files(operation.form, members)?;
        call.files = files;
        body = Some(others);
    }
    call.body = body.as_ref().map(serialize::request_body).transpose()?.map(Bytes::from);
    Ok(as_asked(call))
}
