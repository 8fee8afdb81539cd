//! Reading ahead. A task reads a stream into a bounded inbox, at the level that the first reader asks for, and the
//! reader takes everything that is ready at once. If the whole document is asked for, no events are delivered.

use std::fmt;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::RawStream;
use crate::api::operation::Operation;
use crate::transport::response::RawResponse;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::sse::Frame;

/// Number of waiting events at which reading from the connection pauses.
const INBOX_EVENTS: usize = 1024;

/// The level at which a stream is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// [`RawStream::next_batch`].
    Chunks,
    /// [`RawStream::next_frames`].
    Frames,
    /// [`RawStream::next_text`].
    Text,
}

/// What is read at each level.
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

/// The result of [`ReadAhead::take`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Taken<E> {
    /// All events that are ready, perhaps none.
    Events(Vec<E>),
    /// The stream is complete or closed, or its error has been returned.
    Over,
    /// The error that ended the stream: after the last event, and once.
    Failed(Error),
    /// The stream is being read at another level, or, if none is given, as the whole document.
    Otherwise(Option<Level>),
}

/// A stream that is read in advance, for front ends whose readers wait on another thread or on an event loop.
///
/// Threads may share it: each event is delivered once. Dropping it closes the connection.
pub struct ReadAhead<E: Send + 'static> {
    inbox: Arc<Inbox<E>>,
    operation: &'static Operation,
    make: Make<E>,
    runtime: Handle,
}

type Make<E> = fn(Read) -> Result<E, String>;

impl<E: Send + 'static> ReadAhead<E> {
    /// A stream that nobody has read from yet; its task will run on `runtime`. make: converts what is read; if it
    /// returns a reason why it cannot, the stream ends with a Decode error.
    pub fn new(runtime: &Handle, stream: RawStream, make: fn(Read) -> Result<E, String>) -> Self {
        let operation = stream.operation();
        let inbox = Inbox::default();
        inbox.lock().stream = Some(stream);
        Self { inbox: Arc::new(inbox), operation, make, runtime: runtime.clone() }
    }

    /// The operation that streams.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// Takes everything that is ready at a level. The first call fixes the level and starts reading.
    pub fn take(&self, level: Level) -> Taken<E> {
        let mut state = self.inbox.lock();
        let chosen = *state.level.get_or_insert(level);
        if chosen != level || state.as_document {
            return match state.end {
                Some(_) => Taken::Over,
                None => Taken::Otherwise((!state.as_document).then_some(chosen)),
            };
        }
        if state.pump.is_none()
            && state.end.is_none()
            && let Some(stream) = state.stream.take()
        {
            let reader = Reader { stream: Some(stream), inbox: Arc::clone(&self.inbox) };
            state.pump = Some(self.runtime.spawn(pump(reader, level, self.make)).abort_handle());
        }
        let events = mem::take(&mut state.events);
        if events.is_empty() && state.end.is_some() {
            return state.failure.take().map_or(Taken::Over, Taken::Failed);
        }
        drop(state);
        self.inbox.space.notify_one();
        Taken::Events(events)
    }

    /// Waits until [`ReadAhead::take`] has something to return.
    pub fn readable(&self) -> impl Future<Output = ()> + Send + use<E> {
        let inbox = Arc::clone(&self.inbox);
        async move {
            loop {
                let mut told = pin!(inbox.readable.notified());
                told.as_mut().enable();
                if inbox.lock().is_readable() {
                    return;
                }
                told.await;
            }
        }
    }

    /// Runs `tell` once [`ReadAhead::take`] has something to return: either now or on the task.
    pub fn when_readable(&self, tell: impl FnOnce() + Send + 'static) {
        let mut state = self.inbox.lock();
        if state.is_readable() {
            drop(state);
            tell();
        } else {
            state.waiters.push(Box::new(tell));
        }
    }

    /// Reads to the end and returns the whole document; events that have not been taken are dropped. Errors: as
    /// [`RawStream::finish`]; Configuration if the stream is closed before it is complete.
    pub fn finish(&self) -> impl Future<Output = Result<RawResponse, Error>> + Send + use<E> {
        finish(Arc::clone(&self.inbox))
    }

    /// Closes the connection; events that have not been taken are dropped. The document of a complete stream remains
    /// available.
    pub fn close(&self) {
        self.inbox.close(false);
    }
}

impl<E: Send + 'static> Drop for ReadAhead<E> {
    fn drop(&mut self) {
        self.inbox.close(true);
    }
}

impl<E: Send + 'static> fmt::Debug for ReadAhead<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead").field("operation", &self.operation.id).finish_non_exhaustive()
    }
}

/// What has been read and not yet taken.
struct Inbox<E> {
    state: Mutex<State<E>>,
    /// Signalled when there is something to take.
    readable: Notify,
    /// Signalled when something was taken, for the pump.
    space: Notify,
    /// Signalled when the stream has been returned, for the next reader.
    returned: Notify,
    /// Signalled when the stream is closed, for the reader of its document.
    closing: Notify,
}

struct State<E> {
    /// The stream itself while nobody reads from it: before the first read, after the end, and between readers.
    stream: Option<RawStream>,
    level: Option<Level>,
    /// Whether the whole document was asked for, so that no more events are delivered.
    as_document: bool,
    pump: Option<AbortHandle>,
    events: Vec<E>,
    end: Option<End>,
    /// Why the stream failed; returned once.
    failure: Option<Error>,
    /// Called when there is something to take.
    waiters: Vec<Box<dyn FnOnce() + Send>>,
}

/// How a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Failed,
    /// Closed by its reader before it was complete.
    Closed,
}

impl<E> State<E> {
    fn is_readable(&self) -> bool {
        self.end.is_some() || !self.events.is_empty() || self.as_document
    }
}

impl<E> Default for Inbox<E> {
    fn default() -> Self {
        let state = State {
            stream: None,
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
            readable: Notify::new(),
            space: Notify::new(),
            returned: Notify::new(),
            closing: Notify::new(),
        }
    }
}

impl<E> Inbox<E> {
    fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, and the end of the stream if it has been reached, and wakes all waiters. Returns whether there is
    /// room for more.
    fn put(&self, events: Vec<E>, end: Option<Result<(), Error>>) -> bool {
        let mut state = self.lock();
        if state.end.is_none() {
            state.events.extend(events);
            if let Some(end) = end {
                state.end = Some(if end.is_ok() { End::Complete } else { End::Failed });
                state.failure = end.err();
            }
        }
        let room = state.events.len() < INBOX_EVENTS;
        self.wake(state);
        room
    }

    fn wake(&self, mut state: MutexGuard<'_, State<E>>) {
        let waiters = mem::take(&mut state.waiters);
        drop(state);
        self.readable.notify_waiters();
        for tell in waiters {
            tell();
        }
    }

    async fn room(&self) {
        loop {
            // A permit of an earlier `take` may be stale: check again.
            self.space.notified().await;
            if self.lock().events.len() < INBOX_EVENTS {
                return;
            }
        }
    }

    /// Ends reading. for_good: nobody will ask for the document either, even of a stream that has ended.
    fn close(&self, for_good: bool) {
        let mut state = self.lock();
        let events = mem::take(&mut state.events);
        state.failure = None;
        if let Some(pump) = state.pump.take() {
            pump.abort();
        }
        let mut stream = None;
        if for_good || state.end.is_none() {
            state.end = Some(End::Closed);
            stream = state.stream.take();
        }
        self.wake(state);
        // Drop them outside the lock: this closes the connection.
        drop((events, stream));
        self.closing.notify_waiters();
        self.returned.notify_waiters();
    }

    /// Takes the stream from its current holder to read its document: stops the pump or waits for another reader.
    async fn reclaim(self: &Arc<Self>) -> Result<Reader<E>, Error> {
        loop {
            let returned = self.returned.notified();
            {
                let mut state = self.lock();
                state.as_document = true;
                if let Some(stream) = state.stream.take() {
                    state.events.clear();
                    self.wake(state);
                    return Ok(Reader { stream: Some(stream), inbox: Arc::clone(self) });
                }
                if state.end == Some(End::Closed) {
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
struct Reader<E> {
    /// None only within `drop`.
    stream: Option<RawStream>,
    inbox: Arc<Inbox<E>>,
}

impl<E> Reader<E> {
    fn stream(&mut self) -> &mut RawStream {
        self.stream.as_mut().expect("given back in drop alone")
    }

    /// The next events of a level, and the end of the stream if it has been reached.
    async fn read(&mut self, level: Level, make: Make<E>) -> (Vec<E>, Option<Result<(), Error>>) {
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
        // A panic ends the stream, but not the task that everybody waits for.
        self.stream().contain(read).await.unwrap_or_else(|failure| (Vec::new(), Some(Err(failure))))
    }
}

impl<E> Drop for Reader<E> {
    fn drop(&mut self) {
        let mut state = self.inbox.lock();
        let mut stream = self.stream.take();
        if state.end != Some(End::Closed) {
            state.stream = stream.take();
        }
        drop(state);
        // Drop it outside the lock: this closes the connection.
        drop(stream);
        self.inbox.returned.notify_waiters();
    }
}

async fn pump<E>(mut reader: Reader<E>, level: Level, make: Make<E>) {
    loop {
        let (events, end) = reader.read(level, make).await;
        let ended = end.is_some();
        let inbox = Arc::clone(&reader.inbox);
        if ended {
            // The stream is returned before its end is published: the document may be asked for at once.
            drop(reader);
            inbox.put(events, end);
            return;
        }
        if !inbox.put(events, None) {
            inbox.room().await;
        }
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Configuration, "the stream was closed before it was complete")
}

async fn finish<E>(inbox: Arc<Inbox<E>>) -> Result<RawResponse, Error> {
    let closing = inbox.closing.notified();
    let mut reader = inbox.reclaim().await?;
    let document = tokio::select! {
        document = reader.stream().contain(async |stream| stream.finish().await) => document,
        () = closing => Err(closed()),
    };
    drop(reader);
    inbox.put(Vec::new(), Some(document.as_ref().map(drop).map_err(|_| closed())));
    inbox.lock().failure = None;
    document
}
