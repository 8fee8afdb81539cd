//! Multiple addresses, TLS, and reloads of a running gateway.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright_gateway::{
    ApiKey, Config, Control, Gateway, Kind, ModelConfig, TargetConfig, TlsConfig, UpstreamConfig,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::KEY;

/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

/// A gateway with a plain address and a TLS address.
struct Secure {
    folder: tempfile::TempDir,
    config: Config,
    control: Control,
    plain: String,
    tls: String,
    _stop: oneshot::Sender<()>,
}

/// Writes a new certificate for this machine.
fn certify(folder: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.join("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
}

impl Secure {
    async fn start(config: Config) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        certify(folder.path());
        let any = || vec!["127.0.0.1:0".to_owned()];
        let config = Config {
            listen: any(),
            tls: Some(TlsConfig::new(any(), folder.path().join("cert.pem"), folder.path().join("key.pem"))),
            key: Some(ApiKey::new(KEY).expect("a valid key")),
            ..config
        };
        let gateway = Gateway::bind(config.clone()).await.expect("free ports");
        let [plain, tls] = gateway.urls().try_into().expect("two addresses");
        let control = gateway.control();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(gateway.serve(async {
            _ = stopped.await;
        }));
        Self { folder, config, control, plain, tls, _stop: stop }
    }

    /// A connection that trusts the certificate in the folder.
    async fn connect(&self) -> Result<TlsStream<TcpStream>, std::io::Error> {
        let mut roots = RootCertStore::empty();
        let pem = std::fs::read(self.folder.path().join("cert.pem")).expect("the certificate");
        roots.add(CertificateDer::from_pem_slice(&pem).expect("PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let mut config = config
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let socket = TcpStream::connect(self.tls.trim_start_matches("https://")).await?;
        let name = ServerName::try_from("localhost").expect("a name");
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }
}

/// Sends a request and reads until the gateway closes the connection.
async fn exchange(mut socket: impl AsyncReadWrite, request: &str) -> String {
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut bytes)).await;
    read.expect("the connection stayed open").expect("the connection broke");
    String::from_utf8(bytes).expect("UTF-8")
}

trait AsyncReadWrite: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin {}
impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> AsyncReadWrite for S {}

fn request(method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn body(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    serde_json::from_str(body).expect("JSON")
}

/// 4 rule 4: URLs of files have the scheme that the client used.
#[tokio::test]
async fn plain_and_tls_addresses_serve_and_file_urls_keep_the_scheme() {
    let server = Secure::start(Config::default()).await;
    let image = json!({ "model": "image_model_1", "prompt": "a cat" }).to_string();
    let request = request("POST", "/v1/images/generations", &image);
    let secure = server.connect().await.expect("a handshake");
    assert_eq!(secure.get_ref().1.alpn_protocol(), Some(b"http/1.1".as_slice()));
    let plain = TcpStream::connect(server.plain.trim_start_matches("http://")).await.expect("a connection");
    let urls = [body(&exchange(secure, &request).await), body(&exchange(plain, &request).await)]
        .map(|answer| answer["data"][0]["url"].as_str().expect("a URL").to_owned());
    assert!(urls[0].starts_with("https://localhost/files/"), "{urls:?}");
    assert!(urls[1].starts_with("http://localhost/files/"), "{urls:?}");
}

#[tokio::test]
async fn malformed_head_over_tls_gets_an_error_body() {
    let server = Secure::start(Config::default()).await;
    let answer = exchange(server.connect().await.expect("a handshake"), "no http at all\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("malformed_request"), "{answer}");
}

#[tokio::test]
async fn unfinished_handshake_frees_its_slot() {
    let header_timeout = Duration::from_millis(300);
    let server = Secure::start(Config { max_connections: 2, header_timeout, ..Config::default() }).await;
    let address = server.tls.trim_start_matches("https://");
    let held = [
        TcpStream::connect(address).await.expect("first"),
        TcpStream::connect(address).await.expect("second"),
    ];
    let answer = async {
        exchange(server.connect().await.expect("a handshake"), &request("GET", "/v1/models", "")).await
    };
    body(&tokio::time::timeout(PATIENCE, answer).await.expect("the places were held"));
    drop(held);
}

#[tokio::test]
async fn reloaded_certificate_is_used_from_the_next_handshake() {
    let server = Secure::start(Config::default()).await;
    let before = server.connect().await.expect("a handshake");
    certify(server.folder.path());
    assert!(server.connect().await.is_err(), "the first certificate is in use");
    server.control.reload(&server.config).expect("reloaded");
    let after = server.connect().await.expect("a handshake");
    for open in [before, after] {
        body(&exchange(open, &request("GET", "/v1/models", "")).await);
    }
    // An unusable certificate leaves the current one in use.
    std::fs::write(server.folder.path().join("key.pem"), "no key").expect("written");
    let error = server.control.reload(&server.config).expect_err("no key").to_string();
    assert!(error.contains("key.pem") && error.contains("no private key"), "{error}");
    server.connect().await.expect("a handshake");
}

#[tokio::test]
async fn reload_lists_settings_that_require_a_restart() {
    let server = Secure::start(Config::default()).await;
    let mut config = server.config.clone();
    config.models.push(ModelConfig::new("mine", "family_one", TargetConfig::new("simulator", "model-sol")));
    assert!(server.control.reload(&config).expect("reloaded").waiting.is_empty());
    config.listen.push("127.0.0.1:1".to_owned());
    config.max_body_bytes = 7;
    config.upstreams.push(UpstreamConfig::new("two", Kind::Simulator, ""));
    let waiting = server.control.reload(&config).expect("reloaded").waiting;
    assert_eq!(waiting, ["server.listen", "limits.max_body"]);
}
