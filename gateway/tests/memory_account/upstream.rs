//! An upstream that sends the same large response to every request.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::MIB;

/// Bytes sent in either direction, which aren't counted.
static FILL: [u8; MIB] = [b'x'; MIB];

/// What an upstream sends once it has read a request.
#[derive(Clone, Copy)]
pub(crate) enum Answer {
    Nothing,
    /// A unary response of this many mebibytes, without its end.
    Document(usize),
    /// A complete unary response of this many mebibytes.
    Completion(usize),
    /// A sound of this many mebibytes.
    Sound(usize),
    /// The URL of an image, and at that URL an image of this many mebibytes.
    Image(usize),
    /// A body of this many mebibytes, without its end.
    Webhook(usize),
    /// An event of this many mebibytes, followed by a small one.
    Event(usize),
    /// An event of this many mebibytes, without its end.
    OpenEvent(usize),
    /// This many mebibytes of comments.
    Comments(usize),
}

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Number of responses sent so far.
pub(crate) static ANSWERED: AtomicUsize = AtomicUsize::new(0);
/// Number of webhooks received so far.
pub(crate) static WEBHOOKS: AtomicUsize = AtomicUsize::new(0);

impl Answer {
    /// `head`: of the request.
    pub(crate) fn send(self, socket: &mut TcpStream, head: &str) -> std::io::Result<()> {
        let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let beginning = r#"{"choices":[{"index":0,"delta":{"content":""#;
        match self {
            Self::Nothing => {}
            Self::Document(mebibytes) => {
                let length = beginning.len() + mebibytes * MIB + 1;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n{beginning}")?;
                fill(socket, mebibytes)?;
            }
            Self::Completion(mebibytes) => {
                let begin = r#"{"id":"1","object":"chat.completion","created":1,"model":"theirs","choices":[{"index":0,"message":{"role":"assistant","content":""#;
                let end = r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
                let length = begin.len() + mebibytes * MIB + end.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n{begin}")?;
                fill(socket, mebibytes)?;
                write!(socket, "{end}")?;
            }
            Self::Sound(mebibytes) => {
                let length = mebibytes * MIB;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n")?;
                fill(socket, mebibytes)?;
            }
            Self::Image(mebibytes) if head.starts_with("GET ") => {
                let length = PNG_SIGNATURE.len() + mebibytes * MIB;
                write!(
                    socket,
                    "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: {length}\r\n\r\n"
                )?;
                socket.write_all(PNG_SIGNATURE)?;
                fill(socket, mebibytes)?;
            }
            Self::Image(_) => {
                let host = head.split("host: ").nth(1).and_then(|rest| rest.split("\r\n").next());
                let url = format!("http://{}/1.png", host.expect("a host"));
                let body = json!({ "created": 1, "data": [{ "url": url }] }).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
                write!(socket, "{head} {}\r\n\r\n{body}", body.len())?;
            }
            Self::Webhook(mebibytes) => {
                WEBHOOKS.fetch_add(1, Ordering::Relaxed);
                write!(socket, "HTTP/1.1 500 X\r\ncontent-length: {}\r\n\r\n", mebibytes * MIB + 1)?;
                fill(socket, mebibytes)?;
            }
            Self::Event(mebibytes) => {
                write!(socket, "{stream}data: {beginning}")?;
                fill(socket, mebibytes)?;
                write!(socket, "\"}}}}]}}\n\ndata: {beginning}small\"}}}}]}}\n\n")?;
            }
            Self::OpenEvent(mebibytes) => {
                write!(socket, "{stream}data: {beginning}")?;
                fill(socket, mebibytes)?;
            }
            Self::Comments(mebibytes) => {
                write!(socket, "{stream}")?;
                for _ in 0..mebibytes * 64 {
                    socket.write_all(b": ")?;
                    socket.write_all(&FILL[..16 * 1024])?;
                    socket.write_all(b"\n\n")?;
                }
            }
        }
        ANSWERED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

pub(crate) fn fill(socket: &mut TcpStream, mebibytes: usize) -> std::io::Result<()> {
    (0..mebibytes).try_for_each(|_| socket.write_all(&FILL))
}

/// Reads a request, sends the response, and keeps the connection open until the gateway closes it.
pub(crate) fn serve(mut socket: TcpStream, answer: Answer) -> std::io::Result<()> {
    let (mut buffer, mut seen) = ([0; 16 * 1024], 0);
    let end = loop {
        seen += socket.read(&mut buffer[seen..])?;
        if let Some(end) = buffer[..seen].windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length =
        head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut left = length.unwrap_or(0_usize) - (seen - end);
    while left > 0 {
        left -= socket.read(&mut buffer)?;
    }
    answer.send(&mut socket, &head)?;
    drop(head);
    while socket.read(&mut buffer)? > 0 {}
    Ok(())
}
