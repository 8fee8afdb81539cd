//! Functions of the caller, called on the JavaScript thread and awaited: middleware and the key provider.
//!
//! One function of the package represents all of them; it never throws. An error that a callback throws stays in
//! JavaScript with its call, so every callback gets the number of its call, and the caller gets the original error.

use std::sync::Arc;

use gatewright::{ApiKeyProvider, Attempt, BoxFuture, Error, ErrorKind, Middleware, Outcome};
use napi::Status;
use napi::bindgen_prelude::{Either, FnArgs, Null, Promise};
use napi::threadsafe_function::ThreadsafeFunction;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{description, misconfigured};
use crate::headers::header_pairs;
use crate::text::text;
use crate::times::milliseconds;

tokio::task_local! {
    /// The call that the task runs, for its callbacks; see [`within`].
    static CALL: u32;
}

/// Runs the work of a call so that its callbacks know the call.
pub(crate) async fn within<T>(call: Option<u32>, work: impl Future<Output = T>) -> T {
    match call {
        Some(call) => CALL.scope(call, work).await,
        None => work.await,
    }
}

/// Call, index of the middleware, stage, details as JSON, body.
type CallbackArguments = FnArgs<(u32, u32, String, String, Option<String>)>;
/// The callback's result, or null if it threw.
type CallbackResult = Promise<Either<String, Null>>;
/// Weak, so that an idle process ends. Its queue has at most one entry per call in progress.
pub(crate) type Function =
    ThreadsafeFunction<CallbackArguments, CallbackResult, CallbackArguments, Status, false, true>;

/// The function behind all callbacks of a client.
pub(crate) struct Callbacks(pub(crate) Function);

impl Callbacks {
    async fn ask(
        &self,
        index: u32,
        stage: &'static str,
        details: Value,
        body: Option<String>,
    ) -> Result<String, Error> {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Callback);
        // A call without callbacks has nowhere to store an error.
        let call = CALL.try_with(|call| *call).unwrap_or_default();
        let arguments = FnArgs::from((call, index, stage.to_owned(), details.to_string(), body));
        // The JavaScript side may end during the call: a worker may be terminated.
        let gone = |_| Error::new(ErrorKind::Cancelled, format!("{stage}: its thread has ended"));
        match self.0.call_async_catch(arguments).await.map_err(gone)?.await.map_err(gone)? {
            Either::A(text) => Ok(text),
            Either::B(Null) => Err(misconfigured(format!("{stage}: the callback threw"))),
        }
    }
}

/// The functions that a middleware has; missing ones cost nothing.
#[napi(object, object_to_js = false)]
pub struct Stages {
    /// Whether it wants to see attempts before they are sent.
    pub before: bool,
    /// Whether it wants to see their outcomes.
    pub after: bool,
}

/// One of the caller's middlewares.
pub(crate) struct JsMiddleware {
    pub(crate) callbacks: Arc<Callbacks>,
    pub(crate) index: u32,
    pub(crate) stages: Stages,
}

impl Middleware for JsMiddleware {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if !self.stages.before {
                return Ok(());
            }
            let body = attempt.body().map(text);
            let headers = self.callbacks.ask(self.index, "before", attempt_details(attempt), body).await?;
            if headers.is_empty() {
                return Ok(());
            }
            let headers: Vec<(String, String)> = serde_json::from_str(&headers)
                .map_err(|error| misconfigured(format!("middleware: headers: {error}")))?;
            attempt.set_headers(&headers)
        })
    }

    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if !self.stages.after {
                return Ok(());
            }
            let details = json!({
                "attempt": attempt_details(attempt),
                "outcome": {
                    "status": outcome.status(),
                    "headers": outcome.headers().map(header_pairs),
                    "requestId": outcome.request_id(),
                    "elapsedMs": milliseconds(outcome.elapsed()),
                    "error": outcome.error().map(description),
                },
            });
            let body = outcome.body().map(|body| text(body));
            self.callbacks.ask(self.index, "after", details, body).await.map(drop)
        })
    }
}

fn attempt_details(attempt: &Attempt) -> Value {
    json!({
        "operation": attempt.operation().id,
        "number": attempt.number(),
        "maxRetries": attempt.max_retries(),
        "remainingMs": milliseconds(attempt.remaining()),
        "previous": attempt.previous().map(ErrorKind::name),
        "method": attempt.method().as_str(),
        "url": attempt.url(),
        "headers": header_pairs(attempt.headers()),
    })
}

/// The caller's function that provides the key.
pub(crate) struct JsApiKey(pub(crate) Arc<Callbacks>);

impl ApiKeyProvider for JsApiKey {
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { self.0.ask(0, "apiKey", json!({ "refresh": refresh }), None).await })
    }
}
