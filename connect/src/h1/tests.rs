//! One exchange over an in-memory connection whose other end is scripted.

use std::future::poll_fn;
use std::sync::LazyLock;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri, header};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::{H1Connection, Reading};
use crate::error::Error;
use crate::proxy::Proxy;
use crate::request::Destination;

fn server() -> Destination<'static> {
    static SERVER: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("http://server.example:8080"));
    Destination { server: &SERVER, forwarder: None }
}

fn get() -> Request<Bytes> {
    Request::new(Bytes::new())
}

/// The response of a server that sends `packets` and closes: status, body, and whether the connection can be reused.
async fn answer(request: Request<Bytes>, packets: &[&[u8]]) -> Result<(StatusCode, Vec<u8>, bool), Error> {
    let (ours, mut theirs) = duplex(1 << 20);
    let packets: Vec<Vec<u8>> = packets.iter().map(|packet| packet.to_vec()).collect();
    let serving = tokio::spawn(async move {
        for packet in packets {
            theirs.write_all(&packet).await.expect("there is room");
            tokio::task::yield_now().await;
        }
    });
    let (head, mut reading) = H1Connection::new(ours).send((&request).into(), server()).await?;
    let body = body(&mut reading).await?;
    serving.await.expect("the server has sent all");
    Ok((head.status, body, reading.into_connection().is_some()))
}

async fn body(reading: &mut Reading<DuplexStream>) -> Result<Vec<u8>, Error> {
    let mut body = reading.arrived()?.to_vec();
    while let Some(data) = poll_fn(|context| reading.poll_data(context)).await? {
        body.extend_from_slice(&data);
    }
    Ok(body)
}

#[test]
fn forwarded_request_has_the_full_url_and_proxy_credentials() {
    let proxy = Proxy::at("http://amy:canary@proxy.example:3128").expect("a proxy");
    let destination = Destination { forwarder: Some(&proxy), ..server() };
    let request = Request::builder().uri("/v1/models?a=b").body(Bytes::new()).expect("a request");
    let head = super::head::write((&request).into(), destination);
    let expected = "GET http://server.example:8080/v1/models?a=b HTTP/1.1\r\nhost: server.example:8080\r\n\
                    proxy-authorization: Basic YW15OmNhbmFyeQ==\r\n\r\n";
    assert_eq!(String::from_utf8_lossy(&head), expected);
}

#[tokio::test]
async fn request_is_written_with_host_headers_and_length() {
    let (ours, mut theirs) = duplex(1 << 16);
    let request = Request::builder()
        .method(Method::POST)
        .uri("/v1/chat?a=b")
        .header("x-one", "1")
        .header(header::CONNECTION, "close")
        .header(header::TRANSFER_ENCODING, "chunked")
        .header(header::CONTENT_LENGTH, "7")
        .body(Bytes::from_static(b"{}"))
        .expect("a request");
    let sending =
        tokio::spawn(
            async move { H1Connection::new(ours).send((&request).into(), server()).await.map(|_| ()) },
        );
    let mut received = vec![0; 4096];
    let expected =
        "POST /v1/chat?a=b HTTP/1.1\r\nhost: server.example:8080\r\nx-one: 1\r\ncontent-length: 2\r\n\r\n{}";
    let mut length = 0;
    while length < expected.len() {
        length += theirs.read(&mut received[length..]).await.expect("a request");
    }
    assert_eq!(std::str::from_utf8(&received[..length]), Ok(expected));
    theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("there is room");
    sending.await.expect("no panic").expect("an answer");
}

#[tokio::test]
async fn body_ends_by_length_last_chunk_or_connection_close() {
    for (sent, expected, is_reusable) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\ncontent-length: 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: Close\r\n\r\nhello", "hello", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\nconnection: keep-alive\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "hello", false),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n002;a=\"b\"\r\nhe\r\n3 \r\nllo\r\n0\r\nx: y\r\nz:\r\n\r\n",
            "hello",
            true,
        ),
        // The length next to chunks is ignored, and the connection is no longer trusted.
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "hello",
            false,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", true),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", "", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhello", "he", false),
        (
            "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            "hi",
            true,
        ),
        ("HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", "hi", true),
    ] {
        let sent = sent.as_bytes();
        let bytes: Vec<&[u8]> = sent.chunks(1).collect();
        let halves = [&sent[..sent.len() / 2], &sent[sent.len() / 2..]];
        for packets in [&[sent][..], &bytes, &halves] {
            let (_, body, reusable) = answer(get(), packets).await.expect("an answer");
            let sent_text = String::from_utf8_lossy(sent);
            assert_eq!(String::from_utf8_lossy(&body), expected, "{sent_text}");
            // Extra data that arrives in a separate packet is noticed when the connection is reused.
            assert!(reusable == is_reusable || (packets.len() > 1 && expected == "he"), "{sent_text}");
        }
    }
}

#[tokio::test]
async fn data_after_a_response_makes_the_connection_unusable() {
    let head: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
    for packets in [[head, b"hello"], [&head[..9], &[&head[9..], b"hello"].concat()]] {
        let (_, body, is_reusable) = answer(get(), &packets).await.expect("an answer");
        assert_eq!((body.as_slice(), is_reusable), (&b"he"[..], false));
    }
}

#[tokio::test]
async fn truncated_response_is_never_taken_as_complete() {
    for sent in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y\r\n\r\n",
    ] {
        for end in 0..sent.len() {
            let failed = answer(get(), &[&sent.as_bytes()[..end]]).await.expect_err("incomplete");
            match failed {
                Error::Closed => assert_eq!(end, 0),
                Error::Incomplete => assert_ne!(end, 0),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn invalid_responses_are_rejected() {
    let header = |header: &str| format!("HTTP/1.1 200 OK\r\n{header}\r\n\r\n");
    let chunk = |chunk: &str| header("transfer-encoding: chunked") + chunk;
    for sent in [
        "hello\r\n\r\n".to_owned(),
        "\r\n\r\n".to_owned(),
        "HTTP/2 200 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 99 No\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(),
        header("content-length: -1"),
        header("content-length: +1"),
        header("content-length:"),
        header("content-length: 1, 2"),
        header("content-length: 99999999999999999999"),
        header("transfer-encoding: gzip, chunked"),
        header("transfer-encoding: chunked, chunked"),
        header("transfer-encoding:"),
        header("a b: c"),
        header("a: b\r\n folded: c"),
        chunk("\r\n"),
        chunk("g\r\n"),
        chunk("-1\r\n"),
        chunk("0x5\r\nhello\r\n"),
        chunk("1111111111111111\r\n"),
        chunk("5\nhello\r\n"),
        chunk("5 zz\r\nhello\r\n"),
        chunk("5;a\nb\r\nhello\r\n"),
        chunk("5\r\nhelloo\r\n"),
        chunk("0\r\na: b\n\r\n"),
    ] {
        let failed = answer(get(), &[sent.as_bytes()]).await;
        assert!(matches!(failed, Err(Error::Invalid(_))), "{sent:?}: {failed:?}");
    }
}

#[tokio::test]
async fn heads_chunk_extensions_and_trailers_are_bounded() {
    let endless = "a".repeat(200 * 1024);
    let many = "x-a: 1\r\n".repeat(200);
    let hints = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000);
    for sent in [
        format!("HTTP/1.1 200 {endless}"),
        format!("HTTP/1.1 200 OK\r\na: {endless}\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        hints,
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;{endless}\r\nhello\r\n0\r\n\r\n"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: {endless}\r\n\r\n"),
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
            "1;aaaaaaaa\r\nx\r\n".repeat(4000)
        ),
    ] {
        let failed = answer(get(), &[sent.as_bytes()]).await;
        assert!(matches!(failed, Err(Error::Invalid(_))), "{failed:?}");
    }
}

#[tokio::test]
async fn response_to_head_has_no_body() {
    let request = Request::builder().method(Method::HEAD).body(Bytes::new()).expect("a request");
    let sent = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    assert_eq!(answer(request, &[sent]).await.expect("an answer"), (StatusCode::OK, Vec::new(), true));
}

#[tokio::test]
async fn server_may_reject_a_request_before_reading_it_completely() {
    let (ours, mut theirs) = duplex(1024);
    let request =
        Request::builder().method(Method::POST).body(Bytes::from(vec![b'a'; 1 << 20])).expect("a request");
    let serving = tokio::spawn(async move {
        let mut some = [0; 1024];
        theirs.read_exact(&mut some).await.expect("the beginning");
        theirs
            .write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno")
            .await
            .expect("there is room");
    });
    let (head, mut reading) =
        H1Connection::new(ours).send((&request).into(), server()).await.expect("an answer");
    assert_eq!(
        (head.status, body(&mut reading).await.expect("a body")),
        (StatusCode::PAYLOAD_TOO_LARGE, b"no".to_vec())
    );
    assert!(reading.into_connection().is_none(), "half a request is on the connection");
    serving.await.expect("no panic");
}

#[tokio::test]
async fn request_body_is_sent_while_the_response_is_read() {
    let (ours, mut theirs) = duplex(1024);
    let length = 1 << 18;
    let request =
        Request::builder().method(Method::POST).body(Bytes::from(vec![b'a'; length])).expect("a request");
    let serving = tokio::spawn(async move {
        theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh").await.expect("there is room");
        let mut received = Vec::new();
        while !received.ends_with(b"a") || received.len() < length {
            let mut some = [0; 4096];
            let read = theirs.read(&mut some).await.expect("more");
            assert_ne!(read, 0, "the request breaks off");
            received.extend_from_slice(&some[..read]);
            let head = received.windows(4).position(|end| end == b"\r\n\r\n");
            if head.is_some_and(|head| received.len() == head + 4 + length) {
                break;
            }
        }
        theirs.write_all(b"i").await.expect("there is room");
        theirs
    });
    let (_, mut reading) =
        H1Connection::new(ours).send((&request).into(), server()).await.expect("an answer");
    assert_eq!(body(&mut reading).await.expect("a body"), b"hi");
    assert!(reading.into_connection().is_some());
    drop(serving.await.expect("no panic"));
}

proptest! {
    /// Chunks and packets are split anywhere, independently of each other.
    #[test]
    fn packet_boundaries_do_not_change_a_chunked_body(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..20),
        cuts in prop::collection::vec(0..2000_usize, 0..20),
    ) {
        let mut sent = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for chunk in &chunks {
            sent.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
            sent.extend_from_slice(chunk);
            sent.extend_from_slice(b"\r\n");
        }
        sent.extend_from_slice(b"0\r\n\r\n");
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(sent.len())).collect();
        cuts.sort_unstable();
        let mut packets = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([sent.len()]) {
            packets.push(&sent[from..cut]);
            from = cut;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let (_, body, is_reusable) = runtime.block_on(answer(get(), &packets)).expect("an answer");
        prop_assert_eq!(body, chunks.concat());
        prop_assert!(is_reusable);
    }
}

#[tokio::test]
async fn unsent_request_is_distinguished_from_one_possibly_read() {
    for reads in [false, true] {
        let (ours, mut theirs) = duplex(1 << 16);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        theirs.write_all(answer).await.expect("there is room");
        let first = H1Connection::new(ours).send((&get()).into(), server()).await;
        let (_, mut reading) = first.expect("an answer");
        reading.arrived().expect("no body");
        let connection = reading.into_connection().expect("it can be used again");
        assert!(theirs.read(&mut [0; 4096]).await.expect("the first request") > 0);
        let closing = tokio::spawn(async move {
            if reads {
                assert!(theirs.read(&mut [0; 4096]).await.expect("the second request") > 0);
            }
        });
        if !reads {
            closing.await.expect("closed");
        }
        let lost = connection.send((&get()).into(), server()).await.expect_err("no answer");
        assert!(matches!((reads, &lost), (false, Error::Unsent) | (true, Error::Stale)), "{reads}: {lost:?}");
    }
}
