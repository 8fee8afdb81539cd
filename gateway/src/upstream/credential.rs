//! A key or access token that expires: a new one is fetched from its source in time.
//!
//! One task fetches keys, one at a time. Requests use the current key without a lock. They wait for the source only if no key is
//! valid and it hasn't failed: before the first key.

mod assertion;
mod aws_credentials;
mod command;
mod default_credentials;
mod file;
mod no_key;
mod source;
mod token_request;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use gatewright::redact::ChangingSecrets;
use gatewright_config::KeySource;
use gatewright_system::supervise;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::no_key::{MAX_TIME, NoKey};
use self::source::Fetched;
use super::key_place::{AttachedKey, KeyPosition};

/// Longest pause before the next fetch after the upstream has rejected the key, or after one failure.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause before the next fetch after several failures: the pause doubles each time.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Pause before the fetching task restarts after a panic.
const AFTER_PANIC: Duration = Duration::from_secs(5);
/// How long a request whose key was rejected waits for another one.
const MAX_REPLACEMENT_WAIT: Duration = Duration::from_secs(10);

/// The key of a source, kept fresh.
pub(super) struct UpstreamCredential {
    /// Name of the upstream, for the log.
    upstream: String,
    source: KeySource,
    place: KeyPosition,
    current: ArcSwapOption<ValidKey>,
    /// The current key and the previous one, which an answer may still quote.
    secrets: ChangingSecrets,
    /// The result of the last fetch; none before the first.
    last_run: watch::Sender<Option<Result<(), NoKey>>>,
    /// Signals that the upstream rejected the key.
    refused: Arc<Notify>,
    task: OnceLock<JoinHandle<()>>,
}

/// A key and its validity.
struct ValidKey {
    secrets: Vec<String>,
    presented: AttachedKey,
    since: Instant,
    ttl: Duration,
}

impl ValidKey {
    fn until(&self) -> Instant {
        self.since + self.ttl
    }
}

impl UpstreamCredential {
    /// Starts fetching immediately if there is a Tokio runtime, otherwise when the first request waits for a key.
    pub(super) fn new(upstream: &str, source: KeySource, place: KeyPosition) -> Arc<Self> {
        let credential = Arc::new(Self {
            upstream: upstream.to_owned(),
            source,
            place,
            current: ArcSwapOption::empty(),
            secrets: ChangingSecrets::default(),
            last_run: watch::Sender::new(None),
            refused: Arc::default(),
            task: OnceLock::new(),
        });
        if Handle::try_current().is_ok() {
            credential.start();
        }
        credential
    }

    /// Whether it has this source and place.
    pub(super) fn is_of(&self, source: &KeySource, place: &KeyPosition) -> bool {
        (&self.source, &self.place) == (source, place)
    }

    /// Whether there is a valid key.
    pub(super) fn holds(&self) -> bool {
        self.current.load().as_ref().is_some_and(|valid| Instant::now() < valid.until())
    }

    /// The newest key.
    pub(super) fn get(&self) -> Option<AttachedKey> {
        self.current.load().as_ref().map(|valid| valid.presented.clone())
    }

    pub(super) fn secrets(&self) -> ChangingSecrets {
        self.secrets.clone()
    }

    /// Triggers a fetch: the upstream rejected the key.
    pub(super) fn refused(&self) {
        self.refused.notify_one();
    }

    /// When the newest key was fetched.
    pub(super) fn since(&self) -> Option<Instant> {
        self.current.load().as_ref().map(|valid| valid.since)
    }

    /// Waits for a replacement of a key that the upstream rejected. `since`: when that key was fetched. False if there is none:
    /// the source fails, or the rejected key is so new that another one would be rejected, too.
    pub(super) async fn replaced(&self, since: Instant) -> bool {
        if since.elapsed() < self.least_pause() {
            return false;
        }
        let mut last_run = self.last_run.subscribe();
        let is_new = || self.since().is_some_and(|newest| newest != since);
        let waiting = async {
            while !is_new() && last_run.changed().await.is_ok() {
                if last_run.borrow().as_ref().is_some_and(Result::is_err) {
                    break;
                }
            }
        };
        _ = tokio::time::timeout(MAX_REPLACEMENT_WAIT, waiting).await;
        is_new()
    }

    /// Waits for a key. Errors: the last fetch failed, and no earlier key is valid.
    pub(super) async fn wait(self: &Arc<Self>) -> Result<(), NoKey> {
        self.start();
        let mut last_run = self.last_run.subscribe();
        let ended = last_run.wait_for(|last| match last {
            None => false,
            Some(Ok(())) => self.holds(),
            Some(Err(_)) => true,
        });
        let ended = tokio::time::timeout(MAX_TIME + MAX_PAUSE, ended).await;
        match ended {
            Ok(Ok(last)) => last.clone().unwrap_or(Err(NoKey::TooLong)),
            _ => Err(NoKey::TooLong),
        }
    }

    fn start(self: &Arc<Self>) {
        self.task.get_or_init(|| {
            let credential = Arc::downgrade(self);
            supervise("the key of an upstream", AFTER_PANIC, move || keep(credential.clone()))
        });
    }

    /// Fetches a key. Returns the pause until the next fetch. `failures`: number of consecutive failures.
    async fn renew(&self, failures: &mut u32) -> Duration {
        let started = Instant::now();
        let result = source::fetch(&self.source, &self.place).await;
        let (pause, last_run) = match result {
            Ok(Fetched { presented, secrets, ttl }) => {
                *failures = 0;
                let before = self.current.load_full();
                let valid = ValidKey { secrets, presented, since: started, ttl };
                // The redactor must know the key before it is sent.
                let before = before.iter().flat_map(|before| &before.secrets);
                self.secrets.set(before.chain(&valid.secrets).map(String::as_str));
                let pause = valid.ttl.mul_f64(0.8).saturating_sub(started.elapsed());
                self.current.store(Some(Arc::new(valid)));
                // The last fifth of the time is left for retries.
                (pause, Ok(()))
            }
            Err(why) => {
                let (upstream, source) = (&*self.upstream, &self.source);
                let reason = why.detail();
                tracing::warn!(upstream, %source, reason, "cannot renew the key; the previous one is used while it is valid");
                let pause = self.least_pause().saturating_mul(1 << (*failures).min(16));
                *failures = failures.saturating_add(1);
                (pause.min(MAX_RETRY_PAUSE), Err(why))
            }
        };
        self.last_run.send_replace(Some(last_run));
        pause
    }

    /// The minimum time between two fetches.
    fn least_pause(&self) -> Duration {
        let current = self.current.load();
        let ttl = self.source.ttl().or_else(|| current.as_ref().map(|current| current.ttl));
        ttl.map_or(MAX_PAUSE, |ttl| (ttl / 20).min(MAX_PAUSE))
    }
}

impl Drop for UpstreamCredential {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Keeps a key fresh until it is dropped.
async fn keep(credential: Weak<UpstreamCredential>) {
    let mut failures = 0;
    loop {
        let Some(needed) = credential.upgrade() else { return };
        let pause = needed.renew(&mut failures).await;
        let (least, refused) = (needed.least_pause(), Arc::clone(&needed.refused));
        // Not held while sleeping, or it would never be dropped.
        drop(needed);
        tokio::time::sleep(least).await;
        tokio::select! {
            () = tokio::time::sleep(pause.saturating_sub(least)) => {}
            () = refused.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod token_tests;
