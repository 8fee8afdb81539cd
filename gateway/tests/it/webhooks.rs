//! Section 6: completion notifications.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use gatewright_gateway::Config;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{start, start_with};
use crate::videos::finished;

pub(crate) type Sent = (HeaderMap, Bytes);

/// A receiver that rejects the first `refusals` attempts. Returns its address and what it receives.
pub(crate) async fn receiver(refusals: usize) -> (String, mpsc::UnboundedReceiver<Sent>) {
    let (sender, received) = mpsc::unbounded_channel();
    let left = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(refusals));
    let take = |State((sender, left)): State<(
        mpsc::UnboundedSender<Sent>,
        std::sync::Arc<std::sync::atomic::AtomicUsize>,
    )>,
                headers: HeaderMap,
                body: Bytes| async move {
        sender.send((headers, body)).expect("the test listens");
        let one_less = |left: usize| left.checked_sub(1);
        let order = std::sync::atomic::Ordering::SeqCst;
        if left.fetch_update(order, order, one_less).is_ok() {
            StatusCode::BAD_GATEWAY
        } else {
            StatusCode::NO_CONTENT
        }
    };
    let app = Router::new().fallback(take).with_state((sender, left));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/hook?x=1", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

#[tokio::test]
async fn finished_task_is_posted_signed_and_retried() {
    let config = Config {
        allow_private_webhooks: true,
        webhook_backoff: Duration::from_millis(10),
        ..Config::default()
    };
    let server = start_with(config).await;
    let verifier = standardwebhooks::Webhook::new(&server.webhook_secret).expect("a secret");
    for (prompt, status) in [("a comet", "completed"), ("[fail]", "failed")] {
        let (url, mut received) = receiver(2).await;
        let body = json!({ "model": "video_model_3", "prompt": prompt, "duration": 3, "resolution": "720p", "webhook_url": url });
        let task = server.ask("/v1/videos/generations", &body).await;
        let mut ids = Vec::new();
        for _ in 0..3 {
            let (headers, body) = tokio::time::timeout(Duration::from_secs(30), received.recv())
                .await
                .expect("in time")
                .expect("a post");
            verifier.verify(&body, &headers).expect("a Standard Webhooks signature");
            let record: Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!((&record["id"], &record["status"]), (&task["id"], &json!(status)));
            ids.push(headers["webhook-id"].clone());
        }
        // The same notification each time, and none after the acknowledgement.
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert!(tokio::time::timeout(Duration::from_millis(200), received.recv()).await.is_err());
        assert_eq!(finished(&server, &task["id"]).await["status"], status);
    }
}

#[tokio::test]
async fn internal_webhook_addresses_are_rejected_at_submission() {
    let server = start().await;
    for url in [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://0x7f000001/",
        "https://[::ffff:169.254.169.254]/",
        "https://localhost/",
    ] {
        let body = json!({ "model": "video_model_3", "prompt": "x", "webhook_url": url });
        let (status, answer) = server.refused("/v1/videos/generations", &body).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!("webhook_url")), "{url}: {answer}");
    }
}

#[tokio::test]
async fn unresponsive_receiver_holds_a_bounded_number_of_connections() {
    const TASKS: usize = 60;
    const MAX_AT_ONCE: usize = 16;
    let config = Config { allow_private_webhooks: true, ..Config::default() };
    let server = start_with(config).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    for _ in 0..TASKS {
        let body = json!({ "model": "video_model_3", "prompt": "[fail]", "webhook_url": url });
        server.ask("/v1/videos/generations", &body).await;
    }
    // At first, no attempt is answered: the number of connections is limited.
    let quiet = Duration::from_secs(1);
    let mut held = Vec::new();
    while let Ok(accepted) = tokio::time::timeout(quiet, listener.accept()).await {
        held.push(accepted.expect("a connection").0);
    }
    assert_eq!(held.len(), MAX_AT_ONCE);
    // Each answer admits another connection until all are delivered.
    let mut delivered = 0;
    while delivered < TASKS {
        let mut socket = match held.pop() {
            Some(socket) => socket,
            None => listener.accept().await.expect("a connection").0,
        };
        let mut request = [0; 4096];
        assert!(socket.read(&mut request).await.expect("a request") > 0);
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.expect("answered");
        delivered += 1;
    }
    assert!(tokio::time::timeout(quiet, listener.accept()).await.is_err(), "each is delivered once");
}
