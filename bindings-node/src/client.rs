//! The client: takes JSON documents and pairs of strings and returns documents, through the core's raw interface.

#![expect(clippy::needless_pass_by_value, reason = "texts arrive owned")]

use std::sync::Arc;

use gatewright::Error;
use napi::Env;
use napi::bindgen_prelude::Either;
use napi_derive::napi;

use crate::answer::{Cancellation, answer, document};
use crate::callbacks::{Callbacks, Function};
use crate::deliveries::{Deliveries, PendingDelivery, Receiver};
use crate::error::describe;
use crate::generated::options::{ClientOptions, RequestOptions};
use crate::options::{self, Call};
use crate::stream;
use crate::worker::StartThread;

/// Longer bodies, in bytes, are sent by the worker, so that JavaScript continues meanwhile.
const SHORT_BODY: usize = 64 * 1024;

/// Maximum length of a form, in bytes.
#[napi]
pub(crate) fn max_form_bytes() -> u32 {
    u32::try_from(gatewright::MAX_FORM_BYTES).unwrap_or(u32::MAX)
}

/// The idempotency key of a later round of a loop; `round` is counted from 0.
#[napi]
pub(crate) fn key_of_round(key: String, round: u32) -> String {
    gatewright::key_of_round(&key, round as usize)
}

/// Adds operations of another API, which a generated package does when it is loaded; returns what is wrong with the JSON.
#[napi]
pub(crate) fn register_operations(json: String) -> Option<String> {
    gatewright::runtime::register(&json).err()
}

/// A client of one gateway.
#[napi(js_name = "EngineClient")]
pub struct Client {
    pub(crate) client: gatewright::Client,
    receiver: Arc<Receiver>,
}

#[napi]
impl Client {
    /// Creates a client, or returns as JSON why that fails. `deliveries`: where all results of its work go.
    #[napi]
    pub fn create(
        options: ClientOptions,
        deliveries: &Deliveries,
        callbacks: Option<Function>,
    ) -> Either<Client, String> {
        let client = gatewright::contain(|| options::client(options, callbacks.map(Callbacks)));
        made(client, &deliveries.receiver)
    }

    /// A client with other defaults over the same connections, or as JSON why that fails.
    #[napi]
    pub fn with_options(&self, options: RequestOptions) -> Either<Client, String> {
        let client =
            gatewright::contain(|| options.into_core().map(|options| self.client.with_options(options)));
        made(client, &self.receiver)
    }

    /// The base URL of the gateway, without a path.
    #[napi(getter)]
    pub fn base_url(&self) -> String {
        self.client.base_url().to_owned()
    }

    /// Sends a request and reads the whole response. `number`: of the delivery.
    #[napi]
    pub fn call(
        &self,
        env: Env,
        number: u32,
        mut call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<()> {
        let (client, place) = (self.client.clone(), begins(&call));
        let files = call.take_files();
        answer(env, self.waiting(number), cancellation, place, async move {
            let call = call.into_core(files)?;
            let operation = call.operation;
            document(operation, &client.call(call).await?)
        })
    }

    /// Sends a request and waits for the headers of its stream. `number`: of the delivery.
    #[napi]
    pub fn open(
        &self,
        env: Env,
        number: u32,
        mut call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<()> {
        let (client, receiver, place) = (self.client.clone(), self.receiver(), begins(&call));
        let files = call.take_files();
        answer(env, self.waiting(number), cancellation, place, async move {
            Ok(stream::opened(client.open(call.into_core(files)?).await?, receiver))
        })
    }

    pub(crate) fn receiver(&self) -> Arc<Receiver> {
        Arc::clone(&self.receiver)
    }

    /// Where a result with this number goes.
    pub(crate) fn waiting(&self, number: u32) -> PendingDelivery {
        PendingDelivery { receiver: self.receiver(), number }
    }
}

/// Where a call begins: a short one is sent immediately.
fn begins(call: &Call) -> StartThread {
    let is_short = call.files.is_none() && call.body.as_ref().is_none_or(|body| body.len() <= SHORT_BODY);
    if is_short { StartThread::Here } else { StartThread::Worker }
}

fn made(client: Result<gatewright::Client, Error>, receiver: &Arc<Receiver>) -> Either<Client, String> {
    match client {
        Ok(client) => Either::A(Client { client, receiver: Arc::clone(receiver) }),
        Err(error) => Either::B(describe(&error)),
    }
}
