//! Signals that stop a command.

use std::future::Future;
use std::io;

use crate::exit::{Exit, Failure};

/// Ends the command on Ctrl-C, even when the program runs inside another process (Python, Node).
pub(crate) async fn interruptible(command: impl Future<Output = Exit>) -> Exit {
    tokio::select! {
        exit = command => exit,
        Ok(()) = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

/// The effect of SIGHUP on a command.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hangup {
    /// The terminal was closed: the command stops. Under nohup, it continues.
    Stops,
    /// The configuration is reloaded: see `Hangups`.
    #[cfg(feature = "server")]
    Reloads,
}

/// Resolves at the first SIGINT or SIGTERM, or at a SIGHUP that stops.
#[cfg(unix)]
pub(crate) fn stop_signal(on_hangup: Hangup) -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = match on_hangup {
        Hangup::Stops if !ignores_hangup() => Some(signal(SignalKind::hangup())?),
        _ => None,
    };
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Whether the parent process ignores SIGHUP, so that the program outlives the terminal; a handler would undo that.
/// Works on Linux only, where the kernel reports the ignored signals as a hexadecimal mask.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is signal 1: the lowest bit.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Resolves at the first Ctrl-C.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on unix")]
pub(crate) fn stop_signal(_: Hangup) -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a handler, the command stops only when the process is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

/// The SIGHUPs that this process receives; none on systems other than unix.
#[cfg(feature = "server")]
pub(crate) struct Hangups {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
}

#[cfg(feature = "server")]
impl Hangups {
    /// From now on, SIGHUP no longer ends the process.
    #[cfg_attr(not(unix), expect(clippy::unnecessary_wraps, reason = "the same signature as on unix"))]
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Resolves at the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signals.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Interrupts (Ctrl-C) of a command that continues after them.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signals: tokio::signal::windows::CtrlC,
}

impl Interrupts {
    /// From now on, an interrupt no longer ends the process.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?,
            #[cfg(windows)]
            signals: tokio::signal::windows::ctrl_c()?,
        })
    }

    /// Resolves at the next one.
    pub(crate) async fn next(&mut self) {
        #[cfg(any(unix, windows))]
        if self.signals.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
