//! A TCP connection, watched either by the runtime or by another watcher, which reports when there is something to read.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Read size for a connection with short packets: a larger buffer would have to be zeroed first.
const SHORT_READ: usize = 2 * 1024;

#[derive(Debug)]
pub(crate) enum Tcp {
    /// Watched by the runtime that it was created in.
    Driven(TcpStream),
    /// Watched by another watcher. Reading registers no wakeup.
    Watched(Arc<SocketState>),
    /// Handing it over failed.
    Lost,
}

/// State that a connection shares with its watcher.
#[derive(Debug)]
pub(crate) struct SocketState {
    tcp: net::TcpStream,
    /// Whether a read may find something.
    readable: AtomicBool,
    /// Read size, as far as there is room.
    room: AtomicUsize,
    /// Whether a write is blocked.
    blocked: AtomicBool,
    /// Number of reads since it became readable.
    reads: AtomicU32,
}

/// Maximum number of reads before the watcher gets a turn: there is no runtime to enforce that.
const MAX_READS: u32 = 128;

/// A connection that its reader watches instead of the runtime: an event loop, or a thread that waits for nothing else.
#[derive(Debug, Clone)]
pub struct WatchedSocket(Weak<SocketState>);

impl WatchedSocket {
    /// Keeps the connection open while it is being watched; none once it is closed or used for something
    /// else.
    pub fn hold(&self) -> Option<SocketGuard> {
        self.0.upgrade().map(SocketGuard)
    }
}

/// A connection that is kept open.
#[derive(Debug)]
pub struct SocketGuard(Arc<SocketState>);

impl SocketGuard {
    /// Reports that there is something to read, or that the server has closed its end.
    pub fn set_readable(&self) {
        self.0.reads.store(0, Ordering::Relaxed);
        self.0.readable.store(true, Ordering::Release);
    }

    /// Whether the rest of the request can only be sent once the connection is writable.
    pub fn is_blocked(&self) -> bool {
        self.0.blocked.load(Ordering::Acquire)
    }
}

#[cfg(unix)]
impl std::os::fd::AsFd for SocketGuard {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.tcp.as_fd()
    }
}

impl Tcp {
    /// Hands the connection to another watcher; none if that's not possible.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        if cfg!(not(unix)) {
            return None;
        }
        if let Self::Driven(_) = self
            && let Self::Driven(tcp) = std::mem::replace(self, Self::Lost)
        {
            let tcp = tcp.into_std().ok()?;
            *self = Self::Watched(Arc::new(SocketState {
                tcp,
                readable: AtomicBool::new(true),
                room: AtomicUsize::new(SHORT_READ),
                blocked: AtomicBool::new(false),
                reads: AtomicU32::new(0),
            }));
        }
        match self {
            Self::Watched(shared) => Some(WatchedSocket(Arc::downgrade(shared))),
            Self::Driven(_) | Self::Lost => None,
        }
    }

    /// Hands the connection back to the caller's runtime to watch.
    pub(crate) fn drive(&mut self) -> io::Result<()> {
        if let Self::Watched(_) = self
            && let Self::Watched(shared) = std::mem::replace(self, Self::Lost)
        {
            let tcp = match Arc::try_unwrap(shared) {
                Ok(shared) => shared.tcp,
                // Other holders will release it soon.
                Err(held) => held.tcp.try_clone()?,
            };
            *self = Self::Driven(TcpStream::from_std(tcp)?);
        }
        Ok(())
    }

    pub(crate) fn is_watched(&self) -> bool {
        matches!(self, Self::Watched(_))
    }

    /// The operating system's socket; none once the connection is lost.
    pub(crate) fn socket(&self) -> Option<SockRef<'_>> {
        match self {
            Self::Driven(tcp) => Some(SockRef::from(tcp)),
            Self::Watched(shared) => Some(SockRef::from(&shared.tcp)),
            Self::Lost => None,
        }
    }
}

impl SocketState {
    fn poll_read(&self, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.readable.load(Ordering::Acquire) || self.reads.fetch_add(1, Ordering::Relaxed) >= MAX_READS {
            return Poll::Pending;
        }
        let room = self.room.load(Ordering::Relaxed).min(buffer.remaining());
        let space = buffer.initialize_unfilled_to(room);
        let Poll::Ready(read) = attempt(|| (&self.tcp).read(space))? else {
            self.readable.store(false, Ordering::Release);
            return Poll::Pending;
        };
        buffer.advance(read);
        // A read that doesn't fill the buffer has drained the socket.
        if read < room {
            self.readable.store(read == 0, Ordering::Release);
        } else {
            self.room.store(usize::MAX, Ordering::Relaxed);
        }
        if read < SHORT_READ {
            self.room.store(SHORT_READ, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(&self, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = attempt(|| (&self.tcp).write_vectored(slices));
        self.blocked.store(written.is_pending(), Ordering::Release);
        written
    }
}

fn attempt<T>(mut work: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match work() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}

fn lost() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the connection could not change hands")
}

impl AsyncRead for Tcp {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Driven(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Self::Watched(shared) => shared.poll_read(buffer),
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }
}

impl AsyncWrite for Tcp {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Driven(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            Self::Watched(shared) => shared.poll_write(slices),
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Driven(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Watched(shared) => Poll::Ready(shared.tcp.shutdown(net::Shutdown::Write)),
            Self::Lost => Poll::Ready(Err(lost())),
        }
    }
}
