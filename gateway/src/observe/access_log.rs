//! Tracks a response on its way to the client. When it ends, or the client disconnects, its metrics are recorded and the
//! request is logged.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use gatewright::operations::Operation;
use http::Method;
use http_body::{Body as _, Frame, SizeHint};
use memchr::memchr;

use super::content::ContentRecord;
use super::metrics::{GaugeGuard, Metrics};
use super::origin::Origin;
use super::recent::RecentEntry;
use super::response_inspector::ResponseInspector;
use super::traces::{self, TracedRequest};
use crate::wire::{Body, BodyError, FailureCode, Response};
use tracing::Span;

/// A request as logged.
#[derive(Debug)]
pub(crate) struct LoggedRequest {
    pub(crate) started: Instant,
    /// The request among those in flight.
    #[expect(dead_code, reason = "it counts until it is dropped")]
    pub(crate) present: GaugeGuard,
    pub(crate) method: Method,
    /// Without the query, which may contain a key.
    pub(crate) path: String,
    pub(crate) id: String,
    /// `None` if the request matched none.
    pub(crate) operation: Option<&'static Operation>,
    /// Its trace span.
    pub(crate) span: Span,
    /// Its entry in the operators' list, if an admin key is set.
    pub(crate) shown: Option<RecentEntry>,
    /// Where its response is recorded, if that is kept.
    pub(crate) content: Option<ContentRecord>,
}

/// Watches a response until it has been sent.
pub(crate) fn watch(metrics: &Arc<Metrics>, request: LoggedRequest, response: Response) -> Response {
    let status = response.status().as_u16();
    metrics.answered(request.operation, status);
    let origin = response.extensions().get::<Origin>().cloned();
    if let Some(shown) = &request.shown {
        let error = response.extensions().get::<FailureCode>().map(|code| code.0);
        shown.answered(status, error, origin.as_ref());
    }
    let inspector = (!request.span.is_disabled()).then(|| {
        // Reporting something that failed earlier, such as a task, doesn't make the request itself a failure.
        let answers = request.operation.is_some_and(|operation| operation.inference.is_some());
        Box::new(ResponseInspector::new(response.headers(), answers || status >= 400, request.started))
    });
    let metrics = Arc::clone(metrics);
    response.map(|body| {
        let whole = body.is_end_stream();
        if whole {
            metrics.started(request.operation, request.started.elapsed());
        }
        let (bytes, started, failed) = (0, whole, false);
        let sending =
            ResponseLog { metrics, request, origin, status, bytes, started, whole, failed, inspector };
        Body::new(LoggedBody { body, sending })
    })
}

/// A watched body.
struct LoggedBody {
    body: Body,
    sending: ResponseLog,
}

/// Data about a response, recorded when it is dropped.
struct ResponseLog {
    metrics: Arc<Metrics>,
    request: LoggedRequest,
    origin: Option<Origin>,
    status: u16,
    bytes: u64,
    /// Whether anything but keep-alives has been sent.
    started: bool,
    whole: bool,
    failed: bool,
    /// What the response contained, if traces are exported.
    inspector: Option<Box<ResponseInspector>>,
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(context));
        match &polled {
            Some(Ok(frame)) => {
                let Self { body, sending } = &mut *self;
                if let Some(data) = frame.data_ref() {
                    sending.bytes += data.len() as u64;
                    if let Some(content) = &sending.request.content {
                        content.sent(data);
                    }
                    if !sending.started && says_something(data) {
                        sending.started = true;
                        let LoggedRequest { operation, started, .. } = sending.request;
                        sending.metrics.started(operation, started.elapsed());
                    }
                    if let Some(inspector) = &mut sending.inspector {
                        inspector.take(data);
                    }
                }
                // A body of known length is not polled after its last byte.
                sending.whole = body.is_end_stream();
            }
            Some(Err(_)) => self.sending.failed = true,
            None => self.sending.whole = !self.sending.failed,
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Whether data contains more than keep-alives: comments between events, and line breaks before an array.
fn says_something(mut data: &[u8]) -> bool {
    loop {
        data = match data.first() {
            None => return false,
            Some(b'\n') => &data[1..],
            Some(b':') => memchr(b'\n', data).map_or(&[], |end| &data[end..]),
            Some(_) => return true,
        };
    }
}

impl Drop for ResponseLog {
    fn drop(&mut self) {
        let Self { metrics, request, origin, status, bytes, started: _, whole, failed, inspector } = self;
        // A response to a HEAD request has no body to send.
        let whole = *whole || request.method == Method::HEAD;
        let took = request.started.elapsed();
        metrics.ended(request.operation, took, whole);
        let outcome = match (whole, *failed) {
            (true, _) => "complete",
            (false, true) => "failed",
            (false, false) => "aborted",
        };
        if let Some(shown) = &request.shown {
            if let Some(origin) = origin {
                shown.found(origin);
            }
            shown.ended(outcome, *bytes);
        }
        let model = origin.as_ref().map(|origin| &*origin.model);
        let upstream = origin.as_ref().and_then(Origin::upstream).map(|upstream| &**upstream);
        if let Some(inspector) = inspector {
            inspector.end();
            let (operation, origin) = (request.operation, origin.as_ref());
            traces::complete(
                &request.span,
                &TracedRequest { operation, origin, status: *status, outcome, inspector },
            );
        }
        tracing::info!(
            method = %request.method,
            path = request.path,
            operation = request.operation.map(|operation| operation.id),
            status = *status,
            outcome,
            duration_ms = took.as_secs_f64() * 1000.0,
            bytes = *bytes,
            model,
            upstream,
            request_id = request.id,
            "answered"
        );
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use gatewright::operations;
    use http_body_util::BodyExt as _;

    use super::*;

    fn request(metrics: &Metrics) -> LoggedRequest {
        LoggedRequest {
            started: Instant::now(),
            present: GaugeGuard::new(&metrics.in_flight),
            method: Method::POST,
            path: "/v1/chat/completions".to_owned(),
            id: "req_1".to_owned(),
            operation: Some(&operations::CREATE_CHAT_COMPLETION),
            span: Span::none(),
            shown: None,
            content: None,
        }
    }

    fn aborted(metrics: &Metrics) -> bool {
        metrics.render().contains("gatewright_requests_aborted_total{operation=\"create_chat_completion\"} 1")
    }

    #[tokio::test]
    async fn first_byte_metric_ignores_keep_alives() {
        let metrics: Arc<Metrics> = Arc::default();
        let pieces = [": ping\n\n", "\n", ": a\n\n: b\n\n", ": c\n\ndata: 1\n\n", "data: 2\n\n"];
        let body = Body::from_stream(futures_util::stream::iter(pieces.map(Ok::<_, BodyError>)));
        let mut body = watch(&metrics, request(&metrics), Response::new(body)).into_body();
        let name = "gatewright_time_to_first_byte_seconds_count{operation=\"create_chat_completion\"}";
        let counts = || metrics.render().contains(&format!("{name} 1"));
        for started in [false, false, false, true, true] {
            body.frame().await.expect("a piece").expect("data");
            assert_eq!(counts(), started);
        }
    }

    #[tokio::test]
    async fn fully_read_response_is_not_aborted() {
        for body in [Body::from("known length"), Body::empty(), Body::from_stream(pieces(2))] {
            let metrics = Arc::default();
            let response = watch(&metrics, request(&metrics), Response::new(body));
            assert!(metrics.render().contains("gatewright_requests_in_flight 1"));
            response.into_body().collect().await.expect("a body");
            assert!(!aborted(&metrics) && metrics.render().contains("gatewright_requests_in_flight 0"));
        }
    }

    #[tokio::test]
    async fn response_is_aborted_when_its_client_disconnects() {
        let metrics = Arc::default();
        let response = watch(&metrics, request(&metrics), Response::new(Body::from_stream(pieces(3))));
        let mut stream = response.into_body().into_data_stream();
        stream.next().await.expect("a piece").expect("no failure");
        drop(stream);
        assert!(aborted(&metrics));
    }

    fn pieces(
        number: usize,
    ) -> impl futures_util::Stream<Item = Result<&'static str, std::convert::Infallible>> + Send {
        futures_util::stream::iter((0..number).map(|_| Ok("piece")))
    }
}
