//! Streams whose reader watches the connection itself: it reads what has arrived, and no other task is woken. While it
//! is away, a caretaker keeps the stream going.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use super::inbox::{Inbox, StreamReader};
use super::reader_task;

/// The result of [`ReadAhead::read_now`](super::ReadAhead::read_now).
///
/// ```no_run
/// use std::task::Waker;
///
/// use gatewright::read_ahead::{Now, ReadAhead};
///
/// fn is_over(stream: &ReadAhead<String>) -> bool {
///     stream.read_now(Waker::noop()) == Now::Over
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Now {
    /// There is something to take.
    Readable,
    /// There is nothing to take until more arrives.
    Silent,
    /// Events have to be taken before more is read.
    Full,
    /// Another reader has the stream.
    Elsewhere,
    /// The stream has ended; its end may still have to be taken.
    Over,
}

/// Says that a reader is there, until it is dropped.
///
/// ```no_run
/// use gatewright::read_ahead::ReadAhead;
///
/// fn wait(stream: &ReadAhead<String>) {
///     let _attending = stream.attend();
///     // Waits for the connection: no task reads meanwhile.
/// }
/// ```
#[derive(Debug)]
pub struct ReaderGuard<'a>(&'a AtomicUsize);

impl<'a> ReaderGuard<'a> {
    pub(super) fn of<E>(inbox: &'a Inbox<E>) -> Self {
        inbox.attending.fetch_add(1, Ordering::SeqCst);
        Self(&inbox.attending)
    }
}

impl Drop for ReaderGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) fn read_now<E>(inbox: &Arc<Inbox<E>>, waker: &Waker) -> Now {
    inbox.visits.fetch_add(1, Ordering::Relaxed);
    let mut state = inbox.lock();
    if state.end.is_some() {
        return Now::Over;
    }
    if !state.has_room() {
        return Now::Full;
    }
    let (Some(level), false) = (state.level, state.as_document) else { return Now::Elsewhere };
    let Some(stream) = state.stream.take() else {
        if state.pump.is_some() && state.watched.is_some() {
            inbox.recalled.notify_one();
        }
        return if state.is_readable() { Now::Readable } else { Now::Elsewhere };
    };
    drop(state);
    let mut reader = StreamReader::new(stream, inbox);
    let _entered = inbox.runtime.enter();
    let polled = pin!(reader.read(level)).poll(&mut Context::from_waker(waker));
    match polled {
        Poll::Ready((events, end)) => reader.settle(events, end),
        Poll::Pending => drop(reader),
    }
    let state = inbox.lock();
    match (&state.end, state.has_room(), state.is_readable()) {
        (Some(_), ..) => Now::Over,
        (None, false, _) => Now::Full,
        (None, true, true) => Now::Readable,
        (None, true, false) => Now::Silent,
    }
}

pub(super) fn caretaker<E: Send + 'static>(
    inbox: &Arc<Inbox<E>>,
) -> impl Fn() -> bool + Send + Sync + use<E> {
    let inbox = Arc::downgrade(inbox);
    let seen = AtomicU64::new(0);
    move || {
        let Some(inbox) = inbox.upgrade() else { return false };
        let visits = inbox.visits.load(Ordering::Relaxed);
        let is_left =
            seen.swap(visits, Ordering::Relaxed) == visits && inbox.attending.load(Ordering::SeqCst) == 0;
        let mut state = inbox.lock();
        if state.end.is_some() || state.watched.is_none() {
            return false;
        }
        if is_left && state.has_room() {
            reader_task::start(&inbox, &mut state);
        }
        true
    }
}
