//! The gateway in front of an upstream that chooses HTTP/2.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use crate::gateway::Serving;
use crate::http::ask;

/// How long a request that the upstream answers immediately may wait.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A chat upstream that accepts a limited number of concurrent requests per connection. Its streams never end.
struct Upstream {
    port: u16,
    /// Streams that were started and not dropped.
    streams: Arc<AtomicUsize>,
    _runtime: tokio::runtime::Runtime,
}

/// Counts a stream until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstream {
    /// Its certificate is in `ca.pem` of the folder.
    fn start(folder: &Path, most_streams: u32) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(folder.join("ca.pem"), made.cert.pem()).expect("written");
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_no_client_auth();
        let mut tls = builder.with_single_cert(vec![made.cert.der().clone()], key.into()).expect("a key");
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let streams = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&streams);
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(socket).await else { return };
                    let answer = service_fn(move |request| answered(request, Arc::clone(&counted)));
                    let mut builder = Builder::new(TokioExecutor::new());
                    builder.max_concurrent_streams(most_streams);
                    drop(builder.serve_connection(TokioIo::new(stream), answer).await);
                });
            }
        });
        Self { port, streams, _runtime: runtime }
    }

    /// Waits until this many streams are open.
    fn until(&self, streams: usize) {
        let until = Instant::now() + AT_ONCE;
        while self.streams.load(Ordering::Relaxed) != streams {
            let open = self.streams.load(Ordering::Relaxed);
            assert!(Instant::now() < until, "{open} streams are open, not {streams}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

type Answer = hyper::Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>>;

async fn answered(
    request: hyper::Request<Incoming>,
    streams: Arc<AtomicUsize>,
) -> Result<Answer, Infallible> {
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (kind, body) = if request["stream"] == true {
        streams.fetch_add(1, Ordering::Relaxed);
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "theirs",
            "choices": [{ "index": 0, "delta": { "content": "x".repeat(8000) }, "finish_reason": null }] });
        let event = Bytes::from(format!("data: {chunk}\n\n"));
        let events = stream::unfold(Open(streams), move |open| {
            let event = Frame::data(event.clone());
            async { Some((Ok(event), open)) }
        });
        ("text/event-stream", StreamBody::new(events).boxed_unsync())
    } else {
        let whole = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "theirs",
            "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 } });
        ("application/json", Full::new(Bytes::from(whole.to_string())).boxed_unsync())
    };
    let mut answer = hyper::Response::new(body);
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static(kind));
    Ok(answer)
}

fn gateway(folder: &Path, upstream: &Upstream) -> Serving {
    let config = format!(
        "[upstreams.one]\nkind = \"chat\"\nbase_url = \"https://localhost:{}/v1\"\n\n\
         [models.mine]\nfamily = \"family_one\"\ntargets = [{{ upstream = \"one\", model = \"theirs\" }}]\n",
        upstream.port
    );
    let file = folder.join("gatewright.toml");
    std::fs::write(&file, config).expect("written");
    let authority = folder.join("ca.pem");
    let trust = ("SSL_CERT_FILE", authority.to_str().expect("a path"));
    Serving::start_with(&["--config", file.to_str().expect("a path")], &[trust])
}

fn question(stream: bool) -> String {
    json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }], "stream": stream })
        .to_string()
}

/// Starts a stream and reads a little of it.
fn start_stream(gateway: &Serving) -> TcpStream {
    let mut socket = TcpStream::connect(gateway.url.trim_start_matches("http://")).expect("a gateway");
    socket.set_read_timeout(Some(AT_ONCE)).expect("set");
    let body = question(true);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        gateway.key,
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).expect("sent");
    let mut beginning = [0; 12];
    socket.read_exact(&mut beginning).expect("an answer");
    assert_eq!(&beginning, b"HTTP/1.1 200");
    socket
}

/// The status of a complete response, and how long it took.
fn call(gateway: &Serving) -> (u16, Duration) {
    let started = Instant::now();
    let path = ("POST", "/v1/chat/completions");
    let answer = ask(&gateway.url, path, &gateway.key, "", &question(false)).expect("an answer");
    (answer.status, started.elapsed())
}

#[test]
fn stalled_clients_block_no_other_client_of_an_http_2_upstream() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = Upstream::start(folder.path(), 200);
    let gateway = gateway(folder.path(), &upstream);
    let unread: Vec<TcpStream> = (0..8).map(|_| start_stream(&gateway)).collect();
    // Everything that they leave unread has arrived.
    std::thread::sleep(Duration::from_millis(500));
    let (status, took) = call(&gateway);
    assert_eq!(status, 200);
    assert!(took < AT_ONCE, "{took:?}");
    // Their streams end when they disconnect.
    upstream.until(8);
    drop(unread);
    upstream.until(0);
}

#[test]
fn requests_beyond_an_http_2_upstreams_stream_limit_use_another_connection() {
    let folder = tempfile::tempdir().expect("a folder");
    let upstream = Upstream::start(folder.path(), 2);
    let gateway = gateway(folder.path(), &upstream);
    let open: Vec<TcpStream> = (0..5).map(|_| start_stream(&gateway)).collect();
    let (status, took) = call(&gateway);
    assert_eq!(status, 200);
    assert!(took < AT_ONCE, "{took:?}");
    drop(open);
}
