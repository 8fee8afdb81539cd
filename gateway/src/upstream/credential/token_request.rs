//! Requests for access tokens (RFC 6749): one request, one bounded response.

use std::time::Duration;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright::visible::visible;
use gatewright_config::check_token_url;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use url::form_urlencoded;

use super::no_key::{MAX_KEY_BYTES, MAX_TIME, NoKey, key_in};
use crate::upstream::connections;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Maximum length of a token server's error message, in characters.
const MAX_ERROR_CHARS: usize = 300;
/// Lifetime of a token if the server doesn't report it.
const ASSUMED_TTL: Duration = Duration::from_mins(5);
/// Longest time for which a token is used.
const MAX_TTL: Duration = Duration::from_hours(24);

/// A key or access token, and how long it is valid.
pub(super) struct Token {
    pub(super) key: String,
    pub(super) ttl: Duration,
}

/// Posts a form to a token endpoint. `secrets`: those in the form, which a response may quote.
pub(super) async fn post(url: &str, form: &[(&str, &str)], secrets: &[&str]) -> Result<Token, NoKey> {
    check_token_url(url)
        .map_err(|why| NoKey::Credentials(format!("the address of the token server {why}")))?;
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let mut request = Request::new(Bytes::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri(url)?;
    let form_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers_mut().insert(header::CONTENT_TYPE, form_type);
    let (head, body) = exchange(request).await?;
    read(head.status, &body, secrets).map_err(|why| NoKey::NoToken(format!("the token server {url} {why}")))
}

/// Sends a request and reads the whole response.
pub(super) async fn exchange(mut request: Request<Bytes>) -> Result<(http::response::Parts, Bytes), NoKey> {
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let host = request.uri().authority().map(ToString::to_string).unwrap_or_default();
    match tokio::time::timeout(MAX_TIME, send(request, CONNECT_TIMEOUT)).await {
        Ok(answer) => answer.map_err(|why| NoKey::NoToken(format!("the token server {host} {why}"))),
        Err(_) => Err(NoKey::TooLong),
    }
}

/// Sends a request and reads the whole response. Errors: continue a sentence about the server.
pub(super) async fn send(
    request: Request<Bytes>,
    connect_timeout: Duration,
) -> Result<(http::response::Parts, Bytes), String> {
    let failed = |why: &str| format!("cannot be reached: {why}");
    let connections = connections::open(request.uri().clone(), connect_timeout);
    let answer = connections.map_err(|why| failed(&why))?.send(&request).await;
    let answer = answer.map_err(|error| failed(&connections::reason(&error).whole))?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|_| {
        failed(&format!("its response was cut off or is larger than {MAX_ANSWER_BYTES} bytes"))
    })?;
    Ok((head, body.to_bytes()))
}

pub(super) fn uri(url: &str) -> Result<Uri, NoKey> {
    url.parse().map_err(|_| NoKey::Credentials("the address of the token server is not a URL".to_owned()))
}

/// The token in a response. Errors: continue a sentence about the server.
pub(super) fn read(status: StatusCode, body: &[u8], secrets: &[&str]) -> Result<Token, String> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if !status.is_success() {
        let code = answer["error"].as_str().unwrap_or("no error code");
        let description = answer["error_description"].as_str().unwrap_or_default();
        let reason = Redactor::new(secrets.iter().copied()).redact(&format!("{code} {description}"));
        let reason: String = reason.chars().take(MAX_ERROR_CHARS).collect();
        return Err(format!("returned {}: {}", status.as_u16(), visible(reason.trim())));
    }
    let token = answer["access_token"].as_str().unwrap_or_default();
    let key = key_in(token.as_bytes().to_vec()).ok_or_else(|| {
        format!("returned no access_token of visible ASCII of at most {MAX_KEY_BYTES} bytes")
    })?;
    let seconds = &answer["expires_in"];
    let seconds = seconds.as_u64().or_else(|| seconds.as_str()?.parse().ok());
    let ttl = seconds.map_or(ASSUMED_TTL, Duration::from_secs).min(MAX_TTL);
    if ttl.is_zero() {
        return Err("returned an expired token".to_owned());
    }
    Ok(Token { key, ttl })
}
