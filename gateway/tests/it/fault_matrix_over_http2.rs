//! The matrix of `fault_matrix.rs` over HTTP/2: each client protocol with each kind of upstream, and every failure of
//! a stream on a shared connection: the upstream resets the stream, sends GOAWAY, closes the connection,
//! hangs, or sends a wrong length.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gatewright_gateway::{Config, ModelConfig, TargetConfig};
use h2::Reason;
use h2::server::SendResponse;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::callers::{End, Protocol, TEXT};
use crate::client_disconnects::{is_given_up, leave, posted};
use crate::fault_matrix::{AT_ONCE, Form, assert_error, assert_failover, ended_from, start, well};
use crate::support::{Event, send, start_with, stride};
use crate::upstreams::{Scripted, Seen, config, upstream};

/// The folder with the certificate that this process trusts.
const TRUSTED: &str = "GATEWRIGHT_TEST_TRUSTED";
/// Size of body chunks in bytes; they end within events.
const PIECE: usize = 97;

/// Re-runs a test of this file, see [`trusting_in`].
fn trusting(test: &str) -> Option<PathBuf> {
    trusting_in("fault_matrix_over_http2", test)
}

/// Re-runs a test of a module in a process that trusts a certificate made for it, since the gateway trusts only the platform's
/// certificates. Returns the certificate's folder in that process, and None in the first one, whose test is then done.
pub(crate) fn trusting_in(module: &str, test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(TRUSTED) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let certificate = folder.path().join("cert.pem");
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    let status = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "--nocapture", &format!("{module}::{test}")])
        .env(TRUSTED, folder.path())
        .env("SSL_CERT_FILE", &certificate)
        .status()
        .expect("this program runs");
    assert!(status.success(), "{test} failed in its own process");
    None
}

/// TLS that chooses HTTP/2, with the certificate in a folder.
pub(crate) fn acceptor(folder: &Path) -> TlsAcceptor {
    let pem = |name: &str| std::fs::read(folder.join(name)).expect("PEM");
    let certificate = CertificateDer::from_pem_slice(&pem("cert.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(&pem("key.pem")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions").with_no_client_auth();
    let mut tls = builder.with_single_cert(vec![certificate], key).expect("a key");
    tls.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(tls))
}

/// How a response ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// Regularly.
    Whole,
    Reset(Reason),
    /// The server sends GOAWAY and closes the connection.
    GoAway(Reason),
    /// The connection closes.
    Close,
    Hang,
    /// The server sends GOAWAY and completes the response.
    Drain,
}

/// What an upstream does with a request.
#[derive(Debug, Clone)]
struct Act {
    /// Status and headers; without them, nothing precedes the ending.
    head: Option<(u16, Vec<(&'static str, String)>)>,
    body: String,
    ending: Ending,
}

impl Act {
    fn before_head(ending: Ending) -> Self {
        Self { head: None, body: String::new(), ending }
    }

    fn with(status: u16, kind: &str, body: &str, ending: Ending) -> Self {
        let headers = vec![("content-type", kind.to_owned())];
        Self { head: Some((status, headers)), body: body.to_owned(), ending }
    }

    fn length(mut self, length: usize) -> Self {
        let (_, headers) = self.head.as_mut().expect("a head");
        headers.push(("content-length", length.to_string()));
        self
    }
}

/// How requests are answered.
type Script = Arc<dyn Fn(&Seen) -> Act + Send + Sync>;

/// An HTTP/2-only upstream. It accepts one concurrent request per connection, so that a broken connection breaks
/// one request. Returns its address.
async fn serve(folder: &Path, script: impl Fn(&Seen) -> Act + Send + Sync + 'static) -> String {
    serve_and_tell(folder, script, &mpsc::unbounded_channel().0).await
}

/// `left`: receives the times when hanging streams were cancelled.
async fn serve_and_tell(
    folder: &Path,
    script: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    left: &mpsc::UnboundedSender<Instant>,
) -> String {
    let acceptor = acceptor(folder);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://localhost:{}/v1", listener.local_addr().expect("an address").port());
    let (script, left): (Script, _) = (Arc::new(script), left.clone());
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(connection(socket, acceptor.clone(), Arc::clone(&script), left.clone()));
        }
    });
    url
}

async fn connection(
    socket: TcpStream,
    acceptor: TlsAcceptor,
    script: Script,
    left: mpsc::UnboundedSender<Instant>,
) {
    socket.set_nodelay(true).expect("set");
    let Ok(mut tls) = acceptor.accept(socket).await else { return };
    let (mut wire, spoken) = tokio::io::duplex(64 * 1024);
    // How much of the bodies has been sent, so that nothing ends before the bytes it should end after.
    let (sending, sent) = watch::channel(0);
    let (ending, ended) = mpsc::unbounded_channel();
    let speaking = tokio::spawn(speak(spoken, script, sent, (ending, left), ended));
    let mut bodies = Bodies::default();
    let (mut from_client, mut from_server) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
    loop {
        tokio::select! {
            read = tls.read(&mut from_client) => match read {
                Ok(length @ 1..) if wire.write_all(&from_client[..length]).await.is_ok() => {}
                _ => break,
            },
            read = wire.read(&mut from_server) => match read {
                Ok(length @ 1..) => {
                    let sent = tls.write_all(&from_server[..length]).await.is_ok() && tls.flush().await.is_ok();
                    if !sent {
                        break;
                    }
                    bodies.take(&from_server[..length]);
                    sending.send_replace(bodies.length);
                }
                _ => break,
            },
        }
    }
    // Closing the connection discards nothing: the client's remaining data is read.
    _ = tls.shutdown().await;
    while matches!(tls.read(&mut from_client).await, Ok(1..)) {}
    speaking.abort();
}

/// Reads HTTP/2 frames to measure the body bytes in them (RFC 9113, section 4.1).
#[derive(Default)]
struct Bodies {
    length: usize,
    head: Vec<u8>,
    /// Remaining bytes of the current frame, and whether it is a DATA frame.
    left: usize,
    is_data: bool,
}

impl Bodies {
    fn take(&mut self, mut bytes: &[u8]) {
        const HEAD: usize = 9;
        while !bytes.is_empty() {
            if self.left > 0 {
                let taken = self.left.min(bytes.len());
                self.length += if self.is_data { taken } else { 0 };
                self.left -= taken;
                bytes = &bytes[taken..];
                continue;
            }
            let taken = (HEAD - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.head.len() == HEAD {
                self.left = self.head[..3].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                self.is_data = self.head[3] == 0;
                self.head.clear();
            }
        }
    }
}

/// Where a request reports what ends its connection, and when it was cancelled.
type Telling = (mpsc::UnboundedSender<Ending>, mpsc::UnboundedSender<Instant>);

/// Serves HTTP/2 until the connection closes. `ended`: what ends it before the client does.
async fn speak(
    socket: DuplexStream,
    script: Script,
    sent: watch::Receiver<usize>,
    telling: Telling,
    mut ended: mpsc::UnboundedReceiver<Ending>,
) {
    let mut builder = h2::server::Builder::new();
    let Ok(mut connection) = builder.max_concurrent_streams(1).handshake::<_, Bytes>(socket).await else {
        return;
    };
    loop {
        tokio::select! {
            request = connection.accept() => {
                let Some(Ok((request, respond))) = request else { return };
                tokio::spawn(act(request, respond, Arc::clone(&script), sent.clone(), telling.clone()));
            }
            Some(ending) = ended.recv() => match ending {
                Ending::GoAway(reason) => connection.abrupt_shutdown(reason),
                Ending::Drain => connection.graceful_shutdown(),
                _ => return,
            },
        }
    }
}

async fn act(
    request: http::Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    script: Script,
    mut sent: watch::Receiver<usize>,
    (end_connection, left): Telling,
) {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(data)) = incoming.data().await {
        _ = incoming.flow_control().release_capacity(data.len());
        body.extend_from_slice(&data);
    }
    let line = format!("{} {} HTTP/2", head.method, head.uri.path_and_query().expect("a path"));
    let body = String::from_utf8(body).expect("text");
    let Act { head, body, ending } = script(&Seen { line, headers: Vec::new(), body });
    let before = *sent.borrow();
    let mut stream = None;
    if let Some((status, headers)) = head {
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        let response = response.body(()).expect("a response");
        let Ok(mut opened) = respond.send_response(response, false) else { return };
        let half = if ending == Ending::Drain { body.len() / 2 } else { body.len() };
        for (part, drains) in [(&body[..half], ending == Ending::Drain), (&body[half..], false)] {
            for piece in part.as_bytes().chunks(PIECE) {
                _ = opened.send_data(Bytes::copy_from_slice(piece), false);
            }
            if drains {
                _ = sent.wait_for(|sent| *sent >= before + half).await;
                _ = end_connection.send(Ending::Drain);
            }
        }
        stream = Some(opened);
    }
    // Everything has been sent.
    _ = sent.wait_for(|sent| *sent >= before + body.len()).await;
    match ending {
        Ending::Whole | Ending::Drain => {
            _ = stream.as_mut().expect("a head").send_data(Bytes::new(), true);
        }
        Ending::Reset(reason) => match &mut stream {
            Some(stream) => stream.send_reset(reason),
            None => respond.send_reset(reason),
        },
        Ending::GoAway(_) | Ending::Close => {
            _ = end_connection.send(ending);
            // Dropping a stream resets it, so the connection must end first.
            std::future::pending::<()>().await;
        }
        Ending::Hang => {
            _ = std::future::poll_fn(|context| match &mut stream {
                Some(stream) => stream.poll_reset(context),
                None => respond.poll_reset(context),
            })
            .await;
            _ = left.send(Instant::now());
        }
    }
}

/// Failures of an upstream before its response is complete, and the status that the client gets if no other upstream
/// takes over.
type Fault = (&'static str, Act, u16);

fn faults(protocol: Protocol, stream: bool) -> Vec<Fault> {
    let error = json!({"error": {"message": "no"}}).to_string();
    let whole = if stream { protocol.events() } else { protocol.answer().to_string() };
    let kind = if stream { "text/event-stream" } else { "application/json" };
    let first_byte = whole.get(..1).expect("ASCII");
    let early = Act::before_head;
    let head = |ending| Act::with(200, kind, "", ending);
    let failed = |status| Act::with(status, "application/json", &error, Ending::Whole);
    let broken = Reason::INTERNAL_ERROR;
    vec![
        ("hangs", early(Ending::Hang), 504),
        ("hangs after its head", head(Ending::Hang), 504),
        ("resets the stream", early(Ending::Reset(broken)), 502),
        ("resets the stream after its head", head(Ending::Reset(broken)), 502),
        ("takes no stream", early(Ending::Reset(Reason::REFUSED_STREAM)), 502),
        ("cancels the stream", early(Ending::Reset(Reason::CANCEL)), 502),
        ("cancels the stream after its head", head(Ending::Reset(Reason::CANCEL)), 502),
        ("is done with the stream after its head", head(Ending::Reset(Reason::NO_ERROR)), 502),
        ("goes away", early(Ending::GoAway(broken)), 502),
        ("goes away after its head", head(Ending::GoAway(broken)), 502),
        ("goes away in peace after its head", head(Ending::GoAway(Reason::NO_ERROR)), 502),
        ("closes", early(Ending::Close), 502),
        ("closes after its head", head(Ending::Close), 502),
        ("429", failed(429), 429),
        ("500", failed(500), 500),
        ("529", failed(529), 529),
        ("401", failed(401), 502),
        ("HTML", Act::with(200, "text/html", "<html>Welcome</html>", Ending::Whole), 502),
        ("HTML as an error", Act::with(503, "text/html", "<html>No</html>", Ending::Whole), 503),
        ("HTML in disguise", Act::with(200, kind, "<html>Welcome</html>", Ending::Whole), 502),
        ("nothing", head(Ending::Whole), 502),
        ("a byte", Act::with(200, kind, first_byte, Ending::Whole), 502),
        ("too long a length", Act::with(200, kind, first_byte, Ending::Whole).length(100_000), 502),
        ("too short a length", Act::with(200, kind, &whole, Ending::Whole).length(7), 502),
    ]
}

/// The number of a fault or of a cut, taken from the upstream's model name.
fn number(seen: &Seen) -> usize {
    let text = format!("{} {}", seen.line, seen.body);
    let (_, rest) = text.split_once("number-").expect("the name of a model");
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("its number")
}

/// A shared script whose acts are played in order.
type Next = Arc<std::sync::Mutex<Option<Act>>>;

async fn go_through(folder: &Path, speaks: Protocol) {
    let next = Next::default();
    let playing = Arc::clone(&next);
    let bad = serve(folder, move |_| playing.lock().expect("no panic").clone().expect("an act")).await;
    let good = Scripted::start([]).await;
    for stream in [false, true] {
        let names: Vec<&str> = faults(speaks, stream).iter().map(|(what, ..)| *what).collect();
        let server = start(&bad, &good.url, speaks, &names).await;
        for client in Protocol::ALL {
            let spoken = speaks.spoken_for(client);
            good.then(well(spoken, stream));
            for (number, (what, act, expected)) in faults(spoken, stream).into_iter().enumerate() {
                *next.lock().expect("no panic") = Some(act);
                let here =
                    format!("{client:?} at {speaks:?} over HTTP/2, stream: {stream}, upstream: {what}");
                assert_error(&server, client, stream, number, expected, &here).await;
                assert_failover(&server, client, stream, number, &here).await;
            }
        }
    }
}

#[tokio::test]
async fn http2_upstream_faults_are_reported_or_failed_over() {
    let name = "http2_upstream_faults_are_reported_or_failed_over";
    let Some(folder) = trusting(name) else { return };
    for speaks in Protocol::ALL {
        go_through(&folder, speaks).await;
    }
}

/// The ways in which a stream breaks.
const WAYS: [Ending; 6] = [
    Ending::Whole,
    Ending::Reset(Reason::INTERNAL_ERROR),
    Ending::Reset(Reason::CANCEL),
    Ending::GoAway(Reason::INTERNAL_ERROR),
    Ending::GoAway(Reason::NO_ERROR),
    Ending::Close,
];
/// Streams break at one byte of this many, and at one of five times as many after each change. Near the end of a response, they
/// break at each byte.
const STEP: usize = 3;
const CLOSE: usize = 3;

/// Where streams break, and how: in alternating ways, and in each way where it matters.
fn deaths(spoken: Protocol) -> Vec<(usize, Ending)> {
    let length = spoken.events().len();
    let ends = [0, spoken.whole_from(), ended_from(spoken), length];
    let step = STEP * stride(5);
    let places = (0..=length).flat_map(move |at| {
        let is_close = ends.iter().any(|end| end.abs_diff(at) <= CLOSE);
        let chosen = move |way: &usize| is_close || (at % step == 0 && at / step % WAYS.len() == *way);
        (0..WAYS.len()).filter(chosen).map(move |way| (at, WAYS[way]))
    });
    places.collect()
}

/// Whether the whole response arrived before the break.
fn is_end(spoken: Protocol, at: usize, ending: Ending) -> bool {
    // Only a regular end of the stream can end the response. A cancelled stream has not ended, whatever the reason.
    let may_end = ending == Ending::Whole;
    (may_end && at >= spoken.whole_from()) || at >= ended_from(spoken)
}

async fn die_again_and_again(folder: &Path, client: Protocol, form: Form, speaks: Protocol) {
    let answered = speaks.spoken_for(client);
    let deaths = deaths(answered);
    let all = deaths.clone();
    let url = serve(folder, move |seen| {
        let (at, ending) = all[number(seen)];
        Act::with(200, "text/event-stream", &Protocol::of(seen).events()[..at], ending)
    })
    .await;
    let models = (0..deaths.len()).map(|number| {
        // Its own model, so that its breaker affects no other case.
        let target = TargetConfig::new("one", format!("number-{number}"));
        let mut model = ModelConfig::new(format!("at-{number}"), "family_one", target);
        model.translate_responses = true;
        model
    });
    let upstreams = vec![upstream("one", speaks.kind(), &url)];
    let server = start_with(Config { upstreams, models: models.collect(), ..Config::default() }).await;
    let requests = deaths.iter().enumerate().map(async |(number, (at, ending))| {
        let here = format!("{client:?} ({form:?}) at {speaks:?}: {ending:?} behind {at} bytes");
        let (path, body) = client.request(&format!("at-{number}"), true);
        let response = send(server.post(form.path(&path), &body)).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_else(|error| panic!("{here}: {error}"));
        let is_end = is_end(answered, *at, *ending);
        if status != 200 {
            // Nothing was sent. The native protocol has no 502.
            assert_eq!(status, if client == Protocol::Native { 503 } else { 502 }, "{here}: {text}");
            assert!(!is_end, "{here}: {text}");
            let error: Value = serde_json::from_str(&text).expect("JSON");
            assert!(client.is_error(&error), "{here}: {text}");
            return;
        }
        let (end, text_received) = form.read(client, &text);
        assert_eq!(end, if is_end { End::Success } else { End::Failure }, "{here}: {text}");
        if is_end {
            assert_eq!(text_received, TEXT, "{here}: {text}");
        }
    });
    stream::iter(requests).for_each_concurrent(AT_ONCE, |request| request).await;
}

#[tokio::test]
async fn broken_http2_stream_is_no_success_for_any_client() {
    let Some(folder) = trusting("broken_http2_stream_is_no_success_for_any_client") else { return };
    let arrays = [(Protocol::Native, Form::Array)];
    let forms = Protocol::ALL.map(|client| (client, Form::Events));
    for (client, form) in forms.into_iter().chain(arrays) {
        for speaks in Protocol::ALL {
            die_again_and_again(&folder, client, form, speaks).await;
        }
    }
}

/// RFC 9113, section 6.8: after GOAWAY, a server completes its streams and accepts no new ones.
#[tokio::test]
async fn http2_goaway_completes_its_stream_and_the_next_request_reconnects() {
    let name = "http2_goaway_completes_its_stream_and_the_next_request_reconnects";
    let Some(folder) = trusting(name) else { return };
    for speaks in Protocol::ALL {
        let url = serve(&folder, move |seen| {
            Act::with(200, "text/event-stream", &Protocol::of(seen).events(), Ending::Drain)
        })
        .await;
        let mut model = ModelConfig::new("mine", "family_one", TargetConfig::new("one", "theirs"));
        model.translate_responses = true;
        let upstreams = vec![upstream("one", speaks.kind(), &url)];
        let server = start_with(Config { upstreams, models: vec![model], ..Config::default() }).await;
        for client in [Protocol::ALL, Protocol::ALL].concat() {
            let (path, body) = client.request("mine", true);
            let events: Vec<Event> =
                tokio::time::timeout(Duration::from_mins(1), server.stream(&path, &body))
                    .await
                    .expect("an end");
            let text: String = events
                .iter()
                .map(|event| match &event.name {
                    Some(name) => format!("event: {name}\ndata: {}\n\n", event.data),
                    None => format!("data: {}\n\n", event.data),
                })
                .collect();
            assert_eq!(
                Form::Events.read(client, &text),
                (End::Success, TEXT.to_owned()),
                "{client:?} at {speaks:?}"
            );
        }
    }
}

/// RFC 9113, section 8.7: an abandoned request is cancelled by a reset of its stream, and the connection stays open.
#[tokio::test]
async fn http2_stream_is_reset_when_its_client_disconnects() {
    let name = "http2_stream_is_reset_when_its_client_disconnects";
    let Some(folder) = trusting(name) else { return };
    for client in Protocol::ALL {
        let events = client.events();
        let cut = events.find("\n\n").expect("an event") + 2;
        let started = |body: &str| Act::with(200, "text/event-stream", body, Ending::Hang);
        let document = Act::with(200, "application/json", "{\"id\"", Ending::Hang).length(900);
        let stages = [
            ("before the head of a stream", true, Act::before_head(Ending::Hang), false),
            ("before the head", false, Act::before_head(Ending::Hang), false),
            ("before the first event", true, started(""), false),
            ("in mid-stream", true, started(&events[..cut]), true),
            ("within an event", true, started(&events[..cut + 9]), true),
            ("within a whole answer", false, document, false),
        ];
        for (what, streams, act, expects_data) in stages {
            let (leaving, mut left) = mpsc::unbounded_channel();
            let (asking, mut request_seen) = mpsc::unbounded_channel();
            let script = move |_: &Seen| {
                asking.send(()).expect("a test");
                act.clone()
            };
            let url = serve_and_tell(&folder, script, &leaving).await;
            let server = start_with(config(vec![upstream("one", client.kind(), &url)])).await;
            let (path, body) = client.request("mine", streams);
            for resets in [false, true] {
                is_given_up(&format!("{client:?}, {what}, reset: {resets}"), async || {
                    let address = server.url.trim_start_matches("http://");
                    let mut socket = TcpStream::connect(address).await.expect("a connection");
                    socket.write_all(posted(&path, &body).as_bytes()).await.expect("sent");
                    request_seen.recv().await.expect("a request");
                    if expects_data {
                        assert!(socket.read(&mut [0; 4096]).await.expect("an event") > 0);
                    }
                    let leaving = leave(socket, resets);
                    let waiting = tokio::time::timeout(Duration::from_secs(5), left.recv()).await;
                    let left = waiting.expect("the stream was not cancelled").expect("it runs");
                    left.saturating_duration_since(leaving)
                })
                .await;
            }
        }
    }
}
