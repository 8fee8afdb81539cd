//! Calls through a proxy: set by option, set by the environment, or none.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gatewright::{Client, ErrorKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::server::{Script, Server};
use crate::{COMPLETION, chat_call, child, tls};

/// The credentials that `amy` with the password `canary` sends to a proxy.
const WANTED: &str = "Basic YW15OmNhbmFyeQ==";
/// The version in the first byte from a SOCKS 5 client.
const SOCKS5: u8 = 5;
/// A host that only these proxies can reach.
const ELSEWHERE: &str = "http://gateway.test:81";

/// A forwarding proxy on loopback that sends all hosts to one upstream, so that names need not resolve.
struct ProxyServer {
    address: SocketAddr,
    /// The heads of the requests that it received.
    heads: Arc<Mutex<Vec<String>>>,
}

impl ProxyServer {
    async fn start(upstream: SocketAddr, wanted_authorization: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(forward(socket, upstream, wanted_authorization, Arc::clone(&recorded)));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

async fn forward(
    mut socket: TcpStream,
    upstream: SocketAddr,
    wanted_authorization: Option<&'static str>,
    heads: Arc<Mutex<Vec<String>>>,
) {
    let mut received = Vec::new();
    let mut first = [0];
    if socket.peek(&mut first).await.is_ok() && first == [SOCKS5] {
        return tunnel_by_socks(socket, upstream, &heads).await;
    }
    let end = loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    heads.lock().unwrap().push(head.clone());
    let authorization = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
    });
    if wanted_authorization.is_some() && authorization != wanted_authorization {
        let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        socket.write_all(refusal.as_bytes()).await.unwrap();
        return;
    }
    let mut onward = TcpStream::connect(upstream).await.unwrap();
    if head.starts_with("CONNECT ") {
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    } else {
        // The upstream sees an ordinary request.
        let path = head.split(' ').nth(1).unwrap().split('/').skip(3).collect::<Vec<_>>().join("/");
        let rest = head.split_once(" HTTP/1.1\r\n").unwrap().1;
        let method = head.split(' ').next().unwrap();
        onward.write_all(format!("{method} /{path} HTTP/1.1\r\n{rest}").as_bytes()).await.unwrap();
        onward.write_all(&received[end..]).await.unwrap();
    }
    // Either side may end the connection.
    let _ = copy_bidirectional(&mut socket, &mut onward).await;
}

/// The same with SOCKS 5 (RFC 1928), with a password if the client has one (RFC 1929).
async fn tunnel_by_socks(mut socket: TcpStream, upstream: SocketAddr, heads: &Mutex<Vec<String>>) {
    let mut greeting = [0; 2];
    socket.read_exact(&mut greeting).await.unwrap();
    let mut methods = vec![0; greeting[1].into()];
    socket.read_exact(&mut methods).await.unwrap();
    let method = *methods.iter().max().unwrap();
    socket.write_all(&[SOCKS5, method]).await.unwrap();
    let mut user = String::new();
    if method == 2 {
        assert_eq!(socket.read_u8().await.unwrap(), 1, "the version of the authentication");
        user = format!("{}:{}@", text(&mut socket).await, text(&mut socket).await);
        socket.write_all(&[1, 0]).await.unwrap();
    }
    let mut request = [0; 4];
    socket.read_exact(&mut request).await.unwrap();
    assert_eq!(request[..3], [SOCKS5, 1, 0], "connect");
    let host = match request[3] {
        1 => std::net::Ipv4Addr::from(socket.read_u32().await.unwrap()).to_string(),
        3 => text(&mut socket).await,
        kind => panic!("an address of kind {kind}"),
    };
    let port = socket.read_u16().await.unwrap();
    heads.lock().unwrap().push(format!("{user}{host}:{port}"));
    socket.write_all(&[SOCKS5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut onward = TcpStream::connect(upstream).await.unwrap();
    let _ = copy_bidirectional(&mut socket, &mut onward).await;
}

/// A text after its length in one byte.
async fn text(socket: &mut TcpStream) -> String {
    let mut text = vec![0; socket.read_u8().await.unwrap().into()];
    socket.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

fn builder(base: &str) -> gatewright::ClientBuilder {
    Client::builder().base_url(base).api_key("sk-canary").max_retries(0)
}

#[tokio::test]
async fn plain_http_sends_the_full_url_to_the_proxy() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let client =
        builder("http://gateway.test:81").proxy(format!("http://{}", proxy.address)).build().unwrap();
    client.call(chat_call()).await.unwrap();
    let [head] = proxy.heads().try_into().unwrap();
    assert!(head.starts_with("POST http://gateway.test:81/v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-canary"));
}

#[tokio::test]
async fn files_are_downloaded_through_the_proxy() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let client = builder(ELSEWHERE).proxy(format!("http://{}", proxy.address)).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let url = "http://files.test/a?sig=x";
    client.save(url, folder.path().join("a"), gatewright::SaveOptions::default()).await.unwrap();
    let [head] = proxy.heads().try_into().unwrap();
    assert!(head.starts_with("GET http://files.test/a?sig=x HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("canary"), "the key is for the gateway alone: {head}");
}

#[tokio::test]
async fn https_is_tunneled_so_the_proxy_sees_only_the_host() {
    let authority = tls::Authority::new("ours");
    let server = tls::Server::start(&authority, "gateway.test", None).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let client = builder("https://gateway.test")
        .proxy(format!("http://{}", proxy.address))
        .ca_bundle(authority.bundle())
        .build()
        .unwrap();
    client.call(chat_call()).await.unwrap();
    let [head] = proxy.heads().try_into().unwrap();
    assert!(head.starts_with("CONNECT gateway.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(!head.contains("canary"), "the key is for the gateway alone: {head}");
}

#[tokio::test]
async fn socks_proxy_gets_the_host_name() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let client = builder(ELSEWHERE).proxy(format!("socks5h://{}", proxy.address)).build().unwrap();
    client.call(chat_call()).await.unwrap();
    assert_eq!(proxy.heads(), ["gateway.test:81"]);
}

#[tokio::test]
async fn socks_proxy_without_name_resolution_gets_an_address() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let through = format!("socks5://amy:canary@{}", proxy.address);
    let client = builder("http://127.0.0.1:81").proxy(through).build().unwrap();
    client.call(chat_call()).await.unwrap();
    assert_eq!(proxy.heads(), ["amy:canary@127.0.0.1:81"]);
    assert_eq!(server.requests()[0].header("proxy-authorization"), None);
}

#[tokio::test]
async fn proxy_reached_over_tls_forwards_plain_requests_and_tunnels_tls() {
    let authority = tls::Authority::new("ours");
    let far = tls::Server::start(&authority, "gateway.test", None).await;
    let plain = Server::start([Script::json(COMPLETION)]).await;
    for (base, upstream, expected) in [
        (ELSEWHERE, plain.address, "POST http://gateway.test:81/v1/chat/completions HTTP/1.1\r\n"),
        ("https://gateway.test", far.address, "CONNECT gateway.test:443 HTTP/1.1\r\n"),
    ] {
        let proxy = ProxyServer::start(upstream, Some(WANTED)).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (acceptor, address) = (authority.acceptor("localhost"), proxy.address);
        tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut socket = acceptor.accept(socket).await.unwrap();
            let mut onward = TcpStream::connect(address).await.unwrap();
            let _ = copy_bidirectional(&mut socket, &mut onward).await;
        });
        let client = builder(base).proxy(format!("https://amy:canary@localhost:{port}"));
        let client = client.ca_bundle(authority.bundle()).build().unwrap();
        client.call(chat_call()).await.unwrap();
        let [head] = proxy.heads().try_into().unwrap();
        assert!(head.starts_with(expected), "{head}");
    }
}

#[tokio::test]
async fn proxy_credentials_are_sent_to_the_proxy_and_never_shown() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let proxy = ProxyServer::start(server.address, Some(WANTED)).await;
    let builder = builder("http://gateway.test").proxy(format!("http://amy:canary@{}", proxy.address));
    let client = builder.clone().build().unwrap();
    assert!(!format!("{builder:?} {client:?}").contains("canary"), "{builder:?} {client:?}");
    client.call(chat_call()).await.unwrap();
    assert_eq!(server.requests()[0].header("proxy-authorization"), Some(WANTED));

    // The same through a tunnel, whose far end closes the connection.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = listener.local_addr().unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let proxy = ProxyServer::start(far, Some(WANTED)).await;
    let error = Client::builder()
        .base_url("https://gateway.test")
        .api_key("k")
        .proxy(format!("http://amy:canary@{}", proxy.address))
        .max_retries(0)
        .build()
        .unwrap()
        .call(chat_call())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(proxy.heads()[0].contains(WANTED));
    let address = proxy.address.to_string();
    assert!(error.message().contains("through the proxy") && error.message().contains(&address), "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
}

#[tokio::test]
async fn proxy_that_requires_authentication_is_reported() {
    let server = Server::start([]).await;
    let proxy = ProxyServer::start(server.address, Some("Basic x")).await;
    let through = format!("http://{}", proxy.address);
    let plain =
        builder("http://gateway.test").proxy(&through).build().unwrap().call(chat_call()).await.unwrap_err();
    assert_eq!((plain.kind(), plain.status()), (ErrorKind::Status, Some(407)));
    let tunnel =
        builder("https://gateway.test").proxy(&through).build().unwrap().call(chat_call()).await.unwrap_err();
    assert_eq!((tunnel.kind(), tunnel.status()), (ErrorKind::Connection, None));
    assert!(tunnel.message().contains("proxy authorization required"), "{tunnel}");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn unreachable_proxy_is_named() {
    // Bound, so that no other program takes the port, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let client =
        builder("http://gateway.test").proxy(format!("http://amy:canary@{address}")).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.message().contains(&format!("through the proxy http://redacted@{address}")), "{error}");
}

#[test]
fn invalid_proxy_is_rejected_when_the_client_is_built() {
    for proxy in ["", "proxy:3128", "ftp://proxy", "http://"] {
        let error = builder("http://gateway.test").proxy(proxy).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{proxy}");
    }
}

/// Makes the call described by [`child::task`], `proxy option> <base URL`, and prints its status or the kind of its
/// error.
async fn call_for_task(task: &str) {
    let (option, base) = task.split_once(' ').unwrap();
    let builder = builder(base);
    let builder = if option == "direct" { builder.no_proxy() } else { builder };
    match builder.build().unwrap().call(chat_call()).await {
        Ok(response) => child::report(&response.status.to_string()),
        Err(error) => child::report(error.kind().name()),
    }
}

#[tokio::test]
async fn environment_sets_the_proxy_and_its_exceptions() {
    if let Some(task) = child::task() {
        return call_for_task(&task).await;
    }
    let server = Server::start((0..8).map(|_| Script::json(COMPLETION))).await;
    let proxy = ProxyServer::start(server.address, None).await;
    let through = format!("http://{}", proxy.address);
    let here = server.url();
    let test = "proxies::environment_sets_the_proxy_and_its_exceptions";
    let through = through.as_str();
    for (option, base, variables, expected, proxied) in [
        ("-", ELSEWHERE, vec![("HTTP_PROXY", through)], "200", true),
        ("-", ELSEWHERE, vec![("http_proxy", through)], "200", true),
        ("-", ELSEWHERE, vec![("ALL_PROXY", through)], "200", true),
        (
            "-",
            ELSEWHERE,
            vec![("HTTP_PROXY", through), ("NO_PROXY", "other.test,.test")],
            "connection",
            false,
        ),
        ("-", ELSEWHERE, vec![("HTTPS_PROXY", through)], "connection", false),
        ("direct", ELSEWHERE, vec![("HTTP_PROXY", through)], "connection", false),
        // This machine is reached without a proxy, and these proxies cannot reach it.
        ("-", here.as_str(), vec![("HTTP_PROXY", through), ("ALL_PROXY", through)], "200", false),
    ] {
        let before = proxy.heads().len();
        let output = child::run(test, &format!("{option} {base}"), &variables).await;
        assert!(output.status.success(), "{variables:?} {output:?}");
        assert_eq!(child::reports(&output), [expected], "{option} {base} {variables:?} {output:?}");
        assert_eq!(proxy.heads().len() > before, proxied, "{option} {base} {variables:?}");
    }
}
