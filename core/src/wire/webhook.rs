//! Webhooks: verifies and parses the notifications of a gateway. Needs neither a client nor a network. The
//! gateway signs with the same code.
//!
//! The signature scheme is ours, after Standard Webhooks: `webhook-signature` contains any number of `v1,<base64>`,
//! separated by spaces. Each is the HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` under one secret. A sender
//! that changes its secret signs with both for a while; a receiver that changes it accepts both for a while.
//!
//! A notification may arrive twice, because the sender retries if it gets no response. Both have the same `webhook-id`.

use std::fmt;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use subtle::ConstantTimeEq as _;

use crate::api::types::VideoTask;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::redact::Redactor;

/// Environment variable with the default secrets of a receiver, separated by spaces.
///
/// ```
/// use gatewright::webhook::{Secret, WEBHOOK_SECRET_VARIABLE};
///
/// assert_eq!(WEBHOOK_SECRET_VARIABLE, "GATEWRIGHT_WEBHOOK_SECRET");
/// let error = Secret::several("").unwrap_err();
/// assert!(error.message().contains(WEBHOOK_SECRET_VARIABLE));
/// ```
pub const WEBHOOK_SECRET_VARIABLE: &str = "GATEWRIGHT_WEBHOOK_SECRET";
/// Maximum difference between the time of signing and now, in either direction.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER, WEBHOOK_TOLERANCE, verify};
///
/// let secret = Secret::from_bytes([7; 32]).unwrap();
/// let signed = SystemTime::now() - WEBHOOK_TOLERANCE - Duration::from_secs(1);
/// let time = signed.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
/// let signature = secret.sign("msg_1", time, b"{}");
/// let headers = [(ID_HEADER, "msg_1"), (TIMESTAMP_HEADER, &time.to_string()), (SIGNATURE_HEADER, &signature)];
/// assert_eq!(verify(b"{}", headers, &[secret]).unwrap_err().code(), Some("timestamp_too_old"));
/// ```
pub const WEBHOOK_TOLERANCE: Duration = Duration::from_mins(5);
/// Bound on the body of a webhook, in bytes: the record of a task is a few hundred.
///
/// ```
/// use gatewright::webhook::{MAX_WEBHOOK_BODY_BYTES, parse_unsigned};
///
/// let error = parse_unsigned(&vec![b' '; MAX_WEBHOOK_BODY_BYTES + 1]).unwrap_err();
/// assert_eq!(error.message(), "the body of the webhook is larger than 1048576 bytes");
/// ```
pub const MAX_WEBHOOK_BODY_BYTES: usize = 1024 * 1024;

/// Header with the notification's id.
///
/// ```
/// use std::collections::HashSet;
///
/// use gatewright::webhook::ID_HEADER;
/// use http::{HeaderMap, HeaderValue};
///
/// let mut headers = HeaderMap::new();
/// headers.insert(ID_HEADER, HeaderValue::from_static("msg_1"));
/// // A notification that arrives twice has the same id.
/// let mut handled = HashSet::new();
/// assert!(handled.insert(headers[ID_HEADER].clone()));
/// assert!(!handled.insert(headers[ID_HEADER].clone()));
/// ```
pub const ID_HEADER: &str = "webhook-id";
/// Header with the time of signing, in seconds since 1970.
///
/// ```
/// use gatewright::webhook::{ID_HEADER, Secret, TIMESTAMP_HEADER, verify};
///
/// let secret = Secret::from_bytes([7; 32]).unwrap();
/// let error = verify(b"{}", [(ID_HEADER, "msg_1")], &[secret]).unwrap_err();
/// assert_eq!((error.code(), error.param()), (Some("missing_header"), Some(TIMESTAMP_HEADER)));
/// ```
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// Header with the signatures.
///
/// ```
/// use gatewright::webhook::{SIGNATURE_HEADER, Secret};
/// use http::HeaderMap;
///
/// let [old, new] = [7, 8].map(|byte| Secret::from_bytes([byte; 32]).unwrap());
/// let signatures = [old, new].map(|secret| secret.sign("msg_1", 1_767_323_045, b"{}")).join(" ");
/// let mut headers = HeaderMap::new();
/// headers.insert(SIGNATURE_HEADER, signatures.parse().unwrap());
/// assert!(headers[SIGNATURE_HEADER].to_str().unwrap().starts_with("v1,"));
/// ```
pub const SIGNATURE_HEADER: &str = "webhook-signature";

const SECRET_PREFIX: &str = "whsec_";
const SHORTEST_SECRET_BYTES: usize = 24;
const VERSION: &str = "v1";

/// Secrets are accepted with and without the trailing padding, which is often lost in copying.
const SECRET_BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A secret that webhooks are signed with. `Debug` does not show it.
///
/// ```
/// use gatewright::webhook::Secret;
///
/// let secret = Secret::from_bytes([7; 32]).unwrap();
/// assert!(secret.expose().starts_with("whsec_"));
/// assert!(Secret::new(&secret.expose())? == secret);
/// # Ok::<(), gatewright::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Reads `whsec_<base64>`.
    ///
    /// Errors (Configuration): another form, or fewer than 24 bytes. The message does not quote the text.
    ///
    /// ```
    /// use gatewright::webhook::Secret;
    ///
    /// let secret = Secret::new("whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=")?;
    /// assert_eq!(Some(secret), Secret::from_bytes([7; 32]));
    /// assert!(Secret::new("whsec_short").is_err());
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn new(text: &str) -> Result<Self, Error> {
        let bytes = text.trim().strip_prefix(SECRET_PREFIX).and_then(|text| SECRET_BASE64.decode(text).ok());
        bytes.and_then(Self::from_bytes).ok_or_else(|| {
            let message = format!(
                "a webhook secret must be {SECRET_PREFIX} and at least {SHORTEST_SECRET_BYTES} bytes in base64"
            );
            Error::new(ErrorKind::Configuration, message)
        })
    }

    /// A secret of these bytes; none if there are fewer than 24.
    ///
    /// ```
    /// use gatewright::webhook::Secret;
    ///
    /// assert!(Secret::from_bytes([7; 32]).is_some());
    /// assert!(Secret::from_bytes([7; 23]).is_none());
    /// ```
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() >= SHORTEST_SECRET_BYTES).then_some(Self(bytes))
    }

    /// The secrets of [`WEBHOOK_SECRET_VARIABLE`].
    ///
    /// Errors (Configuration): it is not set, or one of them has another form.
    ///
    /// ```no_run
    /// let secrets = gatewright::webhook::Secret::from_env()?;
    /// println!("{} secrets", secrets.len());
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn from_env() -> Result<Vec<Self>, Error> {
        Self::several(&std::env::var(WEBHOOK_SECRET_VARIABLE).unwrap_or_default())
    }

    /// Parses a text in the format of [`WEBHOOK_SECRET_VARIABLE`]. Errors: as [`Secret::from_env`].
    ///
    /// ```
    /// use gatewright::webhook::Secret;
    ///
    /// let old = Secret::from_bytes([7; 32]).unwrap();
    /// let new = Secret::from_bytes([8; 32]).unwrap();
    /// let text = format!("{} {}", new.expose(), old.expose());
    /// assert!(Secret::several(&text)? == [new, old]);
    /// # Ok::<(), gatewright::Error>(())
    /// ```
    pub fn several(text: &str) -> Result<Vec<Self>, Error> {
        let secrets = text.split_whitespace().map(Self::new).collect::<Result<Vec<_>, _>>()?;
        if secrets.is_empty() {
            let message =
                format!("there is no webhook secret: set {WEBHOOK_SECRET_VARIABLE}, or pass `secrets`");
            return Err(Error::new(ErrorKind::Configuration, message));
        }
        Ok(secrets)
    }

    /// The secret as `whsec_<base64>`. Show it only to the receiver of webhooks.
    ///
    /// ```
    /// let secret = gatewright::webhook::Secret::from_bytes([7; 32]).unwrap();
    /// assert!(secret.expose().starts_with("whsec_BwcH"));
    /// assert_eq!(format!("{secret:?}"), "Secret([redacted])");
    /// ```
    pub fn expose(&self) -> String {
        format!("{SECRET_PREFIX}{}", BASE64_STANDARD.encode(&self.0))
    }

    /// One signature, in the format of [`SIGNATURE_HEADER`]. timestamp: seconds since 1970.
    ///
    /// ```
    /// let secret = gatewright::webhook::Secret::from_bytes([7; 32]).unwrap();
    /// let signature = secret.sign("msg_1", 1_767_323_045, b"{}");
    /// assert!(signature.starts_with("v1,"));
    /// ```
    pub fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        format!("{VERSION},{}", BASE64_STANDARD.encode(self.context(id, &timestamp.to_string(), body).sign()))
    }

    fn context(&self, id: &str, timestamp: &str, body: &[u8]) -> hmac::Context {
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.0));
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            context.update(part);
        }
        context
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

/// Checks that a webhook was signed with one of the secrets within [`WEBHOOK_TOLERANCE`] of now, and returns the task
/// that it reports: completed or failed.
///
/// body: the bytes as they arrived; parsing and serializing would change them. headers: all headers of the request,
/// such as an `http::HeaderMap` or pairs of strings; their names are case-insensitive. secrets: several during a
/// rotation.
///
/// Errors: WebhookSignature, with the reason as its [`code`](Error::code) — `missing_header`, `duplicate_header`,
/// `invalid_header` (with the header's name as [`param`](Error::param)), `timestamp_too_old`, `timestamp_too_new`,
/// `no_matching_signature`; Configuration if there are no secrets; Decode if the body is not the record of a task or is
/// longer than [`MAX_WEBHOOK_BODY_BYTES`].
///
/// Source: sections 2.7 and 6 of the specification.
///
/// ```
/// # fn example(body: &[u8], headers: &http::HeaderMap) -> Result<(), gatewright::Error> {
/// use gatewright::webhook::{self, Secret};
///
/// let task = webhook::unwrap(body, headers, &Secret::from_env()?)?;
/// println!("{} is {}", task.id, task.status.as_str());
/// # Ok(())
/// # }
/// ```
pub fn unwrap<N: AsRef<str>, V: AsRef<[u8]>>(
    body: &[u8],
    headers: impl IntoIterator<Item = (N, V)>,
    secrets: &[Secret],
) -> Result<VideoTask, Error> {
    verify(body, headers, secrets)?;
    parse(body)
}

/// As [`unwrap`] but returns no value, for front ends that parse the record themselves.
///
/// ```
/// use std::time::SystemTime;
///
/// use gatewright::webhook::{ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER, verify};
///
/// let body = br#"{"id": "video_1", "object": "video", "created": 1767323045, "model": "video_model_1", "status": "pending"}"#;
/// let secret = Secret::from_bytes([7; 32]).unwrap();
/// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
/// let signature = secret.sign("msg_1", now, body);
/// let headers = [(ID_HEADER, "msg_1"), (TIMESTAMP_HEADER, &now.to_string()), (SIGNATURE_HEADER, &signature)];
/// verify(body, headers, &[secret])?;
/// # Ok::<(), gatewright::Error>(())
/// ```
pub fn verify<N: AsRef<str>, V: AsRef<[u8]>>(
    body: &[u8],
    headers: impl IntoIterator<Item = (N, V)>,
    secrets: &[Secret],
) -> Result<(), Error> {
    verify_at(SystemTime::now(), body, headers, secrets)?;
    check_record(body)
}

/// Parses a webhook of a gateway that does not sign. Anybody can send one: retrieve the task before you act on it.
///
/// Errors (Decode): as [`unwrap`].
///
/// Source: sections 2.7 and 6 of the specification.
///
/// ```
/// let body = br#"{"id": "video_1", "object": "video", "created": 1767323045, "model": "video_model_1", "status": "pending"}"#;
/// let task = gatewright::webhook::parse_unsigned(body)?;
/// assert_eq!(task.id, "video_1");
/// # Ok::<(), gatewright::Error>(())
/// ```
pub fn parse_unsigned(body: &[u8]) -> Result<VideoTask, Error> {
    bounded(body)?;
    parse(body)
}

/// As [`parse_unsigned`] but returns no value, for front ends that parse the record themselves.
///
/// ```
/// use gatewright::webhook::check_record;
///
/// assert!(check_record(b"{}").is_err());
/// ```
pub fn check_record(body: &[u8]) -> Result<(), Error> {
    /// The members that every record has.
    #[derive(Deserialize)]
    struct Record {
        #[expect(dead_code, reason = "only has to be there")]
        id: String,
        #[expect(dead_code, reason = "only has to be there")]
        status: String,
    }

    bounded(body)?;
    parse::<Record>(body).map(drop)
}

fn bounded(body: &[u8]) -> Result<(), Error> {
    if body.len() > MAX_WEBHOOK_BODY_BYTES {
        let message = format!("the body of the webhook is larger than {MAX_WEBHOOK_BODY_BYTES} bytes");
        return Err(Error::new(ErrorKind::Decode, message));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        Error::new(ErrorKind::Decode, "the body of the webhook is not a task's record")
            .quoting(&error)
            .with_body(body.to_vec().into())
            .caused_by(error)
            // There is no client here, and therefore no key.
            .shown(&Redactor::default())
    })
}

fn verify_at<N: AsRef<str>, V: AsRef<[u8]>>(
    now: SystemTime,
    body: &[u8],
    headers: impl IntoIterator<Item = (N, V)>,
    secrets: &[Secret],
) -> Result<(), Error> {
    bounded(body)?;
    if secrets.is_empty() {
        return Err(Error::new(ErrorKind::Configuration, "there is no webhook secret to verify with"));
    }
    let [id, timestamp, signatures] = read_headers(headers)?;
    check_age(&timestamp, now)?;
    let candidates: Vec<Vec<u8>> = signatures
        .split(' ')
        .filter_map(|signature| signature.strip_prefix(VERSION)?.strip_prefix(','))
        .filter_map(|signature| BASE64_STANDARD.decode(signature).ok())
        .collect();
    for secret in secrets {
        let expected = secret.context(&id, &timestamp, body).sign();
        // The time taken must not reveal how much of a forged signature is correct.
        if candidates.iter().any(|candidate| expected.as_ref().ct_eq(candidate).into()) {
            return Ok(());
        }
    }
    let message = "no signature of the webhook matches a secret: check that the secret is the one of this endpoint, and that \
        the body is exactly the bytes received, not parsed and serialized again";
    Err(refused("no_matching_signature", message))
}

/// Whether a header is one of those that [`unwrap`] and [`verify`] read.
///
/// ```
/// assert!(gatewright::webhook::is_header("webhook-signature"));
/// assert!(!gatewright::webhook::is_header("content-type"));
/// ```
pub fn is_header(name: &str) -> bool {
    place_of(name).is_some()
}

const NAMES: [&str; 3] = [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER];

fn place_of(name: &str) -> Option<usize> {
    NAMES.iter().position(|wanted| wanted.eq_ignore_ascii_case(name))
}

/// Id, timestamp and signatures.
fn read_headers<N: AsRef<str>, V: AsRef<[u8]>>(
    headers: impl IntoIterator<Item = (N, V)>,
) -> Result<[String; 3], Error> {
    let mut found: [Option<String>; 3] = Default::default();
    for (name, value) in headers {
        let Some(index) = place_of(name.as_ref()) else { continue };
        let problem = |code, what| {
            refused(code, &format!("the header {} {what}", NAMES[index])).with_param(NAMES[index])
        };
        if found[index].is_some() {
            return Err(problem("duplicate_header", "appears more than once"));
        }
        let text =
            std::str::from_utf8(value.as_ref()).map_err(|_| problem("invalid_header", "is not text"))?;
        found[index] = Some(text.trim().to_owned());
    }
    let mut values = NAMES.into_iter().zip(found).map(|(name, value)| {
        value.filter(|value| !value.is_empty()).ok_or_else(|| {
            let message = format!("the header {name} is missing: an unsigned webhook is not trustworthy");
            refused("missing_header", &message).with_param(name)
        })
    });
    let mut next = || values.next().expect("one for each name");
    Ok([next()?, next()?, next()?])
}

fn check_age(timestamp: &str, now: SystemTime) -> Result<(), Error> {
    // Only plain digits are accepted: other number parsers might read signs and exponents differently from what was
    // signed.
    let seconds = timestamp.bytes().all(|byte| byte.is_ascii_digit()).then(|| timestamp.parse::<u64>().ok());
    let Some(seconds) = seconds.flatten() else {
        let message = format!("the header {TIMESTAMP_HEADER} is not a number of seconds since 1970");
        return Err(refused("invalid_header", &message).with_param(TIMESTAMP_HEADER));
    };
    let now = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let tolerance = WEBHOOK_TOLERANCE.as_secs();
    if now.saturating_sub(seconds) > tolerance {
        let message = format!(
            "the webhook was signed {} s ago, and {tolerance} s are allowed: it may be a replay",
            now - seconds
        );
        return Err(refused("timestamp_too_old", &message));
    }
    if seconds.saturating_sub(now) > tolerance {
        let message = format!(
            "the webhook was signed {} s in the future, and {tolerance} s are allowed: check this machine's clock",
            seconds - now
        );
        return Err(refused("timestamp_too_new", &message));
    }
    Ok(())
}

fn refused(code: &'static str, message: &str) -> Error {
    Error::new(ErrorKind::WebhookSignature, message).with_code(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const SIGNED_AT: u64 = 1_614_265_330;

    fn secret() -> Secret {
        Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret")
    }

    fn verified(now: u64) -> Result<(), Error> {
        let signature = secret().sign(ID, SIGNED_AT, BODY);
        let timestamp = SIGNED_AT.to_string();
        let headers = [(ID_HEADER, ID), (TIMESTAMP_HEADER, &timestamp), (SIGNATURE_HEADER, &signature)];
        verify_at(SystemTime::UNIX_EPOCH + Duration::from_secs(now), BODY, headers, &[secret()])
    }

    #[test]
    fn signature_matches_the_reference_implementation() {
        assert_eq!(secret().sign(ID, SIGNED_AT, BODY), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn timestamps_within_five_minutes_are_accepted() {
        for allowed in [SIGNED_AT - 300, SIGNED_AT, SIGNED_AT + 300] {
            assert!(verified(allowed).is_ok(), "{allowed}");
        }
        for (refused, code) in [
            (0, "timestamp_too_new"),
            (SIGNED_AT - 301, "timestamp_too_new"),
            (SIGNED_AT + 301, "timestamp_too_old"),
        ] {
            let error = verified(refused).expect_err("rejected");
            assert_eq!((error.kind(), error.code()), (ErrorKind::WebhookSignature, Some(code)), "{error}");
        }
    }
}
