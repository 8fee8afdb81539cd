//! The client: JSON documents and pairs of strings in, documents out, over the core's raw front.

use std::sync::Arc;

use gatewright::{Error, RawResponse};
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;
use tokio::sync::Notify;

use crate::callbacks::{Callbacks, Function, within};
use crate::error::{cancelled, describe};
use crate::lifetime::{self, Outcome};
use crate::options::{Call, ClientOptions, RequestOptions};
use crate::response::{header_pairs, milliseconds};
use crate::stream::Stream;

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

/// One call's other side: how it is dropped, and what its callbacks know it by.
#[napi]
pub struct Cancellation {
    cancelled: Arc<Notify>,
    call: Option<u32>,
}

#[napi]
impl Cancellation {
    /// A cancellation for one call. `call`: its number, where the client has callbacks.
    #[napi(constructor)]
    pub fn new(call: Option<u32>) -> Self {
        Self { cancelled: Arc::new(Notify::new()), call }
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
    pub(crate) client: gatewright::Client,
}

#[napi]
impl Client {
    /// Makes a client, or tells as JSON why it cannot be made.
    #[napi]
    pub fn create(options: ClientOptions, callbacks: Option<Function>) -> Either<Client, String> {
        made(gatewright::contain(|| options.build(callbacks.map(Callbacks))))
    }

    /// A client with other defaults over the same connections, or as JSON why it cannot be made.
    #[napi]
    pub fn with_options(&self, options: RequestOptions) -> Either<Client, String> {
        made(gatewright::contain(|| options.into_core().map(|options| self.client.with_options(options))))
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
        answer(env, cancellation, async move { Ok(document(client.call(call.into_core()?).await?)) })
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
        answer(env, cancellation, async move {
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
        })
    }
}

fn made(client: Result<gatewright::Client, Error>) -> Either<Client, String> {
    match client {
        Ok(client) => Either::A(Client { client }),
        Err(error) => Either::B(describe(&error)),
    }
}

/// A promise of the work's answer, or of its failure as one; it never rejects. Cancelling drops the work and with it
/// the connection.
pub(crate) fn answer<'env>(
    env: &'env Env,
    cancellation: Option<&Cancellation>,
    work: impl Future<Output = Result<Answer, Error>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, Answer>> {
    let (signal, call) =
        cancellation.map(|cancellation| (Arc::clone(&cancellation.cancelled), cancellation.call)).unzip();
    lifetime::spawn(
        env,
        within(call.flatten(), async move {
            match signal {
                None => work.await,
                Some(signal) => tokio::select! {
                    biased;
                    () = signal.notified() => Err(cancelled("aborted by its signal")),
                    outcome = work => outcome,
                },
            }
        }),
    )
}

impl Outcome for Answer {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

/// An answer that has arrived whole.
pub(crate) fn document(response: RawResponse) -> Answer {
    #[cfg(debug_assertions)]
    gatewright::on_purpose::reach(gatewright::on_purpose::Place::Answer);
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

/// JSON of the headers.
fn headers(headers: &http::HeaderMap) -> String {
    serde_json::to_string(&header_pairs(headers)).expect("strings are always JSON")
}
