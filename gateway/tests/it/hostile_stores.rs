//! Counters and a bucket that answer whatever they like: requests are served all the same, in bounded time and memory, and
//! nothing of what opens them goes elsewhere (4 rule 4, 2.10).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Bucket, Config, CounterServer, CountersUrl, Kind};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::hostile_upstreams::memory;
use crate::support::{Server, read, send, start_with};
use crate::upstreams::{self, Scripted, completion, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";
const SECRET: &str = "bucket-canary-5b1e";
/// How long a request may take that the counters or the bucket answer strangely.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much more memory the process may take, in KiB.
const MAX_GROWTH: u64 = 160 * 1024;

/// What a hostile server says: some bytes, then some again and again.
#[derive(Debug, Clone, Copy)]
struct Words {
    name: &'static str,
    first: &'static str,
    endless: &'static str,
}

const fn words(name: &'static str, first: &'static str, endless: &'static str) -> Words {
    Words { name, first, endless }
}

async fn write_reply(socket: &mut TcpStream, first: &str, endless: &str) -> std::io::Result<()> {
    socket.write_all(first.as_bytes()).await?;
    let block = endless.repeat(16 * 1024 / endless.len().max(1));
    while !block.is_empty() {
        socket.write_all(block.as_bytes()).await?;
    }
    Ok(())
}

/// Replies of a Redis server to a script.
const REPLIES: [Words; 15] = [
    words("garbage", "\u{1}\u{2}\u{3}\r\n", ""),
    words("HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", ""),
    words("a text of 8 EiB", "$9223372036854775807\r\n", ""),
    words("a text of a negative length", "$-5\r\n", ""),
    words("an endless text", "$2147483647\r\n", "x"),
    words("an endless line", "+", "x"),
    words("an endless error", "-ERR ", "x"),
    words("a list of 2^63 items", "*9223372036854775807\r\n", ""),
    words("an endless list", "*2147483647\r\n", ":1\r\n"),
    words("lists in lists", "", "*1\r\n"),
    words("the smallest numbers", "*2\r\n:-9223372036854775808\r\n:-9223372036854775808\r\n", ""),
    words("nothing", "$-1\r\n", ""),
    words("another place", "-MOVED 1 192.0.2.1:6379\r\n", ""),
    words("no script, again and again", "-NOSCRIPT No matching script.\r\n", ""),
    words("more than was requested", "", "+OK\r\n"),
];

/// A server of counters that greets as it should, and replies to scripts with these words.
async fn counters(reply: Words) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("redis://127.0.0.1:{}", listener.local_addr().expect("an address").port());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut received = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = socket.read(&mut received).await {
                    let commands = String::from_utf8_lossy(&received[..length]).into_owned();
                    let is_script = commands.contains("EVAL");
                    let count = commands.split("\r\n").filter(|line| line.starts_with('*')).count();
                    let written = if is_script {
                        write_reply(&mut socket, reply.first, reply.endless).await
                    } else {
                        socket.write_all("+OK\r\n".repeat(count).as_bytes()).await
                    };
                    if written.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

async fn create(server: &Server, limits: Value) -> String {
    let new = json!({ "name": "ci", "limits": limits });
    let made = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(made.0, 201, "{}", made.1);
    made.1["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::print_stderr, reason = "panics remain visible")]
async fn requests_are_served_with_hostile_counters() {
    // In a debug build, the driver panics at some of these replies. The symbols of a backtrace would count as memory of the gateway.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let upstream = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let before = memory("VmRSS");
    for reply in REPLIES {
        let url = counters(reply).await;
        let data = tempfile::tempdir().expect("a folder");
        let config = Config {
            data: Some(data.path().to_path_buf()),
            counters: Some(CounterServer::new(CountersUrl::new(&url).expect("an address"))),
            admin_key: Some(ApiKey::new(ADMIN).expect("a key")),
            ..upstreams::config(vec![self::upstream("one", Kind::Chat, &upstream.url)])
        };
        let server = start_with(config).await;
        let secret = create(&server, json!({ "requests_per_minute": 1000 })).await;
        for _ in 0..20 {
            let started = Instant::now();
            let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&secret);
            let (status, answer) = read(request.json(&question(false))).await;
            assert_eq!(status, 200, "{}: {answer}", reply.name);
            assert!(started.elapsed() < PATIENCE, "{}: {:?}", reply.name, started.elapsed());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let grown = memory("VmHWM").saturating_sub(before);
        assert!(grown < MAX_GROWTH, "{}: {grown} KiB", reply.name);
    }
}

/// What `{fields}` stands for: an answer about an object has them.
const FIELDS: &str = "\r\netag: \"e\"\r\nlast-modified: Mon, 01 Jan 2024 00:00:00 GMT";

/// Answers of an S3 service for a file.
const ANSWERS: [Words; 11] = [
    words("garbage", "\u{1}\u{2}\u{3}\r\n\r\n", ""),
    words("an endless head", "HTTP/1.1 200 OK\r\n", "x-a: b\r\n"),
    words("an endless file", "HTTP/1.1 200 OK\r\ncontent-length: 9000000000000{fields}\r\n\r\n", "x"),
    words(
        "a part that is another",
        "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes 5-9/10\r\ncontent-length: 5{fields}\r\n\r\nabcde",
        "",
    ),
    words(
        "an endless error",
        "HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n",
        "8\r\nxxxxxxxx\r\n",
    ),
    words("an error of a proxy", "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>", ""),
    words("a login", "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic\r\ncontent-length: 0\r\n\r\n", ""),
    words(
        "another place",
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n",
        "",
    ),
    words(
        "another place for good",
        "HTTP/1.1 301 Moved Permanently\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n",
        "",
    ),
    words("nothing found", "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", ""),
    words(
        "a file cut short",
        "HTTP/1.1 200 OK\r\ncontent-length: 100{fields}\r\nconnection: close\r\n\r\nab",
        "",
    ),
];

/// A service that takes any file, and serves any. Returns its address.
async fn bucket(answer: Words, elsewhere: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let elsewhere = elsewhere.to_owned();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve_bucket(socket, answer, elsewhere.clone()));
        }
    });
    url
}

async fn serve_bucket(mut socket: TcpStream, answer: Words, elsewhere: String) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
        let end = head + length.map_or(0, |length| length.parse().expect("a length"));
        while received.len() < end {
            if socket.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        }
        received.drain(..end);
        if text.starts_with("put ") {
            socket.write_all(b"HTTP/1.1 200 OK\r\netag: \"e\"\r\ncontent-length: 0\r\n\r\n").await?;
            continue;
        }
        let first = answer.first.replace("{elsewhere}", &elsewhere).replace("{fields}", FIELDS);
        write_reply(&mut socket, &first, answer.endless).await?;
        if answer.first.contains("connection: close") || !answer.first.starts_with("HTTP") {
            return Ok(());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bucket_answers_are_reported_and_its_key_goes_nowhere_else() {
    let stranger = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let elsewhere = format!("http://localhost:{}/", stranger.local_addr().expect("an address").port());
    let met = Arc::new(AtomicUsize::new(0));
    let meets = Arc::clone(&met);
    tokio::spawn(async move {
        while let Ok((socket, _)) = stranger.accept().await {
            meets.fetch_add(1, Ordering::Relaxed);
            drop(socket);
        }
    });
    let before = memory("VmRSS");
    for answer in ANSWERS {
        let data = tempfile::tempdir().expect("a folder");
        let key = |text| ApiKey::new(text).expect("a key");
        let mut files = Bucket::new("s3://files-of-gateways", key("bucket-access"), key(SECRET));
        files.endpoint = Some(bucket(answer, &elsewhere).await);
        let config =
            Config { data: Some(data.path().to_path_buf()), files: Some(files), ..Config::default() };
        let server = start_with(config).await;
        let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
        let image = server.ask("/v1/images/generations", &body).await;
        let url = image["data"][0]["url"].as_str().expect("an address");
        let path = url.strip_prefix(&server.url).expect("of this gateway");
        let started = Instant::now();
        let response = send(server.bare(Method::GET, path)).await;
        let status = response.status().as_u16();
        let text = tokio::time::timeout(PATIENCE, response.text()).await;
        let text = text.unwrap_or_else(|_| panic!("{}: {status} without an end", answer.name));
        // Once the file has started, it can only be cut off.
        assert!(status == 503 || (status == 200 && text.is_err()), "{}: {status}, {text:?}", answer.name);
        let text = text.unwrap_or_default();
        assert!(!text.contains(SECRET) && text.len() < 10_000, "{}: {text}", answer.name);
        assert!(started.elapsed() < PATIENCE, "{}: {:?}", answer.name, started.elapsed());
        assert_eq!(send(server.bare(Method::GET, "/health/live")).await.status(), 200, "{}", answer.name);
    }
    assert_eq!(met.load(Ordering::Relaxed), 0, "requests for files followed a redirect");
    let grown = memory("VmHWM").saturating_sub(before);
    assert!(grown < MAX_GROWTH, "{grown} KiB");
}
