//! The client: JSON documents and pairs of strings in, documents out, over the core's raw front.

use gatewright::Error;
use napi::Env;
use napi::bindgen_prelude::{Either, PromiseRaw};
use napi_derive::napi;

use crate::answer::{Answer, Cancellation, answer};
use crate::callbacks::{Callbacks, Function};
use crate::error::describe;
use crate::generated::options::{ClientOptions, RequestOptions};
use crate::options::{self, Call};

/// A client of one gateway.
#[napi(js_name = "EngineClient")]
pub struct Client {
    pub(crate) client: gatewright::Client,
}

#[napi]
impl Client {
    /// Creates a client, or returns as JSON why that fails.
    #[napi]
    pub fn create(options: ClientOptions, callbacks: Option<Function>) -> Either<Client, String> {
        made(gatewright::contain(|| options::client(options, callbacks.map(Callbacks))))
    }

    /// A client with other defaults over the same connections, or as JSON why that fails.
    #[napi]
    pub fn with_options(&self, options: RequestOptions) -> Either<Client, String> {
        made(gatewright::contain(|| options.into_core().map(|options| self.client.with_options(options))))
    }

    /// The base URL of the gateway, without a path.
    #[napi(getter)]
    pub fn base_url(&self) -> String {
        self.client.base_url().to_owned()
    }

    /// Sends a request and reads the whole response. Never rejects.
    #[napi]
    pub fn call<'env>(
        &self,
        env: &'env Env,
        call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        answer(env, cancellation, async move {
            let call = call.into_core()?;
            let operation = call.operation;
            Answer::document(operation, &client.call(call).await?)
        })
    }

    /// Sends a request and waits for the headers of its stream. Never rejects.
    #[napi]
    pub fn open<'env>(
        &self,
        env: &'env Env,
        call: Call,
        cancellation: Option<&Cancellation>,
    ) -> napi::Result<PromiseRaw<'env, Answer>> {
        let client = self.client.clone();
        answer(env, cancellation, async move { Ok(Answer::stream(client.open(call.into_core()?).await?)) })
    }
}

fn made(client: Result<gatewright::Client, Error>) -> Either<Client, String> {
    match client {
        Ok(client) => Either::A(Client { client }),
        Err(error) => Either::B(describe(&error)),
    }
}
