//! `Idempotency-Key` as in draft-ietf-httpapi-idempotency-key-header: a repeated request with the same key gets the
//! first response again and is not executed twice, whichever gateway of the store gets it.
//!
//! Idempotency keys are scoped per operation and API key. Only complete and final responses are stored: no streams, no
//! transient errors (5xx, 408, 409, 425, 429), nothing longer than [`MAX_ANSWER_BYTES`].
//!
//! A key is first taken in this process, and an answer is also kept here, within the bounds of memory. So while the store
//! does not answer, keys work in this process as they would without a store: a database that is away blocks no request, and
//! nothing that began or ended here is executed twice here. An answer then waits, also in the spool, until the store accepts
//! it: after a restart, the next process replays it. Answers that the client doesn't want stored anywhere stay in this
//! process.

mod pending;
mod record;
mod spooling;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use gatewright::ErrorCode;
use gatewright::limits::MAX_IDEMPOTENCY_KEY_CHARS;
use gatewright::operations::Operation;
use gatewright_store::{
    AnswerQuota, DurableStore, KeyedRequest, Lease, MemoryReplays, ReplaySlot, Sealer, Spool, StoreError,
    StoreHealth,
};
use gatewright_system::supervise;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt as _;
use ring::hmac;
use tokio::runtime::Handle;
use tokio::time::timeout;

use self::pending::{PendingAnswer, PendingAnswers};
use self::record::ReplayRecord;
use super::files;
use crate::wire::{ApiError, Body, Response};

/// The request's header.
pub(crate) const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Response header that marks a replay.
pub(crate) const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Maximum size of a stored response body, in bytes.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// Lifetime of a stored response: no longer than that of the files it may refer to.
const LIFETIME: Duration = files::LIFETIME;
/// The `retry-after` for a repeated request whose first one is still running.
const RETRY_AFTER_S: u64 = 1;
/// How long a key stays taken after its process dies. Leases of running requests are renewed three times as
/// often.
const LEASE: Duration = Duration::from_secs(30);
/// Pause before an answer that the store rejected is offered to it again.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one attempt to renew leases may take: a store that hangs must not take the time for the next one.
const MAX_RENEWAL_TIME: Duration = Duration::from_secs(5);
/// How often expired entries are removed.
const FORGET_PAUSE: Duration = Duration::from_mins(1);

/// See the module.
pub(crate) struct Replays {
    store: Arc<dyn DurableStore>,
    /// What this process knows.
    own: MemoryReplays,
    /// Seals answers for a durable store. None: the store is in the memory of this process, which knows all keys without it.
    sealer: Option<Arc<Sealer>>,
    /// Makes the digests of keys and requests.
    digests: hmac::Key,
    /// Leases in the store that this process renews.
    held: Mutex<HashSet<Lease>>,
    waiting: Mutex<PendingAnswers>,
    health: StoreHealth,
    /// None: waiting answers are only in memory.
    spool: Option<Arc<Spool>>,
}

/// What identifies a request, for its digest.
#[derive(Clone, Copy)]
pub(crate) struct IdempotentRequest<'r> {
    pub(crate) operation: &'static Operation,
    /// The id of the API key.
    pub(crate) caller: &'r Arc<str>,
    pub(crate) path: &'r [(String, String)],
    pub(crate) query: &'r [(String, String)],
    /// As JSON.
    pub(crate) body: &'r [u8],
    /// The form that the body was sent as, if it was one.
    pub(crate) form: Option<&'r [u8]>,
}

/// How to handle a request.
pub(crate) enum ReplayDecision {
    /// It has no key: nothing is stored.
    Unkeyed,
    /// It is the first with its key.
    First(RunningRequest),
    /// It was answered before.
    Again(Response),
}

/// What became of an answer that was offered to the store.
enum StoredAnswer {
    /// It is stored.
    Stored,
    /// Another gateway has taken the key since the lease expired, and its answer is stored.
    Superseded(Vec<u8>),
    /// Another request has taken the key since the lease expired, and has not answered.
    Taken,
}

/// Where an answer is known.
enum AnswerSource {
    Store,
    /// This process.
    Own,
}

/// A running request. If it is dropped without a response, its key is free again.
pub(crate) struct RunningRequest {
    replays: Arc<Replays>,
    keyed: KeyedRequest,
    /// Number of its lease in the store, whether or not the store has confirmed it.
    number: i64,
    /// Its lease in this process. None once it is answered.
    own: Option<Lease>,
    /// Its lease in the store, if it has one.
    lease: Option<Lease>,
    /// Whether its answer may be in the store.
    may_be_stored: bool,
}

impl StorageOptions {
    /// Whether the answer may be stored: streams never are.
    fn is_stored(&self) -> bool {
        self.store != Some(false) && self.stream != Some(true)
    }
}

/// The request's members that affect storing its answer. An unreadable request gets an error, which need not be stored.
#[derive(serde::Deserialize)]
struct StorageOptions {
    store: Option<bool>,
    stream: Option<bool>,
}

/// The request's key. Errors: there is more than one, or it is malformed.
fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut keys = headers.get_all(KEY_HEADER).iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let text = key.to_str().ok().filter(|text| {
        (1..=MAX_IDEMPOTENCY_KEY_CHARS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    if let (Some(text), None) = (text, keys.next()) {
        return Ok(Some(text));
    }
    let message = format!(
        "idempotency-key must be one value of 1 to {MAX_IDEMPOTENCY_KEY_CHARS} visible ASCII characters"
    );
    Err(ApiError::new(&ErrorCode::INVALID_IDEMPOTENCY_KEY, message).param(KEY_HEADER.as_str()))
}

impl Replays {
    fn new(store: Arc<dyn DurableStore>, sealer: Option<Arc<Sealer>>, digests: [u8; 32]) -> Self {
        let digests = hmac::Key::new(hmac::HMAC_SHA256, &digests);
        let (own, held, waiting) = Default::default();
        let health = StoreHealth::new(&store, "idempotency keys only apply within this process for now");
        Self { store, own, sealer, digests, held, waiting, health, spool: None }
    }

    /// Starts tasks that renew the leases of requests in progress and remove old answers, until the replays are dropped.
    /// `sealer`: seals answers for a durable store. `digests`: keys the digests of requests. `spool`: where answers waiting
    /// for the store survive the process. Needs a Tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn DurableStore>,
        sealer: Option<Arc<Sealer>>,
        digests: [u8; 32],
        spool: Option<Arc<Spool>>,
    ) -> Arc<Self> {
        let replays = Arc::new(Self { spool, ..Self::new(store, sealer, digests) });
        replays.inherit();
        let (renewing, forgetting) = (Arc::downgrade(&replays), Arc::downgrade(&replays));
        supervise("idempotency keys", PAUSE, move || renew_leases(Weak::clone(&renewing)));
        supervise("old answers", PAUSE, move || forget_expired(Weak::clone(&forgetting)));
        replays
    }

    /// Starts a request. Errors: its key is invalid, was used for another request (422), or is still running (409).
    pub(crate) async fn begin(
        self: &Arc<Self>,
        headers: &HeaderMap,
        request: IdempotentRequest<'_>,
    ) -> Result<ReplayDecision, ApiError> {
        let Some(key) = key(headers)? else { return Ok(ReplayDecision::Unkeyed) };
        let keyed = self.keyed(key, request);
        let options = self.storage_options(request.body);
        // This process's knowledge takes precedence: the store can't know better.
        let (place, reserved) = match self.own.reserve(&keyed, Duration::MAX) {
            ReplaySlot::First(own) => {
                // Released in any case: no lease of this process outlives its request.
                let (replays, own, may_be_stored) = (Arc::clone(self), Some(own), options.is_stored());
                let (keyed, number) = (keyed.clone(), rand::random());
                let mut first = RunningRequest { replays, keyed, number, own, lease: None, may_be_stored };
                // Streams are not stored, so they need no store operation.
                let slot = if self.sealer.is_none() || options.stream == Some(true) {
                    None
                } else {
                    self.health.ask(self.store.reserve_as(&first.keyed, number, LEASE)).await
                };
                match slot {
                    None => return Ok(ReplayDecision::First(first)),
                    Some(ReplaySlot::First(lease)) => {
                        self.held().insert(lease.clone());
                        first.lease = Some(lease);
                        return Ok(ReplayDecision::First(first));
                    }
                    Some(reserved) => (AnswerSource::Store, reserved),
                }
            }
            reserved => (AnswerSource::Own, reserved),
        };
        match reserved {
            ReplaySlot::Answered(answer) => {
                Ok(ReplayDecision::Again(self.again(&place, keyed, answer).await?))
            }
            ReplaySlot::Other => {
                let message =
                    "this idempotency-key was used for a different request; use a new key for each request";
                Err(ApiError::new(&ErrorCode::IDEMPOTENCY_KEY_REUSED, message).param(KEY_HEADER.as_str()))
            }
            // The first lease of this process was returned above.
            ReplaySlot::UnderWay | ReplaySlot::First(_) => {
                let message =
                    "the first request with this idempotency-key is still running; retry for its response";
                Err(ApiError::new(&ErrorCode::IDEMPOTENCY_KEY_IN_USE, message)
                    .param(KEY_HEADER.as_str())
                    .retry_after(RETRY_AFTER_S))
            }
        }
    }

    /// The request's settings for its answer. Without a durable store, no answer is stored.
    fn storage_options(&self, body: &[u8]) -> StorageOptions {
        let options = self.sealer.as_ref().and_then(|_| serde_json::from_slice(body).ok());
        options.unwrap_or(StorageOptions { store: Some(false), stream: None })
    }

    fn keyed(&self, key: &str, request: IdempotentRequest<'_>) -> KeyedRequest {
        let IdempotentRequest { operation, caller, path, query, body, form } = request;
        // No part contains a space, so the keys of two callers never collide.
        let slot = hmac::sign(&self.digests, format!("{} {caller} {key}", operation.id).as_bytes());
        let slot = slot.as_ref().iter().fold(String::new(), |mut digits, byte| {
            _ = write!(digits, "{byte:02x}");
            digits
        });
        let mut digest = hmac::Context::with_key(&self.digests);
        digest.update(format!("{path:?}\n{query:?}\n").as_bytes());
        digest.update(body);
        digest.update(form.unwrap_or_default());
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(digest.sign().as_ref());
        KeyedRequest { slot, operation: operation.id, owner: Arc::clone(caller), fingerprint }
    }

    async fn again(
        &self,
        place: &AnswerSource,
        keyed: KeyedRequest,
        answer: Vec<u8>,
    ) -> Result<Response, ApiError> {
        let answer = match (&self.sealer, place) {
            (Some(sealer), AnswerSource::Store) => {
                sealer.open_apart(keyed.slot, answer, record::MAX_RECORD_BYTES).await.ok()
            }
            _ => Some(answer),
        };
        let Some(record) = answer.and_then(|answer| ReplayRecord::read(&answer)) else {
            tracing::error!("the answer to a request with an idempotency-key cannot be read");
            let message = "the answer to the first request with this idempotency-key cannot be read";
            return Err(ApiError::new(&ErrorCode::SERVER_ERROR, message));
        };
        let mut response = record.into_response();
        response.headers_mut().insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
        Ok(response)
    }

    /// Stores an answer, unless another gateway has taken its key since the lease expired.
    async fn store_answer(
        &self,
        lease: &Lease,
        keyed: &KeyedRequest,
        answer: &[u8],
        room: AnswerQuota,
    ) -> Result<StoredAnswer, StoreError> {
        if self.store.keep_answer(lease, answer, LIFETIME, room).await? {
            return Ok(StoredAnswer::Stored);
        }
        Ok(match self.store.reserve_as(keyed, lease.number, LEASE).await? {
            ReplaySlot::First(again) if self.store.keep_answer(&again, answer, LIFETIME, room).await? => {
                StoredAnswer::Stored
            }
            ReplaySlot::Answered(other) => StoredAnswer::Superseded(other),
            ReplaySlot::First(_) | ReplaySlot::UnderWay | ReplaySlot::Other => StoredAnswer::Taken,
        })
    }

    /// Renews the leases of requests in progress here. False if the store doesn't.
    async fn renew(&self) -> bool {
        let leases: Vec<Lease> = self.held().iter().cloned().collect();
        if leases.is_empty() {
            return true;
        }
        let why = match timeout(MAX_RENEWAL_TIME, self.store.renew_keys(&leases, LEASE)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the store did not respond within {MAX_RENEWAL_TIME:?}"),
        };
        tracing::debug!("{why}: idempotency keys in use are not renewed");
        false
    }

    async fn forget(&self) {
        self.own.forget();
        if let Err(error) = self.store.forget_replays().await {
            tracing::debug!("{error}: old answers to idempotency keys are not removed");
        }
    }

    fn held(&self) -> MutexGuard<'_, HashSet<Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, PendingAnswers> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn renew_leases(replays: Weak<Replays>) {
    while let Some(replays) = replays.upgrade() {
        let is_renewed = replays.renew().await;
        drop(replays);
        let pause = if is_renewed { (LEASE / 3).mul_f64(rand::random_range(0.8..1.0)) } else { PAUSE };
        tokio::time::sleep(pause).await;
    }
}

async fn forget_expired(replays: Weak<Replays>) {
    while let Some(replays) = replays.upgrade() {
        replays.forget().await;
        drop(replays);
        tokio::time::sleep(FORGET_PAUSE.mul_f64(rand::random_range(0.8..1.0))).await;
    }
}

impl RunningRequest {
    /// Stores the response if it is final, and returns it. Returns the answer of another gateway if that took the key, because this one
    /// stalled for longer than its lease, and has answered. `room`: for it and the other answers of its operation.
    pub(crate) async fn answered(mut self, response: Response, room: AnswerQuota) -> Response {
        let length = http_body::Body::size_hint(response.body()).exact();
        let short = length.is_some_and(|length| length <= MAX_ANSWER_BYTES as u64);
        if !short || passes(response.status()) {
            self.free().await;
            return response;
        }
        let (head, body) = response.into_parts();
        // A body of known length is immediately available.
        let body = match body.collect().now_or_never() {
            Some(Ok(body)) => body.to_bytes(),
            _ => return Response::from_parts(head, Body::empty()),
        };
        let record = ReplayRecord { status: head.status, headers: head.headers.clone(), body: body.clone() };
        let other = match record.written() {
            Some(record) => self.keep(record, room).await,
            None => None,
        };
        other.unwrap_or_else(|| Response::from_parts(head, Body::from(body)))
    }

    /// Stores an answer. Returns the other response if another gateway has answered with the key.
    async fn keep(&mut self, record: Vec<u8>, room: AnswerQuota) -> Option<Response> {
        let own = self.own.take()?;
        let (made, replays) = (Instant::now(), Arc::clone(&self.replays));
        let lease = self.lease.take();
        let Some(sealer) = replays.sealer.clone().filter(|_| self.may_be_stored) else {
            // Store it here first: a request that comes in between must not find the key free.
            _ = replays.own.keep_answer(&own, &record, LIFETIME, room);
            self.lease = lease;
            self.free().await;
            return None;
        };
        let (keyed, number) = (self.keyed.clone(), self.number);
        // Continues even if the client disconnects.
        let keeping = async move {
            let answer = sealer.seal_apart(keyed.slot.clone(), record.clone()).await;
            let stored = match &lease {
                Some(lease) => replays.health.ask(replays.store_answer(lease, &keyed, &answer, room)).await,
                None => None,
            };
            if let (Some(_), Some(lease)) = (&stored, &lease) {
                replays.held().remove(lease);
            }
            match stored {
                Some(StoredAnswer::Superseded(other)) => {
                    if let Ok(other) = replays.again(&AnswerSource::Store, keyed, other).await {
                        replays.own.free_key(&own);
                        return Some(other);
                    }
                }
                // What this request paid for is not lost: its client gets it, also when it repeats the request here.
                Some(StoredAnswer::Stored | StoredAnswer::Taken) => {}
                None => {
                    let (expires, spooled) = (made + LIFETIME, OnceLock::new());
                    // It is replayed from here while the store is away.
                    _ = replays.own.keep_answer(&own, &record, LIFETIME, room);
                    let late = PendingAnswer { keyed, number, lease, answer, expires, room, spooled };
                    // If the spool can't accept it, that is retried while it waits.
                    _ = replays.spool_one(&late).await;
                    replays.keep_later(late);
                    return None;
                }
            }
            _ = replays.own.keep_answer(&own, &record, LIFETIME, room);
            None
        };
        tokio::spawn(keeping).await.ok().flatten()
    }

    /// Frees the key.
    async fn free(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.replays.held().remove(&lease);
            // If the store does not answer, the key is free once its lease expires.
            _ = self.replays.health.ask(self.replays.store.free_key(&lease)).await;
        }
        if let Some(own) = self.own.take() {
            self.replays.own.free_key(&own);
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        if let Some(own) = self.own.take() {
            self.replays.own.free_key(&own);
        }
        let Some(lease) = self.lease.take() else { return };
        self.replays.held().remove(&lease);
        if let Ok(runtime) = Handle::try_current() {
            let replays = Arc::clone(&self.replays);
            runtime.spawn(async move { _ = replays.store.free_key(&lease).await });
        }
    }
}

/// Whether the same request may get a different response later.
fn passes(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 409 | 425 | 429)
}
