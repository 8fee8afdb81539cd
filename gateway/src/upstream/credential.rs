//! A key that a program prints: it holds for a while, and the program runs again before it ends.
//!
//! One task runs the program, one run at a time. Requests take the key that is there, without a lock. They wait for the program
//! only where no key holds and it has not failed: before the first one.

use std::process::Stdio;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use gatewright::redact::ChangingSecrets;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{CommandWrap, KillOnDrop};
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::key_place::{Place, Presented};
use crate::config::KeyCommand;
use crate::supervised::supervise;

/// Longest time that the program may take.
const MAX_RUN: Duration = Duration::from_secs(30);
/// Maximum size of what the program prints, in bytes.
const MAX_OUTPUT_BYTES: u64 = 16 * 1024;
/// Longest pause before the program runs again after the upstream has refused its key, or after it has failed once.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause before the program runs again after it has failed several times: the pause doubles each time.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(30);
/// Pause before the task that runs the program begins anew after a panic.
const AFTER_PANIC: Duration = Duration::from_secs(5);

/// The key that a program prints, kept fresh.
pub(super) struct Credential {
    /// Name of the upstream, for the log.
    upstream: String,
    command: KeyCommand,
    place: Place,
    current: ArcSwapOption<Printed>,
    /// The current key and the previous one, which an answer may still quote.
    secrets: ChangingSecrets,
    /// What came of the last run; none yet, at first.
    last_run: watch::Sender<Option<Result<(), NoKey>>>,
    /// The upstream refused the key.
    refused: Arc<Notify>,
    task: OnceLock<JoinHandle<()>>,
}

struct Printed {
    key: String,
    presented: Presented,
    until: Instant,
}

/// Why there is no key. Never quotes what the program printed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoKey {
    #[error("the program that prints its key did not start")]
    NotStarted,
    #[error("the program that prints its key took longer than {MAX_RUN:?}")]
    TooLong,
    #[error("the program that prints its key failed")]
    Failed,
    #[error(
        "the program that prints its key printed no key: a line of visible ASCII of at most {MAX_OUTPUT_BYTES} bytes"
    )]
    NotAKey,
}

impl Credential {
    /// Runs the program at once where there is a Tokio runtime, else when the first request waits for it.
    pub(super) fn new(upstream: &str, command: KeyCommand, place: Place) -> Arc<Self> {
        let credential = Arc::new(Self {
            upstream: upstream.to_owned(),
            command,
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

    /// Whether it is what a program prints, in a place.
    pub(super) fn is_of(&self, command: &KeyCommand, place: &Place) -> bool {
        (&self.command, &self.place) == (command, place)
    }

    /// Whether there is a key that holds.
    pub(super) fn holds(&self) -> bool {
        self.current.load().as_ref().is_some_and(|printed| Instant::now() < printed.until)
    }

    /// The newest key.
    pub(super) fn get(&self) -> Option<Presented> {
        self.current.load().as_ref().map(|printed| printed.presented.clone())
    }

    pub(super) fn secrets(&self) -> ChangingSecrets {
        self.secrets.clone()
    }

    /// Has the program run again: the upstream refused the key.
    pub(super) fn refused(&self) {
        self.refused.notify_one();
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
        let ended = tokio::time::timeout(MAX_RUN + MAX_PAUSE, ended).await;
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

    /// Runs the program. Returns the pause until it has to run again. `failures`: of the runs before, in a row.
    async fn renew(&self, failures: &mut u32) -> Duration {
        let begun = Instant::now();
        let result = run(&self.command).await.and_then(|key| self.printed(key, begun));
        let (pause, last_run) = match result {
            Ok(printed) => {
                *failures = 0;
                let before = self.current.load_full();
                // Known before it is sent.
                self.secrets.set(before.iter().map(|before| &*before.key).chain([&*printed.key]));
                self.current.store(Some(Arc::new(printed)));
                // A fifth of the time is left to runs that fail.
                (self.command.ttl.mul_f64(0.8).saturating_sub(begun.elapsed()), Ok(()))
            }
            Err(why) => {
                let (upstream, program) = (&*self.upstream, self.command.program());
                tracing::warn!(upstream, program, reason = %why, "no new key; the previous one is used while it is valid");
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
        (self.command.ttl / 20).min(MAX_PAUSE)
    }

    fn printed(&self, key: String, begun: Instant) -> Result<Printed, NoKey> {
        let presented = self.place.present(&key).ok_or(NoKey::NotAKey)?;
        Ok(Printed { key, presented, until: begun + self.command.ttl })
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

/// What the program prints. It gets no input, and its errors are nobody's.
async fn run(command: &KeyCommand) -> Result<String, NoKey> {
    let (program, arguments) = command.words.split_first().ok_or(NoKey::NotStarted)?;
    let mut wrapped = CommandWrap::with_new(program, |process| {
        process.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        if !command.folder.as_os_str().is_empty() {
            process.current_dir(&command.folder);
        }
    });
    wrapped.wrap(KillOnDrop);
    #[cfg(unix)]
    wrapped.wrap(ProcessGroup::leader());
    let mut child = wrapped.spawn().map_err(|_| NoKey::NotStarted)?;
    let printing = async {
        let mut printed = Vec::new();
        let output = child.stdout().take().ok_or(NoKey::NotStarted)?;
        output.take(MAX_OUTPUT_BYTES + 1).read_to_end(&mut printed).await.map_err(|_| NoKey::Failed)?;
        if printed.len() as u64 > MAX_OUTPUT_BYTES {
            return Err(NoKey::NotAKey);
        }
        match child.wait().await {
            Ok(status) if status.success() => Ok(printed),
            _ => Err(NoKey::Failed),
        }
    };
    let printed = tokio::time::timeout(MAX_RUN, printing).await.unwrap_or(Err(NoKey::TooLong));
    // Also what it left behind in its group.
    _ = child.start_kill();
    let key = String::from_utf8(printed?).map_err(|_| NoKey::NotAKey)?;
    let key = key.trim_end_matches(['\r', '\n']);
    let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_key { Ok(key.to_owned()) } else { Err(NoKey::NotAKey) }
}

#[cfg(test)]
mod tests;
