//! The outcome of a call for JavaScript, and how it is cancelled.

use std::borrow::Cow;
use std::sync::Arc;

use gatewright::operations::ResponseBody;
use gatewright::{Error, Operation, RawResponse, without_lone_surrogates};
use http::HeaderMap;
use napi::Env;
use napi::bindgen_prelude::{Either3, Uint8Array};
use napi_derive::napi;
use serde::de::IgnoredAny;
use tokio::sync::Notify;

use crate::callbacks::within;
use crate::deliveries::{Delivery, Head, PendingDelivery};
use crate::error::cancelled;
use crate::headers::headers_json;
use crate::text::text;
use crate::times::milliseconds;
use crate::worker::StartThread;

/// A complete response. Errors: Decode if its body should be JSON but is not.
pub(crate) fn document(operation: &Operation, response: &RawResponse) -> Result<Delivery, Error> {
    #[cfg(debug_assertions)]
    gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Answer);
    let content = match operation.response {
        ResponseBody::Object | ResponseBody::Array => {
            let document = response.read(operation, |body| {
                let document = text(body);
                serde_json::from_str::<IgnoredAny>(&document).map(|_| document)
            })?;
            // This parser builds no texts, and those of JavaScript can hold half a character.
            Some(Either3::A(match without_lone_surrogates(&document) {
                Cow::Owned(repaired) => repaired,
                Cow::Borrowed(_) => document,
            }))
        }
        ResponseBody::Nothing => None,
        ResponseBody::Text(_) => Some(Either3::A(response.text(operation)?.to_owned())),
        ResponseBody::Bytes(_) => Some(Either3::C(Uint8Array::new(response.body.to_vec()))),
    };
    let head = head(response.status, &response.headers, response.request_id(), response.attempts);
    let head = Head { elapsed_ms: Some(milliseconds(response.elapsed)), ..head };
    Ok(Delivery { content, head, ..Delivery::default() })
}

/// The metadata of a response, without its time.
pub(crate) fn head(status: u16, headers: &HeaderMap, request_id: Option<&str>, attempts: u32) -> Head {
    Head {
        status: Some(status),
        headers: Some(headers_json(headers)),
        request_id: request_id.map(str::to_owned),
        attempts: Some(attempts),
        elapsed_ms: None,
    }
}

/// A handle for one call: cancels it, and identifies it to its callbacks.
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

    /// Cancels the request immediately, even before it starts.
    #[napi]
    pub fn cancel(&self) {
        self.cancelled.notify_one();
    }
}

/// Delivers the outcome of the work, which may be a failure. Cancelling drops the work and its connection.
pub(crate) fn answer(
    env: Env,
    waiting: PendingDelivery,
    cancellation: Option<&Cancellation>,
    place: StartThread,
    work: impl Future<Output = Result<Delivery, Error>> + Send + 'static,
) -> napi::Result<()> {
    // A call is a large future: boxed, the layers around it only move a pointer.
    let work = Box::pin(work);
    let Some(cancellation) = cancellation else { return waiting.spawn(env, place, work) };
    let (signal, call) = (Arc::clone(&cancellation.cancelled), cancellation.call);
    waiting.spawn(
        env,
        place,
        within(call, async move {
            tokio::select! {
                biased;
                () = signal.notified() => Err(cancelled("aborted by its signal")),
                outcome = work => outcome,
            }
        }),
    )
}
