//! A server on a real socket, whose responses a function computes.

use std::collections::HashMap;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::{Url, form_urlencoded};

/// A request as the server received it.
pub(super) struct Seen {
    pub(super) method: String,
    pub(super) url: Url,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The parameters of the query and of a form.
    pub(super) fn parameters(&self) -> HashMap<String, String> {
        let form = form_urlencoded::parse(self.body.as_bytes());
        self.url.query_pairs().into_owned().chain(form.into_owned()).collect()
    }
}

/// Starts a server. Returns its URL.
pub(super) async fn start(answer: impl Fn(&Seen) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (status, body) = answer(&read(&mut stream).await);
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            stream.write_all((head + &body).as_bytes()).await.expect("a reader");
        }
    });
    url
}

async fn read(stream: &mut TcpStream) -> Seen {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text");
    let mut lines = head.lines();
    let mut words = lines.next().expect("a line").split(' ');
    let (method, target) = (words.next().expect("a method"), words.next().expect("a target"));
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a body");
    Seen {
        method: method.to_owned(),
        url: Url::parse(&format!("http://{}{target}", headers["host"])).expect("a target"),
        headers,
        body: String::from_utf8(body).expect("text"),
    }
}
