//! Keep-alive for slow streams: after 15 s without an event, the gateway sends the response head and a keep-alive comment, then one
//! more every 15 s, while it still tries upstreams. A later error is sent as an error event of the client's protocol.

use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use gatewright_protocol::conversation::Protocol;
use http_body_util::BodyExt as _;

use super::RequestContext;
use super::failure::{last_event, stream_error};
use super::passthrough_stream::{Framing, write_end};
use super::stream::{GivenUp, KEEP_ALIVE, headed};
use super::translate_request::DROPPED_HEADER;
use crate::observe::Origin;
use crate::wire::{ApiError, Body, BodyError, Call, Response};
use gatewright_protocol::inspect::StreamInspector;

type Execution = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// The body of a response that began before an upstream answered.
struct Keepalive {
    then: KeepaliveStep,
    protocol: Protocol,
    framing: Framing,
    /// The client's name for the model.
    model: String,
    origin: Origin,
    /// Until an upstream answers.
    call: Option<Arc<Call>>,
}

/// The next step of the response body.
enum KeepaliveStep {
    /// A keep-alive comment.
    Comment(Execution),
    /// Wait for an upstream.
    Wait(Execution),
    /// Forward the answer.
    Pass(Body),
    /// Abort, so that the client doesn't mistake it for a complete stream.
    Cut,
    End,
}

/// The response to a streaming request. Errors: no upstream answered, and nothing was sent yet.
pub(super) async fn answer(request_context: RequestContext) -> Result<Response, ApiError> {
    let (protocol, framing) = (request_context.protocol, request_context.framing);
    let (model, id) = (request_context.meta.model.clone(), Arc::clone(&request_context.route.id));
    let call = Some(Arc::clone(&request_context.call));
    let mut execution: Execution = Box::pin(request_context.execute());
    if let Ok(answered) = tokio::time::timeout(KEEP_ALIVE, &mut execution).await {
        return answered;
    }
    let origin = Origin::sought(id);
    let keepalive = Keepalive {
        then: KeepaliveStep::Comment(execution),
        protocol,
        framing,
        model,
        origin: origin.clone(),
        call,
    };
    let body = stream::unfold(keepalive, |mut keepalive| async move {
        let bytes = keepalive.next().await?;
        Some((bytes, keepalive))
    });
    let mut response = headed(Body::from_stream(body), framing);
    response.extensions_mut().insert(origin);
    Ok(response)
}

impl Keepalive {
    /// The next bytes for the client; none at the end of the stream.
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        loop {
            match std::mem::replace(&mut self.then, KeepaliveStep::End) {
                KeepaliveStep::Comment(execution) => {
                    self.then = KeepaliveStep::Wait(execution);
                    return Some(Ok(Bytes::from_static(self.framing.keep_alive())));
                }
                KeepaliveStep::Wait(mut execution) => {
                    match tokio::time::timeout(KEEP_ALIVE, &mut execution).await {
                        Err(_) => self.then = KeepaliveStep::Comment(execution),
                        Ok(Ok(response)) => {
                            if let Some(origin) = response.extensions().get() {
                                self.origin.found(origin);
                            }
                            self.call = None;
                            let dropped = self.dropped(&response);
                            self.then = KeepaliveStep::Pass(response.into_body());
                            if let Some(dropped) = dropped {
                                return Some(Ok(dropped));
                            }
                        }
                        Ok(Err(error)) => {
                            match self.call.take() {
                                Some(call) if !call.presence.has_ended() => self.count_failure(&call),
                                _ => self.then = KeepaliveStep::Cut,
                            }
                            return Some(Ok(self.failed(&error)));
                        }
                    }
                }
                KeepaliveStep::Pass(mut body) => {
                    let frame = body.frame().await?;
                    self.then = KeepaliveStep::Pass(body);
                    return Some(frame.map(|frame| frame.into_data().unwrap_or_default()));
                }
                KeepaliveStep::Cut => {
                    // Return first, so that the server sends the bytes it already has.
                    tokio::task::yield_now().await;
                    return Some(Err(GivenUp.into()));
                }
                KeepaliveStep::End => return None,
            }
        }
    }

    /// Reports what the upstream's protocol can't express as a comment, because the response head is already sent. A JSON array
    /// can't hold comments.
    fn dropped(&self, response: &Response) -> Option<Bytes> {
        // Bounded and without line breaks, like a header value.
        let places = response.headers().get(DROPPED_HEADER)?.to_str().ok()?;
        (self.framing == Framing::Events).then(|| format!(": dropped {places}\n\n").into())
    }

    /// Counts a request whose response head has promised success.
    fn count_failure(&self, call: &Call) {
        let upstream = call.failed_at.get();
        self.origin.found(&Origin::failed(Arc::clone(&self.origin.model), upstream.cloned()));
        call.caller.failed(Some(&self.origin.model), upstream);
    }

    /// Ends a stream for which no upstream answered.
    fn failed(&mut self, error: &ApiError) -> Bytes {
        let inspector = StreamInspector::new(self.protocol, &self.model, false);
        let event = last_event(self.protocol, &stream_error(error), &inspector);
        let mut out = BytesMut::new();
        write_end(&mut self.framing, &event, &mut out);
        out.freeze()
    }
}
