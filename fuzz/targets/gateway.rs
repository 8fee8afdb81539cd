//! The gateway: whatever request comes, it is answered, with a status, within bounds and without a panic (the hook of
//! libFuzzer ends the process at each, also at one that the gateway would catch); errors have a body that says so.
//!
//! An input is a line with the id of an operation, or with a method and a path; then lines of headers, an empty line,
//! and the body.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use gatewright::operations;
use gatewright_gateway::{Config, Embedded, Response};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

/// No answer to an input of some kilobytes is longer.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Of a stream no more is read: what comes then is more of the same.
const MAX_PIECES: usize = 256;
/// Waits cost nothing: the clock goes on by itself when nothing else is to be done.
const PATIENCE: Duration = Duration::from_hours(1);

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
});

static GATEWAY: LazyLock<Embedded> = LazyLock::new(|| {
    let _inside = RUNTIME.enter();
    // Videos would be encoded in the background, from one input into the next: there is no room for them.
    let config = Config { max_file_bytes: 0, video_time: 10_000 * PATIENCE, ..Config::default() };
    Embedded::new(config).expect("the defaults are good")
});

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some(request) = request(input) else { return Corpus::Reject };
    RUNTIME.block_on(async {
        let answered = tokio::time::timeout(PATIENCE, GATEWAY.answer(request)).await;
        // What asks to be delayed for longer than that is not of interest.
        if let Ok(response) = answered {
            read(response).await;
        }
    });
    Corpus::Keep
});

fn request(input: &[u8]) -> Option<Request<Vec<u8>>> {
    let end = input.windows(2).position(|two| two == b"\n\n")?;
    let (head, body) = (std::str::from_utf8(&input[..end]).ok()?, &input[end + 2..]);
    // Nothing here goes out into the network.
    if String::from_utf8_lossy(body).contains("webhook") {
        return None;
    }
    let mut lines = head.lines();
    let first = lines.next()?;
    let (method, path) = match operations::by_id(first) {
        Some(operation) => {
            let path = operation.path.replace("{model}", "model-sol").replace("{task_id}", "video_1");
            (operation.method.as_str(), path)
        }
        None => first.split_once(' ').map(|(method, path)| (method, path.to_owned()))?,
    };
    let mut request = Request::new(body.to_vec());
    *request.method_mut() = Method::from_bytes(method.as_bytes()).ok()?;
    *request.uri_mut() = path.parse::<Uri>().ok()?;
    let headers = request.headers_mut();
    let key = format!("Bearer {}", GATEWAY.key().expose());
    headers.insert("authorization", HeaderValue::try_from(key).expect("visible ASCII"));
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for line in lines {
        let (name, value) = line.split_once(": ")?;
        headers.insert(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
    }
    Some(request)
}

async fn read(response: Response) {
    let (head, mut body) = response.into_parts();
    assert!(head.headers.contains_key("x-request-id"), "{head:?}");
    let mut bytes = Vec::new();
    for _ in 0..MAX_PIECES {
        match tokio::time::timeout(PATIENCE, body.frame()).await {
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
            // It ended; it broke or hung, as a fault may.
            _ => break,
        }
        assert!(bytes.len() <= MAX_BYTES, "a longer answer than any has");
    }
    if head.status.is_client_error() || head.status.is_server_error() {
        let error: Value = serde_json::from_slice(&bytes).expect("errors are JSON");
        assert!(error["error"]["message"].is_string(), "{error}");
    }
}
