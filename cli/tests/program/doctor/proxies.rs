//! `gatewright doctor` with a proxy in front of the gateway.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::Value;

use super::{doctor, examined, finding, serving_over_tls};
use crate::gateway::Serving;

/// What `amy` with the password `canary` sends.
const CREDENTIALS: &str = "proxy-authorization: Basic YW15OmNhbmFyeQ==";
/// The version in the first byte of a SOCKS 5 client.
const SOCKS5: u8 = 5;

/// A proxy at a port of this machine that forwards every host to one server.
struct Proxy {
    address: SocketAddr,
    /// The first line of each request, or the host and port requested over SOCKS.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(server: &str, wants_password: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (server, requests) = (server.to_owned(), Arc::<Mutex<Vec<String>>>::default());
        let recorded = Arc::clone(&requests);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (server, recorded) = (server.clone(), Arc::clone(&recorded));
                // A client that disconnects ends its thread.
                thread::spawn(move || serve(client, &server, wants_password, &recorded));
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no thread has failed").clone()
    }
}

fn serve(
    mut client: TcpStream,
    server: &str,
    wants_password: bool,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let keep = |what: String| requests.lock().expect("no thread has failed").push(what);
    let mut first = [0];
    client.peek(&mut first)?;
    let mut upstream = TcpStream::connect(server)?;
    if first == [SOCKS5] {
        keep(socks(&mut client)?);
        return relay(client, upstream);
    }
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        received.extend(byte);
    }
    let head = String::from_utf8_lossy(&received).into_owned();
    let (line, rest) = head.split_once("\r\n").expect("a line");
    keep(line.to_owned());
    if wants_password && !rest.to_lowercase().contains(&CREDENTIALS.to_lowercase()) {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n");
    }
    if line.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    } else {
        let path = line.split(' ').nth(1).and_then(|url| url.splitn(4, '/').nth(3)).expect("a complete URL");
        upstream.write_all(format!("GET /{path} HTTP/1.1\r\n{rest}").as_bytes())?;
    }
    relay(client, upstream)
}

/// The server side of SOCKS 5 without a password (RFC 1928), for hosts given by name.
fn socks(client: &mut TcpStream) -> std::io::Result<String> {
    let mut greeting = [0; 2];
    client.read_exact(&mut greeting)?;
    client.read_exact(&mut vec![0; greeting[1].into()])?;
    client.write_all(&[SOCKS5, 0])?;
    let mut request = [0; 5];
    client.read_exact(&mut request)?;
    assert_eq!(request[..4], [SOCKS5, 1, 0, 3], "connect, to a name");
    let mut name = vec![0; request[4].into()];
    client.read_exact(&mut name)?;
    let mut port = [0; 2];
    client.read_exact(&mut port)?;
    client.write_all(&[SOCKS5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
    Ok(format!("{}:{}", String::from_utf8_lossy(&name), u16::from_be_bytes(port)))
}

fn relay(client: TcpStream, upstream: TcpStream) -> std::io::Result<()> {
    let (mut from, mut to) = (client.try_clone()?, upstream.try_clone()?);
    let up = thread::spawn(move || {
        let copied = std::io::copy(&mut from, &mut to);
        _ = to.shutdown(Shutdown::Write);
        copied
    });
    let (mut from, mut to) = (upstream, client);
    std::io::copy(&mut from, &mut to)?;
    to.shutdown(Shutdown::Write)?;
    up.join().expect("it does not panic").map(drop)
}

fn text<'a>(finding: &'a Value, member: &str) -> &'a str {
    finding[member].as_str().unwrap_or_default()
}

#[test]
fn tls_is_checked_behind_a_proxy() {
    let home = tempfile::tempdir().expect("a folder");
    let (_gateway, port) = serving_over_tls(&home, "gateway.test");
    let proxy = Proxy::start(&format!("127.0.0.1:{port}"), false);
    for scheme in ["http", "socks5h"] {
        let through = || {
            let mut command = doctor("https://gateway.test", "k", &home);
            command.env("HTTPS_PROXY", format!("{scheme}://{}", proxy.address));
            command
        };
        let (code, document) = examined(&mut through());
        let found = finding(&document, "TLS");
        assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
        assert!(text(found, "advice").starts_with("the proxy may present its own certificate"), "{found}");
        let (code, document) = examined(through().env("GATEWRIGHT_CA_BUNDLE", home.path().join("ca.pem")));
        assert_eq!((code, &document["verdict"]), (Some(0), &Value::from("ok")), "{document:#}");
        assert_eq!(text(finding(&document, "tunnel"), "found"), "the proxy connects to gateway.test:443");
        assert!(text(finding(&document, "TLS"), "found").contains("for gateway.test"), "{document:#}");
        assert_eq!(finding(&document, "gateway")["verdict"], "ok", "{document:#}");
    }
    let requests = proxy.requests();
    assert!(requests.iter().any(|line| line == "CONNECT gateway.test:443 HTTP/1.1"), "{requests:?}");
    assert!(requests.iter().any(|line| line == "gateway.test:443"), "{requests:?}");
}

#[test]
fn proxy_that_requires_a_password_is_reported_with_advice() {
    let home = tempfile::tempdir().expect("a folder");
    let (_gateway, port) = serving_over_tls(&home, "gateway.test");
    let proxy = Proxy::start(&format!("127.0.0.1:{port}"), true);
    let through = |credentials: &str| {
        let mut command = doctor("https://gateway.test", "", &home);
        command.env("GATEWRIGHT_CA_BUNDLE", home.path().join("ca.pem"));
        command.env("HTTPS_PROXY", format!("http://{credentials}{}", proxy.address));
        command
    };
    let (code, document) = examined(&mut through(""));
    let found = finding(&document, "tunnel");
    assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    let advice = text(found, "advice");
    assert!(advice.contains("user name and password") && advice.contains("HTTPS_PROXY"), "{found}");
    let (_, document) = examined(&mut through("amy:canary@"));
    for name in ["tunnel", "TLS", "gateway", "clock"] {
        assert_eq!(finding(&document, name)["verdict"], "ok", "{name}: {document:#}");
    }
    assert!(!document.to_string().contains("canary"), "{document:#}");
}

#[test]
fn gateway_without_tls_is_called_through_the_proxy() {
    let gateway = Serving::start(&["--key", "k"], None);
    let home = tempfile::tempdir().expect("a folder");
    let server = gateway.url.strip_prefix("http://").expect("an address");
    let proxy = Proxy::start(server, false);
    let through = |proxy: &Proxy| {
        let mut command = doctor("http://gateway.test:81", "k", &home);
        command.env("HTTP_PROXY", format!("http://{}", proxy.address));
        command
    };
    let (code, document) = examined(&mut through(&proxy));
    assert_eq!(code, Some(0), "{document:#}");
    assert_eq!(finding(&document, "gateway")["verdict"], "ok", "{document:#}");
    // Anyone on the path can read the key.
    assert_eq!(finding(&document, "TLS")["verdict"], "warn", "{document:#}");
    let requests = proxy.requests();
    assert!(requests.contains(&"GET http://gateway.test:81/v1/models HTTP/1.1".to_owned()), "{requests:?}");

    let strict = Proxy::start(server, true);
    let (code, document) = examined(&mut through(&strict));
    let found = finding(&document, "gateway");
    assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
    assert!(text(found, "advice").contains("user name and password"), "{found}");
}

#[test]
fn unreachable_proxy_is_not_mistaken_for_the_gateway() {
    let home = tempfile::tempdir().expect("a folder");
    for (proxy, name) in [("http://127.0.0.1:9", "connection"), ("http://no-such-host.invalid", "name")] {
        let mut command = doctor("https://gateway.test", "k", &home);
        let (code, document) = examined(command.env("HTTPS_PROXY", proxy));
        let found = finding(&document, name);
        assert_eq!((code, &found["verdict"]), (Some(1), &Value::from("fail")), "{document:#}");
        let advice = text(found, "advice");
        assert!(advice.contains("HTTPS_PROXY") && advice.contains("gateway.test to NO_PROXY"), "{found}");
        assert!(!advice.contains("gatewright serve"), "{found}");
    }
}
