//! An oracle for the requests of the Rust client: for each operation that has a whole answer, it sends the bytes that progenitor's
//! generated client sends, but for the headers that only one of them has, and for characters of a URL that only one of them
//! percent-encodes.

#![cfg(test)]

/// What the generator writes.
mod generated {
    #[rustfmt::skip]
    pub(crate) mod calls;
    #[rustfmt::skip]
    pub(crate) mod client;
}

use std::future::Future;
use std::pin::Pin;

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use self::generated::calls::CALLS;
use self::generated::client;

/// An operation, and how both clients call it.
struct Call {
    id: &'static str,
    /// The names of the arguments that aren't members of the body.
    parameters: &'static [&'static str],
    /// The arguments of the specification's example, as JSON.
    example: &'static str,
    send: Send,
}

/// Calls an operation by both clients, one after the other.
type Send = for<'a> fn(&'a client::Client, &'a gatewright::Client, &'a Arguments) -> Sending<'a>;
type Sending<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The arguments of a call by their names on the wire.
struct Arguments(Map<String, Value>);

impl Arguments {
    /// A parameter of the path, the query or a header.
    fn get<T: DeserializeOwned>(&self, name: &str) -> T {
        let value = self.0.get(name).cloned().unwrap_or_default();
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The body: all arguments but the parameters.
    fn body<T: DeserializeOwned>(&self, parameters: &[&str]) -> T {
        let mut members = self.0.clone();
        members.retain(|name, _| !parameters.contains(&name.as_str()));
        serde_json::from_value(Value::Object(members)).expect("a body of the operation")
    }
}

/// A request as it arrived.
#[derive(Debug, PartialEq)]
struct Received {
    /// Method and target, without percent-encoding.
    line: String,
    content_type: Option<String>,
    accept: Option<String>,
    body: Value,
}

/// A server that keeps what it receives, and answers each request with 404, which neither client repeats.
async fn server() -> (String, UnboundedReceiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, received) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let end = loop {
                    let end = bytes.windows(4).position(|end| end == b"\r\n\r\n");
                    if let Some(end) = end {
                        break end + 4;
                    }
                    if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                        return;
                    }
                };
                let head = String::from_utf8(bytes[..end].to_vec()).expect("ASCII");
                let header = |name: &str| {
                    let lines = head.lines().filter_map(|line| line.split_once(": "));
                    lines
                        .into_iter()
                        .find(|(found, _)| found.eq_ignore_ascii_case(name))
                        .map(|(_, value)| value.to_owned())
                };
                let length = header("content-length").map_or(0, |length| length.parse().expect("a number"));
                while bytes.len() < end + length {
                    if socket.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let body = &bytes[end..];
                let body =
                    if body.is_empty() { Value::Null } else { serde_json::from_slice(body).expect("JSON") };
                let line = head.lines().next().unwrap_or_default();
                let line = percent_decode_str(line).decode_utf8().expect("UTF-8").into_owned();
                let received =
                    Received { line, content_type: header("content-type"), accept: header("accept"), body };
                // First, so that a client that has its answer finds its request.
                _ = sender.send(received);
                let answer = "HTTP/1.1 404 X\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                _ = socket.write_all(answer.as_bytes()).await;
            });
        }
    });
    (url, received)
}

/// Texts with characters that mean something in a URL. Our client refuses `/`, `\` and `%` in ids, with which theirs would
/// reach other paths.
const HOSTILE: [&str; 4] = ["a b", "ä", "a?b=c&d#e", "+~!$'()*,;:@[]\"<>^`{|}"];

/// A call with the arguments of its example, and one for each text parameter and hostile text.
fn arguments_of(call: &Call) -> Vec<Arguments> {
    let example: Value = serde_json::from_str(call.example).expect("an example");
    let Value::Object(example) = example else { panic!("{}: {example}", call.id) };
    let mut all = vec![Arguments(example.clone())];
    for name in call.parameters {
        if !example.get(*name).is_some_and(Value::is_string) {
            continue;
        }
        for hostile in HOSTILE {
            let mut changed = example.clone();
            changed.insert((*name).to_owned(), hostile.into());
            all.push(Arguments(changed));
        }
    }
    all
}

#[tokio::test]
async fn each_operation_sends_the_request_that_progenitors_client_sends() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (url, mut received) = server().await;
    let theirs = client::Client::new(&url);
    let ours =
        gatewright::Client::builder().base_url(&url).api_key("key").max_retries(0).build().expect("a client");
    let (mut compared, mut differences) = (0, Vec::new());
    for call in CALLS {
        for arguments in arguments_of(call) {
            (call.send)(&theirs, &ours, &arguments).await;
            let (first, second) = (received.try_recv().ok(), received.try_recv().ok());
            if first != second || first.is_none() {
                differences.push(format!("{} with {:?}:\n  {first:?}\n  {second:?}", call.id, arguments.0));
            }
            compared += 1;
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared > CALLS.len(), "{compared} requests of {} operations", CALLS.len());
}
