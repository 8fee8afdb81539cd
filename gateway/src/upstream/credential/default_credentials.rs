//! Application default credentials: a JSON file of a service account or of a user's login, or the machine's metadata server.

use std::io;
use std::path::Path;

use bytes::Bytes;
use gatewright_config::ApplicationDefault;
use gatewright_system::clock::unix_seconds;
use http::{HeaderName, HeaderValue, Request};
use serde_json::Value;

use super::assertion::{self, Claims};
use super::file;
use super::no_key::NoKey;
use super::token_request::{self, Token};

/// Maximum size of a file with credentials, in bytes.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// Scope of access tokens: everything that the account may use.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Token endpoint for a user's login, if its file names none.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
/// The grant of a signed assertion (RFC 7523).
const ASSERTION_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// Header that the metadata server requires, and that identifies its responses.
const METADATA_FLAVOR: HeaderName = HeaderName::from_static("metadata-flavor");
const FLAVOR: HeaderValue = HeaderValue::from_static("Google");
/// The token path of the machine's account.
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// A token from the first credentials found.
pub(super) async fn token(places: &ApplicationDefault) -> Result<Token, NoKey> {
    if let Some(file) = &places.file {
        return of_file(file).await;
    }
    if let Some(file) = &places.login_file {
        match file::read(file, MAX_FILE_BYTES).await {
            Ok(content) => return of_credentials(file, &content).await,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(NoKey::Credentials(error.to_string())),
        }
    }
    of_metadata_server(&places.metadata_host).await.map_err(|why| {
        let login_file = places.login_file.as_ref().map(|file| format!(", no file {}", file.display()));
        NoKey::NoToken(format!(
            "there are no application default credentials: GOOGLE_APPLICATION_CREDENTIALS is not set{}, and {}; set the \
             variable, run `gcloud auth application-default login`, or set key = {{ credentials_file = \"path\" }}",
            login_file.unwrap_or_default(),
            why.detail()
        ))
    })
}

/// A token from the credentials in a file.
pub(super) async fn of_file(path: &Path) -> Result<Token, NoKey> {
    let content = file::read(path, MAX_FILE_BYTES).await;
    of_credentials(path, &content.map_err(|error| NoKey::Credentials(error.to_string()))?).await
}

async fn of_credentials(path: &Path, content: &[u8]) -> Result<Token, NoKey> {
    let wrong = |why: &str| NoKey::Credentials(format!("the file {}: {why}", path.display()));
    let credentials: Value = serde_json::from_slice(content).map_err(|_| wrong("it is not JSON"))?;
    let member = |name: &str| {
        credentials[name].as_str().ok_or_else(|| wrong(&format!("it has no string member {name}")))
    };
    match member("type")? {
        "service_account" => {
            let (issuer, audience, key) =
                (member("client_email")?, member("token_uri")?, member("private_key")?);
            let claims = Claims { issuer, scope: SCOPE, audience, issued_at: unix_seconds() };
            let assertion =
                assertion::sign(&claims, key, credentials["private_key_id"].as_str()).map_err(wrong)?;
            let form = [("grant_type", ASSERTION_GRANT), ("assertion", &assertion)];
            token_request::post(audience, &form, &[&assertion]).await
        }
        "authorized_user" => {
            let (secret, refresh) = (member("client_secret")?, member("refresh_token")?);
            let form = [
                ("grant_type", "refresh_token"),
                ("client_id", member("client_id")?),
                ("client_secret", secret),
                ("refresh_token", refresh),
            ];
            let url = credentials["token_uri"].as_str().unwrap_or(TOKEN_URL);
            token_request::post(url, &form, &[secret, refresh]).await
        }
        _ => Err(wrong(
            "its type is neither service_account nor authorized_user: use a program that prints the token, with key = { command = \
             [\"gcloud\", \"auth\", \"application-default\", \"print-access-token\"], ttl = \"50m\" }",
        )),
    }
}

async fn of_metadata_server(host: &str) -> Result<Token, NoKey> {
    let mut request = Request::new(Bytes::new());
    *request.uri_mut() = token_request::uri(&format!("http://{host}{METADATA_PATH}"))?;
    request.headers_mut().insert(METADATA_FLAVOR, FLAVOR);
    let (head, body) = token_request::exchange(request).await?;
    let failed = |why: &str| NoKey::NoToken(format!("the metadata server {host} {why}"));
    if head.headers.get(METADATA_FLAVOR) != Some(&FLAVOR) {
        return Err(failed("responded without the header metadata-flavor: it is not a metadata server"));
    }
    token_request::read(head.status, &body, &[]).map_err(|why| failed(&why))
}
