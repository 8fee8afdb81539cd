//! Streams whose upstreams take long: after 15 s without an event the client gets a head and a sign of life, and another one
//! every 15 s, while upstreams are still asked one after the other. An error is then told as its protocol tells one in a stream.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::BodyExt as _;

use super::RequestContext;
use super::failure::{StreamError, last_event};
use super::passthrough_stream::{Framing, write_end};
use super::stream::{GivenUp, KEEP_ALIVE, headed};
use super::stream_inspector::StreamInspector;
use super::translate_request::DROPPED_HEADER;
use crate::conversation::Protocol;
use crate::observe::Origin;
use crate::wire::{ApiError, Presence, Response};

type Execution = Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>>;

/// The body of a response that has begun before an upstream answered.
struct Keepalive {
    then: Then,
    protocol: Protocol,
    framing: Framing,
    /// As the client called it.
    model: String,
    origin: Origin,
    presence: Presence,
}

/// What follows.
enum Then {
    /// A sign of life.
    Sign(Execution),
    /// What upstreams say.
    Ask(Execution),
    /// What one has begun to answer.
    Pass(Body),
    /// An end that no client takes for one.
    Cut,
    End,
}

/// The response to a request for a stream. Errors: nobody has answered, and the client has got nothing yet.
pub(super) async fn answer(request_context: RequestContext) -> Result<Response, ApiError> {
    let (protocol, framing) = (request_context.protocol, request_context.framing);
    let (model, id) = (request_context.meta.model.clone(), Arc::clone(&request_context.route.id));
    let presence = request_context.call.presence.clone();
    let mut execution: Execution = Box::pin(request_context.execute());
    if let Ok(answered) = tokio::time::timeout(KEEP_ALIVE, &mut execution).await {
        return answered;
    }
    let origin = Origin::sought(id);
    let early =
        Keepalive { then: Then::Sign(execution), protocol, framing, model, origin: origin.clone(), presence };
    let body = stream::unfold(early, |mut early| async move {
        let bytes = early.next().await?;
        Some((bytes, early))
    });
    let mut response = headed(Body::from_stream(body), framing);
    response.extensions_mut().insert(origin);
    Ok(response)
}

impl Keepalive {
    /// The next bytes for the client; none at the end.
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            match std::mem::replace(&mut self.then, Then::End) {
                Then::Sign(execution) => {
                    self.then = Then::Ask(execution);
                    return Some(Ok(Bytes::from_static(self.framing.keep_alive())));
                }
                Then::Ask(mut execution) => match tokio::time::timeout(KEEP_ALIVE, &mut execution).await {
                    Err(_) => self.then = Then::Sign(execution),
                    Ok(Ok(response)) => {
                        if let Some(origin) = response.extensions().get() {
                            self.origin.found(origin);
                        }
                        let dropped = self.dropped(&response);
                        self.then = Then::Pass(response.into_body());
                        if let Some(dropped) = dropped {
                            return Some(Ok(dropped));
                        }
                    }
                    Ok(Err(error)) => {
                        if self.presence.has_ended() {
                            self.then = Then::Cut;
                        }
                        return Some(Ok(self.failed(&error)));
                    }
                },
                Then::Pass(mut body) => {
                    let frame = body.frame().await?;
                    self.then = Then::Pass(body);
                    return Some(frame.map(|frame| frame.into_data().unwrap_or_default()));
                }
                Then::Cut => {
                    // Whoever sends the response sends what it has got of it first.
                    tokio::task::yield_now().await;
                    return Some(Err(axum::Error::new(GivenUp)));
                }
                Then::End => return None,
            }
        }
    }

    /// What the upstream's protocol has no words for, for which the header of the response came too late: a comment. An
    /// array has no place for one.
    fn dropped(&self, response: &Response) -> Option<Bytes> {
        // Within bounds and without line breaks, as a header is.
        let places = response.headers().get(DROPPED_HEADER)?.to_str().ok()?;
        (self.framing == Framing::Events).then(|| format!(": dropped {places}\n\n").into())
    }

    /// The end of a stream that never came.
    fn failed(&mut self, error: &ApiError) -> Bytes {
        let inspector = StreamInspector::new(self.protocol, &self.model, false);
        let event = last_event(self.protocol, &StreamError::of_error(error), &inspector);
        let mut out = BytesMut::new();
        write_end(&mut self.framing, &event, &mut out);
        out.freeze()
    }
}
