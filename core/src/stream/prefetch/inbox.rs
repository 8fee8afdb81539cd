//! The items that have been read from a stream but not yet taken, and the next reader.

use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright_connect::WatchedSocket;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::super::RawStream;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::sse::Frame;

/// Number of waiting events at which reading from the connection pauses.
const INBOX_EVENTS: usize = 1024;

/// The level at which a stream is read.
///
/// ```
/// use gatewright::read_ahead::{Level, TakeResult};
///
/// /// Why there is nothing at this level.
/// fn reason<E>(taken: &TakeResult<E>) -> &'static str {
///     match taken {
///         TakeResult::Otherwise(Some(Level::Text)) => "somebody reads the text of this stream",
///         TakeResult::Otherwise(_) => "somebody reads it at another level",
///         _ => "",
///     }
/// }
/// # assert_eq!(reason::<()>(&TakeResult::Over), "");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// [`RawStream::next_batch`].
    Chunks,
    /// [`RawStream::next_frames`].
    Frames,
    /// [`RawStream::next_text`].
    Text,
}

/// An item, as read at each level.
///
/// ```
/// use gatewright::read_ahead::Read;
///
/// /// What a front end makes of each level.
/// fn made(read: Read) -> Result<String, String> {
///     match read {
///         Read::Chunk(text) | Read::Text(text) => Ok(text),
///         Read::Frame(frame) => frame.data.ok_or_else(|| "a frame without data".to_owned()),
///         other => Err(format!("{other:?} is not known")),
///     }
/// }
/// assert_eq!(made(Read::Text("Hello!".to_owned())).as_deref(), Ok("Hello!"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Read {
    /// A JSON document.
    Chunk(String),
    /// A frame as it arrived.
    Frame(Frame),
    /// New text.
    Text(String),
}

pub(super) type Make<E> = fn(Read) -> Result<E, String>;

/// Items that have been read and not yet taken.
pub(super) struct Inbox<E> {
    state: Mutex<State<E>>,
    pub(super) make: Make<E>,
    /// Where the pump runs.
    pub(super) runtime: Handle,
    /// Signalled when there is something to take.
    pub(super) readable: Notify,
    /// Signalled when something was taken, for the pump.
    pub(super) space: Notify,
    /// Signalled when the stream has been returned, for the next reader.
    returned: Notify,
    /// Signalled when the stream is closed, for the reader of its document.
    pub(super) closing: Notify,
    /// Signalled when a reader that watches the connection itself is back, for the pump.
    pub(super) recalled: Notify,
    /// How many times a reader has come.
    pub(super) visits: AtomicU64,
    /// Number of readers that wait for the connection themselves.
    pub(super) attending: AtomicUsize,
}

pub(super) struct State<E> {
    /// The stream itself while it has no reader: before the first read, after the end, and between readers.
    pub(super) stream: Option<RawStream>,
    /// The connection, if the reader watches it.
    pub(super) watched: Option<WatchedSocket>,
    pub(super) level: Option<Level>,
    /// Whether the whole document was requested, so that no more events are delivered.
    pub(super) as_document: bool,
    pub(super) pump: Option<AbortHandle>,
    pub(super) events: Vec<E>,
    pub(super) end: Option<StreamEnd>,
    /// Why the stream failed; returned once.
    pub(super) failure: Option<Error>,
    /// Called when there is something to take.
    pub(super) waiters: Vec<Box<dyn FnOnce() + Send>>,
}

/// How a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Complete,
    Failed,
    /// Closed by its reader before it was complete.
    Closed,
}

impl<E> State<E> {
    pub(super) fn is_readable(&self) -> bool {
        self.end.is_some() || !self.events.is_empty() || self.as_document
    }

    /// Whether there is no reader and the next one watches the connection itself.
    pub(super) fn is_left_to_its_reader(&self) -> bool {
        self.watched.is_some() && self.stream.is_some()
    }

    pub(super) fn has_room(&self) -> bool {
        self.events.len() < INBOX_EVENTS
    }

    /// Adds events, and the end of the stream if it has been reached.
    fn add(&mut self, events: Vec<E>, end: Option<Result<(), Error>>) {
        if self.end.is_some() {
            return;
        }
        if self.events.is_empty() {
            self.events = events;
        } else {
            self.events.extend(events);
        }
        if let Some(end) = end {
            self.end = Some(if end.is_ok() { StreamEnd::Complete } else { StreamEnd::Failed });
            self.failure = end.err();
        }
    }
}

impl<E> Inbox<E> {
    pub(super) fn new(runtime: Handle, stream: RawStream, make: Make<E>) -> Self {
        let state = State {
            stream: Some(stream),
            watched: None,
            level: None,
            as_document: false,
            pump: None,
            events: Vec::new(),
            end: None,
            failure: None,
            waiters: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            make,
            runtime,
            readable: Notify::new(),
            space: Notify::new(),
            returned: Notify::new(),
            closing: Notify::new(),
            recalled: Notify::new(),
            visits: AtomicU64::new(0),
            attending: AtomicUsize::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, and the end of the stream if it has been reached, and wakes all waiters. Returns whether there is
    /// room for more.
    pub(super) fn put(&self, events: Vec<E>, end: Option<Result<(), Error>>) -> bool {
        let mut state = self.lock();
        state.add(events, end);
        let room = state.has_room();
        self.wake(state);
        room
    }

    fn wake(&self, mut state: MutexGuard<'_, State<E>>) {
        let waiters = mem::take(&mut state.waiters);
        drop(state);
        self.readable.notify_waiters();
        for notify in waiters {
            notify();
        }
    }

    pub(super) async fn room(&self) {
        loop {
            // A permit of an earlier `take` may be stale: check again.
            self.space.notified().await;
            if self.lock().has_room() {
                return;
            }
        }
    }

    /// Ends reading. for_good: the document will not be requested either, even of a stream that has ended.
    pub(super) fn close(&self, for_good: bool) {
        let mut state = self.lock();
        let events = mem::take(&mut state.events);
        state.failure = None;
        if let Some(pump) = state.pump.take() {
            pump.abort();
        }
        let mut stream = None;
        if for_good || state.end.is_none() {
            state.end = Some(StreamEnd::Closed);
            stream = state.stream.take();
        }
        self.wake(state);
        // Drop them outside the lock: this closes the connection.
        drop((events, stream));
        self.closing.notify_waiters();
        self.returned.notify_waiters();
    }

    /// Takes the stream from its current holder to read its document: stops the pump or waits for another reader.
    pub(super) async fn reclaim(self: &Arc<Self>) -> Result<StreamReader<E>, Error> {
        loop {
            let returned = self.returned.notified();
            {
                let mut state = self.lock();
                state.as_document = true;
                if let Some(stream) = state.stream.take() {
                    // The watcher has nothing left to read.
                    state.watched = None;
                    state.events.clear();
                    self.wake(state);
                    return Ok(StreamReader::new(stream, self));
                }
                if state.end == Some(StreamEnd::Closed) {
                    return Err(closed());
                }
                if let Some(pump) = state.pump.take() {
                    pump.abort();
                }
            }
            returned.await;
        }
    }
}

/// The current reader of the stream. Returns the stream when it is done or dropped.
pub(super) struct StreamReader<E> {
    /// None only while it is returned.
    stream: Option<RawStream>,
    pub(super) inbox: Arc<Inbox<E>>,
}

impl<E> StreamReader<E> {
    pub(super) fn new(stream: RawStream, inbox: &Arc<Inbox<E>>) -> Self {
        Self { stream: Some(stream), inbox: Arc::clone(inbox) }
    }

    pub(super) fn stream(&mut self) -> &mut RawStream {
        self.stream.as_mut().expect("it is returned at the end alone")
    }

    /// Adds what was read last and returns the stream in one step, so that no other reader comes in between.
    pub(super) fn settle(mut self, events: Vec<E>, end: Option<Result<(), Error>>) {
        let inbox = Arc::clone(&self.inbox);
        let mut state = inbox.lock();
        let closed = self.put_back(&mut state);
        state.add(events, end);
        inbox.wake(state);
        drop(closed);
        inbox.returned.notify_waiters();
    }

    /// Returns the stream; gives it back if it is closed, to be dropped outside of the lock.
    fn put_back(&mut self, state: &mut State<E>) -> Option<RawStream> {
        let stream = self.stream.take();
        if state.end == Some(StreamEnd::Closed) || stream.is_none() {
            return stream;
        }
        state.stream = stream;
        None
    }

    /// The next events of a level, and the end of the stream if it has been reached.
    pub(super) async fn read(&mut self, level: Level) -> (Vec<E>, Option<Result<(), Error>>) {
        let make = self.inbox.make;
        let read = async |stream: &mut RawStream| {
            let read: Option<Vec<Read>> = match level {
                Level::Chunks => {
                    let chunks = stream.next_batch().await?;
                    chunks.map(|chunks| chunks.into_iter().map(|event| Read::Chunk(event.data)).collect())
                }
                Level::Frames => {
                    let frames = stream.next_frames().await?;
                    frames.map(|frames| frames.into_iter().map(Read::Frame).collect())
                }
                Level::Text => {
                    let pieces = stream.next_text().await?;
                    pieces.map(|pieces| pieces.into_iter().map(Read::Text).collect())
                }
            };
            let Some(read) = read else { return Ok((Vec::new(), Some(Ok(())))) };
            let mut events = Vec::with_capacity(read.len());
            for one in read {
                match make(one) {
                    Ok(event) => events.push(event),
                    Err(reason) => {
                        let unread =
                            Error::new(ErrorKind::Decode, format!("an event cannot be read: {reason}"));
                        return Ok((events, Some(Err(stream.give_up(unread)))));
                    }
                }
            }
            Ok((events, None))
        };
        // A panic ends the stream, but not the task that all readers wait for.
        self.stream().contain(read).await.unwrap_or_else(|failure| (Vec::new(), Some(Err(failure))))
    }
}

impl<E> Drop for StreamReader<E> {
    fn drop(&mut self) {
        if self.stream.is_none() {
            return;
        }
        let inbox = Arc::clone(&self.inbox);
        let closed = self.put_back(&mut inbox.lock());
        // Drop it outside the lock: this closes the connection.
        drop(closed);
        inbox.returned.notify_waiters();
        // Waiters may now read themselves.
        inbox.readable.notify_waiters();
    }
}

pub(super) fn closed() -> Error {
    Error::new(ErrorKind::Configuration, "the stream was closed before it was complete")
}
