//! A stream on its way from an upstream to a client: event by event, kept alive in silence, ended in the words of its
//! protocol when the upstream dies, and given up when the client leaves.

use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use gatewright::redact::Redactor;
use http::{HeaderValue, header};
use http_body_util::BodyExt as _;

use super::failure::{Fault, Verdict};
use super::frames::{Frames, TooLong};
use super::observer::Progress;
use super::passing::{Events, Framing, Passed};
use crate::bounds::room::Share;
use crate::conversation::Usage;
use crate::routing::Claim;
use crate::usage::Charge;
use crate::wire::{Presence, Response};

/// Silence after which a comment tells the client that its answer is still under way.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the upstream may take to end the connection after its last event, so that it can be used again.
const LAST_WORD: Duration = Duration::from_millis(100);

/// A stream.
pub(crate) struct Stream {
    body: Body,
    frames: Frames,
    events: Box<dyn Events>,
    presence: Presence,
    idle_timeout: Duration,
    keep_alive: Duration,
    redactor: Redactor,
    /// The memory that it takes.
    share: Share,
    /// Written and not sent.
    out: BytesMut,
    /// How long the upstream has sent nothing.
    silent: Duration,
    then: Then,
    /// When the last event came.
    ended: Option<Instant>,
    /// Whether the answer has come to its end.
    complete: bool,
    /// Whether the upstream failed.
    failed: bool,
    account: Option<Account>,
}

/// Who answers, and what it takes.
pub(crate) struct Account {
    pub(crate) claim: Claim,
    pub(crate) charge: Charge,
    /// Estimated number of tokens of the request.
    pub(crate) input: u64,
}

/// The client closed its side before the end of the stream.
#[derive(Debug, thiserror::Error)]
#[error("the client closed its side of the connection")]
pub(crate) struct GivenUp;

/// What follows once all that is written has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    /// What the upstream sends.
    Listen,
    End,
    /// An end that no client takes for one.
    Cut,
}

/// What comes of waiting for the upstream.
enum Waited {
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
        events: Box<dyn Events>,
        presence: Presence,
        idle_timeout: Duration,
        redactor: Redactor,
        share: Share,
    ) -> Self {
        Self {
            body,
            frames: Frames::default(),
            events,
            presence,
            idle_timeout,
            keep_alive: KEEP_ALIVE,
            redactor,
            share,
            out: BytesMut::new(),
            silent: Duration::ZERO,
            then: Then::Listen,
            ended: None,
            complete: false,
            failed: false,
            account: None,
        }
    }

    /// Waits for the first event, but no longer than a client waits without a sign of life. Errors: the upstream failed
    /// before its first event, so that another one can be asked.
    pub(crate) async fn begin(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            let Some(rest) = self.keep_alive.min(self.idle_timeout).checked_sub(begun.elapsed()) else {
                return Ok(());
            };
            let (packet, ended) = match self.wait(rest).await {
                Waited::Packet(packet) => (packet, false),
                // A last event may lack its blank line.
                Waited::End => (self.frames.last().unwrap_or_default(), true),
                Waited::Broken => return Err(Fault::broken("broke off", &self.redactor)),
                Waited::Silence if self.idle_timeout < self.keep_alive => {
                    return Err(Fault::silent(self.idle_timeout, &self.redactor));
                }
                Waited::Silence | Waited::Gone => return Ok(()),
            };
            match self.take(packet) {
                (false, Some(fault)) => return Err(fault),
                (true, Some(fault)) => {
                    self.fail(&fault);
                    return Ok(());
                }
                (has_content, None) if ended => {
                    self.complete = self.events.end(&mut self.out);
                    match (has_content, self.complete) {
                        (_, true) => self.then = Then::End,
                        (true, false) => self.fail(&Fault::broken("ended early", &self.redactor)),
                        (false, false) => return Err(Fault::broken("ended before it began", &self.redactor)),
                    }
                    return Ok(());
                }
                (true, None) => return Ok(()),
                (false, None) => {}
            }
        }
    }

    /// The response to the client.
    pub(crate) fn respond(mut self, account: Account) -> Response {
        self.account = Some(account);
        let media_type = match self.events.framing() {
            Framing::Events => "text/event-stream; charset=utf-8",
            Framing::Array { .. } => "application/json",
        };
        let body = stream::unfold(self, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((bytes, stream))
        });
        let mut response = Response::new(Body::from_stream(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    /// The next bytes for the client; none at the end. Errors: the stream was given up.
    async fn next(&mut self) -> Option<Result<Bytes, GivenUp>> {
        let asked = Instant::now();
        loop {
            if !self.out.is_empty() {
                return Some(Ok(self.out.split().freeze()));
            }
            match self.then {
                Then::Listen => {}
                Then::End => return None,
                Then::Cut => {
                    // Whoever sends the response sends what it has got of it first.
                    tokio::task::yield_now().await;
                    self.then = Then::End;
                    return Some(Err(GivenUp));
                }
            }
            let last_word = self.last_word();
            if last_word == Some(Duration::ZERO) {
                self.end();
                continue;
            }
            let ended = last_word.is_some();
            // The client hears nothing of what the upstream sends only to keep the connection alive.
            let unheard = self.keep_alive.saturating_sub(asked.elapsed());
            let patience = last_word.unwrap_or(unheard.min(self.idle_timeout.saturating_sub(self.silent)));
            match self.wait(patience).await {
                Waited::Packet(packet) => {
                    self.silent = Duration::ZERO;
                    if let (_, Some(fault)) = self.take(packet) {
                        self.fail(&fault);
                    }
                }
                Waited::End => self.end(),
                Waited::Broken | Waited::Silence if ended => self.end(),
                Waited::Broken => {
                    let fault = Fault::broken("broke off", &self.redactor);
                    self.fail(&fault);
                }
                Waited::Silence => {
                    self.silent += patience;
                    if self.silent >= self.idle_timeout {
                        let fault = Fault::silent(self.idle_timeout, &self.redactor);
                        self.fail(&fault);
                    } else {
                        return Some(Ok(Bytes::from_static(self.events.framing().keep_alive())));
                    }
                }
                Waited::Gone => {
                    let fault = Fault::given_up(&self.redactor);
                    self.fail(&fault);
                    self.then = Then::Cut;
                }
            }
        }
    }

    /// After the last event: how long the upstream may still take to end the connection, whatever else it sends.
    fn last_word(&mut self) -> Option<Duration> {
        if self.events.progress() < Progress::Ended {
            return None;
        }
        let ended = self.ended.get_or_insert_with(Instant::now);
        Some(LAST_WORD.saturating_sub(ended.elapsed()))
    }

    async fn wait(&mut self, patience: Duration) -> Waited {
        tokio::select! {
            biased;
            frame = self.body.frame() => match frame {
                Some(Ok(frame)) => Waited::Packet(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => Waited::Broken,
                None => Waited::End,
            },
            () = self.presence.ended() => Waited::Gone,
            () = tokio::time::sleep(patience) => Waited::Silence,
        }
    }

    /// Takes a packet of the upstream. Returns whether it held an event of the answer, and what ends the stream: an error
    /// that the upstream told, or that its events cannot be read.
    fn take(&mut self, packet: Bytes) -> (bool, Option<Fault>) {
        let Self { frames, events, out, share, .. } = self;
        let (mut content, mut failed, mut has_room) = (false, None, true);
        let pushed = frames.push(packet, |block| {
            // Before it is read: what is made of an event takes more than its text.
            has_room = has_room && share.hold(share.bytes().saturating_add(events.weight(&block))).is_ok();
            if failed.is_some() || !has_room {
                return;
            }
            match events.block(&block, out) {
                Passed::Content => content = true,
                Passed::Life => {}
                Passed::Error(failure) => failed = Some(failure),
            }
        });
        self.note_usage();
        let held = self.frames.begun() + self.out.len() + self.events.kept();
        has_room = has_room && self.share.hold(held).is_ok();
        let fault = match (failed, pushed) {
            (Some(failure), _) => Some(Fault::of_event(failure, &self.redactor)),
            (None, _) if !has_room => Some(Fault::no_room(&self.redactor)),
            (None, Err(TooLong)) => Some(Fault::broken("holds an event that is too long", &self.redactor)),
            (None, Ok(())) => None,
        };
        (content, fault)
    }

    /// The upstream ended the connection.
    fn end(&mut self) {
        // A last event may lack its blank line.
        if let Some(last) = self.frames.last()
            && let (_, Some(fault)) = self.take(last)
        {
            return self.fail(&fault);
        }
        if self.events.end(&mut self.out) {
            (self.then, self.complete) = (Then::End, true);
        } else {
            let fault = Fault::broken("ended early", &self.redactor);
            self.fail(&fault);
        }
    }

    fn fail(&mut self, fault: &Fault) {
        self.then = Then::End;
        self.events.fail(fault.failure(), &mut self.out);
        self.failed = fault.verdict == Verdict::Upstream;
    }

    fn note_usage(&mut self) {
        if let (Some(account), Some(usage)) = (&mut self.account, self.events.usage()) {
            account.charge.told(usage);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.note_usage();
        if let Some(account) = &mut self.account {
            if self.failed {
                account.claim.failed(Instant::now());
            }
            // An event is about a token.
            let output = Some(self.events.pieces());
            account.charge.estimated(Usage { input: Some(account.input), output, ..Usage::default() });
            if self.complete {
                account.charge.complete();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::super::observer::Observer;
    use super::super::passing::Passing;
    use super::super::translating::Translating;
    use super::*;
    use crate::bounds::room::Room;
    use crate::conversation::Protocol;

    fn stream_of(body: Body) -> Stream {
        let observer = Observer::new(Protocol::Chat, "m", false);
        let events = Box::new(Passing::new(Protocol::Chat, Framing::Events, observer));
        let share = Room::new(1024 * 1024).share();
        Stream::new(body, events, Presence::default(), Duration::from_mins(1), Redactor::default(), share)
    }

    #[tokio::test]
    async fn an_only_event_without_its_blank_line_is_an_answer() {
        let event = r#"data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
        let mut stream = stream_of(Body::from(event));
        stream.begin().await.expect("an answer");
        let mut text = Vec::new();
        while let Some(bytes) = stream.next().await {
            text.extend_from_slice(&bytes.expect("an upstream that is heard"));
        }
        assert_eq!(String::from_utf8(text).expect("text"), format!("{event}\n\ndata: [DONE]\n\n"));
        assert!(stream.complete);
        let half = stream_of(Body::from("data: {\"choices\":[")).begin().await;
        assert!(half.is_err());
    }

    /// The text of a stream, up to the first packet that is not a sign of life, and the number of those before it.
    async fn after_signs_of_life(mut stream: Stream) -> (usize, String) {
        stream.keep_alive = Duration::from_millis(10);
        let mut signs = 0;
        loop {
            let bytes = stream.next().await.expect("more").expect("an upstream that is heard");
            if bytes != Framing::Events.keep_alive() {
                return (signs, String::from_utf8(bytes.to_vec()).expect("text"));
            }
            signs += 1;
        }
    }

    #[tokio::test]
    async fn silence_counts_on_while_the_client_gets_signs_of_life() {
        let silence = stream::pending::<Result<Bytes, Infallible>>();
        let mut stream = stream_of(Body::from_stream(silence));
        stream.idle_timeout = Duration::from_millis(100);
        let (signs, text) = after_signs_of_life(stream).await;
        assert!(signs > 0);
        assert!(text.contains("upstream_timeout"), "{text}");
    }

    #[tokio::test]
    async fn a_client_gets_signs_of_life_where_those_of_the_upstream_do_not_reach_it() {
        let asked = crate::protocols::Asked {
            model: "m".to_owned(),
            request: serde_json::Value::Null,
            include_usage: false,
            id: "c".to_owned(),
            created: 0,
        };
        let pings = stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
            let start = "data: {\"type\":\"message_start\",\"message\":{}}\n\n";
            let event = if count < 100 { ping } else { start };
            Some((Ok::<_, Infallible>(Bytes::from_static(event.as_bytes())), count + 1))
        });
        let mut stream = stream_of(Body::from_stream(pings));
        stream.events =
            Box::new(Translating::new(Protocol::Messages, Protocol::Chat, Framing::Events, asked, None));
        let (signs, text) = after_signs_of_life(stream).await;
        assert!(signs >= 1 && text.contains("chat.completion.chunk"), "{signs}: {text}");
    }

    #[tokio::test]
    async fn an_upstream_that_goes_on_after_its_last_event_is_not_listened_to() {
        let events = stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let event: &[u8] = match count {
                0 => b"data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
                _ => b": still here\n\n",
            };
            Some((Ok::<_, Infallible>(Bytes::from_static(event)), count + 1))
        });
        let mut stream = stream_of(Body::from_stream(events));
        let whole = async { while stream.next().await.is_some() {} };
        tokio::time::timeout(Duration::from_secs(20), whole).await.expect("an end");
        assert!(stream.complete);
    }
}
