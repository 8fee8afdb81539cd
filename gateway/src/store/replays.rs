//! `Idempotency-Key` as in draft-ietf-httpapi-idempotency-key-header: a repeated request with the same key gets the
//! first response again and is not executed twice.
//!
//! Idempotency keys are scoped per operation and API key. Only complete and final responses are stored: no streams, no
//! transient errors (5xx, 408, 409, 425, 429), nothing longer than [`LONGEST_ANSWER`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::Bytes;
use futures_util::FutureExt as _;
use gatewright::ErrorCode;
use gatewright::operations::Operation;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use ring::digest::{self, Digest};

use super::files;
use crate::wire::{ApiError, Response};

/// The request's header.
pub(crate) const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Response header that marks a replay.
pub(crate) const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Maximum length of a key, in bytes.
const LONGEST_KEY: usize = 255;
/// Maximum number of stored responses per operation.
const MOST_ANSWERS: usize = 1_000;
/// Maximum memory of stored responses per operation, in bytes.
const MOST_BYTES: usize = 8 * 1024 * 1024;
/// Maximum size of a stored response body, in bytes.
const LONGEST_ANSWER: usize = 1024 * 1024;
/// Lifetime of a stored response: not longer than that of the files it may name.
const LIFETIME: Duration = files::LIFETIME;
/// Overhead of a stored response besides its key and body, in bytes: its headers and table entries.
const OVERHEAD: usize = 1_024;
/// The `retry-after` for a repeated request whose first one is still running.
const RETRY_AFTER_S: u64 = 1;

/// The stored responses, by operation.
#[derive(Default)]
pub(crate) struct Replays {
    shelves: Mutex<HashMap<&'static str, Shelf>>,
}

#[derive(Default)]
struct Shelf {
    requests: HashMap<Arc<str>, Remembered>,
    /// Keys of answered requests, oldest first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

struct Remembered {
    /// Of the request.
    fingerprint: Digest,
    /// `None` while the request is running.
    answer: Option<Recorded>,
}

struct Recorded {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    size: usize,
    expiry: Instant,
}

/// How to handle a request.
pub(crate) enum Begun {
    /// It has no key: nothing is stored.
    Unkeyed,
    /// It is the first with its key.
    First(UnderWay),
    /// It was answered before.
    Again(Response),
}

/// A running request. If it is dropped without a response, its key is free again.
pub(crate) struct UnderWay {
    replays: Arc<Replays>,
    operation: &'static str,
    key: Arc<str>,
}

/// A digest that identifies a request: its path, its query and the bytes of its body.
pub(crate) fn fingerprint(path: &[(String, String)], query: &[(String, String)], body: &[u8]) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(format!("{path:?}\n{query:?}\n").as_bytes());
    context.update(body);
    context.finish()
}

/// The request's key. Errors: there is more than one, or it is malformed.
fn key(headers: &HeaderMap) -> Result<Option<Arc<str>>, ApiError> {
    let mut keys = headers.get_all(KEY_HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|text| {
        (1..=LONGEST_KEY).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    if let (Some(text), None) = (text, keys.next()) {
        return Ok(Some(text.into()));
    }
    let message = format!("idempotency-key must be one value of 1 to {LONGEST_KEY} visible ASCII characters");
    Err(ApiError::new(&ErrorCode::INVALID_IDEMPOTENCY_KEY, message).param(KEY_HEADER.as_str()))
}

impl Replays {
    /// Starts a request of an API key, by its id. Errors: its key is invalid, was used for another request (422), or is still running (409).
    pub(crate) fn begin(
        self: &Arc<Self>,
        operation: &Operation,
        caller: &str,
        headers: &HeaderMap,
        fingerprint: impl FnOnce() -> Digest,
    ) -> Result<Begun, ApiError> {
        match key(headers)? {
            // No part has a space: the keys of two callers never meet.
            Some(key) => {
                self.begin_at(operation.id, format!("{caller} {key}").into(), fingerprint(), Instant::now())
            }
            None => Ok(Begun::Unkeyed),
        }
    }

    fn begin_at(
        self: &Arc<Self>,
        operation: &'static str,
        key: Arc<str>,
        fingerprint: Digest,
        now: Instant,
    ) -> Result<Begun, ApiError> {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shelves.entry(operation).or_default();
        known.forget_expired(now);
        let Some(remembered) = known.requests.get(&key) else {
            known.requests.insert(Arc::clone(&key), Remembered { fingerprint, answer: None });
            return Ok(Begun::First(UnderWay { replays: Arc::clone(self), operation, key }));
        };
        if remembered.fingerprint.as_ref() != fingerprint.as_ref() {
            let message =
                "this idempotency-key was used for a different request; use a new key for each request";
            return Err(ApiError::new(&ErrorCode::IDEMPOTENCY_KEY_REUSED, message).param(KEY_HEADER.as_str()));
        }
        let Some(answer) = &remembered.answer else {
            let message =
                "the first request with this idempotency-key is still running; retry for its response";
            return Err(ApiError::new(&ErrorCode::IDEMPOTENCY_KEY_IN_USE, message)
                .param(KEY_HEADER.as_str())
                .retry_after(RETRY_AFTER_S));
        };
        let mut response = Response::new(Body::from(answer.body.clone()));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers.clone();
        response.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
        Ok(Begun::Again(response))
    }
}

impl Shelf {
    fn forget_expired(&mut self, now: Instant) {
        while let Some(oldest) = self.order.front() {
            let answer = self.requests.get(oldest).and_then(|remembered| remembered.answer.as_ref());
            if answer.is_some_and(|answer| answer.expiry > now) {
                return;
            }
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_front().and_then(|key| self.requests.remove(&key));
        if let Some(answer) = oldest.and_then(|remembered| remembered.answer) {
            self.bytes -= answer.size;
        }
    }

    fn keep(&mut self, key: &Arc<str>, answer: Recorded) {
        let Some(remembered) = self.requests.get_mut(key) else { return };
        self.bytes += answer.size;
        remembered.answer = Some(answer);
        self.order.push_back(Arc::clone(key));
        while self.order.len() > MOST_ANSWERS || self.bytes > MOST_BYTES {
            self.forget_oldest();
        }
    }
}

impl UnderWay {
    /// Stores the response if it is final, and returns it.
    pub(crate) fn answered(self, response: Response) -> Response {
        self.answered_at(response, Instant::now())
    }

    fn answered_at(self, response: Response, now: Instant) -> Response {
        let length = http_body::Body::size_hint(response.body()).exact();
        let short = length.is_some_and(|length| length <= LONGEST_ANSWER as u64);
        if !short || passes(response.status()) {
            return response;
        }
        let (head, body) = response.into_parts();
        // A body of known length is available at once.
        let body = match body.collect().now_or_never() {
            Some(Ok(body)) => body.to_bytes(),
            _ => return Response::from_parts(head, Body::empty()),
        };
        let size = OVERHEAD + 2 * self.key.len() + body.len();
        let answer = Recorded {
            status: head.status,
            headers: head.headers.clone(),
            // A copy has no spare capacity.
            body: Bytes::copy_from_slice(&body),
            size,
            expiry: now + LIFETIME,
        };
        let mut shelves = self.replays.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        shelves.entry(self.operation).or_default().keep(&self.key, answer);
        drop(shelves);
        Response::from_parts(head, Body::from(body))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut shelves = self.replays.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shelves.entry(self.operation).or_default();
        if known.requests.get(&self.key).is_some_and(|remembered| remembered.answer.is_none()) {
            known.requests.remove(&self.key);
        }
    }
}

/// Whether the same request may get a different response later.
fn passes(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use gatewright::operations::ErrorStyle;

    use super::*;

    fn begin(answers: &Arc<Replays>, key: &str, body: &str, now: Instant) -> Result<Begun, ApiError> {
        answers.begin_at("create_video", key.into(), fingerprint(&[], &[], body.as_bytes()), now)
    }

    /// Executes a request, which must be the first.
    fn answer(answers: &Arc<Replays>, key: &str, response: Response, now: Instant) -> Response {
        match begin(answers, key, "{}", now) {
            Ok(Begun::First(turn)) => turn.answered_at(response, now),
            _ => panic!("{key} is not the first"),
        }
    }

    fn text(text: &str) -> Response {
        Response::new(Body::from(text.to_owned()))
    }

    fn is_first(answers: &Arc<Replays>, key: &str, now: Instant) -> bool {
        matches!(begin(answers, key, "{}", now), Ok(Begun::First(_)))
    }

    fn status(begun: Result<Begun, ApiError>) -> StatusCode {
        match begun {
            Ok(Begun::Again(response)) => response.status(),
            Ok(_) => panic!("carried out"),
            Err(error) => error.into_response(ErrorStyle::Standard).status(),
        }
    }

    #[test]
    fn the_first_answer_comes_again_another_request_is_422_and_one_under_way_409() {
        let (answers, now) = (Arc::new(Replays::default()), Instant::now());
        let Ok(Begun::First(turn)) = begin(&answers, "k", "{}", now) else { panic!("not the first") };
        assert_eq!(status(begin(&answers, "k", "{}", now)), 409);
        assert_eq!(status(begin(&answers, "k", "{ }", now)), 422);
        turn.answered_at(text("made"), now);
        let Ok(Begun::Again(again)) = begin(&answers, "k", "{}", now) else { panic!("carried out twice") };
        assert_eq!(again.headers()[REPLAYED_HEADER], "true");
        let body = again.into_body().collect().now_or_never().expect("at once").expect("a body");
        assert_eq!(body.to_bytes(), "made");
        assert_eq!(status(begin(&answers, "k", "{ }", now)), 422);
        assert!(is_first(&answers, "another", now));
    }

    #[test]
    fn a_request_that_came_to_nothing_may_be_made_anew() {
        let (answers, now) = (Arc::new(Replays::default()), Instant::now());
        drop(begin(&answers, "dropped", "{}", now));
        assert!(is_first(&answers, "dropped", now));
        for code in [500, 503, 429, 408] {
            let mut response = text("later");
            *response.status_mut() = StatusCode::from_u16(code).expect("a status");
            answer(&answers, "passes", response, now);
            assert!(is_first(&answers, "passes", now), "{code}");
        }
        let stream = Body::from_stream(futures_util::stream::iter([Ok::<_, std::io::Error>("data: 1\n\n")]));
        answer(&answers, "stream", Response::new(stream), now);
        assert!(is_first(&answers, "stream", now));
    }

    #[test]
    fn answers_are_remembered_within_bounds_of_count_bytes_and_time() {
        let (answers, now) = (Arc::new(Replays::default()), Instant::now());
        for number in 0..=MOST_ANSWERS {
            answer(&answers, &number.to_string(), text("x"), now);
        }
        assert!(is_first(&answers, "0", now) && !is_first(&answers, "1", now));

        let answers = Arc::new(Replays::default());
        let large = "x".repeat(LONGEST_ANSWER);
        for number in 0..20 {
            answer(&answers, &number.to_string(), text(&large), now);
            let shelves = answers.shelves.lock().expect("no panic");
            let kept = shelves["create_video"].requests.values().filter_map(|kept| kept.answer.as_ref());
            assert!(kept.map(|answer| answer.body.len()).sum::<usize>() <= MOST_BYTES);
        }
        assert!(is_first(&answers, "0", now) && !is_first(&answers, "19", now));
        answer(&answers, "longer", text(&(large + "x")), now);
        assert!(is_first(&answers, "longer", now));

        let later = now + LIFETIME;
        assert!(is_first(&answers, "19", later));
        let shelves = answers.shelves.lock().expect("no panic");
        assert_eq!((shelves["create_video"].bytes, shelves["create_video"].requests.len()), (0, 0));
    }

    #[test]
    fn a_key_is_one_value_of_visible_ascii() {
        let read = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(KEY_HEADER, HeaderValue::from_bytes(value).expect("a header value"));
            }
            key(&headers).map(|key| key.map(|key| key.len())).map_err(drop)
        };
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[b"\"8e03978e-40d5\""]), Ok(Some(15)));
        assert_eq!(read(&[&[b'k'; LONGEST_KEY]]), Ok(Some(LONGEST_KEY)));
        for refused in [&[&[b'k'; LONGEST_KEY + 1][..]][..], &[b""], &[b"a b"], &[b"\xff"], &[b"a", b"b"]] {
            assert_eq!(read(refused), Err(()), "{refused:?}");
        }
    }
}
