//! A connected socket, plain or with TLS.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use crate::tcp::{Tcp, WatchedSocket};

#[derive(Debug)]
pub(crate) enum Socket {
    Plain(Tcp),
    Tls(Box<TlsStream<Tcp>>),
    /// Through a proxy that is reached over TLS itself.
    TlsInTls(Box<TlsStream<TlsStream<Tcp>>>),
}

impl Socket {
    /// Whether an idle connection is still usable: the server has neither closed it nor sent anything.
    pub(crate) fn is_quiet(&mut self) -> bool {
        // Asks the operating system directly: a runtime that hasn't been driven since can't know.
        let mut byte = [MaybeUninit::uninit()];
        let peeked = self.tcp().socket().map(|socket| socket.peek(&mut byte));
        if !peeked.is_some_and(|peeked| peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
        {
            return false;
        }
        // TLS may hold decrypted data that has not been read yet.
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(self).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Hands the connection to another watcher; none if that fails.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        self.tcp_mut().watch()
    }

    /// Hands the connection back to the caller's runtime to watch.
    pub(crate) fn drive(&mut self) -> io::Result<()> {
        self.tcp_mut().drive()
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.tcp().is_watched()
    }

    fn tcp(&self) -> &Tcp {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
            Self::TlsInTls(tls) => tls.get_ref().0.get_ref().0,
        }
    }

    fn tcp_mut(&mut self) -> &mut Tcp {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_mut().0,
            Self::TlsInTls(tls) => tls.get_mut().0.get_mut().0,
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, buffer),
            Self::Tls(tls) => Pin::new(tls).poll_read(context, buffer),
            Self::TlsInTls(tls) => Pin::new(tls).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
            Self::TlsInTls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write_vectored(context, slices),
            Self::Tls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
            Self::TlsInTls(tls) => Pin::new(tls).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
            Self::TlsInTls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
            Self::TlsInTls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
