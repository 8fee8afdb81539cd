//! Reads a response from arbitrary bytes, in packets of any size.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Uri};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::H1Connection;
use crate::request::Destination;

/// The body of the response that `bytes` represent, if they are a valid response. `packet`: the size of the
/// packets they arrive in.
pub fn answer(bytes: &[u8], packet: usize) -> Option<Vec<u8>> {
    let reading = async {
        let connection = H1Connection::new(Server { bytes, packet: packet.max(1) });
        let server = Uri::from_static("http://server");
        let destination = Destination { server: &server, forwarder: None };
        let (_, mut reading) =
            connection.send((&Request::new(Bytes::new())).into(), destination).await.ok()?;
        let mut body = reading.arrived().ok()?.to_vec();
        while let Some(data) = poll_fn(|context| reading.poll_data(context)).await.ok()? {
            assert!(!data.is_empty(), "data is never empty");
            body.extend_from_slice(&data);
        }
        Some(body)
    };
    // Nothing here blocks.
    match std::pin::pin!(reading).poll(&mut Context::from_waker(std::task::Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("the reader waits though there are bytes"),
    }
}

struct Server<'b> {
    bytes: &'b [u8],
    packet: usize,
}

impl AsyncRead for Server<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.packet.min(buffer.remaining()).min(self.bytes.len());
        let (packet, rest) = self.bytes.split_at(length);
        buffer.put_slice(packet);
        self.bytes = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server<'_> {
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
