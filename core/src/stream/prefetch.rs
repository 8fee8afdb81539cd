//! Reading ahead. A task reads a stream into a bounded inbox, at the level of the first reader, and the reader takes
//! everything that is ready at once. A reader that watches the connection itself fills the inbox when something has
//! arrived. If the whole document is requested, no events are delivered.

mod inbox;
mod reader_task;
mod watched;

use std::fmt;
use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;

pub use gatewright_connect::{Slot, SocketGuard, WatchedSocket};
use tokio::runtime::Handle;

use self::inbox::{Inbox, closed};
pub use self::inbox::{Level, Read};
pub use self::watched::{Now, ReaderGuard};
use super::RawStream;
use crate::api::operation::Operation;
use crate::transport::response::RawResponse;
use crate::wire::error::Error;

/// The result of [`ReadAhead::take`].
///
/// ```
/// use gatewright::read_ahead::TakeResult;
///
/// fn printed(taken: TakeResult<String>) -> bool {
///     match taken {
///         TakeResult::Events(events) => events.iter().for_each(|event| println!("{event}")),
///         TakeResult::Failed(error) => eprintln!("{error}"),
///         _ => return false,
///     }
///     true
/// }
/// assert!(printed(TakeResult::Events(vec!["Hello!".to_owned()])));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeResult<E> {
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
///
/// ```no_run
/// use gatewright::RawStream;
/// use gatewright::read_ahead::{Level, Read, ReadAhead, TakeResult};
/// use tokio::runtime::Handle;
///
/// /// Prints the text of a stream from a thread that is none of the runtime's.
/// fn print(runtime: &Handle, stream: RawStream) {
///     let stream = ReadAhead::new(runtime, stream, |read| match read {
///         Read::Text(text) => Ok(text),
///         other => Err(format!("{other:?} is no text")),
///     });
///     loop {
///         match stream.take(Level::Text) {
///             TakeResult::Events(texts) => print!("{}", texts.concat()),
///             _ => break,
///         }
///         runtime.block_on(stream.readable());
///     }
/// }
/// ```
pub struct ReadAhead<E: Send + 'static> {
    inbox: Arc<Inbox<E>>,
    operation: &'static Operation,
}

impl<E: Send + 'static> ReadAhead<E> {
    /// A stream that has not been read from yet; the task that reads ahead will run on `runtime`. make: converts each
    /// item; if it returns a reason why it cannot, the stream ends with a Decode error.
    ///
    /// ```
    /// use gatewright::RawStream;
    /// use gatewright::read_ahead::{Read, ReadAhead};
    ///
    /// /// A stream whose chunks a front end takes as JSON texts.
    /// fn ahead(stream: RawStream) -> ReadAhead<String> {
    ///     ReadAhead::new(&tokio::runtime::Handle::current(), stream, |read| match read {
    ///         Read::Chunk(json) => Ok(json),
    ///         other => Err(format!("{other:?} is no chunk")),
    ///     })
    /// }
    /// ```
    pub fn new(runtime: &Handle, stream: RawStream, make: fn(Read) -> Result<E, String>) -> Self {
        let operation = stream.operation();
        Self { inbox: Arc::new(Inbox::new(runtime.clone(), stream, make)), operation }
    }

    /// Has the reader watch the connection itself, before anything is read: [`ReadAhead::read_now`] reads, no task does.
    /// Returns whether there is a connection to watch.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// if !stream.watch() {
    ///     println!("a task reads this stream");
    /// }
    /// # }
    /// ```
    pub fn watch(&self) -> bool {
        let mut state = self.inbox.lock();
        state.watched = state.stream.as_mut().and_then(RawStream::watch);
        state.watched.is_some()
    }

    /// Makes the time limits wake the next reader instead of the last one.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// // Another thread reads from here on: it is the one to wake.
    /// stream.renew_timer();
    /// stream.read_now(std::task::Waker::noop());
    /// # }
    /// ```
    pub fn renew_timer(&self) {
        if let Some(stream) = &mut self.inbox.lock().stream {
            stream.renew_timer();
        }
    }

    /// The connection that the reader watches; none if a task reads, or if the stream has ended.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// let is_ours = stream.watched().is_some();
    /// # }
    /// ```
    pub fn watched(&self) -> Option<WatchedSocket> {
        self.inbox.lock().watched.clone()
    }

    /// Leaves reading to a task from now on.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// if stream.watched().is_some() {
    ///     stream.unwatch();
    /// }
    /// assert!(stream.watched().is_none());
    /// # }
    /// ```
    pub fn unwatch(&self) {
        let mut state = self.inbox.lock();
        state.watched = None;
        reader_task::start(&self.inbox, &mut state);
    }

    /// Reads what has arrived on the connection that the reader watches. `waker` is woken when a time limit of the stream
    /// expires: then call this again.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// use gatewright::read_ahead::{Level, Now};
    ///
    /// if stream.read_now(std::task::Waker::noop()) == Now::Readable {
    ///     println!("{:?}", stream.take(Level::Text));
    /// }
    /// # }
    /// ```
    pub fn read_now(&self, waker: &Waker) -> Now {
        watched::read_now(&self.inbox, waker)
    }

    /// Whether [`ReadAhead::read_now`] has nothing to do until the connection has something, or its waker is woken.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// if !stream.is_at_rest() {
    ///     stream.read_now(std::task::Waker::noop());
    /// }
    /// # }
    /// ```
    pub fn is_at_rest(&self) -> bool {
        self.inbox.lock().stream.as_ref().is_some_and(RawStream::is_at_rest)
    }

    /// Registers a reader that waits for the connection, so that no caretaker takes over.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// let attending = stream.attend();
    /// // Waits for the connection here.
    /// drop(attending);
    /// # }
    /// ```
    pub fn attend(&self) -> ReaderGuard<'_> {
        ReaderGuard::of(&self.inbox)
    }

    /// For the caretaker of streams without a waiting reader: call it periodically until it returns false. If no
    /// reader has appeared since the last call, a task continues to read until one does.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// use std::time::Duration;
    ///
    /// let look_after = stream.caretaker();
    /// std::thread::spawn(move || {
    ///     while look_after() {
    ///         std::thread::sleep(Duration::from_secs(1));
    ///     }
    /// });
    /// # }
    /// ```
    pub fn caretaker(&self) -> impl Fn() -> bool + Send + Sync + use<E> {
        watched::caretaker(&self.inbox)
    }

    /// The operation that streams.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// println!("{}", stream.operation().qualified_name());
    /// # }
    /// ```
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// Takes everything that is ready at a level. The first call fixes the level and starts reading.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// use gatewright::read_ahead::{Level, TakeResult};
    ///
    /// match stream.take(Level::Text) {
    ///     TakeResult::Events(texts) => print!("{}", texts.concat()),
    ///     TakeResult::Failed(error) => eprintln!("{error}"),
    ///     over => println!("{over:?}"),
    /// }
    /// # }
    /// ```
    pub fn take(&self, level: Level) -> TakeResult<E> {
        self.inbox.visits.fetch_add(1, Ordering::Relaxed);
        let mut state = self.inbox.lock();
        let chosen = *state.level.get_or_insert(level);
        if chosen != level || state.as_document {
            return match state.end {
                Some(_) => TakeResult::Over,
                None => TakeResult::Otherwise((!state.as_document).then_some(chosen)),
            };
        }
        if state.watched.is_none() {
            reader_task::start(&self.inbox, &mut state);
        }
        let events = mem::take(&mut state.events);
        if events.is_empty() && state.end.is_some() {
            return state.failure.take().map_or(TakeResult::Over, TakeResult::Failed);
        }
        drop(state);
        self.inbox.space.notify_one();
        TakeResult::Events(events)
    }

    /// Waits until [`ReadAhead::take`] has something to return, or until the stream is left to a reader that
    /// watches the connection itself.
    ///
    /// ```
    /// use gatewright::read_ahead::{Level, ReadAhead, TakeResult};
    ///
    /// async fn next(stream: &ReadAhead<String>) -> TakeResult<String> {
    ///     stream.readable().await;
    ///     stream.take(Level::Text)
    /// }
    /// ```
    pub fn readable(&self) -> impl Future<Output = ()> + Send + use<E> {
        let inbox = Arc::clone(&self.inbox);
        async move {
            loop {
                let mut notified = pin!(inbox.readable.notified());
                notified.as_mut().enable();
                {
                    let state = inbox.lock();
                    if state.is_readable() || state.is_left_to_its_reader() {
                        return;
                    }
                }
                notified.await;
            }
        }
    }

    /// Runs `notify` once [`ReadAhead::take`] has something to return: either now or on the task.
    ///
    /// ```
    /// use std::sync::mpsc::channel;
    ///
    /// use gatewright::read_ahead::ReadAhead;
    ///
    /// fn wait(stream: &ReadAhead<String>) {
    ///     let (sender, receiver) = channel();
    ///     stream.when_readable(move || drop(sender.send(())));
    ///     receiver.recv().expect("delivered once");
    /// }
    /// ```
    pub fn when_readable(&self, notify: impl FnOnce() + Send + 'static) {
        let mut state = self.inbox.lock();
        if state.is_readable() {
            drop(state);
            notify();
        } else {
            state.waiters.push(Box::new(notify));
        }
    }

    /// Reads to the end and returns the whole document; events that have not been taken are dropped. Errors: those of
    /// [`RawStream::finish`]; Configuration if the stream is closed before it is complete.
    ///
    /// ```
    /// use gatewright::Error;
    /// use gatewright::read_ahead::ReadAhead;
    ///
    /// async fn whole(stream: ReadAhead<String>) -> Result<usize, Error> {
    ///     Ok(stream.finish().await?.body.len())
    /// }
    /// ```
    pub fn finish(&self) -> impl Future<Output = Result<RawResponse, Error>> + Send + use<E> {
        finish(Arc::clone(&self.inbox))
    }

    /// Closes the connection; events that have not been taken are dropped. The document of a complete stream remains
    /// available.
    ///
    /// ```
    /// # fn example(stream: &gatewright::read_ahead::ReadAhead<String>) {
    /// use gatewright::read_ahead::{Level, TakeResult};
    ///
    /// stream.close();
    /// assert!(matches!(stream.take(Level::Text), TakeResult::Over));
    /// # }
    /// ```
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

async fn finish<E>(inbox: Arc<Inbox<E>>) -> Result<RawResponse, Error> {
    let closing = inbox.closing.notified();
    let mut reader = inbox.reclaim().await?;
    reader.stream().drive();
    let document = tokio::select! {
        document = reader.stream().contain(async |stream| stream.finish().await) => document,
        () = closing => Err(closed()),
    };
    drop(reader);
    inbox.put(Vec::new(), Some(document.as_ref().map(drop).map_err(|_| closed())));
    inbox.lock().failure = None;
    document
}
