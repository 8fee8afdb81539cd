//! An HTTP/1.1 server (RFC 9112) for one connection: `head` reads request heads and writes response heads, `incoming` is
//! a request body, `outgoing` a response being sent, `wire` moves the bytes.
//!
//! All of it runs in the connection's task, without a channel. A connection that waits, for its next request or for the
//! next event of a stream, holds no buffer.

mod deadline;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod head;
mod incoming;
#[cfg(test)]
mod memory_bound_tests;
mod outgoing;
#[cfg(test)]
mod tests;
mod wire;

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::deadline::Deadline;
use self::head::ReplyContext;
use self::incoming::incoming;
use self::outgoing::ResponseWriter;
use self::wire::{Next, Wire};
use super::client::Client;
use super::head_error;
use crate::wire::{Body, Response};

/// Maximum time for the first head of a connection. A client connects because it has a request to send; between requests,
/// connections may idle for longer.
const MAX_FIRST_HEAD: Duration = Duration::from_secs(10);

/// How connections are served.
#[derive(Clone)]
pub(super) struct Settings {
    /// Timeout for the head of a request, from when the connection is ready for it; for the first one, at most
    /// [`MAX_FIRST_HEAD`].
    pub(super) header_timeout: Duration,
    /// Cancelled when no further requests are accepted.
    pub(super) draining: CancellationToken,
}

/// Answers requests.
pub(super) trait Service {
    fn answer(&self, request: http::Request<Body>, client: Client) -> impl Future<Output = Response> + Send;
}

/// Serves a connection to its end. Errors: the connection or a response broke off.
pub(super) async fn serve<S>(
    socket: S,
    service: impl Service,
    client: Client,
    settings: Settings,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let wire = Arc::new(Mutex::new(Wire::new(socket)));
    let mut deadline = Deadline::new(settings.header_timeout.min(MAX_FIRST_HEAD));
    let mut drained = pin!(settings.draining.cancelled());
    loop {
        let next = poll_fn(|context| lock(&wire).poll_next(context, &mut deadline, drained.as_mut()));
        let (request, reply_context) = match next.await? {
            Next::Request(reply_context) => *reply_context,
            Next::Unreadable(why) => {
                lock(&wire).queue(&head_error::answer(why.into_error()));
                poll_fn(|context| lock(&wire).poll_flush(context)).await?;
                break;
            }
            Next::Ended => break,
        };
        client.activity.begin_request();
        deadline.set_limit(settings.header_timeout);
        let request = http::Request::from_parts(request, incoming(&wire));
        let response = service.answer(request, client.clone()).await;
        let ReplyContext { is_head, is_old, lasts } = reply_context;
        let lasts = lasts && lock(&wire).is_between_requests() && !settings.draining.is_cancelled();
        let mut outgoing = ResponseWriter::begin(response, is_head, is_old, lasts);
        poll_fn(|context| lock(&wire).poll_send(context, &mut outgoing)).await?;
        if !outgoing.lasts() {
            break;
        }
        client.activity.end_request();
    }
    poll_fn(|context| lock(&wire).poll_shutdown(context)).await
}

/// Recovers a poisoned lock: a panic elsewhere leaves no half-finished state that is used again, because the
/// connection ends with it.
fn lock<S>(wire: &Mutex<Wire<S>>) -> MutexGuard<'_, Wire<S>> {
    wire.lock().unwrap_or_else(PoisonError::into_inner)
}
