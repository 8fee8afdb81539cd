//! HTTP requests for tests, each over its own connection.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// The response.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) document: Value,
}

/// The bytes of a file, and the status. None if they are incomplete.
pub(crate) fn download(url: &str, path: &str) -> Option<(u16, Vec<u8>)> {
    let address = url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let bytes = answer.split_off(end + 4);
    let head = String::from_utf8(answer).ok()?.to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    (length.parse() == Ok(bytes.len())).then_some((status, bytes))
}

/// Sends a request to a server. `headers`: additional ones, each with its line ending. None if there is no complete response.
pub(crate) fn ask(
    url: &str,
    (method, path): (&str, &str),
    key: &str,
    headers: &str,
    body: &str,
) -> Option<Answer> {
    let address = url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    );
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let (head, document) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, document: serde_json::from_str(document).ok()? })
}
