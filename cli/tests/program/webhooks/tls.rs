//! Notifications over TLS: the address was vetted, and the name is the receiver's.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{SECRET, serve_with, submit};

/// What a receiver sees of a connection: the server name requested and the data sent, or why the handshake failed.
type Seen = Result<(Option<String>, String), String>;

/// A receiver at a port of 127.0.0.1 with a certificate for a name. Its authority is in `ca.pem` of the folder.
fn receiver(folder: &Path, name: &str) -> (u16, Receiver<Seen>) {
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority =
        CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("signed");
    std::fs::write(folder.join("ca.pem"), authority.pem()).expect("written");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([name.to_owned()]).expect("parameters");
    let certificate: CertificateDer<'static> = params.signed_by(&key, &authority).expect("signed").into();
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(vec![certificate], key);
    let config = Arc::new(config.expect("a certificate and its key"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (sender, seen) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
            let mut stream = StreamOwned::new(connection, socket);
            let request = read(&mut stream);
            let name = stream.conn.server_name().map(str::to_owned);
            let observed = request.map(|request| (name, request)).map_err(|error| error.to_string());
            _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
            if sender.send(observed).is_err() {
                return;
            }
        }
    });
    (port, seen)
}

/// A request with its body.
fn read(stream: &mut StreamOwned<ServerConnection, std::net::TcpStream>) -> std::io::Result<String> {
    let (mut request, mut piece) = (String::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece)?;
        request += std::str::from_utf8(&piece[..count]).expect("text");
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length =
            head.to_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || length.is_none_or(|length| body.len() >= length) {
            return Ok(request);
        }
    }
}

#[test]
fn receiver_is_called_by_name_and_must_prove_it() {
    for (name, is_its_own) in [("localhost", true), ("another.test", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let (port, seen) = receiver(folder.path(), name);
        let authority = folder.path().join("ca.pem");
        let trust = ("SSL_CERT_FILE", authority.to_str().expect("a path"));
        let gateway = serve_with(folder.path(), &[trust]).expect("it starts");
        let task = submit(&gateway, &format!("https://localhost:{port}/hook"));
        let seen = seen.recv_timeout(Duration::from_mins(1)).expect("a connection");
        if is_its_own {
            let (server_name, request) = seen.expect("a request");
            assert_eq!(server_name.as_deref(), Some("localhost"));
            assert!(request.starts_with("POST /hook HTTP/1.1\r\n") && request.contains(&task), "{request}");
            assert!(request.contains("webhook-signature: v1,") && !request.contains(SECRET), "{request}");
        } else {
            // Nothing was sent to a receiver that cannot prove its name.
            let refused = seen.expect_err("no request");
            assert!(refused.to_lowercase().contains("certificate"), "{refused}");
        }
    }
}
