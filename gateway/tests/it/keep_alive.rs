//! The sign of life that a client of a stream gets while its upstream says nothing, at its real interval: the clock of
//! the test jumps where nothing is left to do.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::callers::Protocol;
use crate::support::{KEY, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, config, upstream};

/// The interval, and how far other timers may let the clock jump beyond it.
const INTERVAL: Duration = Duration::from_secs(15);
const SLACK: Duration = Duration::from_secs(1);

#[tokio::test]
async fn silence_of_15_seconds_is_broken_by_a_comment_and_again_and_again() {
    for client in [Protocol::Chat, Protocol::Messages] {
        let events = Protocol::Chat.events();
        let first = events.split_inclusive("\n\n").next().expect("an event");
        let script = vec![Step::Write(format!("{STREAM_HEAD}{first}").into()), Step::Hang];
        let scripted = Scripted::start([script]).await;
        let server = start_with(config(vec![upstream("one", Protocol::Chat.kind(), &scripted.url)])).await;
        let mut socket =
            TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection");
        let (path, body) = client.request("mine", true);
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut got = String::new();
        while !got.contains("hel") {
            let mut buffer = [0; 4096];
            let count = socket.read(&mut buffer).await.expect("bytes");
            assert!(count > 0, "{got}");
            got += std::str::from_utf8(&buffer[..count]).expect("text");
        }
        // From here on, time passes only while everybody waits.
        tokio::time::pause();
        let mut before = Instant::now();
        for _ in 0..3 {
            let mut buffer = [0; 4096];
            let count = socket.read(&mut buffer).await.expect("bytes");
            let said = std::str::from_utf8(&buffer[..count]).expect("text");
            let silence = before.elapsed();
            before = Instant::now();
            assert!(said.contains("\r\n: ") && !said.contains("data:"), "{client:?}: {said:?}");
            assert!(silence + SLACK >= INTERVAL && silence <= INTERVAL + SLACK, "{client:?}: {silence:?}");
        }
        tokio::time::resume();
    }
}
