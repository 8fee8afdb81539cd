//! Streams that are read ahead: taking, levels, the whole document, the size limit and the end.

use std::sync::mpsc;
use std::time::Duration;

use gatewright::ErrorKind;
use gatewright::read_ahead::{Level, Read, ReadAhead, TakeResult};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::chat_call;
use crate::server::{Script, Server, Step};

const LONG: Duration = Duration::from_secs(30);
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

/// Converts pieces, frames and documents to text; rejects documents that contain `unreadable`.
fn made(read: Read) -> Result<String, String> {
    match read {
        Read::Text(text) => Ok(text),
        Read::Frame(frame) => Ok(frame.data.unwrap_or_default()),
        Read::Chunk(document) if document.contains("unreadable") => Err("too odd".to_owned()),
        Read::Chunk(document) => Ok(document),
        other => Err(format!("{other:?}")),
    }
}

async fn open(script: Script) -> (Server, ReadAhead<String>) {
    let server = Server::start([script]).await;
    let stream = server.client().open(chat_call()).await.unwrap();
    (server, ReadAhead::new(&Handle::current(), stream, made))
}

/// Blocks this thread until there is something to take.
fn wait(stream: &ReadAhead<String>) {
    let waited = Handle::current().block_on(async { timeout(LONG, stream.readable()).await });
    waited.expect("the stream continues");
}

/// Takes everything until the end, and returns the end too.
async fn all(
    stream: ReadAhead<String>,
    level: Level,
) -> (Vec<String>, TakeResult<String>, ReadAhead<String>) {
    spawn_blocking(move || {
        let mut taken = Vec::new();
        loop {
            match stream.take(level) {
                TakeResult::Events(events) => taken.extend(events),
                end => return (taken, end, stream),
            }
            wait(&stream);
        }
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_taken_once_and_the_document_remains_available() {
    let (_server, stream) = open(Script::events().packet(chunk("a") + &chunk("b") + STOP).end()).await;
    let (texts, end, stream) = all(stream, Level::Text).await;
    assert_eq!(texts.concat(), "ab");
    assert!(matches!(end, TakeResult::Over), "{end:?}");
    let document = stream.finish().await.unwrap();
    assert!(String::from_utf8_lossy(&document.body).contains("\"ab\""));
    stream.close();
    assert!(stream.finish().await.is_ok(), "of a complete stream the document stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_level_applies_until_the_stream_ends() {
    let (_server, stream) = open(Script::events().packet(chunk("a")).then(Step::Hang)).await;
    assert!(matches!(stream.take(Level::Frames), TakeResult::Events(_)));
    let refused = stream.take(Level::Text);
    assert!(matches!(refused, TakeResult::Otherwise(Some(Level::Frames))), "{refused:?}");
    stream.close();
    assert!(matches!(stream.take(Level::Text), TakeResult::Over));
    assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::Configuration);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiters_are_notified_and_a_failure_is_reported_once_after_earlier_events() {
    let body = chunk("a") + &chunk("unreadable") + &chunk("b") + STOP;
    let (_server, stream) = open(Script::events().packet(body).end()).await;
    let (sender, readiness) = mpsc::channel();
    stream.when_readable(move || sender.send(()).unwrap());
    let (documents, end, stream) = all(stream, Level::Chunks).await;
    readiness.recv_timeout(LONG).unwrap();
    assert_eq!(documents.len(), 1);
    let TakeResult::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!((error.kind(), error.operation()), (ErrorKind::Decode, Some("create_chat_completion")));
    assert!(error.message().contains("too odd"), "{error}");
    assert!(matches!(stream.take(Level::Chunks), TakeResult::Over));
}

#[tokio::test(flavor = "multi_thread")]
async fn read_ahead_stops_at_the_inbox_limit_plus_one_batch() {
    let mut body = chunk("x").repeat(5000);
    body.push_str(STOP);
    let (_server, stream) = open(Script::events().packet(body).end()).await;
    assert!(matches!(stream.take(Level::Text), TakeResult::Events(_)));
    let (stream, first) = spawn_blocking(move || {
        wait(&stream);
        std::thread::sleep(Duration::from_millis(300));
        let first = stream.take(Level::Text);
        (stream, first)
    })
    .await
    .unwrap();
    let TakeResult::Events(first) = first else { panic!("{first:?}") };
    assert!(first.len() < 4000, "{} were read ahead", first.len());
    let (rest, ..) = all(stream, Level::Text).await;
    assert_eq!(first.len() + rest.len(), 5000);
}
