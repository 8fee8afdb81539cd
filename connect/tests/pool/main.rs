//! Pools against real servers on loopback: plain, with TLS, with HTTP/2.

mod http2;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use gatewright_connect::{Body, Error, Pool, Proxy, Settings, SocketGuard};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use self::http2::serve_http2;

/// A server and how many connections it has accepted.
struct Server {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    fn uri(&self, scheme: &str) -> Uri {
        format!("{scheme}://{}", self.address).parse().expect("an address")
    }
}

/// Serves each connection with `serve`.
async fn server<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(socket));
        }
    });
    Server { address, connections }
}

/// Answers `requests` requests with their path, then closes.
async fn echo(mut socket: impl AsyncRead + AsyncWrite + Unpin, requests: usize) {
    let mut received = Vec::new();
    for _ in 0..requests {
        let end = loop {
            if let Some(end) = received.windows(4).position(|end| end == b"\r\n\r\n") {
                break end + 4;
            }
            if socket.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}", path.len());
        if socket.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn settings() -> Settings {
    Settings {
        connect_timeout: Duration::from_secs(5),
        max_idle: 4,
        idle_timeout: Duration::from_mins(1),
        keep_alive: Some(Duration::from_mins(1)),
        ping: Duration::from_secs(30),
        proxy: None,
        is_reusable: |_, _| true,
    }
}

fn client(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.expect("versions").with_root_certificates(roots).with_no_client_auth()
}

fn pool(server: &Server, settings: Settings) -> Pool {
    Pool::new(server.uri("http"), client(RootCertStore::empty()), settings)
}

async fn ask(pool: &Pool, path: &str) -> Result<String, Error> {
    let request = Request::builder().method(Method::GET).uri(path).body(Bytes::new()).expect("a request");
    let body = pool.send(&request).await?.into_body().collect().await?;
    Ok(String::from_utf8(body.to_bytes().to_vec()).expect("text"))
}

#[tokio::test]
async fn connection_to_a_proxy_is_reused() {
    let proxy = server(|socket| echo(socket, 100)).await;
    let proxied = Proxy::at(&format!("http://{}", proxy.address));
    let elsewhere = Uri::from_static("http://elsewhere.example:81");
    let settings = Settings { proxy: proxied, ..settings() };
    let pool = Pool::new(elsewhere, client(RootCertStore::empty()), settings);
    for path in ["/a", "/b?c=d"] {
        let answer = ask(&pool, path).await.expect("an answer");
        assert_eq!(answer, format!("http://elsewhere.example:81{path}"));
    }
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn connection_is_reused() {
    let server = server(|socket| echo(socket, 100)).await;
    let pool = pool(&server, settings());
    for path in ["/a", "/b?c=d", "/e"] {
        assert_eq!(ask(&pool, path).await.expect("an answer"), path);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn connection_is_reused_only_after_heads_that_allow_it() {
    let server = server(|socket| echo(socket, 100)).await;
    let is_reusable: fn(StatusCode, &HeaderMap) -> bool = |_, headers| headers[CONTENT_LENGTH] != "3";
    let pool = pool(&server, Settings { is_reusable, ..settings() });
    for (path, connections) in [("/a", 1), ("/no", 1), ("/b", 2), ("/c", 2)] {
        assert_eq!(ask(&pool, path).await.expect("an answer"), path);
        assert_eq!(server.connections(), connections, "{path}");
    }
}

/// Answers each request with `ab`, then sends `cd` when signaled.
async fn halves(mut socket: TcpStream, go_on: Arc<Notify>) {
    let mut received = [0; 4096];
    while socket.read(&mut received).await.unwrap_or(0) > 0 {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab";
        socket.write_all(head).await.expect("a client");
        go_on.notified().await;
        socket.write_all(b"cd").await.expect("a client");
    }
}

/// What the connection's watcher reads next.
async fn watched(body: &mut Body, guard: &SocketGuard) -> Bytes {
    loop {
        guard.set_readable();
        let polled = Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(frame) = polled {
            return frame.expect("a frame").expect("a connection").into_data().expect("data");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn connections_watcher_reads_the_body_and_the_connection_is_reused() {
    let go_on = Arc::new(Notify::new());
    let signal = Arc::clone(&go_on);
    let server = server(move |socket| halves(socket, Arc::clone(&signal))).await;
    let pool = pool(&server, settings());
    for changes in 0..4 {
        let request = Request::get("/").body(Bytes::new()).expect("a request");
        let mut body = pool.send(&request).await.expect("an answer").into_body();
        let next = body.frame().await.expect("a frame").expect("a connection");
        assert_eq!(next.into_data().expect("data"), "ab");
        for _ in 0..changes {
            let watching = body.watch().expect("a connection");
            let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            assert!(watching.hold().is_some());
            body.drive().expect("a runtime");
            assert!(watching.hold().is_none(), "the runtime has it");
        }
        if changes % 2 == 0 {
            let guard = body.watch().and_then(|watching| watching.hold()).expect("a connection");
            go_on.notify_one();
            assert_eq!(watched(&mut body, &guard).await, "cd");
        } else {
            go_on.notify_one();
            let next = body.frame().await.expect("a frame").expect("a connection");
            assert_eq!(next.into_data().expect("data"), "cd");
        }
        assert!(body.is_end_stream());
        assert!(body.watch().is_none(), "nothing comes any more");
        assert_eq!(server.connections(), 1);
    }
}

#[test]
fn connection_is_not_reused_in_another_runtime() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (serving, one, other) = (tokio::runtime::Runtime::new().expect("a runtime"), runtime(), runtime());
    let server = serving.block_on(server(|socket| echo(socket, 100)));
    let pool = pool(&server, settings());
    // The first runtime is no longer driven, so a connection from it would never become ready.
    for (runtime, connections) in [(&one, 1), (&other, 2), (&other, 2), (&one, 2)] {
        let request = async { tokio::time::timeout(Duration::from_secs(5), ask(&pool, "/")).await };
        let answer = runtime.block_on(request).expect("in time");
        assert_eq!(answer.expect("an answer"), "/");
        assert_eq!(server.connections(), connections);
    }
}

#[tokio::test]
async fn connection_closed_by_the_server_is_not_reused() {
    let server = server(|socket| echo(socket, 1)).await;
    let pool = pool(&server, settings());
    for round in 1..=20 {
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "/");
        assert_eq!(server.connections(), round);
        // The end of the connection arrives.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn connection_with_unsolicited_data_is_not_reused() {
    let server = server(|mut socket| async move {
        let mut some = [0; 1024];
        drop(socket.read(&mut some).await);
        drop(socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n/").await);
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil").await);
        tokio::time::sleep(Duration::from_secs(5)).await;
    })
    .await;
    let pool = pool(&server, settings());
    for round in 1..=2 {
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "/");
        assert_eq!(server.connections(), round);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn idle_connections_are_limited_and_closed_after_their_timeout() {
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    let server = server(move |socket| {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            echo(socket, 100).await;
            count.fetch_sub(1, Ordering::Relaxed);
        }
    })
    .await;
    let pool = pool(&server, Settings { idle_timeout: Duration::from_millis(200), ..settings() });
    let requests = (0..10).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            let answer = pool.send(&Request::new(Bytes::new())).await.expect("an answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
            answer.into_body().collect().await.map(drop)
        })
    });
    for one in requests.collect::<Vec<_>>() {
        one.await.expect("no panic").expect("a body");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(open.load(Ordering::Relaxed) <= 4, "{open:?}");
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        if open.load(Ordering::Relaxed) == 0 {
            return;
        }
    }
    panic!("{open:?} are still open");
}

#[tokio::test]
async fn dropping_a_body_closes_its_connection() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    let sender = Arc::new(std::sync::Mutex::new(Some(sender)));
    let server = server(move |mut socket| {
        let sender = Arc::clone(&sender);
        async move {
            drop(socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").await);
            let mut rest = Vec::new();
            drop(socket.read_to_end(&mut rest).await);
            if let Some(sender) = sender.lock().expect("the lock").take() {
                sender.send(()).expect("the test waits");
            }
        }
    })
    .await;
    let mut answer = pool(&server, settings()).send(&Request::new(Bytes::new())).await.expect("an answer");
    answer.body_mut().frame().await.expect("a frame").expect("data");
    drop(answer);
    tokio::time::timeout(Duration::from_secs(5), closed).await.expect("closed in time").expect("closed");
}

#[tokio::test]
async fn unreachable_server_is_distinguished_from_a_silent_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let nobody = Server { address, connections: Arc::default() };
    let failed = ask(&pool(&nobody, settings()), "/").await.expect_err("nothing listens");
    assert!(failed.is_connect() && !failed.is_timeout(), "{failed:?}");

    let silent = server(|socket| async move { drop(socket) }).await;
    let failed = ask(&pool(&silent, settings()), "/").await.expect_err("it closes");
    assert!(!failed.is_connect(), "{failed:?}");

    // A handshake that never completes.
    let mute = server(|socket| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(socket);
    })
    .await;
    let brief = Settings { connect_timeout: Duration::from_millis(100), ..settings() };
    let pool = Pool::new(mute.uri("https"), client(RootCertStore::empty()), brief);
    let failed = ask(&pool, "/").await.expect_err("no handshake");
    assert!(failed.is_connect() && failed.is_timeout(), "{failed:?}");
}

/// A TLS server that offers these protocols, and a client configuration that trusts it.
async fn with_tls(protocols: &[&[u8]], requests: usize) -> (Server, ClientConfig) {
    with_streams(protocols, requests, 200).await
}

/// The same, with at most this many concurrent requests per HTTP/2 connection.
async fn with_streams(protocols: &[&[u8]], requests: usize, most_streams: u32) -> (Server, ClientConfig) {
    over_tls(protocols, move |stream| async move {
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            serve_http2(stream, most_streams).await;
        } else {
            echo(stream, requests).await;
        }
    })
    .await
}

/// Serves each connection with `serve` after its TLS handshake.
async fn over_tls<F: Future<Output = ()> + Send + 'static>(
    protocols: &[&[u8]],
    serve: impl Fn(TlsStream<TcpStream>) -> F + Clone + Send + Sync + 'static,
) -> (Server, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions").with_no_client_auth();
    let mut config = builder.with_single_cert(vec![made.cert.der().clone()], key.into()).expect("a key");
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let mut server = server(move |socket| {
        let (acceptor, serve) = (acceptor.clone(), serve.clone());
        async move {
            let Ok(stream) = acceptor.accept(socket).await else { return };
            serve(stream).await;
        }
    })
    .await;
    server.address = server.address.replace("127.0.0.1", "localhost");
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).expect("a root");
    (server, client(roots))
}

#[tokio::test]
async fn tls_connections_are_reused() {
    let (server, tls) = with_tls(&[b"http/1.1"], 3).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    for _ in 0..3 {
        assert_eq!(ask(&pool, "/a").await.expect("an answer"), "/a");
    }
    assert_eq!(server.connections(), 1);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(ask(&pool, "/b").await.expect("an answer"), "/b");
    assert_eq!(server.connections(), 2, "the first one was closed by the server");
}

const SOON: Duration = Duration::from_secs(5);

/// Answers the first request, and closes the connection when the second arrives.
async fn closes_on_the_second(mut socket: TcpStream, resets: bool) {
    let mut received = [0; 4096];
    if socket.read(&mut received).await.unwrap_or(0) > 0 {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        socket.write_all(answer).await.expect("a client");
        drop(socket.read(&mut received).await);
        if resets {
            drop(socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)));
        }
    }
}

/// The same, after more than a second.
async fn closes_late(mut socket: TcpStream) {
    let mut received = [0; 4096];
    if socket.read(&mut received).await.unwrap_or(0) > 0 {
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.expect("a client");
        drop(socket.read(&mut received).await);
        tokio::time::sleep(Duration::from_millis(1200)).await;
    }
}

#[tokio::test]
async fn request_lost_by_a_reused_connection_is_distinguished_and_can_be_resent() {
    for resets in [false, true] {
        let server = server(move |socket| closes_on_the_second(socket, resets)).await;
        let pool = pool(&server, settings());
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "ok");
        let lost = ask(&pool, "/").await.expect_err("it is closed");
        assert!(matches!(lost, Error::Stale), "{lost:?}");
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "ok");
        let request = Request::builder().uri("/").body(Bytes::new()).expect("a request");
        // It uses a new connection although an idle one exists.
        let answer = pool.send_anew(&request).await.expect("an answer");
        assert_eq!(answer.into_body().collect().await.expect("a body").to_bytes(), "ok");
        assert_eq!(server.connections(), 3);
    }
    // After a second, the server may have processed it.
    let server = server(closes_late).await;
    let pool = pool(&server, settings());
    assert_eq!(ask(&pool, "/").await.expect("an answer"), "ok");
    let closed = ask(&pool, "/").await.expect_err("it is closed");
    assert!(matches!(closed, Error::Closed), "{closed:?}");
}

#[tokio::test]
async fn connection_without_served_requests_is_not_stale() {
    let server = server(|socket| async move { drop(socket) }).await;
    let closed = ask(&pool(&server, settings()), "/").await.expect_err("it is closed");
    assert!(!matches!(closed, Error::Stale), "{closed:?}");
}

#[test]
fn connection_ended_while_the_runtime_is_idle_is_not_reused() {
    let serving = tokio::runtime::Runtime::new().expect("a runtime");
    let ours = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (plain, (over_tls, tls)) = serving
        .block_on(async { (server(|socket| echo(socket, 1)).await, with_tls(&[b"http/1.1"], 1).await) });
    let over_tls_pool = Pool::new(over_tls.uri("https"), tls, settings());
    for (server, pool) in [(&plain, pool(&plain, settings())), (&over_tls, over_tls_pool)] {
        for connections in 1..=3 {
            assert_eq!(ours.block_on(ask(&pool, "/")).expect("an answer"), "/");
            assert_eq!(server.connections(), connections);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[tokio::test]
async fn untrusted_certificate_is_rejected() {
    let (server, _) = with_tls(&[b"http/1.1"], 1).await;
    let pool = Pool::new(server.uri("https"), client(RootCertStore::empty()), settings());
    let failed = ask(&pool, "/").await.expect_err("untrusted");
    assert!(failed.is_connect() && !failed.is_timeout(), "{failed:?}");
}
