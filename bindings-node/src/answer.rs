//! The outcome of a call for JavaScript, and its promise.

use std::sync::Arc;

use gatewright::operations::ResponseBody;
use gatewright::{Error, Operation, RawResponse, RawStream};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Uint8Array};
use napi_derive::napi;
use serde::de::IgnoredAny;
use tokio::sync::Notify;

use crate::callbacks::within;
use crate::error::cancelled;
use crate::headers::headers_json;
use crate::lifetime::{self, Promised};
use crate::stream::Stream;
use crate::text::text;
use crate::times::milliseconds;

/// The outcome of a call: an error, or a response with a body or a stream.
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
    /// The document, or the text.
    pub body: Option<String>,
    /// The bytes of a response that is neither.
    pub bytes: Option<Uint8Array>,
    /// The events.
    pub stream: Option<Stream>,
}

impl Promised for Answer {
    fn failed(error: String) -> Self {
        Self { error: Some(error), ..Self::default() }
    }
}

impl Answer {
    /// A complete response. Errors: Decode if its body should be JSON but is not.
    pub(crate) fn document(operation: &Operation, response: &RawResponse) -> Result<Self, Error> {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Answer);
        let (mut body, mut bytes) = (None, None);
        match operation.response {
            ResponseBody::Object | ResponseBody::Array => {
                let document = text(&response.body);
                if let Err(reason) = serde_json::from_str::<IgnoredAny>(&document) {
                    return Err(response.undecodable(operation, reason));
                }
                body = Some(document);
            }
            ResponseBody::Nothing => {}
            ResponseBody::Text(_) => body = Some(response.text(operation)?.to_owned()),
            ResponseBody::Bytes(_) => bytes = Some(Uint8Array::new(response.body.to_vec())),
        }
        Ok(Self {
            status: Some(response.status),
            headers: Some(headers_json(&response.headers)),
            request_id: response.request_id().map(str::to_owned),
            attempts: Some(response.attempts),
            elapsed_ms: Some(milliseconds(response.elapsed)),
            body,
            bytes,
            ..Self::default()
        })
    }

    /// The headers of a streamed response.
    pub(crate) fn stream(stream: RawStream) -> Self {
        Self {
            status: Some(stream.status()),
            headers: Some(headers_json(stream.headers())),
            request_id: stream.request_id().map(str::to_owned),
            attempts: Some(stream.attempts()),
            elapsed_ms: Some(milliseconds(stream.elapsed())),
            stream: Some(Stream::new(stream)),
            ..Self::default()
        }
    }
}

/// A handle of one call: cancels it, and identifies it to its callbacks.
#[napi]
pub struct Cancellation {
    cancelled: Arc<Notify>,
    call: Option<u32>,
}

#[napi]
impl Cancellation {
    /// A cancellation for one call. `call`: its number, if the client has callbacks.
    #[napi(constructor)]
    pub fn new(call: Option<u32>) -> Self {
        Self { cancelled: Arc::new(Notify::new()), call }
    }

    /// Cancels the request at once, even before it starts.
    #[napi]
    pub fn cancel(&self) {
        self.cancelled.notify_one();
    }
}

/// A promise of the outcome of the work, which may be a failure; it never rejects. Cancelling drops the work and its
/// connection.
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
