//! The caller's own functions, called on the JavaScript thread and awaited: middleware and the key's source.
//!
//! One function of the package's stands for all of them; it never throws. What a callback throws stays in JavaScript
//! with the call it belongs to, which is why every callback is told its call: the caller gets the very same error.

use std::sync::Arc;

use gatewright::{ApiKeyProvider, Attempt, BoxFuture, Error, ErrorKind, Middleware, Outcome};
use http::{HeaderMap, HeaderName, HeaderValue};
use napi::Status;
use napi::bindgen_prelude::{Either, FnArgs, Null, Promise};
use napi::threadsafe_function::ThreadsafeFunction;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::error::{description, misconfigured};
use crate::response::{header_pairs, lossy, milliseconds};

tokio::task_local! {
    /// Which call the task runs, for its callbacks; see [`within`].
    static CALL: u32;
}

/// Runs the work of a call so that its callbacks are told which one it is.
pub(crate) async fn within<T>(call: Option<u32>, work: impl Future<Output = T>) -> T {
    match call {
        Some(call) => CALL.scope(call, work).await,
        None => work.await,
    }
}

/// Call, index of the middleware, stage, details as JSON, body.
type Arguments = FnArgs<(u32, u32, String, String, Option<String>)>;
/// What the callback gave, or null where it threw.
type Given = Promise<Either<String, Null>>;
/// Weak: a process that has nothing else to do ends. Its queue is as long as there are calls under way.
pub(crate) type Function = ThreadsafeFunction<Arguments, Given, Arguments, Status, false, true>;

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
        gatewright::on_purpose::reach(gatewright::on_purpose::Place::Callback);
        // A call that was made without callbacks in mind has none that could take its error.
        let call = CALL.try_with(|call| *call).unwrap_or_default();
        let arguments = FnArgs::from((call, index, stage.to_owned(), details.to_string(), body));
        // The JavaScript side may end while it is asked: a worker that is terminated.
        let gone = |_| Error::new(ErrorKind::Cancelled, format!("{stage}: its thread has ended"));
        match self.0.call_async_catch(arguments).await.map_err(gone)?.await.map_err(gone)? {
            Either::A(text) => Ok(text),
            Either::B(Null) => Err(misconfigured(format!("{stage}: the callback threw"))),
        }
    }
}

/// Which functions a middleware has: the others cost no hop.
#[napi(object, object_to_js = false)]
pub struct Stages {
    /// Whether it wants to see attempts before they are sent.
    pub before: bool,
    /// Whether it wants to see what came of them.
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
            let body = attempt.body().map(lossy);
            let headers = self.callbacks.ask(self.index, "before", attempt_details(attempt), body).await?;
            if headers.is_empty() { Ok(()) } else { replace(attempt.headers_mut(), &headers) }
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
            let body = outcome.body().map(|body| lossy(body));
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

/// Puts these headers, JSON of `[name, value]` pairs, in the place of those there.
fn replace(headers: &mut HeaderMap, pairs: &str) -> Result<(), Error> {
    let pairs: Vec<(String, String)> = serde_json::from_str(pairs)
        .map_err(|error| misconfigured(format!("middleware: headers: {error}")))?;
    let old = std::mem::take(headers);
    for (name, value) in pairs {
        let unusable =
            || misconfigured(format!("middleware: {name} or its value cannot be sent as a header"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        // One that stands as it was keeps its bytes.
        let kept = old.get_all(&name).iter().find(|old| lossy(old.as_bytes()) == value).cloned();
        let mut header = match kept {
            Some(kept) => kept,
            None => HeaderValue::from_str(&value).map_err(|_| unusable())?,
        };
        header.set_sensitive(header.is_sensitive() || old.get(&name).is_some_and(HeaderValue::is_sensitive));
        headers.append(name, header);
    }
    Ok(())
}

/// The caller's function that gives the key.
pub(crate) struct JsApiKey(pub(crate) Arc<Callbacks>);

impl ApiKeyProvider for JsApiKey {
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move { self.0.ask(0, "apiKey", json!({ "refresh": refresh }), None).await })
    }
}
