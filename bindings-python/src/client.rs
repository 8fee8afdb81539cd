//! The client under both Python clients: Python arguments to a core call, its answer to a record.

use std::mem;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gatewright::{
    Call, ClientBuilder, ErrorKind, Operation, RawResponse, RequestOptions, WaitOptions, operations,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::asyncio::{self, Pending};
use crate::error;
use crate::not_given::NotGiven;
use crate::record::{self, Value};
use crate::response::Metadata;
use crate::runtime::{block_on, runtime};
use crate::serialize;
use crate::stream::NativeStream;

/// Stands for "no limit": far beyond any process, and still addable to a point in time.
const FOREVER: Duration = Duration::from_hours(30 * 365 * 24);

/// Path, query and header parameters of a call, each a dict by wire name or None.
type Parameters<'py> = (Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>, Option<Bound<'py, PyDict>>);

/// extra_headers, extra_query, extra_body, timeout in seconds, max_retries.
type Options<'py> = (
    Option<Bound<'py, PyMapping>>,
    Option<Bound<'py, PyMapping>>,
    Option<Bound<'py, PyMapping>>,
    Option<f64>,
    Option<u32>,
);

/// A client of the core, rebuilt in a forked child.
#[pyclass(frozen, module = "gatewright._native")]
pub(crate) struct NativeClient {
    builder: ClientBuilder,
    live: Mutex<Live>,
}

/// The core's client and the process it belongs to; none once it is closed.
struct Live {
    pid: u32,
    client: Option<gatewright::Client>,
}

impl Live {
    /// Leaves a parent's connections alone: closing them here would take them away from the parent.
    fn forget_parent(&mut self) {
        if self.pid != process::id() {
            mem::forget(self.client.take());
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.forget_parent();
    }
}

#[pymethods]
impl NativeClient {
    #[new]
    #[pyo3(signature = (*, base_url=None, api_key=None, timeout=None, connect_timeout=None, idle_timeout=None,
        event_timeout=None, max_retries=None, validate=false, user_agent=None))]
    #[expect(clippy::too_many_arguments, reason = "one per option of the client")]
    fn new(
        py: Python<'_>,
        base_url: Option<String>,
        api_key: Option<String>,
        timeout: Option<f64>,
        connect_timeout: Option<f64>,
        idle_timeout: Option<f64>,
        event_timeout: Option<f64>,
        max_retries: Option<u32>,
        validate: bool,
        user_agent: Option<String>,
    ) -> PyResult<Self> {
        let mut builder = gatewright::Client::builder().validate(validate);
        if let Some(base_url) = base_url {
            builder = builder.base_url(base_url);
        }
        if let Some(api_key) = api_key {
            builder = builder.api_key(api_key);
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(duration("timeout", timeout)?);
        }
        if let Some(timeout) = connect_timeout {
            builder = builder.connect_timeout(duration("connect_timeout", timeout)?);
        }
        if let Some(timeout) = idle_timeout {
            builder = builder.idle_timeout(duration("idle_timeout", timeout)?);
        }
        if let Some(timeout) = event_timeout {
            builder = builder.event_timeout(duration("event_timeout", timeout)?);
        }
        if let Some(retries) = max_retries {
            builder = builder.max_retries(retries);
        }
        if let Some(user_agent) = user_agent {
            builder = builder.user_agent(user_agent);
        }
        let client = builder.clone().build().map_err(|error| error::to_python(py, &error))?;
        Ok(Self { builder, live: Mutex::new(Live { pid: process::id(), client: Some(client) }) })
    }

    /// The gateway's address, without a trailing slash.
    #[getter]
    fn base_url(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.client(py)?.base_url().to_owned())
    }

    /// Sends a call and waits for its answer.
    fn call(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: Options<'_>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let answer = block_on(py, answer(client, call))?.map_err(|error| error::to_python(py, &error))?;
        answer.into_python(py)
    }

    /// Sends a call; the future of the result is settled on `event_loop`.
    fn call_async(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: Options<'_>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        asyncio::spawn(py, event_loop, answer(client, call), |py, answer| answer.into_python(py))
    }

    /// Sends a call and waits until its answer begins to stream.
    fn open(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: Options<'_>,
    ) -> PyResult<NativeStream> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let stream = block_on(py, async move { client.open(call).await })?;
        let stream = stream.map_err(|error| error::to_python(py, &error))?;
        Ok(NativeStream::start(runtime(py)?.handle(), stream))
    }

    /// Sends a call; the future of the stream is settled on `event_loop`.
    fn open_async(
        &self,
        py: Python<'_>,
        operation: &str,
        parameters: Parameters<'_>,
        body: Option<&Bound<'_, PyDict>>,
        options: Options<'_>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let call = read_call(operation, parameters, body, options)?;
        let opened = async move {
            let stream = client.open(call).await?;
            Ok(NativeStream::start(&tokio::runtime::Handle::current(), stream))
        };
        asyncio::spawn(py, event_loop, opened, |py, stream| Ok(Py::new(py, stream)?.into_any()))
    }

    /// Waits for a video task; interval and timeout in seconds.
    fn wait_for_video(
        &self,
        py: Python<'_>,
        task_id: String,
        interval: Option<f64>,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let client = self.client(py)?;
        let options = wait_options(interval, timeout)?;
        let task = block_on(py, finished_video(client, task_id, options))?;
        task.map_err(|error| error::to_python(py, &error))?.into_python(py)
    }

    /// As `wait_for_video`; the future of the task is settled on `event_loop`.
    fn wait_for_video_async(
        &self,
        py: Python<'_>,
        task_id: String,
        interval: Option<f64>,
        timeout: Option<f64>,
        event_loop: &Bound<'_, PyAny>,
    ) -> PyResult<Pending> {
        let client = self.client(py)?;
        let options = wait_options(interval, timeout)?;
        asyncio::spawn(py, event_loop, finished_video(client, task_id, options), |py, task| {
            task.into_python(py)
        })
    }

    /// Closes idle connections; calls under way go on, new ones are refused.
    fn close(&self) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.forget_parent();
        live.client = None;
    }
}

impl NativeClient {
    /// The core's client, made anew in a forked child. As with the runtime, the lock is only taken with the
    /// interpreter attached, so that no fork can leave it locked.
    fn client(&self, py: Python<'_>) -> PyResult<gatewright::Client> {
        self.current().map_err(|error| error::to_python(py, &error))
    }

    /// Runs no Python, so that the interpreter cannot pass to another thread while the lock is held.
    fn current(&self) -> Result<gatewright::Client, gatewright::Error> {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if live.client.is_some() && live.pid != process::id() {
            let client = self.builder.clone().build()?;
            *live = Live { pid: process::id(), client: Some(client) };
        }
        live.client
            .clone()
            .ok_or_else(|| gatewright::Error::new(ErrorKind::Configuration, "the client is closed"))
    }
}

/// An answer, parsed off the interpreter.
struct Answer {
    value: Value,
    metadata: Arc<Metadata>,
}

impl Answer {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        record::response_to_python(py, self.value, self.metadata)
    }
}

async fn answer(client: gatewright::Client, call: Call) -> Result<Answer, gatewright::Error> {
    let operation = call.operation;
    parse(operation, client.call(call).await?)
}

async fn finished_video(
    client: gatewright::Client,
    task_id: String,
    options: WaitOptions,
) -> Result<Answer, gatewright::Error> {
    parse(&operations::RETRIEVE_VIDEO, client.wait_for_video(&task_id, options).await?)
}

fn wait_options(interval: Option<f64>, timeout: Option<f64>) -> PyResult<WaitOptions> {
    let mut options = WaitOptions::default();
    if let Some(interval) = interval {
        options.interval = duration("interval", interval)?;
    }
    if let Some(timeout) = timeout {
        options.timeout = duration("timeout", timeout)?;
    }
    Ok(options)
}

fn parse(operation: &Operation, response: RawResponse) -> Result<Answer, gatewright::Error> {
    let value = record::parse(&response.body).map_err(|reason| response.undecodable(operation, reason))?;
    let request_id = response.request_id().map(str::to_owned);
    let RawResponse { status, headers, attempts, elapsed, .. } = response;
    Ok(Answer { value, metadata: Arc::new(Metadata { status, headers, request_id, attempts, elapsed }) })
}

fn read_call(
    operation: &str,
    (path, query, headers): Parameters<'_>,
    body: Option<&Bound<'_, PyDict>>,
    (extra_headers, extra_query, extra_body, timeout, max_retries): Options<'_>,
) -> PyResult<Call> {
    let operation: &'static Operation = operations::by_id(operation)
        .ok_or_else(|| PyValueError::new_err(format!("there is no operation {operation}")))?;
    let extra_body = extra_body.map(to_dict).transpose()?;
    let timeout = timeout.map(|seconds| duration("timeout", seconds)).transpose()?;
    let mut options = RequestOptions { timeout, max_retries, ..RequestOptions::default() };
    if let Some(headers) = headers {
        options.extra_headers = read_pairs(&headers)?;
    }
    if let Some(extra) = extra_headers {
        options.extra_headers.extend(read_pairs(&to_dict(extra)?)?);
    }
    if let Some(extra) = extra_query {
        options.extra_query = read_pairs(&to_dict(extra)?)?;
    }
    let body = match (body, &extra_body) {
        (None, None) => None,
        (Some(members), extra) => Some(serialize::request_body(members, extra.as_ref())?),
        (None, Some(extra)) => Some(serialize::request_body(extra, None)?),
    };
    let mut call = Call::new(operation).options(options);
    call.path = path.map_or_else(|| Ok(Vec::new()), |path| read_pairs(&path))?;
    call.query = query.map_or_else(|| Ok(Vec::new()), |query| read_pairs(&query))?;
    call.body = body.map(Bytes::from);
    Ok(call)
}

fn to_dict(mapping: Bound<'_, PyMapping>) -> PyResult<Bound<'_, PyDict>> {
    match mapping.into_any().cast_into::<PyDict>() {
        Ok(dict) => Ok(dict),
        Err(other) => {
            let mapping = other.into_inner().cast_into::<PyMapping>()?;
            let dict = PyDict::new(mapping.py());
            dict.update(&mapping)?;
            Ok(dict)
        }
    }
}

/// Parameters as text. None and NOT_GIVEN are left out; a list repeats the name.
fn read_pairs(parameters: &Bound<'_, PyDict>) -> PyResult<Vec<(String, String)>> {
    let mut pairs = Vec::with_capacity(parameters.len());
    for (name, value) in parameters {
        let name: String = name.extract()?;
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for element in value.try_iter()? {
                pairs.push((name.clone(), parameter_text(&name, &element?)?));
            }
        } else if !value.is_none() && !value.is_instance_of::<NotGiven>() {
            let text = parameter_text(&name, &value)?;
            pairs.push((name, text));
        }
    }
    Ok(pairs)
}

fn parameter_text(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(if flag.is_true() { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    Err(PyTypeError::new_err(format!(
        "{name}: a parameter is text or a number, not {}",
        value.get_type().name()?
    )))
}

/// Seconds from Python; infinity means no limit.
fn duration(name: &str, seconds: f64) -> PyResult<Duration> {
    if seconds == f64::INFINITY {
        return Ok(FOREVER);
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration.min(FOREVER)),
        _ => Err(PyValueError::new_err(format!("{name} is a number of seconds above 0, not {seconds}"))),
    }
}
