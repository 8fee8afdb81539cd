//! Relays a sound: its bytes, as they arrive. Only the first are looked at, while failover is still possible, because some servers
//! send an error in place of a sound. A sound that ends early is cut off for the client, too: nothing in most formats marks its end.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use gatewright_protocol::conversation::Protocol;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt as _;
use serde::Deserialize;

use super::attempt_metrics::AttemptMetrics;
use super::error_body;
use super::failure::AttemptFailure;
use crate::bounds::memory_budget::Reservation;
use crate::routing::UpstreamAttempt;
use crate::upstream::Endpoint;
use crate::usage::Charge;
use crate::wire::peeked::{PeekError, peek};
use crate::wire::{Body, Presence, Response};

/// Maximum size of a sound, in bytes: more than an hour of speech without compression.
const MAX_BYTES: usize = 256 * 1024 * 1024;
/// What is wrong with anything else.
const NO_SOUND: &str = "is not a sound";
/// The media type of bytes that their server doesn't label.
const UNLABELLED: HeaderValue = HeaderValue::from_static("application/octet-stream");

/// A sound that has begun.
pub(super) struct Sound {
    body: Body,
    media_type: HeaderValue,
    /// Of the client for whom the upstream works.
    presence: Presence,
    idle_timeout: Duration,
    /// The memory of the bytes that the client gets next.
    share: Reservation,
    /// How many bytes it may still have.
    left: usize,
    is_over: bool,
    /// Whether the upstream failed.
    failed: bool,
    account: Option<SoundAccount>,
}

/// The upstream that answers, and the charge for the request.
pub(super) struct SoundAccount {
    pub(super) attempt: UpstreamAttempt,
    pub(super) charge: Charge,
    pub(super) attempt_metrics: AttemptMetrics,
}

/// How many characters a request for speech has. `request`: without duplicate members.
pub(super) fn characters_of(request: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Speech<'r> {
        #[serde(borrow)]
        input: Cow<'r, str>,
    }
    serde_json::from_slice(request).map_or(0, |Speech { input }| input.chars().count() as u64)
}

/// Why a sound ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CutOff {
    #[error("the provider's response was cut off")]
    Broken,
    #[error("the provider's response is larger than {MAX_BYTES} bytes")]
    TooLong,
    #[error("the gateway has no memory for the response")]
    NoRoom,
    #[error("the client closed its side of the connection")]
    ClientLeft,
}

impl Sound {
    /// Waits for the first bytes. `from`: the upstream's protocol. Errors: it sends something else than a sound, or nothing.
    pub(super) async fn begin(
        headers: &HeaderMap,
        body: Body,
        from: Protocol,
        endpoint: &Endpoint,
        presence: Presence,
        share: Reservation,
    ) -> Result<Self, AttemptFailure> {
        let (redactor, idle_timeout) = (&endpoint.redactor, endpoint.idle_timeout);
        let media_type = headers.get(header::CONTENT_TYPE).cloned().unwrap_or(UNLABELLED);
        let label = Label::of(&media_type);
        let is_enough = |seen: &[u8]| match label {
            Label::Bytes => begins_json(seen).is_some(),
            Label::Sound | Label::Other => !seen.is_empty(),
        };
        let looked = peek(body, idle_timeout, is_enough).await;
        let (first, body) = looked.map_err(|why| match why {
            PeekError::Silent => AttemptFailure::silent(idle_timeout, redactor),
            PeekError::Broken => AttemptFailure::broken("ended before it started", redactor),
        })?;
        if first.is_empty() {
            return Err(AttemptFailure::broken("is empty", redactor));
        }
        let is_sound = match label {
            Label::Sound => true,
            Label::Bytes => begins_json(&first) == Some(false),
            Label::Other => false,
        };
        if !is_sound {
            let document = error_body::read(body).await;
            return Err(AttemptFailure::of_document(from, &document, NO_SOUND, redactor));
        }
        Ok(Self {
            body,
            media_type,
            presence,
            idle_timeout,
            share,
            left: MAX_BYTES,
            is_over: false,
            failed: false,
            account: None,
        })
    }

    /// The response to the client.
    pub(super) fn respond(mut self, account: SoundAccount) -> Response {
        self.account = Some(account);
        let media_type = self.media_type.clone();
        let body = stream::unfold(self, |mut sound| async move {
            let bytes = sound.next().await?;
            Some((bytes, sound))
        });
        let mut response = Response::new(Body::from_stream(body));
        response.headers_mut().insert(header::CONTENT_TYPE, media_type);
        response
    }

    /// The next bytes for the client; none at the end. Errors: it was cut off.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, CutOff>> {
        while !self.is_over {
            let frame = tokio::select! {
                biased;
                frame = tokio::time::timeout(self.idle_timeout, self.body.frame()) => frame,
                () = self.presence.ended() => return Some(Err(self.cut(CutOff::ClientLeft).await)),
            };
            let packet = match frame {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(None) => {
                    self.complete();
                    return None;
                }
                Ok(Some(Err(_))) | Err(_) => return Some(Err(self.cut(CutOff::Broken).await)),
            };
            let Some(left) = self.left.checked_sub(packet.len()) else {
                return Some(Err(self.cut(CutOff::TooLong).await));
            };
            // The client has the bytes before these.
            if self.share.hold(packet.len()).is_err() {
                return Some(Err(self.cut(CutOff::NoRoom).await));
            }
            self.left = left;
            if !packet.is_empty() {
                return Some(Ok(packet));
            }
        }
        None
    }

    /// Ends it early, so that no client mistakes this for the end.
    async fn cut(&mut self, why: CutOff) -> CutOff {
        self.is_over = true;
        self.failed = matches!(why, CutOff::Broken | CutOff::TooLong);
        if why != CutOff::ClientLeft
            && let Some(account) = &mut self.account
        {
            account.charge.fail();
        }
        // Yield first, so that the server sends the bytes it already has.
        tokio::task::yield_now().await;
        why
    }

    /// Records the usage before the client gets the end.
    fn complete(&mut self) {
        self.is_over = true;
        if let Some(mut account) = self.account.take() {
            account.charge.complete();
        }
    }
}

impl Drop for Sound {
    fn drop(&mut self) {
        if let Some(account) = &mut self.account
            && self.failed
        {
            account.attempt.failed(Instant::now());
            account.attempt_metrics.broke_off();
        }
    }
}

/// What the media type says about a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Sound,
    /// Bytes of any kind.
    Bytes,
    /// A document or a page.
    Other,
}

impl Label {
    pub(super) fn of(media_type: &HeaderValue) -> Self {
        let media_type = media_type.to_str().unwrap_or_default().to_ascii_lowercase();
        let name = media_type.split(';').next().unwrap_or_default().trim();
        match name {
            // Some containers of sounds are named after videos.
            _ if name.starts_with("audio/") || name.starts_with("video/") => Self::Sound,
            "application/ogg" => Self::Sound,
            "" | "application/octet-stream" | "binary/octet-stream" => Self::Bytes,
            _ => Self::Other,
        }
    }
}

/// Whether unlabelled bytes begin a JSON object. `None`: there are too few to tell.
fn begins_json(seen: &[u8]) -> Option<bool> {
    let mut visible = seen.iter().filter(|byte| !byte.is_ascii_whitespace());
    match visible.next()? {
        b'{' => visible.next().map(|byte| matches!(byte, b'"' | b'}')),
        _ => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use gatewright::redact::Redactor;

    use super::*;

    #[test]
    fn characters_of_a_request_are_those_of_its_text() {
        for (request, expected) in [
            (r#"{"model":"m","input":"a boat","voice":"v"}"#, 6),
            (r#"{"input":"\u00e9\ud83d\ude42\n"}"#, 3),
            ("{\"input\":\"éé\"}", 2),
            ("{}", 0),
        ] {
            assert_eq!(characters_of(request.as_bytes()), expected, "{request}");
        }
    }

    #[test]
    fn media_types_tell_sounds_from_documents() {
        for (media_type, label) in [
            ("audio/mpeg", Label::Sound),
            ("Audio/WAV; codecs=1", Label::Sound),
            ("video/mp4", Label::Sound),
            ("application/ogg", Label::Sound),
            ("application/octet-stream", Label::Bytes),
            ("", Label::Bytes),
            ("application/json", Label::Other),
            ("text/event-stream", Label::Other),
            ("text/html; charset=utf-8", Label::Other),
            ("audio", Label::Other),
        ] {
            assert_eq!(Label::of(&HeaderValue::from_static(media_type)), label, "{media_type}");
        }
    }

    #[test]
    fn unlabelled_json_is_recognized_in_any_layout_and_packets() {
        for (seen, expected) in [
            ("", None),
            (" \r\n", None),
            ("{", None),
            ("\n{ ", None),
            ("{\"", Some(true)),
            ("{\n  \"error\"", Some(true)),
            ("{}", Some(true)),
            ("ID3", Some(false)),
            ("RIFF{\"", Some(false)),
            ("{\u{1}", Some(false)),
            ("\0", Some(false)),
        ] {
            assert_eq!(begins_json(seen.as_bytes()), expected, "{seen:?}");
        }
    }

    #[test]
    fn error_in_place_of_a_sound_is_that_error() {
        let message = |document: &'static str| {
            let failure = AttemptFailure::of_document(
                Protocol::Chat,
                document.as_bytes(),
                NO_SOUND,
                &Redactor::default(),
            );
            failure.cause().message.clone()
        };
        assert_eq!(message(r#"{"error":{"message":"no voice today"}}"#), "no voice today");
        for document in ["", "<html>", "[]", r#"{"error":null}"#, r#"{"data":"UklGRg=="}"#, "\u{0}"] {
            assert_eq!(message(document), "the provider's response is not a sound", "{document}");
        }
    }
}
