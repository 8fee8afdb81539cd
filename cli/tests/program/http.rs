//! Requests of tests, each over a connection of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

/// What was answered.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) document: Value,
}

/// Asks a server. `headers`: further ones, each ending its line. None if there is no whole answer.
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
