//! The sign of life that a client of a stream gets while its upstream says nothing, at its real interval: the clock of
//! the test jumps where nothing is left to do.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::support::{KEY, events, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, config, upstream};

/// The interval, and how far other timers may let the clock jump beyond it.
const INTERVAL: Duration = Duration::from_secs(15);
const SLACK: Duration = Duration::from_secs(1);

/// How the client of a stream reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Events,
    /// One JSON array, of the native protocol: comments have no place in it.
    Array,
}

impl Form {
    /// The sign of life, as a chunk of HTTP.
    fn sign(self) -> &'static str {
        match self {
            Self::Events => "8\r\n: ping\n\n\r\n",
            Self::Array => "1\r\n\n\r\n",
        }
    }

    /// Checks that a stream of [`TEXT`] is whole, whatever stands in it to keep it alive.
    fn check(self, client: Protocol, text: &str, here: &str) {
        match self {
            Self::Events => {
                let told = text.replace(": ping\n\n", "");
                assert_eq!(client.end(&told), End::Success, "{here}: {text}");
                assert_eq!(text_of(client, &events(&told)), TEXT, "{here}: {text}");
            }
            Self::Array => {
                let documents: Vec<Value> = serde_json::from_str(text).expect("an array");
                let told: String = documents.iter().filter_map(|document| client.text(document)).collect();
                assert_eq!(told, TEXT, "{here}: {text}");
            }
        }
    }
}

async fn read(socket: &mut TcpStream, got: &mut String) {
    let mut buffer = [0; 4096];
    let count = socket.read(&mut buffer).await.expect("bytes");
    assert!(count > 0, "{got}");
    *got += std::str::from_utf8(&buffer[..count]).expect("ASCII");
}

/// The data of a chunked body that has ended.
fn data(mut body: &str) -> String {
    let mut data = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a number");
        if size == 0 {
            return data;
        }
        data += &rest[..size];
        body = &rest[size + 2..];
    }
}

/// An upstream is silent before its first event or after it, for three intervals, and then goes on.
async fn fall_silent(client: Protocol, form: Form, speaks: Protocol, before: bool) {
    let here = format!("{client:?} ({form:?}) at {speaks:?}, before the first event: {before}");
    let whole = speaks.events();
    let begun = whole.find("hel").expect("the first text");
    let begun = if before { 0 } else { begun + whole[begun..].find("\n\n").expect("its end") + 2 };
    let gate = Arc::new(Semaphore::new(0));
    let scripted = Scripted::start([vec![
        Step::Write(format!("{STREAM_HEAD}{}", &whole[..begun]).into()),
        Step::Gate(Arc::clone(&gate)),
        Step::Write(whole[begun..].into()),
        Step::Close,
    ]])
    .await;
    let mut settings = config(vec![upstream("one", speaks.kind(), &scripted.url)]);
    settings.models[0].translate_responses = true;
    let server = start_with(settings).await;
    let mut socket =
        TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection");
    let (path, body) = client.request("mine", true);
    let path = if form == Form::Array { path.trim_end_matches("?alt=sse") } else { &path };
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut got = String::new();
    while !before && !got.contains("hel") {
        read(&mut socket, &mut got).await;
    }
    while scripted.count() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // From here on, time passes only while everybody waits.
    tokio::time::pause();
    let mut since = Instant::now();
    for number in 0..3 {
        let mut said = String::new();
        while !said.ends_with(form.sign()) {
            read(&mut socket, &mut said).await;
        }
        let silence = since.elapsed();
        since = Instant::now();
        assert!(silence + SLACK >= INTERVAL && silence <= INTERVAL + SLACK, "{here}: {silence:?}");
        // With the first one comes the head of an answer that has not begun.
        let head = if before && number == 0 { said.find("\r\n\r\n").expect("a head") + 4 } else { 0 };
        assert_eq!(&said[head..], form.sign(), "{here}");
        got += &said;
    }
    tokio::time::resume();
    gate.close();
    while !got.ends_with("\r\n0\r\n\r\n") {
        read(&mut socket, &mut got).await;
    }
    let (head, body) = got.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{here}: {head}");
    form.check(client, &data(body), &here);
}

/// A client falls silent in front of an upstream of its protocol, and of one that is translated.
async fn fall_silent_everywhere(client: Protocol, form: Form) {
    let other = if client == Protocol::Chat { Protocol::Messages } else { Protocol::Chat };
    for speaks in [client, other] {
        for before in [true, false] {
            fall_silent(client, form, speaks, before).await;
        }
    }
}

#[tokio::test]
async fn silence_of_15_seconds_before_and_after_the_first_event_is_broken_by_a_comment_for_each_client() {
    for client in Protocol::ALL {
        fall_silent_everywhere(client, Form::Events).await;
    }
}

#[tokio::test]
async fn silence_of_15_seconds_is_broken_by_white_space_in_an_array() {
    fall_silent_everywhere(Protocol::Native, Form::Array).await;
}
