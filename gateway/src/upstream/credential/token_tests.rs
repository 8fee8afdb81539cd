//! Access tokens, and keys in files, tested with servers and files as strict as the real ones.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gatewright_config::{ApplicationDefault, ClientCredentials, KeyFile, KeySource};
use gatewright_system::clock::unix_seconds;
use http::{HeaderName, HeaderValue};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use url::form_urlencoded;

use super::default_credentials;
use super::no_key::NoKey;
use super::source::{self, Fetched};
use super::tests::until;
use super::{AttachedKey, KeyPosition, UpstreamCredential};

/// A key that is used only in these tests.
const TEST_KEY: &str = include_str!("test_key.pem");

/// A token server on a free port.
struct TokenServer {
    host: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A request as the server received it.
struct Seen {
    head: String,
    form: HashMap<String, String>,
}

impl TokenServer {
    /// Answers each request with the next response, repeating the last one: a status and a document.
    async fn start(answers: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let host = listener.local_addr().expect("an address").to_string();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (requests, mut answers) = (Arc::clone(&seen), answers.into_iter().collect::<VecDeque<_>>());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let (mut received, mut packet) = (Vec::new(), [0; 4096]);
                let (head, body) = loop {
                    let count = socket.read(&mut packet).await.expect("a request");
                    received.extend_from_slice(&packet[..count]);
                    let text = String::from_utf8_lossy(&received).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let head = head.to_ascii_lowercase();
                    let length =
                        head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                    if body.len() >= length.unwrap_or(0) {
                        break (head, body.to_owned());
                    }
                };
                let form = form_urlencoded::parse(body.as_bytes()).into_owned().collect();
                requests.lock().expect("no panic").push(Seen { head, form });
                let (status, document) =
                    if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
                        .expect("an answer");
                let answer = format!(
                    "HTTP/1.1 {status}\r\nmetadata-flavor: Google\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{document}",
                    document.len()
                );
                _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        Self { host, seen }
    }

    fn url(&self) -> String {
        format!("http://{}/token", self.host)
    }

    fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().expect("no panic"))
    }

    fn count(&self) -> usize {
        self.seen.lock().expect("no panic").len()
    }
}

fn token(key: &str, seconds: u64) -> (&'static str, String) {
    ("200 OK", json!({ "access_token": key, "expires_in": seconds, "token_type": "Bearer" }).to_string())
}

fn file_in(folder: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).expect("a file");
    path
}

fn service_account(token_url: &str) -> Value {
    json!({
        "type": "service_account",
        "client_email": "gateway@project.example",
        "private_key_id": "key-1",
        "private_key": TEST_KEY,
        "token_uri": token_url,
    })
}

fn login(token_url: &str) -> Value {
    json!({
        "type": "authorized_user",
        "client_id": "id-1",
        "client_secret": "canary-secret",
        "refresh_token": "canary-refresh",
        "token_uri": token_url,
    })
}

async fn of_file(path: &Path) -> Result<Fetched, NoKey> {
    source::fetch(&KeySource::CredentialsFile(path.to_owned()), &bearer()).await
}

fn key_of(credential: &UpstreamCredential) -> Option<HeaderValue> {
    match credential.get()? {
        AttachedKey::Header(_, value) => Some(value),
        AttachedKey::Query(_) | AttachedKey::Signature(_) => None,
    }
}

fn bearer() -> KeyPosition {
    KeyPosition::Header { name: HeaderName::from_static("authorization"), prefix: "Bearer ".to_owned() }
}

#[tokio::test]
async fn service_account_assertion_is_verifiable() {
    let (folder, server) =
        (tempfile::tempdir().expect("a folder"), TokenServer::start([token("token-1", 3600)]).await);
    let path = file_in(&folder, "account.json", &service_account(&server.url()).to_string());
    let before = unix_seconds();
    let token = of_file(&path).await.unwrap_or_else(|why| panic!("{}", why.detail()));
    assert_eq!((&*token.secrets[0], token.ttl), ("token-1", Duration::from_hours(1)));

    let seen = server.seen().swap_remove(0);
    assert!(seen.head.starts_with("post /token http/1.1"), "{}", seen.head);
    assert!(seen.head.contains("content-type: application/x-www-form-urlencoded"), "{}", seen.head);
    assert_eq!(seen.form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let [head, claims, signature] = &seen.form["assertion"].split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts");
    };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("base64url without padding");
    let document = |part: &str| serde_json::from_slice::<Value>(&decoded(part)).expect("JSON");
    assert_eq!(document(head), json!({ "alg": "RS256", "typ": "JWT", "kid": "key-1" }));
    let claims_read = document(claims);
    let issued_at = claims_read["iat"].as_u64().expect("seconds");
    assert!((before..=unix_seconds()).contains(&issued_at), "{issued_at}");
    let expected = json!({
        "iss": "gateway@project.example",
        "scope": "https://www.googleapis.com/auth/cloud-platform",
        "aud": server.url(),
        "iat": issued_at,
        "exp": issued_at + 3600,
    });
    assert_eq!(claims_read, expected);
    let der = PrivatePkcs8KeyDer::from_pem_slice(TEST_KEY.as_bytes()).expect("a key");
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).expect("a key");
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref().to_vec());
    public.verify(format!("{head}.{claims}").as_bytes(), &decoded(signature)).expect("its signature");
}

#[tokio::test]
async fn refresh_token_is_exchanged_for_an_access_token() {
    let (folder, server) =
        (tempfile::tempdir().expect("a folder"), TokenServer::start([token("token-1", 60)]).await);
    let path = file_in(&folder, "login.json", &login(&server.url()).to_string());
    let token = of_file(&path).await.unwrap_or_else(|why| panic!("{}", why.detail()));
    assert_eq!((&*token.secrets[0], token.ttl), ("token-1", Duration::from_mins(1)));
    let form = server.seen().swap_remove(0).form;
    let expected = [
        ("grant_type", "refresh_token"),
        ("client_id", "id-1"),
        ("client_secret", "canary-secret"),
        ("refresh_token", "canary-refresh"),
    ];
    assert_eq!(form, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[tokio::test]
async fn default_credentials_come_from_file_login_or_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let [named, logged_in, machine] = [
        TokenServer::start([token("of-file", 60)]).await,
        TokenServer::start([token("of-login", 60)]).await,
        TokenServer::start([token("of-machine", 60)]).await,
    ];
    let file = file_in(&folder, "account.json", &service_account(&named.url()).to_string());
    let login_file = folder.path().join("login.json");
    let mut places = ApplicationDefault {
        login_file: Some(login_file.clone()),
        ..ApplicationDefault::of_metadata_server(&machine.host)
    };
    let key =
        async |places: &ApplicationDefault| default_credentials::token(places).await.map(|token| token.key);
    assert_eq!(key(&places).await, Ok("of-machine".to_owned()));
    let head = machine.seen().swap_remove(0).head;
    assert!(
        head.starts_with("get /computemetadata/v1/instance/service-accounts/default/token http/1.1")
            && head.contains("metadata-flavor: google"),
        "{head}"
    );
    fs::write(&login_file, login(&logged_in.url()).to_string()).expect("a file");
    assert_eq!(key(&places).await, Ok("of-login".to_owned()));
    places.file = Some(file.clone());
    assert_eq!(key(&places).await, Ok("of-file".to_owned()));
    // A configured file must exist; otherwise the operator gets an error.
    fs::remove_file(&file).expect("a file");
    let why = key(&places).await.expect_err("no file").detail();
    assert!(why.contains("account.json cannot be read"), "{why}");
    assert_eq!((named.count(), logged_in.count(), machine.count()), (1, 1, 0));
}

#[tokio::test]
async fn missing_default_credentials_error_says_what_to_do() {
    let places = ApplicationDefault::of_metadata_server("127.0.0.1:1");
    let why = default_credentials::token(&places).await.err().expect("there are none");
    for part in
        ["GOOGLE_APPLICATION_CREDENTIALS is not set", "127.0.0.1:1", "gcloud auth application-default login"]
    {
        assert!(why.detail().contains(part), "{}", why.detail());
    }
    assert!(!why.to_string().contains("127.0.0.1"), "clients learn no hosts: {why}");
}

#[tokio::test]
async fn client_credentials_are_sent_in_the_form() {
    let server =
        TokenServer::start([("200 OK", r#"{"access_token":"token-1","expires_in":"120"}"#.to_owned())]).await;
    let mut client = ClientCredentials::new(server.url(), "id 1", "canary&secret");
    client.scope = Some("https://resource.example/.default".to_owned());
    assert!(!format!("{client:?}").contains("canary"));
    let token = source::fetch(&KeySource::ClientCredentials(client), &bearer()).await;
    let token = token.unwrap_or_else(|why| panic!("{}", why.detail()));
    assert_eq!((&*token.secrets[0], token.ttl), ("token-1", Duration::from_mins(2)));
    let expected = [
        ("grant_type", "client_credentials"),
        ("client_id", "id 1"),
        ("client_secret", "canary&secret"),
        ("scope", "https://resource.example/.default"),
    ];
    let form = server.seen().swap_remove(0).form;
    assert_eq!(form, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
}

#[tokio::test]
async fn token_errors_are_explained_without_secrets() {
    let long = format!("{{\"access_token\":\"{}\"}}", "a".repeat(100_000));
    for (status, document, part) in [
        (
            "400 Bad Request",
            r#"{"error":"invalid_client","error_description":"canary-secret is wrong\u001b"}"#,
            "returned 400: invalid_client [redacted] is wrong",
        ),
        ("500 Internal Server Error", "<html>", "returned 500: no error code"),
        ("200 OK", "{}", "returned no access_token"),
        ("200 OK", r#"{"access_token":"two words"}"#, "returned no access_token"),
        ("200 OK", r#"{"access_token":"a","expires_in":0}"#, "returned an expired token"),
        ("200 OK", &long, "is larger than 65536 bytes"),
        ("302 Found", "", "returned 302"),
    ] {
        let server = TokenServer::start([(status, document.to_owned())]).await;
        let client = ClientCredentials::new(server.url(), "id", "canary-secret");
        let why =
            source::fetch(&KeySource::ClientCredentials(client), &bearer()).await.err().expect(document);
        assert!(why.detail().contains(part), "{status} {document}: {}", why.detail());
        assert!(!why.detail().contains("canary") && !why.detail().contains('\u{1b}'), "{}", why.detail());
    }
}

#[tokio::test]
async fn credentials_file_errors_do_not_quote_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let without = |name: &str| {
        let mut account = service_account("http://127.0.0.1:1/token");
        account.as_object_mut().expect("an object").remove(name);
        account.to_string()
    };
    let with = |name: &str, value: &str| {
        let mut account = service_account("http://127.0.0.1:1/token");
        account[name] = value.into();
        account.to_string()
    };
    for (content, part) in [
        ("canary".to_owned(), "it is not JSON"),
        (without("type"), "it has no string member type"),
        (without("private_key"), "it has no string member private_key"),
        (with("private_key", "canary"), "private_key is not a private key in PEM"),
        (with("token_uri", "http://tokens.example/canary"), "must begin with https://"),
        (with("type", "external_account"), "its type is neither service_account nor authorized_user"),
    ] {
        let path = file_in(&folder, "account.json", &content);
        let why = of_file(&path).await.err().expect(part).detail();
        assert!(why.contains(part), "{part}: {why}");
        assert!(!why.contains("canary") && !why.contains("MII"), "{why}");
    }
}

#[tokio::test]
async fn access_token_is_renewed_before_it_expires() {
    let server = TokenServer::start([token("token-1", 2), token("token-2", 3600)]).await;
    let client = KeySource::ClientCredentials(ClientCredentials::new(server.url(), "id", "secret"));
    let credential = UpstreamCredential::new("one", client, bearer());
    credential.wait().await.expect("a token");
    let started = tokio::time::Instant::now();
    assert_eq!(key_of(&credential).expect("a token"), "Bearer token-1");
    until(|| key_of(&credential).is_some_and(|key| key == "Bearer token-2")).await;
    assert!(started.elapsed() < Duration::from_secs(2), "the first one was still valid");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn rejected_token_is_replaced_once_for_concurrent_requests() {
    let server = TokenServer::start([token("token-1", 10), token("token-2", 3600)]).await;
    let client = KeySource::ClientCredentials(ClientCredentials::new(server.url(), "id", "secret"));
    let credential = UpstreamCredential::new("one", client, bearer());
    credential.wait().await.expect("a token");
    let since = credential.since().expect("a token");
    assert!(!credential.replaced(since).await, "a new rejected token is not replaced");
    // The minimum pause between two tokens is a twentieth of the lifetime.
    tokio::time::sleep(Duration::from_millis(550)).await;
    credential.refused();
    let replaced = futures_util::future::join_all((0..10).map(|_| credential.replaced(since))).await;
    assert_eq!(replaced, [true; 10]);
    assert_eq!(key_of(&credential).expect("a token"), "Bearer token-2");
    assert_eq!(server.count(), 2);
}

#[tokio::test]
async fn rewritten_key_file_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file_in(&folder, "token", "canary-1\n");
    let source = KeySource::File(KeyFile::new(&path, Duration::from_secs(1)));
    let credential = UpstreamCredential::new("one", source, bearer());
    credential.wait().await.expect("a key");
    assert_eq!(key_of(&credential).expect("a key"), "Bearer canary-1");
    fs::write(&path, "canary-2").expect("a file");
    until(|| key_of(&credential).is_some_and(|key| key == "Bearer canary-2")).await;
    for (content, part) in
        [("", "has no key"), ("two words", "has no key"), (&*"a".repeat(20_000), "is larger than")]
    {
        fs::write(&path, content).expect("a file");
        let why = source::fetch(&credential.source, &bearer()).await.err().expect(part);
        assert!(why.detail().contains(part) && why.detail().contains("token"), "{}", why.detail());
    }
}
