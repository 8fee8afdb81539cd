//! Relays a stream from an upstream to a client: event by event, with keep-alives during silence. Ends it in its protocol's
//! format if the upstream fails, and aborts it when the client disconnects.

mod account;
mod beginning;
mod taking;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use gatewright::redact::Redactor;
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;

pub(crate) use self::account::{Follow, StreamAccount};
use super::MAX_SPARE;
use super::event_reader::{EventReader, StreamFormat};
use super::failure::{AttemptFailure, FailureClass};
use super::passthrough_stream::{EventProcessor, Framing};
use crate::bounds::memory_budget::Reservation;
use crate::storage::HistoryKeeper;
use crate::wire::{Body, Presence, Response};
use crate::work::BlockingPool;
use gatewright_protocol::inspect::StreamProgress;

/// Silence after which a comment tells the client that its answer is still in progress.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the upstream may take to end the response after its last event, so that the connection can be reused.
const LAST_WORD: Duration = Duration::from_millis(100);

/// A stream.
pub(crate) struct Stream {
    body: Body,
    reader: EventReader,
    events: Box<dyn EventProcessor>,
    presence: Presence,
    idle_timeout: Duration,
    keep_alive: Duration,
    redactor: Redactor,
    /// The memory that it holds.
    share: Reservation,
    /// Where long events are read.
    blocking_pool: BlockingPool,
    /// Written but not sent.
    out: BytesMut,
    /// How long the upstream has been silent.
    silent: Duration,
    then: AfterFlush,
    /// When the last event arrived.
    ended: Option<Instant>,
    /// Whether the answer is complete.
    complete: bool,
    /// Whether the upstream failed.
    failed: bool,
    /// Whether the client gets an error as its end.
    ends_in_error: bool,
    account: Option<StreamAccount>,
    /// Writes the answer to the store before the client gets its end.
    storing: Option<Arc<HistoryKeeper>>,
}

/// The client half-closed the connection before the end of the stream.
#[derive(Debug, thiserror::Error)]
#[error("the client closed its side of the connection")]
pub(crate) struct GivenUp;

/// What to do once everything written has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterFlush {
    /// Read from the upstream.
    Listen,
    End,
    /// Abort, so that no client mistakes it for the end.
    Cut,
}

/// The result of waiting for the upstream.
enum WaitResult {
    Packet(Bytes),
    /// The connection ended as it should.
    End,
    Broken,
    Silence,
    Gone,
}

impl Stream {
    /// `presence`: of the client for whom the upstream works.
    pub(crate) fn new(
        body: Body,
        events: Box<dyn EventProcessor>,
        presence: Presence,
        idle_timeout: Duration,
        redactor: Redactor,
        share: Reservation,
        blocking_pool: BlockingPool,
    ) -> Self {
        Self {
            body,
            reader: EventReader::new(StreamFormat::ServerSentEvents),
            events,
            presence,
            idle_timeout,
            keep_alive: KEEP_ALIVE,
            redactor,
            share,
            blocking_pool,
            out: BytesMut::new(),
            silent: Duration::ZERO,
            then: AfterFlush::Listen,
            ended: None,
            complete: false,
            failed: false,
            ends_in_error: false,
            account: None,
            storing: None,
        }
    }

    /// Reads a body of another format than server-sent events.
    pub(super) fn in_format(mut self, format: StreamFormat) -> Self {
        self.reader = EventReader::new(format);
        self
    }

    /// For an answer that is stored.
    pub(super) fn storing(mut self, recorder: &Arc<HistoryKeeper>) -> Self {
        self.storing = Some(Arc::clone(recorder));
        self
    }

    /// The response to the client.
    pub(crate) fn respond(mut self, account: StreamAccount) -> Response {
        self.account = Some(account);
        let framing = self.events.framing();
        let body = stream::unfold(self, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((bytes, stream))
        });
        headed(Body::from_stream(body), framing)
    }

    /// The next bytes for the client; none at the end. Errors: the stream was aborted.
    async fn next(&mut self) -> Option<Result<Bytes, GivenUp>> {
        let called = Instant::now();
        // The client has what was returned before.
        self.note_memory();
        loop {
            if !self.out.is_empty() {
                let progress = self.events.progress();
                if progress >= StreamProgress::Ended
                    && let Some(recorder) = self.storing.take()
                {
                    // Boxed: it would take memory in every stream.
                    Box::pin(recorder.written()).await;
                }
                if progress == StreamProgress::Ended {
                    // Before the client gets the end, so that what it received counts even if the gateway is killed then.
                    self.settle(true);
                }
                return Some(Ok(self.take_out()));
            }
            match self.then {
                AfterFlush::Listen => {}
                AfterFlush::End => return None,
                AfterFlush::Cut => {
                    // Yield first, so that the server sends the bytes it already has.
                    tokio::task::yield_now().await;
                    self.then = AfterFlush::End;
                    return Some(Err(GivenUp));
                }
            }
            let last_word = self.last_word();
            if last_word == Some(Duration::ZERO) {
                self.end().await;
                continue;
            }
            let ended = last_word.is_some();
            // Keep-alives from the upstream aren't forwarded to the client.
            let unheard = self.keep_alive.saturating_sub(called.elapsed());
            let patience = last_word.unwrap_or(unheard.min(self.idle_timeout.saturating_sub(self.silent)));
            match self.wait(patience).await {
                WaitResult::Packet(packet) => {
                    self.silent = Duration::ZERO;
                    if let (_, Some(failure)) = self.take(packet).await {
                        self.fail(&failure);
                    }
                }
                WaitResult::End => self.end().await,
                WaitResult::Broken | WaitResult::Silence if ended => self.end().await,
                WaitResult::Broken => {
                    let failure = AttemptFailure::broken("was cut off", &self.redactor);
                    self.fail(&failure);
                }
                WaitResult::Silence => {
                    self.silent += patience;
                    if self.silent >= self.idle_timeout {
                        let failure = AttemptFailure::silent(self.idle_timeout, &self.redactor);
                        self.fail(&failure);
                    } else {
                        return Some(Ok(Bytes::from_static(self.events.framing().keep_alive())));
                    }
                }
                WaitResult::Gone => {
                    let failure = AttemptFailure::given_up(&self.redactor);
                    self.fail(&failure);
                    // Nothing failed but the client.
                    (self.then, self.ends_in_error) = (AfterFlush::Cut, false);
                }
            }
        }
    }

    /// Output that has not been sent yet.
    fn take_out(&mut self) -> Bytes {
        if self.out.capacity() > MAX_SPARE { std::mem::take(&mut self.out) } else { self.out.split() }
            .freeze()
    }

    /// The memory that the stream takes, in bytes.
    fn memory(&self) -> usize {
        self.reader.memory() + self.out.capacity() + self.events.retained_bytes()
    }

    /// Gives back memory that the stream no longer takes.
    fn note_memory(&mut self) {
        let memory = self.memory();
        if memory < self.share.bytes() {
            _ = self.share.hold(memory);
        }
    }

    /// After the last event: how long the upstream may still take to end the response, whatever else it sends.
    fn last_word(&mut self) -> Option<Duration> {
        if self.events.progress() < StreamProgress::Ended {
            return None;
        }
        let ended = self.ended.get_or_insert_with(Instant::now);
        Some(LAST_WORD.saturating_sub(ended.elapsed()))
    }

    async fn wait(&mut self, patience: Duration) -> WaitResult {
        tokio::select! {
            biased;
            frame = self.body.frame() => match frame {
                Some(Ok(frame)) => WaitResult::Packet(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => WaitResult::Broken,
                None => WaitResult::End,
            },
            () = self.presence.ended() => WaitResult::Gone,
            () = tokio::time::sleep(patience) => WaitResult::Silence,
        }
    }

    /// The upstream ended the response.
    async fn end(&mut self) {
        match self.reader.last() {
            // A last event may lack its blank line.
            Ok(Some(last)) => {
                if let (_, Some(failure)) = self.take(last).await {
                    return self.fail(&failure);
                }
            }
            Err(malformed) if self.events.progress() < StreamProgress::Ended => {
                let failure = AttemptFailure::broken(&malformed.to_string(), &self.redactor);
                return self.fail(&failure);
            }
            Ok(None) | Err(_) => {}
        }
        if self.events.end(&mut self.out) {
            (self.then, self.complete) = (AfterFlush::End, true);
        } else {
            let failure = AttemptFailure::broken("ended early", &self.redactor);
            self.fail(&failure);
        }
    }

    fn fail(&mut self, failure: &AttemptFailure) {
        self.then = AfterFlush::End;
        self.events.fail(failure.cause(), &mut self.out);
        self.failed = failure.class == FailureClass::Upstream;
        self.ends_in_error = true;
    }
}

/// The response head for a stream.
pub(super) fn headed(body: Body, framing: Framing) -> Response {
    let media_type = match framing {
        Framing::Events => "text/event-stream; charset=utf-8",
        Framing::Array { .. } => "application/json",
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests;
