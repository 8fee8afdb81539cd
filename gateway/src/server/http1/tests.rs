use std::sync::Mutex;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::wire::Body;

/// A piece that is not copied.
const LONG: &[u8] = &[b'x'; 20_000];

/// Answers by the path of the request, and records the requests.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Vec<String>>>);

impl Service for Scripted {
    async fn answer(&self, request: http::Request<Body>, _: Client) -> Response {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let body = if path == "/unread" {
            Bytes::new()
        } else {
            match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) => format!("error: {error}").into(),
            }
        };
        let received = format!("{} {path} {}", head.method, String::from_utf8_lossy(&body));
        self.0.lock().expect("no panic").push(received);
        let pieces = |pieces: &[&'static [u8]]| {
            Body::from_stream(stream::iter(
                pieces.iter().map(|piece| Ok::<_, io::Error>(*piece)).collect::<Vec<_>>(),
            ))
        };
        let mut response = Response::new(match path.as_str() {
            "/stream" => pieces(&[b"one", b"", LONG, b"two"]),
            "/long" => Body::from(vec![b'y'; 100_000]),
            "/short" | "/over" => pieces(&[b"12345"]),
            "/empty" => Body::empty(),
            _ => Body::from(body),
        });
        if let Some(length) = match path.as_str() {
            "/short" => Some(9),
            "/over" => Some(3),
            _ => None,
        } {
            response.headers_mut().insert(http::header::CONTENT_LENGTH, length.into());
        }
        if path == "/nothing" {
            *response.status_mut() = http::StatusCode::NO_CONTENT;
        }
        response
    }
}

fn settings() -> Settings {
    Settings { header_timeout: Duration::from_secs(5), draining: CancellationToken::new() }
}

fn start(settings: Settings) -> (DuplexStream, Scripted, tokio::task::JoinHandle<io::Result<()>>) {
    let (client, socket) = duplex(512 * 1024);
    let service = Scripted::default();
    let served = tokio::spawn(serve(socket, service.clone(), Client::default(), settings));
    (client, service, served)
}

/// The server's output for these packets until it closes the connection; the requests received; how it ended.
async fn exchange(packets: &[&[u8]]) -> (String, Vec<String>, bool) {
    let (mut client, service, served) = start(settings());
    for packet in packets {
        // The server may have closed the connection before.
        _ = client.write_all(packet).await;
        tokio::task::yield_now().await;
    }
    _ = client.shutdown().await;
    let mut output = Vec::new();
    client.read_to_end(&mut output).await.expect("read");
    let ended = served.await.expect("no panic").is_ok();
    let received = service.0.lock().expect("no panic").clone();
    (String::from_utf8_lossy(&output).into_owned(), received, ended)
}

fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Without the date and id headers, which vary.
fn plain(text: &str) -> String {
    text.split_inclusive("\r\n")
        .filter(|line| !line.starts_with("date: ") && !line.starts_with("x-request-id"))
        .collect()
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let sent = [post("/a", "1"), "\r\n".to_owned(), post("/b", "22"), post("/c", "")].concat();
    let (output, received, ended) = exchange(&[sent.as_bytes()]).await;
    assert_eq!(received, ["POST /a 1", "POST /b 22", "POST /c "]);
    let answer = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    assert_eq!(plain(&output), [answer("1"), answer("22"), answer("")].concat());
    assert!(ended && output.matches("\r\ndate: ").count() == 3, "{output}");
}

#[tokio::test]
async fn streamed_body_is_chunked_or_delimited_by_close() {
    let (output, ..) = exchange(&[
        b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\nGET /a HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ])
    .await;
    let long = "x".repeat(20_000);
    let chunks = format!("3\r\none\r\n4e20\r\n{long}\r\n3\r\ntwo\r\n0\r\n\r\n");
    assert!(
        output.contains(&format!("transfer-encoding: chunked\r\n\r\n{chunks}HTTP/1.1 200 OK")),
        "{output}"
    );
    assert!(output.ends_with("connection: close\r\n\r\n"), "{output}");
    let (output, ..) = exchange(&[b"GET /stream HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"]).await;
    assert!(output.ends_with(&format!("connection: close\r\n\r\none{long}two")), "{output}");
    let (output, received, _) =
        exchange(&[b"GET /a HTTP/1.0\r\nconnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n"]).await;
    assert_eq!((received.len(), output.matches("connection: keep-alive").count()), (2, 1), "{output}");
}

#[tokio::test]
async fn bodiless_responses_have_no_body() {
    let sent = b"HEAD /long HTTP/1.1\r\nhost: x\r\n\r\nGET /nothing HTTP/1.1\r\nhost: x\r\n\r\nHEAD /stream HTTP/1.1\r\nhost: x\r\n\r\nGET /empty HTTP/1.1\r\nhost: x\r\n\r\n";
    let (output, ..) = exchange(&[sent]).await;
    assert_eq!(
        plain(&output),
        "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n\
         HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
    );
}

#[tokio::test]
async fn continue_is_sent_when_the_client_expects_it() {
    let (mut client, ..) = start(settings());
    let head = "POST /a HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n";
    client.write_all(head.as_bytes()).await.expect("sent");
    let mut interim = vec![0; wire::CONTINUE.len()];
    client.read_exact(&mut interim).await.expect("read");
    assert_eq!(interim, wire::CONTINUE);
    client.write_all(b"ok").await.expect("sent");
    client.shutdown().await.expect("half closed");
    let mut output = String::new();
    client.read_to_string(&mut output).await.expect("read");
    assert!(output.ends_with("\r\n\r\nok"), "{output}");
    // This one's body is not read.
    let (output, ..) = exchange(&[head.replace("/a", "/unread").as_bytes()]).await;
    assert!(output.starts_with("HTTP/1.1 200 OK") && output.contains("connection: close"), "{output}");
}

#[tokio::test]
async fn response_of_the_wrong_length_closes_the_connection() {
    for (path, body) in [("/short", "12345"), ("/over", "123")] {
        let sent = [post(path, ""), post("/a", "")].concat();
        let (output, received, ended) = exchange(&[sent.as_bytes()]).await;
        assert!(output.ends_with(&format!("\r\n\r\n{body}")), "{output}");
        assert!(received.len() == 1 && !ended, "{received:?}");
    }
}

#[tokio::test]
async fn unread_request_body_closes_the_connection() {
    let sent = ["POST /unread HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n".to_owned(), "x".repeat(50)]
        .concat();
    let (output, received, _) = exchange(&[sent.as_bytes()]).await;
    assert!(output.contains("connection: close") && received.len() == 1, "{output}");
}

#[tokio::test]
async fn ambiguous_content_length_is_rejected() {
    for headers in [
        "content-length: 1\r\ncontent-length: 2",
        "content-length: +1",
        "content-length: 1\r\ntransfer-encoding: chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
    ] {
        let (output, received, _) =
            exchange(&[format!("POST /a HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n").as_bytes()]).await;
        assert!(output.starts_with("HTTP/1.1 400 ") && received.is_empty(), "{headers}: {output}");
    }
}

#[tokio::test]
async fn oversized_request_line_and_headers_have_distinct_statuses() {
    let target = |length: usize| format!("GET {} HTTP/1.1\r\nhost: x\r\n\r\n", "/".repeat(length));
    let headers = |count: usize, length: usize| format!("x: {}\r\n", "y".repeat(length)).repeat(count);
    for (head, status) in [
        (target(65_534), 200),
        (target(65_535), 414),
        (target(70_000), 414),
        (format!("GET {}", "/".repeat(200_000)), 414),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(101, 1)), 431),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{}", headers(50, 4000)), 431),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", headers(99, 1000)), 200),
        ("GET / HTTP/2.0\r\n\r\n".to_owned(), 400),
    ] {
        let (output, ..) = exchange(&[head.as_bytes()]).await;
        assert!(output.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {output}");
    }
}

#[tokio::test(start_paused = true)]
async fn header_timeout_restarts_with_each_request_not_each_byte() {
    // Restarts with each request, not with each byte.
    let (mut client, service, served) = start(settings());
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(4)).await;
        client.write_all(post("/a", "1").as_bytes()).await.expect("sent");
    }
    let started = tokio::time::Instant::now();
    for byte in b"GET / HTTP/1.1" {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if client.write_all(&[*byte]).await.is_err() {
            break;
        }
    }
    served.await.expect("no panic").expect("no failure");
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    assert_eq!(service.0.lock().expect("no panic").len(), 3);
}

#[tokio::test]
async fn single_leading_empty_line_is_accepted() {
    for (lines, status) in [("\r\n", 200), ("\n", 200), ("\r\n\r\n", 400), ("\n\n\n", 400)] {
        let sent = format!("{lines}{}", post("/a", "1"));
        let (output, ..) = exchange(&[sent.as_bytes()]).await;
        assert!(output.starts_with(&format!("HTTP/1.1 {status} ")), "{lines:?}: {output}");
    }
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn exactly_one_valid_host_is_required() {
    for (hosts, status) in [
        ("", 400),
        ("host: a\r\nhost: a\r\n", 400),
        ("host: a b\r\n", 400),
        ("host: user@a\r\n", 400),
        ("host: a/b\r\n", 400),
        ("host: a, b\r\n", 400),
        ("host:\r\n", 200),
        ("host: a.example:8080\r\n", 200),
        ("host: [::1]:8080\r\n", 200),
    ] {
        for target in ["/", "http://b.example/"] {
            let (output, _, _) =
                exchange(&[format!("GET {target} HTTP/1.1\r\n{hosts}\r\n").as_bytes()]).await;
            assert!(output.starts_with(&format!("HTTP/1.1 {status} ")), "{hosts:?}: {output}");
        }
    }
    let (output, _, _) = exchange(&[b"GET / HTTP/1.0\r\n\r\n"]).await;
    assert!(output.starts_with("HTTP/1.1 200 "), "{output}");
}

/// RFC 9110, section 10.1.1.
#[tokio::test]
async fn unknown_expectation_is_rejected() {
    for expected in ["expect: a-gift\r\n", "expect: 100-continue\r\nexpect: 100-continue\r\n", "expect:\r\n"]
    {
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\n{expected}content-length: 2\r\n\r\nok");
        let (output, received, _) = exchange(&[head.as_bytes()]).await;
        assert!(output.starts_with("HTTP/1.1 417 ") && received.is_empty(), "{expected:?}: {output}");
    }
}

#[tokio::test]
async fn tls_client_hello_gets_a_plain_http_error() {
    let (output, received, _) = exchange(&[&[0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00]]).await;
    assert!(output.starts_with("HTTP/1.1 400 ") && output.contains("serves plain HTTP"), "{output}");
    assert!(received.is_empty());
}

#[tokio::test(start_paused = true)]
async fn maximum_header_timeout_means_no_timeout() {
    let (mut client, service, _served) = start(Settings { header_timeout: Duration::MAX, ..settings() });
    client.write_all(post("/a", "1").as_bytes()).await.expect("sent");
    client.read_exact(&mut [0; 12]).await.expect("an answer");
    for pause in [Duration::from_hours(24), Duration::from_secs(1)] {
        tokio::time::sleep(pause).await;
        client.write_all(post("/a", "1").as_bytes()).await.expect("sent");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(service.0.lock().expect("no panic").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn first_request_head_has_a_shorter_timeout() {
    let settings = Settings { header_timeout: MAX_FIRST_HEAD * 3, ..settings() };
    let started = tokio::time::Instant::now();
    let (_silent, _, served) = start(settings.clone());
    served.await.expect("no panic").expect("no failure");
    assert_eq!(started.elapsed().as_secs(), MAX_FIRST_HEAD.as_secs());
    let (mut client, service, _served) = start(settings);
    for _ in 0..2 {
        client.write_all(post("/a", "1").as_bytes()).await.expect("sent");
        tokio::time::sleep(MAX_FIRST_HEAD * 2).await;
    }
    assert_eq!(service.0.lock().expect("no panic").len(), 2);
}

/// Empty lines are no sign of activity: neither many at once nor one after the other postpone the timeout.
#[tokio::test(start_paused = true)]
async fn endless_empty_lines_do_not_extend_the_header_timeout() {
    let (mut client, service, served) = start(settings());
    let mut sent = 0;
    while sent < 1_000_000 && client.write_all(&b"\r\n".repeat(100)).await.is_ok() {
        sent += 200;
    }
    served.await.expect("no panic").expect("no failure");
    assert!(sent < 1_000_000, "the server goes on reading");
    assert!(service.0.lock().expect("no panic").is_empty());
}

#[tokio::test]
async fn draining_closes_a_connection_after_its_current_request() {
    let settings = settings();
    let draining = settings.draining.clone();
    let (mut idle, _, idles) = start(settings.clone());
    let (mut started, _, works) = start(settings);
    started.write_all(b"POST /a HTTP/1.1\r\nhost: x\r\nconte").await.expect("sent");
    tokio::task::yield_now().await;
    draining.cancel();
    idles.await.expect("no panic").expect("no failure");
    assert_eq!(idle.read(&mut [0]).await.expect("read"), 0);
    started.write_all(b"nt-length: 2\r\n\r\nok").await.expect("sent");
    let mut output = String::new();
    started.read_to_string(&mut output).await.expect("read");
    assert!(output.contains("connection: close\r\n") && output.ends_with("ok"), "{output}");
    works.await.expect("no panic").expect("no failure");
}

#[tokio::test]
async fn long_body_is_read_completely() {
    for length in [1, 16 * 1024 - 1, 16 * 1024 + 1, 300_000] {
        let body = "z".repeat(length);
        let (output, ..) = exchange(&[post("/a", &body).as_bytes()]).await;
        assert!(output.ends_with(&format!("\r\n\r\n{body}")), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn packet_boundaries_do_not_matter(
        parts in prop::collection::vec(prop_oneof![
            Just(post("/a", "123")),
            Just("GET /stream HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()),
            Just("POST /b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nt: u\r\n\r\n".to_owned()),
            Just("HEAD /long HTTP/1.1\r\nhost: x\r\n\r\n".to_owned()),
            "[ -~\r\n]{0,40}",
        ], 1..5),
        cuts in prop::collection::vec(0_usize..400, 0..12),
    ) {
        let sent = parts.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(sent.len())).collect();
        cuts.extend([0, sent.len()]);
        cuts.sort_unstable();
        let packets: Vec<&[u8]> = cuts.windows(2).map(|cut| &sent.as_bytes()[cut[0]..cut[1]]).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (whole, received, _) = runtime.block_on(exchange(&[sent.as_bytes()]));
        let (cut, received_cut, _) = runtime.block_on(exchange(&packets));
        prop_assert_eq!(plain(&whole), plain(&cut));
        prop_assert_eq!(received, received_cut);
    }
}
