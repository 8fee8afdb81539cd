//! The client: JSON documents and pairs of strings in, documents out, over the core's raw front.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::{Error, RawResponse, RequestOptions, WaitOptions};
use http::HeaderMap;
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;
use tokio::sync::Notify;

use crate::error::{cancelled, describe, misconfigured};
use crate::stream::Stream;

/// Options of a client; what is missing has the core's default. Times in milliseconds.
#[napi(object, object_to_js = false)]
pub struct ClientOptions {
    /// Bare host of the gateway.
    pub base_url: Option<String>,
    /// Bearer token.
    pub api_key: Option<String>,
    /// Bounds a call as a whole.
    pub timeout_ms: Option<f64>,
    /// Bounds the making of a connection.
    pub connect_timeout_ms: Option<f64>,
    /// Bounds the silence within an answer.
    pub idle_timeout_ms: Option<f64>,
    /// Bounds the time without an event of a stream.
    pub event_timeout_ms: Option<f64>,
    /// Attempts after the first one.
    pub max_retries: Option<f64>,
    /// Whether requests for models of the catalog are checked before they are sent.
    pub validate: Option<bool>,
    /// What the client calls itself.
    pub user_agent: String,
}

/// One call. Lists of pairs are flat: name, value, name, value.
#[napi(object, object_to_js = false)]
pub struct Call {
    /// Id of the operation.
    pub operation: String,
    /// Path parameters.
    pub path: Vec<String>,
    /// Query parameters.
    pub query: Vec<String>,
    /// Query parameters that the operation does not know.
    pub extra_query: Vec<String>,
    /// Headers beside the client's own.
    pub headers: Vec<String>,
    /// JSON document.
    pub body: Option<String>,
    /// Bounds this call as a whole, in milliseconds.
    pub timeout_ms: Option<f64>,
    /// Attempts after the first one.
    pub max_retries: Option<f64>,
}

/// A wait for a video task. Times in milliseconds; what is missing has the core's default.
#[napi(object, object_to_js = false)]
pub struct Wait {
    /// Id of the task.
    pub task_id: String,
    /// Pause between two look-ups.
    pub interval_ms: Option<f64>,
    /// Bounds the whole wait.
    pub timeout_ms: Option<f64>,
}

/// How a call ended: an error, or an answer with a body or a stream.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Answer {
    /// The failure as JSON.
    pub error: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// JSON: an array of `[name, value]`.
    pub headers: Option<String>,
    /// The gateway's id of the request.
    pub request_id: Option<String>,
    /// Attempts made.
    pub attempts: Option<u32>,
    /// Milliseconds from the start of the call.
    pub elapsed_ms: Option<f64>,
    /// The document.
    pub body: Option<String>,
    /// The events.
    pub stream: Option<Stream>,
}

/// Drops the request it was passed to.
#[napi]
pub struct Cancellation {
    cancelled: Arc<Notify>,
}

#[napi]
impl Cancellation {
    /// A cancellation for one call.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self { cancelled: Arc::new(Notify::new()) }
    }

    /// Drops the request at once, also if it comes before the request starts.
    #[napi]
    pub fn cancel(&self) {
        self.cancelled.notify_one();
    }
}

/// A client of one gateway.
#[napi(js_name = "NativeClient")]
pub struct Client {
    client: gatewright::Client,
}

#[napi]
impl Client {
    /// Makes a client, or tells as JSON why it cannot be made.
    #[napi]
    pub fn create(options: ClientOptions) -> Either<Client, String> {
        match build(options) {
            Ok(client) => Either::A(Client { client }),
            Err(error) => Either::B(describe(&error)),
        }
    }

    /// The bare host requests go to.
    #[napi(getter)]
    pub fn base_url(&self) -> String {
        self.client.base_url().to_owned()
    }

    /// Sends a request and reads the whole answer. Never rejects.
    #[napi]
    pub fn call<'env>(
        &self,
        env: &'env Env,
        call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        let signal = cancellation.map(|cancellation| Arc::clone(&cancellation.cancelled));
        env.spawn_future(async move {
            let answer = async { Ok(document(client.call(call.into_core()?).await?)) };
            Ok(unless(signal, answer).await)
        })
    }

    /// Looks a video task up until it is completed. Never rejects.
    #[napi]
    pub fn wait_for_video<'env>(
        &self,
        env: &'env Env,
        wait: Wait,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        let signal = cancellation.map(|cancellation| Arc::clone(&cancellation.cancelled));
        env.spawn_future(async move {
            let answer = async {
                let options = wait.options()?;
                Ok(document(client.wait_for_video(&wait.task_id, options).await?))
            };
            Ok(unless(signal, answer).await)
        })
    }

    /// Sends a request and waits for the head of its stream. Never rejects.
    #[napi]
    pub fn open<'env>(
        &self,
        env: &'env Env,
        call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        let signal = cancellation.map(|cancellation| Arc::clone(&cancellation.cancelled));
        env.spawn_future(async move {
            let answer = async {
                let stream = client.open(call.into_core()?).await?;
                Ok(Answer {
                    status: Some(stream.status()),
                    headers: Some(headers(stream.headers())),
                    request_id: stream.request_id().map(str::to_owned),
                    attempts: Some(stream.attempts()),
                    elapsed_ms: Some(milliseconds(stream.elapsed())),
                    stream: Some(Stream::new(stream)),
                    ..Answer::default()
                })
            };
            Ok(unless(signal, answer).await)
        })
    }
}

/// The answer, or the failure as one; cancelling drops the work and with it the connection.
async fn unless(signal: Option<Arc<Notify>>, work: impl Future<Output = Result<Answer, Error>>) -> Answer {
    let outcome = match signal {
        None => work.await,
        Some(signal) => tokio::select! {
            biased;
            () = signal.notified() => Err(cancelled()),
            outcome = work => outcome,
        },
    };
    outcome.unwrap_or_else(|error| Answer { error: Some(describe(&error)), ..Answer::default() })
}

fn build(options: ClientOptions) -> Result<gatewright::Client, Error> {
    let mut builder = gatewright::Client::builder()
        .user_agent(options.user_agent)
        .validate(options.validate.unwrap_or_default());
    if let Some(base_url) = options.base_url {
        builder = builder.base_url(base_url);
    }
    if let Some(api_key) = options.api_key {
        builder = builder.api_key(api_key);
    }
    if let Some(timeout) = duration("timeoutMs", options.timeout_ms)? {
        builder = builder.timeout(timeout);
    }
    if let Some(timeout) = duration("connectTimeoutMs", options.connect_timeout_ms)? {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = duration("idleTimeoutMs", options.idle_timeout_ms)? {
        builder = builder.idle_timeout(timeout);
    }
    if let Some(timeout) = duration("eventTimeoutMs", options.event_timeout_ms)? {
        builder = builder.event_timeout(timeout);
    }
    if let Some(retries) = count("maxRetries", options.max_retries)? {
        builder = builder.max_retries(retries);
    }
    builder.build()
}

impl Call {
    fn into_core(self) -> Result<gatewright::Call, Error> {
        let operation = gatewright::operations::by_id(&self.operation)
            .ok_or_else(|| misconfigured(format!("no operation is called {}", self.operation)))?;
        Ok(gatewright::Call {
            operation,
            path: pairs(self.path),
            query: pairs(self.query),
            body: self.body.map(Bytes::from),
            options: RequestOptions {
                timeout: duration("timeoutMs", self.timeout_ms)?,
                max_retries: count("maxRetries", self.max_retries)?,
                extra_headers: pairs(self.headers),
                extra_query: pairs(self.extra_query),
            },
        })
    }
}

impl Wait {
    fn options(&self) -> Result<WaitOptions, Error> {
        let mut options = WaitOptions::default();
        options.interval = duration("intervalMs", self.interval_ms)?.unwrap_or(options.interval);
        options.timeout = duration("timeoutMs", self.timeout_ms)?.unwrap_or(options.timeout);
        Ok(options)
    }
}

/// An answer that has arrived whole.
fn document(response: RawResponse) -> Answer {
    Answer {
        status: Some(response.status),
        headers: Some(headers(&response.headers)),
        request_id: response.request_id().map(str::to_owned),
        attempts: Some(response.attempts),
        elapsed_ms: Some(milliseconds(response.elapsed)),
        body: Some(text(response.body.into())),
        ..Answer::default()
    }
}

/// A body as text. Bytes that are not UTF-8 become U+FFFD.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn pairs(flat: Vec<String>) -> Vec<(String, String)> {
    let mut words = flat.into_iter();
    std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
}

/// JSON of the headers, in order, repeated ones included. Bytes that are not text become U+FFFD.
fn headers(headers: &HeaderMap) -> String {
    let pairs: Vec<_> = headers
        .iter()
        .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes())))
        .collect();
    serde_json::to_string(&pairs).expect("strings are always JSON")
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// A duration from the milliseconds JavaScript gave.
fn duration(name: &str, milliseconds: Option<f64>) -> Result<Option<Duration>, Error> {
    milliseconds
        .map(|value| {
            Duration::try_from_secs_f64(value / 1000.0).map_err(|_| {
                misconfigured(format!("{name}: {value} is no number of milliseconds; give 0 or more"))
            })
        })
        .transpose()
}

/// A count from the number JavaScript gave, which may be anything.
fn count(name: &str, number: Option<f64>) -> Result<Option<u32>, Error> {
    number
        .map(|value| {
            let whole = value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
            whole.then_some(value as u32).ok_or_else(|| {
                misconfigured(format!("{name}: {value} is no count; give a whole number from 0"))
            })
        })
        .transpose()
}
