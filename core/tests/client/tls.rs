//! Whom the client trusts, and the certificate that it presents. The servers are real ones, with certificates created
//! by the tests.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gatewright::{Client, Error, ErrorKind, SaveOptions};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::{COMPLETION, chat_call, child};

/// A certificate authority, with a folder for the files it writes.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self { certificate: certificate.der().clone(), issuer: Issuer::new(params, key), folder }
    }

    /// The path of its certificate, in PEM.
    pub(crate) fn bundle(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn sign(&self, host: &str, purpose: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap(), key)
    }

    /// TLS of a server at `host`, without client certificates.
    pub(crate) fn acceptor(&self, host: &str) -> TlsAcceptor {
        self.acceptor_of(host, &[])
    }

    /// The same for a server that chooses HTTP/2.
    pub(crate) fn acceptor_of_http2(&self, host: &str) -> TlsAcceptor {
        self.acceptor_of(host, &[b"h2"])
    }

    fn acceptor_of(&self, host: &str, protocols: &[&[u8]]) -> TlsAcceptor {
        let (certificate, key) = self.sign(host, ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let chain = vec![certificate.der().clone()];
        let mut config = builder.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A file with a client certificate and its key.
    fn client(&self) -> PathBuf {
        let (certificate, key) = self.sign("client.test", ExtendedKeyUsagePurpose::ClientAuth);
        self.write("client.pem", &format!("{}{}", certificate.pem(), key.serialize_pem()))
    }
}

/// Responds to every request on a TLS connection with a completion, including requests for files.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Uses a certificate for `host`. Asks for client certificates issued by `clients`, if given.
    pub(crate) async fn start(authority: &Authority, host: &str, clients: Option<&Authority>) -> Self {
        let (certificate, key) = authority.sign(host, ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.certificate.clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // Some of the tests cause the handshake to fail.
                    let Ok(mut socket) = acceptor.accept(socket).await else { return };
                    let mut received = Vec::new();
                    let is_whole = |received: &[u8]| {
                        received.ends_with(b"}]}")
                            || (received.starts_with(b"GET ") && received.ends_with(b"\r\n\r\n"))
                    };
                    while !is_whole(&received) {
                        if socket.read_buf(&mut received).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let length = COMPLETION.len();
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{COMPLETION}");
                    let _ = socket.write_all(answer.as_bytes()).await;
                    let _ = socket.shutdown().await;
                });
            }
        });
        Self { address }
    }

    fn builder(&self) -> gatewright::ClientBuilder {
        let base = format!("https://localhost:{}", self.address.port());
        Client::builder().base_url(base).api_key("k").max_retries(0)
    }
}

async fn failure(client: Client) -> Error {
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    error
}

#[tokio::test]
async fn bundled_authority_is_trusted_and_unknown_one_rejected_with_advice() {
    let authority = Authority::new("ours");
    let server = Server::start(&authority, "localhost", None).await;
    let trusting = server.builder().ca_bundle(authority.bundle()).build().unwrap();
    assert_eq!(trusting.call(chat_call()).await.unwrap().body, COMPLETION);

    let error = failure(server.builder().build().unwrap()).await;
    assert!(error.message().contains("UnknownIssuer"), "{error}");
    assert!(error.message().contains("CA bundle (option or GATEWRIGHT_CA_BUNDLE)"), "{error}");

    // Another bundle does not help.
    let other = Authority::new("other");
    failure(server.builder().ca_bundle(other.bundle()).build().unwrap()).await;
}

#[tokio::test]
async fn bundle_may_contain_several_authorities_and_unusable_certificates() {
    let (authority, other) = (Authority::new("ours"), Authority::new("other"));
    let server = Server::start(&authority, "localhost", None).await;
    let unusable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let bundle = format!("# ours\n{}{unusable}{}", read(&other.bundle()), read(&authority.bundle()));
    let bundle = authority.write("several.pem", &bundle);
    server.builder().ca_bundle(bundle).build().unwrap().call(chat_call()).await.unwrap();
}

#[tokio::test]
async fn certificate_for_another_host_is_rejected() {
    let authority = Authority::new("ours");
    let server = Server::start(&authority, "elsewhere.test", None).await;
    let error = failure(server.builder().ca_bundle(authority.bundle()).build().unwrap()).await;
    assert!(error.message().contains("its certificate is for another host"), "{error}");
}

#[tokio::test]
async fn client_certificate_is_presented_on_request() {
    let authority = Authority::new("ours");
    let server = Server::start(&authority, "localhost", Some(&authority)).await;
    let builder = server.builder().ca_bundle(authority.bundle());
    let client = builder.clone().client_certificate(authority.client()).build().unwrap();
    assert_eq!(client.call(chat_call()).await.unwrap().body, COMPLETION);
    let shown = format!("{client:?}");
    assert!(shown.contains("[own certificates]") && shown.len() < 2000, "no key, no roots: {shown}");

    let error = failure(builder.build().unwrap()).await;
    assert!(error.message().contains("it requires a client certificate"), "{error}");

    let stranger = Authority::new("stranger");
    let client = server.builder().ca_bundle(authority.bundle()).client_certificate(stranger.client());
    let error = failure(client.build().unwrap()).await;
    assert!(error.message().contains("it requires a client certificate that it trusts"), "{error}");
}

#[tokio::test]
async fn files_are_downloaded_with_the_same_trust_and_client_certificate() {
    let authority = Authority::new("ours");
    let server = Server::start(&authority, "localhost", Some(&authority)).await;
    let url = format!("https://localhost:{}/files/a", server.address.port());
    let place = authority.folder.path().join("a");
    // The gateway has a plain HTTP URL here, which does not affect the URL of a file.
    let builder = || Client::builder().base_url("http://127.0.0.1:9").api_key("k");
    let knowing = builder().ca_bundle(authority.bundle()).client_certificate(authority.client());
    let saved = knowing.build().unwrap().save(&url, &place, SaveOptions::default()).await.unwrap();
    assert_eq!((saved.bytes, std::fs::read(&place).unwrap()), (COMPLETION.len() as u64, COMPLETION.into()));

    let error = builder().build().unwrap().save(&url, &place, SaveOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.message().contains("CA bundle (option or GATEWRIGHT_CA_BUNDLE)"), "{error}");
}

#[test]
fn invalid_certificate_files_are_reported_when_the_client_is_built() {
    let authority = Authority::new("ours");
    let (certificate, key) = authority.sign("client.test", ExtendedKeyUsagePurpose::ClientAuth);
    let (_, other_key) = authority.sign("client.test", ExtendedKeyUsagePurpose::ClientAuth);
    let missing = authority.bundle().with_file_name("missing.pem");
    let empty = authority.write("empty.pem", "");
    let unusable =
        authority.write("unusable.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let broken =
        authority.write("broken.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let no_key = authority.write("no-key.pem", &certificate.pem());
    let no_chain = authority.write("no-chain.pem", &key.serialize_pem());
    let other = authority.write("other.pem", &(certificate.pem() + &other_key.serialize_pem()));
    let builder = || Client::builder().base_url("https://gateway.test").api_key("k");
    let built = [
        (builder().ca_bundle(&missing), "missing.pem cannot be read"),
        (builder().ca_bundle(&empty), "there is no certificate in it"),
        (builder().ca_bundle(&unusable), "none of its 1 certificates"),
        (builder().ca_bundle(&broken), "cannot be read as PEM"),
        (builder().client_certificate(&missing), "missing.pem cannot be read"),
        (builder().client_certificate(&no_key), "there is no private key in it"),
        (builder().client_certificate(&no_chain), "there is no certificate in it"),
        (builder().client_certificate(&other), "client certificate"),
    ];
    for (builder, expected) in built {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{expected}");
        assert!(error.message().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn bundle_may_come_from_the_environment() {
    if let Some(port) = child::task() {
        let base = format!("https://localhost:{port}");
        let client = Client::builder().base_url(base).api_key("k").max_retries(0).build().unwrap();
        client.call(chat_call()).await.unwrap();
        return;
    }
    let authority = Authority::new("ours");
    let server = Server::start(&authority, "localhost", None).await;
    let bundle = authority.bundle();
    let variables = [("GATEWRIGHT_CA_BUNDLE", bundle.to_str().unwrap())];
    let test = "tls::bundle_may_come_from_the_environment";
    let output = child::run(test, &server.address.port().to_string(), &variables).await;
    assert!(output.status.success(), "{output:?}");
}
