//! A key or an access token that is valid for a while: its source is asked for another one before it expires.
//!
//! One task asks the source, once at a time. Requests take the key that is there, without a lock. They wait for the source
//! only where no key is valid and it has not failed: before the first one.

mod assertion;
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
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use self::no_key::{MAX_TIME, NoKey};
use self::token_request::Token;
use super::key_place::{Place, Presented};
use crate::config::KeySource;
use crate::supervised::supervise;

/// Longest pause before the source is asked again after the upstream has refused its key, or after it has failed once.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause before the source is asked again after it has failed several times: the pause doubles each time.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Pause before the task that asks the source begins anew after a panic.
const AFTER_PANIC: Duration = Duration::from_secs(5);
/// How long a request whose key was refused waits for another one.
const MAX_REPLACEMENT_WAIT: Duration = Duration::from_secs(10);

/// The key of a source, kept fresh.
pub(super) struct Credential {
    /// Name of the upstream, for the log.
    upstream: String,
    source: KeySource,
    place: Place,
    current: ArcSwapOption<Valid>,
    /// The current key and the previous one, which an answer may still quote.
    secrets: ChangingSecrets,
    /// What came of the last run; none yet, at first.
    last_run: watch::Sender<Option<Result<(), NoKey>>>,
    /// The upstream refused the key.
    refused: Arc<Notify>,
    task: OnceLock<JoinHandle<()>>,
}

/// A key and how long it is valid.
struct Valid {
    key: String,
    presented: Presented,
    since: Instant,
    ttl: Duration,
}

impl Valid {
    fn until(&self) -> Instant {
        self.since + self.ttl
    }
}

impl Credential {
    /// Asks the source at once where there is a Tokio runtime, else when the first request waits for it.
    pub(super) fn new(upstream: &str, source: KeySource, place: Place) -> Arc<Self> {
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

    /// Whether it is the key of a source, in a place.
    pub(super) fn is_of(&self, source: &KeySource, place: &Place) -> bool {
        (&self.source, &self.place) == (source, place)
    }

    /// Whether there is a key that holds.
    pub(super) fn holds(&self) -> bool {
        self.current.load().as_ref().is_some_and(|valid| Instant::now() < valid.until())
    }

    /// The newest key.
    pub(super) fn get(&self) -> Option<Presented> {
        self.current.load().as_ref().map(|valid| valid.presented.clone())
    }

    pub(super) fn secrets(&self) -> ChangingSecrets {
        self.secrets.clone()
    }

    /// Has the source asked again: the upstream refused the key.
    pub(super) fn refused(&self) {
        self.refused.notify_one();
    }

    /// Since when the newest key is there.
    pub(super) fn since(&self) -> Option<Instant> {
        self.current.load().as_ref().map(|valid| valid.since)
    }

    /// Waits for another key in place of one that the upstream refused. `since`: since when that was there. False if there is none:
    /// the source fails, or the refused key is so new that another one would be refused, too.
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

    /// Waits for a key. Errors: the last run gave none, and no earlier key holds.
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

    /// Asks the source. Returns the pause until it has to be asked again. `failures`: of the runs before, in a row.
    async fn renew(&self, failures: &mut u32) -> Duration {
        let begun = Instant::now();
        let result = source::key(&self.source).await.and_then(|token| self.valid(token, begun));
        let (pause, last_run) = match result {
            Ok(valid) => {
                *failures = 0;
                let before = self.current.load_full();
                // Known before it is sent.
                self.secrets.set(before.iter().map(|before| &*before.key).chain([&*valid.key]));
                let pause = valid.ttl.mul_f64(0.8).saturating_sub(begun.elapsed());
                self.current.store(Some(Arc::new(valid)));
                // A fifth of the time is left to runs that fail.
                (pause, Ok(()))
            }
            Err(why) => {
                let (upstream, source) = (&*self.upstream, &self.source);
                let reason = why.detail();
                tracing::warn!(upstream, %source, reason, "no new key; the previous one is used while it is valid");
                let pause = self.least_pause().saturating_mul(1 << (*failures).min(16));
                *failures = failures.saturating_add(1);
                (pause.min(MAX_RETRY_PAUSE), Err(why))
            }
        };
        self.last_run.send_replace(Some(last_run));
        pause
    }

    /// The shortest time between two runs.
    fn least_pause(&self) -> Duration {
        let current = self.current.load();
        let ttl = self.source.ttl().or_else(|| current.as_ref().map(|current| current.ttl));
        ttl.map_or(MAX_PAUSE, |ttl| (ttl / 20).min(MAX_PAUSE))
    }

    fn valid(&self, Token { key, ttl }: Token, since: Instant) -> Result<Valid, NoKey> {
        let presented = self.place.present(&key).ok_or(NoKey::NotAKey)?;
        Ok(Valid { key, presented, since, ttl })
    }
}

impl Drop for Credential {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Keeps a key fresh until nobody needs it.
async fn keep(credential: Weak<Credential>) {
    let mut failures = 0;
    loop {
        let Some(needed) = credential.upgrade() else { return };
        let pause = needed.renew(&mut failures).await;
        let (least, refused) = (needed.least_pause(), Arc::clone(&needed.refused));
        // Not held meanwhile: it would never be dropped.
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
