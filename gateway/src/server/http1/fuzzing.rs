//! The entry point of the fuzz target: a connection whose bytes have all arrived.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::{Client, Service, Settings, serve};
use crate::wire::{Body, Response};

/// The requests of a client that sends these bytes in packets of at most this size: a line per request, with its body. The
/// responses repeat it.
///
/// # Panics
/// If the connection waits for something even though all bytes have arrived.
pub fn received_requests(sent: &[u8], packet: usize) -> Vec<String> {
    let service = RecordingService::default();
    let socket = Packets { rest: sent.to_vec(), packet: packet.max(1) };
    let settings = Settings { header_timeout: Duration::MAX, draining: CancellationToken::new() };
    let served = serve(socket, service.clone(), Client::default(), settings);
    // It may end with an error.
    _ = served.now_or_never().expect("all bytes are there");
    std::mem::take(&mut service.0.lock().expect("no panic"))
}

#[derive(Clone, Default)]
struct RecordingService(Arc<Mutex<Vec<String>>>);

impl Service for RecordingService {
    async fn answer(&self, request: http::Request<Body>, _: Client) -> Response {
        let (head, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => error.to_string().into(),
        };
        let line = format!("{} {} {:?} {body:?}", head.method, head.uri, head.headers);
        self.0.lock().expect("no panic").push(line.clone());
        Response::new(Body::from(line))
    }
}

struct Packets {
    rest: Vec<u8>,
    packet: usize,
}

impl AsyncRead for Packets {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = self.packet.min(self.rest.len()).min(buffer.remaining());
        buffer.put_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Packets {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
