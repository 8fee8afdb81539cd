//! How results reach JavaScript: all through one function of the package, each with the number that JavaScript gave
//! its work. A separate promise for each would cost a threadsafe function.

use std::sync::Arc;

use gatewright::Error;
use napi::bindgen_prelude::{Either3, FnArgs, Uint8Array};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;

use crate::error::describe;
use crate::stream::Stream;
use crate::worker::{self, StartThread};

/// Number of the work, failure as JSON, content, stream, status, headers as JSON, request id, attempts, milliseconds.
type DeliveryArguments = FnArgs<(
    u32,
    Option<String>,
    Option<Content>,
    Option<Stream>,
    Option<u16>,
    Option<String>,
    Option<String>,
    Option<u32>,
    Option<f64>,
)>;

/// The package's function. Weak: JavaScript keeps the process alive while it waits. Its queue has at most one entry per
/// piece of work in progress.
pub(crate) type Receiver = ThreadsafeFunction<DeliveryArguments, (), DeliveryArguments, Status, false, true>;

/// The content of a response or a batch: text, texts, or bytes.
pub(crate) type Content = Either3<String, Vec<String>, Uint8Array>;

/// The result of one piece of work: a failure, a response, or the next part of a stream. Empty at the end of a stream.
#[derive(Default)]
pub(crate) struct Delivery {
    /// The failure as JSON.
    pub(crate) error: Option<String>,
    pub(crate) content: Option<Content>,
    pub(crate) stream: Option<Stream>,
    pub(crate) head: Head,
}

/// The metadata of a response.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) status: Option<u16>,
    /// JSON: an array of `[name, value]`.
    pub(crate) headers: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) attempts: Option<u32>,
    /// Milliseconds from the start of the call.
    pub(crate) elapsed_ms: Option<f64>,
}

impl Delivery {
    /// A failure.
    pub(crate) fn failed(error: &Error) -> Self {
        Self { error: Some(describe(error)), ..Self::default() }
    }

    /// Text.
    pub(crate) fn text(text: String) -> Self {
        Self { content: Some(Either3::A(text)), ..Self::default() }
    }
}

/// The way to the JavaScript side of the package.
#[napi(js_name = "EngineDeliveries")]
pub struct Deliveries {
    pub(crate) receiver: Arc<Receiver>,
}

#[napi]
impl Deliveries {
    /// `receiver`: gets all results. It must not throw.
    #[napi(constructor)]
    pub fn new(receiver: Receiver) -> Self {
        Self { receiver: Arc::new(receiver) }
    }
}

/// Where the result of one piece of work goes.
pub(crate) struct PendingDelivery {
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) number: u32,
}

impl PendingDelivery {
    /// Delivers the result. If the JavaScript thread has ended, it is dropped.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let Delivery { error, content, stream, head } = delivery;
        let Head { status, headers, request_id, attempts, elapsed_ms } = head;
        let arguments =
            (self.number, error, content, stream, status, headers, request_id, attempts, elapsed_ms);
        let _ = self.receiver.call(FnArgs::from(arguments), ThreadsafeFunctionCallMode::NonBlocking);
    }

    /// Does work on the thread for it and delivers its result; a failure or panic is delivered, too.
    pub(crate) fn spawn(
        self,
        env: Env,
        place: StartThread,
        work: impl Future<Output = Result<Delivery, Error>> + Send + 'static,
    ) -> napi::Result<()> {
        worker::spawn(env, place, async move {
            let result = gatewright::contained(work).await;
            self.deliver(result.unwrap_or_else(|error| Delivery::failed(&error)));
        })
    }
}
