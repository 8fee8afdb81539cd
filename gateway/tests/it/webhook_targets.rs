//! Webhook targets: not in the gateway's own network, however the address is spelled, and not where a
//! receiver redirects to.

use std::time::Duration;

use gatewright_gateway::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{start, start_with};
use crate::videos::finished;

#[tokio::test]
async fn internal_webhook_addresses_are_rejected_in_any_spelling() {
    let server = start().await;
    let inside = [
        // Decimal, octal, hexadecimal and short forms of 127.0.0.1, and names with a trailing dot.
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "127.0.0.1.",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        // Fullwidth and circled digits, which browsers accept as digits.
        "１２７.０.０.１",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        // Private, link-local, shared, metadata, unspecified, broadcast, multicast, documentation, benchmarking.
        "10.0.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "2852039166",
        "100.64.0.1",
        "100.100.100.200",
        "0.0.0.0",
        "0",
        "255.255.255.255",
        "224.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.0.0.192",
        "240.0.0.1",
        // The same in IPv6: loopback, unspecified, mapped, compatible, translated, tunnelled, unique local, link-local.
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:169.254.169.254]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b:1::a00:1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:7f00:1::]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[ff02::1]",
        "[2001:db8::1]",
        "[100::1]",
    ];
    let others = [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "//example.com/",
        "https:/\\127.0.0.1/",
        "https://",
        "https:///path",
        "example.com",
        "https://a:b@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1#@example.com/",
        "https://127.0.0.1\\@example.com/",
        "https://[::1%25eth0]/",
        "https://exa\tmple.com:0x50/",
        "javascript:alert(1)",
        "",
    ];
    let urls =
        inside.iter().flat_map(|host| [format!("https://{host}/"), format!("https://{host}:8443/x?y#z")]);
    for url in urls.chain(others.map(str::to_owned)) {
        let body = json!({"model": "video_model_3", "prompt": "x", "webhook_url": url});
        let (status, answer) = server.refused("/v1/videos/generations", &body).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!("webhook_url")), "{url}: {answer}");
    }
}

#[tokio::test]
async fn webhook_redirect_is_not_followed_and_is_retried() {
    const ATTEMPTS: usize = 5;
    let inside = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let target = inside.local_addr().expect("an address");
    let config = Config {
        allow_private_webhooks: true,
        webhook_backoff: Duration::from_millis(1),
        ..Config::default()
    };
    let server = start_with(config).await;
    for status in ["301 X", "302 X", "303 X", "307 X", "308 X"] {
        let receiver = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/hook", receiver.local_addr().expect("an address"));
        let body = json!({"model": "video_model_3", "prompt": "[fail]", "webhook_url": url});
        let task = server.ask("/v1/videos/generations", &body).await;
        let receiving = async {
            for _ in 0..ATTEMPTS {
                let (mut socket, _) = receiver.accept().await.expect("a connection");
                let mut request = [0; 8192];
                assert!(socket.read(&mut request).await.expect("a request") > 0);
                let answer = format!(
                    "HTTP/1.1 {status}\r\nlocation: http://{target}/inside\r\ncontent-length: 0\r\n\r\n"
                );
                socket.write_all(answer.as_bytes()).await.expect("answered");
            }
        };
        tokio::select! {
            // A redirect is not an acknowledgement: the delivery is retried.
            all = tokio::time::timeout(Duration::from_mins(1), receiving) => all.expect("all attempts"),
            _ = inside.accept() => panic!("{status} was followed"),
        }
        finished(&server, &task["id"]).await;
    }
    // Connections made before the end of the last attempt would be waiting in the backlog.
    assert!(tokio::time::timeout(Duration::from_millis(300), inside.accept()).await.is_err(), "followed");
}
