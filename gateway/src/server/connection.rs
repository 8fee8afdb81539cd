//! Client connections: a socket with a write timeout, the count of connections per peer, and the handling of clients
//! that have disconnected or closed their sending half.
//!
//! `server/http1` limits the time for the head of a request and for idle connections; the body has its own deadline
//! (`server/body.rs`). This module limits clients that never read.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use super::head_error;
use crate::wire::{ApiError, Presence};

/// Longest time that a half-closed client may read nothing. Such a client either waits for the response or is gone;
/// TCP can't tell which.
const AFTER_HALF_CLOSE: Duration = Duration::from_secs(10);
/// Interval for checking whether the client closed a connection with unread bytes: its upstream request is abandoned
/// within 100 ms.
const LOOK: Duration = Duration::from_millis(50);
/// How long to discard further input after the last response, so that the client can read that response.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);
/// Maximum number of bytes discarded that way.
const MAX_DRAINED: usize = 4 * 1024 * 1024;

/// The socket that HTTP is spoken over.
pub(crate) struct Socket {
    shared: Arc<SocketInner>,
    /// Timeout of a write.
    patience: Duration,
    /// Runs while a write is blocked.
    stuck: Option<Pin<Box<Sleep>>>,
}

/// The same socket, for the code that watches the connection.
pub(crate) struct Peer {
    shared: Arc<SocketInner>,
    /// How long it may be silent after a half-close.
    patience: Duration,
    /// Ends when it closes its sending half: nothing that costs money continues for it.
    presence: Presence,
}

struct SocketInner {
    stream: TcpStream,
    /// Bytes written so far.
    written: AtomicU64,
    /// Whether a write timed out.
    gave_up: AtomicBool,
}

/// A socket whose client must read something at least once per `patience` while output is pending.
pub(crate) fn open(stream: TcpStream, patience: Duration) -> (Socket, Peer) {
    let shared =
        Arc::new(SocketInner { stream, written: AtomicU64::new(0), gave_up: AtomicBool::new(false) });
    let peer = Peer {
        shared: Arc::clone(&shared),
        patience: patience.min(AFTER_HALF_CLOSE),
        presence: Presence::default(),
    };
    (Socket { shared, patience, stuck: None }, peer)
}

/// Rejects a connection with an error. If a slot is free, discards input for a while, so that the client can read the
/// error; otherwise closes the connection immediately.
pub(crate) fn refuse(stream: TcpStream, error: ApiError, places: &Arc<Semaphore>) {
    // The response fits into the buffer of a new socket, so this does not wait for the client.
    _ = stream.try_write(&head_error::answer(error));
    _ = SockRef::from(&stream).shutdown(std::net::Shutdown::Write);
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        tokio::spawn(async move {
            drain(&stream).await;
            drop((stream, place));
        });
    }
}

/// Discards input for a limited time and up to a limited size. With unread bytes, the system would reset the
/// connection, and the client would lose the last response.
async fn drain(stream: &TcpStream) {
    let drain = async {
        let mut scrap = vec![0; 16 * 1024];
        let mut drained = 0;
        while drained < MAX_DRAINED && stream.readable().await.is_ok() {
            match stream.try_read(&mut scrap) {
                Ok(0) => break,
                Ok(count) => drained += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
    };
    // The connection ends here, whether the client was in time or not.
    _ = tokio::time::timeout_at(Instant::now() + DRAIN, drain).await;
}

impl Socket {
    fn send(
        &mut self,
        context: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        while self.shared.stream.poll_write_ready(context)?.is_ready() {
            match write(&self.shared.stream) {
                Ok(count) => {
                    self.stuck = None;
                    self.shared.written.fetch_add(count as u64, Ordering::Relaxed);
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stuck.as_mut().poll(context));
        self.shared.gave_up.store(true, Ordering::Relaxed);
        let message = format!("the client stopped reading its response for {patience:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.shared.stream.poll_read_ready(context))?;
            match self.shared.stream.try_read_buf(buffer) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.send(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.send(context, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.shared.stream).shutdown(std::net::Shutdown::Write))
    }
}

impl Peer {
    /// Whether the client still sends.
    pub(crate) fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Resolves when the client is gone: immediately after a reset, later if the client half-closed the connection and
    /// stops reading. A half-close alone doesn't cost the client its response.
    pub(crate) async fn gone(&self) {
        let broken = self.shared.stream.ready(Interest::ERROR);
        let silent = async {
            let ended = self.sending_ended().await;
            self.presence.end();
            if ended.is_err() {
                return;
            }
            loop {
                let before = self.shared.written.load(Ordering::Relaxed);
                tokio::time::sleep(self.patience).await;
                if self.shared.written.load(Ordering::Relaxed) == before {
                    return;
                }
            }
        };
        tokio::select! {
            // An error of this query isn't a sign of activity either.
            _ = broken => {}
            () = silent => {}
        }
    }

    /// Resolves when the client has closed its sending half. Errors: the connection is broken.
    async fn sending_ended(&self) -> io::Result<()> {
        // Peeking consumes nothing, and waits until something arrives.
        while self.shared.stream.peek(&mut [0]).await? > 0 {
            // There are unread bytes: they are read after the response. With TLS, the last of them announce
            // the close, so the end of the stream may come after them.
            if self.shared.stream.ready(Interest::READABLE).await?.is_read_closed() {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Closes the connection from this side, so that the client gets the last response.
    pub(crate) async fn close(self) {
        if self.shared.gave_up.load(Ordering::Relaxed) {
            // Output that the client did not read must not stay in the system's buffers either: reset the connection.
            _ = SockRef::from(&self.shared.stream).set_linger(Some(Duration::ZERO));
            return;
        }
        // Fails if the connection is already broken.
        _ = SockRef::from(&self.shared.stream).shutdown(std::net::Shutdown::Write);
        drain(&self.shared.stream).await;
    }
}

/// The number of connections per peer.
pub(crate) struct Peers {
    most: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of a peer, counted until dropped.
pub(crate) struct PeerSlot {
    peers: Arc<Peers>,
    peer: IpAddr,
}

impl Peers {
    /// `most`: maximum number of concurrent connections per peer.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// Counts a connection, unless its peer is at the limit.
    pub(crate) fn hold(self: &Arc<Self>, address: IpAddr) -> Option<PeerSlot> {
        let peer = peer(address);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(peer).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(PeerSlot { peers: Arc::clone(self), peer })
    }
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

/// The address that counts as one peer: an IPv4 address, or the /64 network of an IPv6 host.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::work::BlockingPool;

    /// Both ends of a connection; the client's receive buffer is small.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let client = tokio::net::TcpSocket::new_v4().expect("a socket");
        client.set_recv_buffer_size(64 * 1024).expect("a small buffer");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(client.connect(address), listener.accept());
        (client.expect("connected"), accepted.expect("accepted").0)
    }

    #[tokio::test]
    async fn slow_but_steady_reader_gets_the_whole_response() {
        const BYTES: usize = 16 * 1024 * 1024;
        let (mut client, accepted) = pair().await;
        let patience = Duration::from_secs(1);
        let (mut socket, _peer) = open(accepted, patience);
        let writing = tokio::spawn(async move {
            let started = Instant::now();
            socket.write_all(&vec![7; BYTES]).await.expect("the client is connected");
            socket.shutdown().await.expect("ended");
            started.elapsed()
        });
        let (mut scrap, mut read) = (vec![0; 256 * 1024], 0);
        while read < BYTES {
            read += client.read_exact(&mut scrap).await.expect("bytes");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // It took longer than any single wait may take.
        assert!(writing.await.expect("no panic") > patience);
    }

    #[tokio::test]
    async fn write_times_out_when_the_client_does_not_read() {
        let (_client, accepted) = pair().await;
        let (mut socket, _peer) = open(accepted, Duration::from_millis(100));
        let error = socket.write_all(&vec![7; 64 * 1024 * 1024]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn half_closed_client_is_gone_once_it_stops_reading() {
        let (mut client, accepted) = pair().await;
        let (mut socket, peer) = open(accepted, Duration::from_millis(500));
        client.shutdown().await.expect("half closed");
        let answering = async {
            for _ in 0..20 {
                socket.write_all(b"event").await.expect("written");
                client.read_exact(&mut [0; 5]).await.expect("taken");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = answering => {}
            () = peer.gone() => panic!("it kept reading events"),
        }
        tokio::time::timeout(AFTER_HALF_CLOSE / 2, peer.gone()).await.expect("it stopped reading");
    }

    #[tokio::test]
    async fn reset_client_is_gone_at_once_and_a_half_closed_one_is_not() {
        let (mut client, accepted) = pair().await;
        let (mut socket, peer) = open(accepted, Duration::from_mins(1));
        client.shutdown().await.expect("half closed");
        let gone = tokio::time::timeout(Duration::from_millis(200), peer.gone()).await;
        assert!(gone.is_err(), "its response was pending");
        socket.write_all(b"answer").await.expect("written");
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("set");
        drop(client);
        tokio::time::timeout(AFTER_HALF_CLOSE / 2, peer.gone()).await.expect("it is gone");
    }

    #[test]
    fn connections_per_peer_are_limited_and_released() {
        let peers = Peers::new(2);
        let hold = |address: &str| peers.hold(address.parse().expect("an address"));
        let first = hold("192.0.2.1");
        let second = hold("::ffff:192.0.2.1");
        assert!(first.is_some() && second.is_some() && hold("192.0.2.1").is_none());
        assert!(hold("192.0.2.2").is_some());
        drop(first);
        assert!(hold("192.0.2.1").is_some());
        drop(second);
        assert!(peers.open.lock().expect("no panic").is_empty(), "peers without connections are forgotten");
    }

    #[test]
    fn ipv6_network_counts_as_one_peer() {
        let peers = Peers::new(1);
        let hold = |address: &str| peers.hold(address.parse().expect("an address"));
        let _first = hold("2001:db8::1").expect("the first");
        assert!(hold("2001:db8::ffff:1").is_none());
        assert!(hold("2001:db8:0:1::1").is_some());
    }

    #[tokio::test]
    async fn client_reset_or_silence_cancels_its_work() {
        let blocking_pool = BlockingPool::of(1);
        for breaks in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            let address = listener.local_addr().expect("an address");
            let (client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
            let (client, accepted) = (client.expect("connected"), accepted.expect("accepted").0);
            let (_socket, peer) = open(accepted, Duration::from_millis(100));
            if breaks {
                SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("set");
            }
            // By a reset, or by closing its sending half.
            drop(client);
            let endless = blocking_pool.work(|budget| {
                while budget.work(0).is_ok() {
                    std::thread::yield_now();
                }
                Ok(())
            });
            tokio::select! {
                _ = endless => panic!("the work ended by itself"),
                () = peer.gone() => {}
            }
            assert_eq!(blocking_pool.work(|_| Ok(7)).await.ok(), Some(7), "the slot was not released");
        }
    }
}
