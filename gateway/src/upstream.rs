//! Providers over HTTP: one address, one pool of connections and the keys of each. Nothing else opens connections to
//! providers.

mod connections;
mod look_up;
mod request;
mod retry_after;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright_connect::Pool;
use http::{HeaderName, HeaderValue, Uri, header};
use ring::digest::{SHA256, digest};

pub(crate) use self::look_up::LookUp;
pub(crate) use self::request::{AboutStored, Action, Request, Stored};
pub(crate) use self::retry_after::retry_after;

use self::request::Targets;
use crate::config::{Kind, Upstream};

/// Header with the key, in the messages protocol.
const MESSAGES_KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
/// Header with the key, in the native protocol.
const NATIVE_KEY_HEADER: HeaderName = HeaderName::from_static("x-goog-api-key");

/// Where and how an upstream is called.
pub(crate) struct Endpoint {
    pub(crate) name: Arc<str>,
    /// The name as a header value.
    pub(crate) label: HeaderValue,
    pub(crate) kind: Kind,
    /// Without a slash at its end.
    base: String,
    targets: Targets,
    key_header: HeaderName,
    keys: Vec<HeaderValue>,
    /// A digest of each key, by which it is known again when the list has changed.
    marks: Vec<i64>,
    /// Headers of clients that are passed on.
    passed: Vec<HeaderName>,
    /// Whether it is told which trace its requests are part of.
    pub(crate) sends_trace: bool,
    timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// Knows the keys.
    pub(crate) redactor: Redactor,
    /// None for the embedded provider.
    connections: Option<Pool>,
}

/// Without the keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Why an upstream cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the upstream {name:?} cannot be called: {why}")]
pub(crate) struct InvalidUpstream {
    name: String,
    why: String,
}

/// Why there is no answer, as clients are told. Texts of the HTTP library, without addresses and names of hosts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("it did not begin to answer within {0:?}")]
    Timeout(Duration),
    #[error("{0}")]
    Broken(String),
}

impl Endpoint {
    /// `before`: the endpoint of this name so far; its open connections stay.
    pub(crate) fn new(upstream: &Upstream, before: Option<&Self>) -> Result<Self, InvalidUpstream> {
        let invalid = |why: String| InvalidUpstream { name: upstream.name.clone(), why };
        let label = HeaderValue::try_from(&upstream.name)
            .map_err(|_| invalid("its name must be visible ASCII".to_owned()))?;
        let connections = if upstream.kind == Kind::Simulator {
            None
        } else {
            let server = server(&upstream.base_url).map_err(invalid)?;
            let before = before.and_then(|before| before.connections.as_ref());
            Some(match before.filter(|pool| pool.serves(&server, upstream.connect_timeout)) {
                Some(pool) => pool.clone(),
                None => connections::open(server, upstream.connect_timeout).map_err(invalid)?,
            })
        };
        let (key_header, scheme) = match upstream.kind {
            Kind::Messages => (MESSAGES_KEY_HEADER, ""),
            Kind::Native => (NATIVE_KEY_HEADER, ""),
            _ => (header::AUTHORIZATION, "Bearer "),
        };
        let key = |key: &gatewright::ApiKey| {
            let mut value = HeaderValue::try_from(format!("{scheme}{}", key.expose()))
                .map_err(|_| invalid("a key is no header value".to_owned()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        let base = upstream.base_url.trim_end_matches('/').to_owned();
        let targets = match connections {
            None => Targets::default(),
            Some(_) => Targets::new(&base, upstream.kind).map_err(invalid)?,
        };
        let passed = |name: &String| {
            HeaderName::try_from(name).map_err(|_| invalid(format!("{name:?} is not the name of a header")))
        };
        Ok(Self {
            name: upstream.name.as_str().into(),
            label,
            kind: upstream.kind,
            base,
            targets,
            key_header,
            keys: upstream.keys.iter().map(key).collect::<Result<_, _>>()?,
            marks: upstream.keys.iter().map(|key| mark(key.expose())).collect(),
            passed: upstream.headers.iter().map(passed).collect::<Result<_, _>>()?,
            sends_trace: upstream.sends_trace(),
            timeout: upstream.timeout,
            idle_timeout: upstream.idle_timeout,
            redactor: Redactor::new(upstream.keys.iter().map(gatewright::ApiKey::expose)),
            connections,
        })
    }

    /// Where it is. None for the embedded provider.
    pub(crate) fn address(&self) -> Option<Uri> {
        self.connections.as_ref().and_then(|_| self.base.parse().ok())
    }

    /// The mark of a key.
    pub(crate) fn mark_of(&self, key: usize) -> Option<i64> {
        self.marks.get(key).copied()
    }

    /// The key with a mark, if the upstream still has it.
    pub(crate) fn key_marked(&self, mark: i64) -> Option<usize> {
        self.marks.iter().position(|own| *own == mark)
    }

    /// Sends a request and waits for the head of the answer. Redirects are not followed. `key`: which of the keys. A request that
    /// was lost as the upstream closed an unused connection is sent once more, but not one for a video, which might be made twice.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
        key: Option<usize>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let may_repeat = request.action != Action::Video;
        let request = request.build(self, key).map_err(NoAnswer::Broken)?;
        self.exchange(request, self.timeout, may_repeat).await
    }

    /// The same about a response that the upstream stores. A key that there is no more is replaced by the first. `mark`: of
    /// the key.
    pub(crate) async fn ask_about(
        &self,
        about: AboutStored<'_>,
        mark: Option<i64>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let key = mark.and_then(|mark| self.key_marked(mark)).or(Some(0));
        self.exchange(about.build(self, key).map_err(NoAnswer::Broken)?, self.timeout, true).await
    }

    /// Asks for the state of a video or for its file, and waits for the head of the answer, not for long. Redirects are
    /// not followed. `mark`: of the key; none is sent for an address that grants access by itself. A key that there is no more
    /// is replaced by the last. `id`: of the request that the video is made for.
    pub(crate) async fn look_up(
        &self,
        look_up: LookUp<'_>,
        mark: Option<i64>,
        id: &str,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let key = mark.map(|mark| self.key_marked(mark).unwrap_or(self.keys.len().saturating_sub(1)));
        let request = look_up.build(self, key, id).map_err(NoAnswer::Broken)?;
        self.exchange(request, self.timeout.min(look_up::TIMEOUT), true).await
    }

    /// Asks for a page of the models that the upstream offers. `after`: what the page before says of this one.
    pub(crate) async fn models(
        &self,
        after: Option<&str>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let request = request::model_list(self, after).map_err(NoAnswer::Broken)?;
        self.exchange(request, self.timeout, true).await
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
        timeout: Duration,
        may_repeat: bool,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let Some(connections) = &self.connections else {
            return Err(NoAnswer::Broken("it has no address".to_owned()));
        };
        let sending = async {
            match connections.send(&request).await {
                // Servers close unused connections at any time. It is no failure of the upstream.
                Err(gatewright_connect::Error::Stale) if may_repeat => {
                    Box::pin(connections.send_anew(&request)).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(timeout, sending).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let reason = connections::reason(&error);
                tracing::warn!(upstream = &*self.name, reason = reason.whole, "no answer");
                Err(NoAnswer::Broken(reason.told))
            }
            Err(_) => Err(NoAnswer::Timeout(timeout)),
        }
    }
}

fn mark(key: &str) -> i64 {
    let digest = digest(&SHA256, key.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |beginning| i64::from_be_bytes(*beginning))
}

/// The server of a `base_url`. Errors: it cannot be used.
fn server(base: &str) -> Result<Uri, String> {
    let uri: Uri = base.parse().map_err(|error| format!("its base_url is not a URL: {error}"))?;
    let authority = uri.authority().ok_or("its base_url has no host")?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return Err("its base_url must begin with http:// or https://".to_owned()),
    }
    if authority.as_str().contains('@') {
        return Err("its base_url must not hold a user name or password; use keys".to_owned());
    }
    match uri.query() {
        Some(_) => Err("its base_url must not have a query".to_owned()),
        None => Ok(uri),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_when_it_is_configured() {
        let made = |base: &str| Endpoint::new(&Upstream::new("one", Kind::Chat, base), None).map(|_| ());
        for base in ["http://127.0.0.1:1", "https://api.example/v1", "http://[::1]:8000/v1/"] {
            assert_eq!(made(base), Ok(()), "{base}");
        }
        for base in
            ["", "api.example", "/v1", "ftp://api.example", "https://a:b@api.example", "https://a/?x=1"]
        {
            assert!(made(base).is_err(), "{base}");
        }
    }

    #[test]
    fn keys_are_not_shown() {
        let mut upstream = Upstream::new("one", Kind::Chat, "http://127.0.0.1:1");
        upstream.keys.push(gatewright::ApiKey::new("canary-91").expect("a key"));
        let endpoint = Endpoint::new(&upstream, None).expect("an endpoint");
        assert!(!format!("{endpoint:?} {:?}", endpoint.keys).contains("canary"));
    }
}
