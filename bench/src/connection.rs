//! A kept-alive HTTP/1.1 connection, with no more than measuring needs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection to a gateway.
pub struct Connection {
    socket: TcpStream,
    received: Vec<u8>,
}

/// The measured response.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Status of the response.
    pub status: u16,
    /// Time until the first byte of the body.
    pub first_byte: Duration,
    /// Time until the last byte.
    pub whole: Duration,
    /// Longest time between two packets of the body.
    pub longest_gap: Duration,
    /// Bytes of the body, including chunk framing.
    pub bytes: usize,
}

/// A request as it is sent.
pub fn request(host: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut text = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.extend(["content-length: ", &body.len().to_string(), "\r\n\r\n", body]);
    text.into_bytes()
}

impl Connection {
    /// Connects to `host:port`.
    pub async fn open(host: &str) -> Result<Self> {
        let socket = TcpStream::connect(host).await.with_context(|| format!("cannot connect to {host}"))?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, received: Vec::with_capacity(64 * 1024) })
    }

    async fn more(&mut self) -> Result<()> {
        if self.socket.read_buf(&mut self.received).await? == 0 {
            bail!("the connection ended early");
        }
        Ok(())
    }

    /// Sends a request and reads its response.
    pub async fn ask(&mut self, request: &[u8]) -> Result<Timing> {
        self.received.clear();
        let started = Instant::now();
        self.socket.write_all(request).await?;
        let head = loop {
            if let Some(end) = memmem::find(&self.received, b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let text = String::from_utf8_lossy(&self.received[..head]).to_ascii_lowercase();
        let status = text.get(9..12).and_then(|status| status.parse().ok()).context("no status")?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        self.received.drain(..head);
        let (mut first_byte, mut last, mut gap, mut bytes) = (None, Instant::now(), Duration::ZERO, 0);
        loop {
            if !self.received.is_empty() || length == Some(0) {
                let now = Instant::now();
                first_byte.get_or_insert(now - started);
                gap = gap.max(now - last);
                last = now;
            }
            let done = match length {
                Some(length) => bytes + self.received.len() >= length,
                None => self.received.ends_with(b"\r\n0\r\n\r\n") || self.received.ends_with(b"\n0\r\n\r\n"),
            };
            if done {
                bytes += self.received.len();
                break;
            }
            // Only the end of a long response is needed.
            let keep = self.received.len().min(8);
            let passed = self.received.len() - keep;
            bytes += passed;
            self.received.drain(..passed);
            self.more().await?;
        }
        let whole = started.elapsed();
        Ok(Timing { status, first_byte: first_byte.unwrap_or(whole), whole, longest_gap: gap, bytes })
    }
}
