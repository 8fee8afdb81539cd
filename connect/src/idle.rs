//! Idle connections that can be reused.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, Id};
use tokio::time::Instant;

use crate::h1::H1Connection;
use crate::h2;
use crate::socket::Socket;
use crate::watching;

/// The reusable connections to a server.
#[derive(Debug)]
pub(crate) struct Idle {
    most: usize,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// HTTP/1.1 connections, the longest idle first.
    connections: VecDeque<IdleConnection>,
    /// HTTP/2 connections, the oldest first. Each has slots for several requests.
    http2: Vec<SharedConnection>,
    /// The runtime whose task closes connections that have been idle for too long.
    swept_by: Option<Id>,
}

impl State {
    fn take_last(&mut self) -> Option<IdleConnection> {
        let last = self.connections.iter().rposition(|unused| unused.connection.is_of_this_runtime())?;
        self.connections.remove(last)
    }
}

#[derive(Debug)]
struct IdleConnection {
    connection: H1Connection<Socket>,
    since: Instant,
}

#[derive(Debug)]
struct SharedConnection {
    connection: h2::H2Connection,
    /// The runtime that drives it.
    runtime: Option<Id>,
    /// When a request last took it.
    used: Instant,
}

impl SharedConnection {
    /// Whether it can still accept requests.
    fn lasts(&self, timeout: Duration) -> bool {
        let is_old = self.connection.is_unused() && self.used.elapsed() >= timeout;
        !is_old && !self.connection.is_closed()
    }
}

impl Idle {
    pub(crate) fn new(most: usize, timeout: Duration) -> Self {
        Self { most, timeout, state: Mutex::default() }
    }

    /// The most recently used open HTTP/1.1 connection of this runtime.
    pub(crate) fn take(&self) -> Option<H1Connection<Socket>> {
        loop {
            let IdleConnection { mut connection, since } = self.state().take_last()?;
            if since.elapsed() < self.timeout
                && connection.socket().is_quiet()
                && let Ok(connection) = connection.begin()
            {
                return Some(connection);
            }
        }
    }

    /// A slot on an open HTTP/2 connection of this runtime. The oldest are filled first, so that connections that a
    /// burst opened fall idle and are closed.
    pub(crate) fn http2(&self) -> Option<h2::StreamSlot> {
        let mut state = self.state();
        state.http2.retain(|shared| shared.lasts(self.timeout));
        let own = current();
        let of_this_runtime = state.http2.iter_mut().filter(|shared| shared.runtime == own);
        of_this_runtime.into_iter().find_map(|shared| {
            let place = shared.connection.place()?;
            shared.used = Instant::now();
            Some(place)
        })
    }

    /// Whether the server of a new connection hasn't announced its concurrency limit yet.
    pub(crate) fn has_unknown_limit(&self) -> bool {
        let own = current();
        self.state().http2.iter().any(|shared| shared.runtime == own && shared.connection.has_unknown_limit())
    }

    /// Stores an HTTP/1.1 connection, if there is one.
    pub(crate) fn put(self: &Arc<Self>, connection: Option<H1Connection<Socket>>) {
        watching::set(None);
        let Some(connection) = connection.filter(|_| self.most > 0) else { return };
        let mut state = self.state();
        let surplus = (state.connections.len() >= self.most).then(|| state.connections.pop_front());
        state.connections.push_back(IdleConnection { connection, since: Instant::now() });
        self.sweep(&mut state);
        drop(state);
        drop(surplus);
    }

    /// Stores an HTTP/2 connection, which requests share.
    pub(crate) fn put_http2(self: &Arc<Self>, connection: h2::H2Connection) {
        if self.most > 0 {
            let mut state = self.state();
            state.http2.push(SharedConnection { connection, runtime: current(), used: Instant::now() });
            self.sweep(&mut state);
        }
    }

    /// Starts the task that closes connections, unless this runtime already has it.
    fn sweep(self: &Arc<Self>, state: &mut State) {
        let Ok(runtime) = Handle::try_current() else { return };
        if state.swept_by == Some(runtime.id()) {
            return;
        }
        state.swept_by = Some(runtime.id());
        let sweeper = Sweeper { idle: Arc::downgrade(self), runtime: runtime.id() };
        let first = Instant::now() + self.timeout;
        runtime.spawn(async move {
            let mut next = first;
            loop {
                tokio::time::sleep_until(next).await;
                match sweeper.close_old() {
                    Some(later) => next = later,
                    None => return,
                }
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes connections. If it is dropped with its runtime, another one takes over.
struct Sweeper {
    idle: Weak<Idle>,
    runtime: Id,
}

impl Sweeper {
    /// Closes connections that have been idle for too long. Returns when the next one is due; none if there is
    /// none.
    fn close_old(&self) -> Option<Instant> {
        let idle = self.idle.upgrade()?;
        let mut state = idle.state();
        let old =
            state.connections.iter().take_while(|unused| unused.since.elapsed() >= idle.timeout).count();
        let closed: Vec<IdleConnection> = state.connections.drain(..old).collect();
        let shared: Vec<SharedConnection> =
            state.http2.extract_if(.., |shared| !shared.lasts(idle.timeout)).collect();
        let first = state.connections.front().map(|unused| unused.since + idle.timeout);
        // A connection with a long-running request is checked again after another full timeout.
        let now = Instant::now();
        let looked_at = |shared: &SharedConnection| {
            if shared.connection.is_unused() { shared.used + idle.timeout } else { now + idle.timeout }
        };
        let next = first.into_iter().chain(state.http2.iter().map(looked_at)).min();
        if next.is_none() && state.swept_by == Some(self.runtime) {
            state.swept_by = None;
        }
        drop(state);
        drop((closed, shared));
        next
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        let Some(idle) = self.idle.upgrade() else { return };
        let mut state = idle.state();
        let has_some = !state.connections.is_empty() || !state.http2.is_empty();
        if has_some && state.swept_by == Some(self.runtime) {
            state.swept_by = None;
        }
    }
}

fn current() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}
