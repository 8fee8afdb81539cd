//! HTTP/2: requests that share a connection, and how the connection ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::*;

/// Responds with the path; `/endless` and `/quiet` never end, and `/never` gets no response.
pub(super) async fn serve_http2(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    most_streams: u32,
) {
    let answer = hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
        let path = request.uri().path_and_query().map_or(String::new(), ToString::to_string);
        let body = match path.as_str() {
            "/never" => std::future::pending().await,
            "/quiet" => StreamBody::new(futures_util::stream::pending()).boxed(),
            "/endless" => {
                let pieces =
                    futures_util::stream::repeat_with(|| Ok(Frame::data(Bytes::from(vec![7; 16 * 1024]))));
                StreamBody::new(pieces).boxed()
            }
            _ => http_body_util::Full::new(Bytes::from(path)).boxed(),
        };
        Ok::<_, std::convert::Infallible>(http::Response::new(body))
    });
    let mut builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
    builder.max_concurrent_streams(most_streams);
    drop(builder.serve_connection(hyper_util::rt::TokioIo::new(stream), answer).await);
}

#[tokio::test]
async fn http_2_server_gets_one_connection_for_all_requests() {
    let (server, tls) = with_tls(&[b"h2", b"http/1.1"], 0).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    let requests: Vec<_> = (0..50)
        .map(|number| {
            let pool = pool.clone();
            tokio::spawn(async move { ask(&pool, &format!("/{number}?x")).await })
        })
        .collect();
    for (number, one) in requests.into_iter().enumerate() {
        assert_eq!(one.await.expect("no panic").expect("an answer"), format!("/{number}?x"));
    }
    assert_eq!(server.connections(), 1);
}

/// Starts a response, which is not read.
async fn start(pool: &Pool, path: &str) -> http::Response<Body> {
    let request = Request::builder().uri(path).body(Bytes::new()).expect("a request");
    pool.send(&request).await.expect("an answer")
}

#[tokio::test]
async fn stalled_http_2_reader_blocks_no_other_request() {
    let (server, tls) = with_tls(&[b"h2"], 0).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    let mut unread = Vec::new();
    for _ in 0..20 {
        unread.push(start(&pool, "/endless").await);
    }
    // Everything they may send without being read has been sent.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let response = tokio::time::timeout(SOON, ask(&pool, "/other")).await.expect("it is not held up");
    assert_eq!(response.expect("an answer"), "/other");
    assert_eq!(server.connections(), 1);
    // Those that read make progress.
    let body = unread[0].body_mut();
    let mut read = 0;
    while read < 4 * 1024 * 1024 {
        let frame = tokio::time::timeout(SOON, body.frame()).await.expect("not held up").expect("no end");
        read += frame.expect("a connection").into_data().expect("data").len();
    }
}

#[tokio::test]
async fn requests_beyond_the_stream_limit_use_another_connection() {
    let (server, tls) = with_streams(&[b"h2"], 0, 2).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    let mut open = Vec::new();
    for _ in 0..5 {
        open.push(tokio::time::timeout(SOON, start(&pool, "/quiet")).await.expect("a place"));
    }
    assert_eq!(server.connections(), 3);
    // The slots of finished streams are reused, whether or not they were read to the end.
    open.truncate(1);
    for _ in 0..3 {
        let response = tokio::time::timeout(SOON, ask(&pool, "/one")).await.expect("a place");
        assert_eq!(response.expect("an answer"), "/one");
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn burst_of_requests_respects_the_servers_stream_limit() {
    let (server, tls) = with_streams(&[b"h2"], 0, 4).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    let requests: Vec<_> = (0..16)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { tokio::time::timeout(SOON, start(&pool, "/quiet")).await })
        })
        .collect();
    let mut open = Vec::new();
    for one in requests {
        open.push(one.await.expect("no panic").expect("a place"));
    }
    assert_eq!(server.connections(), 4);
}

#[tokio::test]
async fn dropped_request_releases_its_slot() {
    let (server, tls) = with_streams(&[b"h2"], 0, 1).await;
    let pool = Pool::new(server.uri("https"), tls, settings());
    let request = Request::builder().uri("/never").body(Bytes::new()).expect("a request");
    for _ in 0..3 {
        let never = tokio::time::timeout(Duration::from_millis(200), pool.send(&request)).await;
        assert!(never.is_err());
    }
    assert_eq!(ask(&pool, "/").await.expect("an answer"), "/");
    assert_eq!(server.connections(), 1);
}

/// Answers the first request, goes away when the second has arrived, and names the last stream that it has processed.
async fn go_away(mut stream: TlsStream<TcpStream>, last: u8) {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(&settings).await.expect("a client");
    let mut received = Vec::new();
    // Status 200, with the end of the stream.
    let answer = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88].to_vec();
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, 0].to_vec();
    for (id, frame) in [(1, answer), (3, goaway)] {
        // The HEADERS frame of this stream.
        while !received.windows(6).any(|frame| frame[0] == 1 && frame[2..] == [0, 0, 0, id]) {
            assert!(stream.read_buf(&mut received).await.expect("a client") > 0, "no request");
        }
        stream.write_all(&frame).await.expect("a client");
    }
    stream.shutdown().await.expect("a client");
    while stream.read_buf(&mut received).await.unwrap_or(0) > 0 {}
}

#[tokio::test]
async fn request_unprocessed_before_goaway_is_resent() {
    for (last, expected) in [(1, 2), (3, 1)] {
        let connections = Arc::new(AtomicUsize::new(0));
        let (server, tls) = over_tls(&[b"h2"], move |stream| {
            let is_first = connections.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if is_first { go_away(stream, last).await } else { serve_http2(stream, 200).await } }
        })
        .await;
        let pool = Pool::new(server.uri("https"), tls, settings());
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "");
        match tokio::time::timeout(SOON, ask(&pool, "/")).await.expect("an end") {
            Ok(path) => assert_eq!((last, path.as_str()), (1, "/")),
            Err(error) => assert!(last == 3 && matches!(error, Error::Http2(_)), "{last}: {error:?}"),
        }
        assert_eq!(server.connections(), expected);
    }
}

/// When a runtime ends, so do its connections: requests waiting in other runtimes fail, and the next request opens a new
/// connection.
#[test]
fn http_2_connection_ends_with_the_runtime_that_drives_it() {
    let serving = tokio::runtime::Runtime::new().expect("a runtime");
    let (server, tls) = serving.block_on(with_tls(&[b"h2"], 0));
    let pool = Pool::new(server.uri("https"), tls, settings());
    let driving = tokio::runtime::Runtime::new().expect("a runtime");
    let mut started = driving.block_on(start(&pool, "/quiet"));
    drop(driving);
    let other = tokio::runtime::Runtime::new().expect("a runtime");
    let ended = other.block_on(async { tokio::time::timeout(SOON, started.body_mut().frame()).await });
    assert!(matches!(ended.expect("it is notified"), Some(Err(_))));
    assert_eq!(other.block_on(ask(&pool, "/one")).expect("an answer"), "/one");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn http_2_connection_idle_for_too_long_is_closed() {
    let (server, tls) = with_tls(&[b"h2"], 0).await;
    let brief = Settings { idle_timeout: Duration::from_millis(200), ..settings() };
    let pool = Pool::new(server.uri("https"), tls.clone(), brief);
    for (pause, connections) in [(0, 1), (50, 1), (400, 2)] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert_eq!(ask(&pool, "/").await.expect("an answer"), "/");
        assert_eq!(server.connections(), connections);
    }
    let none = Pool::new(server.uri("https"), tls, Settings { max_idle: 0, ..settings() });
    for connections in 3..5 {
        assert_eq!(ask(&none, "/").await.expect("an answer"), "/");
        assert_eq!(server.connections(), connections);
    }
}
