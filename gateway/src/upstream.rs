//! Providers over HTTP: one address, one pool of connections and the keys of each. Nothing else opens connections to
//! providers.

mod connections;
mod request;
mod retry_after;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use gatewright::redact::Redactor;
use http::{HeaderName, HeaderValue, Uri, header};
use hyper::body::Incoming;

pub(crate) use self::request::{Action, Request};
pub(crate) use self::retry_after::retry_after;

use self::connections::Connections;
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
    key_header: HeaderName,
    keys: Vec<HeaderValue>,
    /// Headers of clients that are passed on.
    passed: Vec<HeaderName>,
    timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// Knows the keys.
    pub(crate) redactor: Redactor,
    /// None for the embedded provider.
    connections: Option<Connections>,
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

/// Why there is no answer. Texts of the HTTP library, without the address.
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
        let connections = match (upstream.kind, before) {
            (Kind::Simulator, _) => None,
            (_, Some(before)) if before.connections.is_some() => before.connections.clone(),
            _ => Some(connections::open(upstream.connect_timeout).map_err(invalid)?),
        };
        if connections.is_some() {
            check_base(&upstream.base_url).map_err(invalid)?;
        }
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
        let passed = |name: &String| {
            HeaderName::try_from(name).map_err(|_| invalid(format!("{name:?} is not the name of a header")))
        };
        Ok(Self {
            name: upstream.name.as_str().into(),
            label,
            kind: upstream.kind,
            base: upstream.base_url.trim_end_matches('/').to_owned(),
            key_header,
            keys: upstream.keys.iter().map(key).collect::<Result<_, _>>()?,
            passed: upstream.headers.iter().map(passed).collect::<Result<_, _>>()?,
            timeout: upstream.timeout,
            idle_timeout: upstream.idle_timeout,
            redactor: Redactor::new(upstream.keys.iter().map(gatewright::ApiKey::expose)),
            connections,
        })
    }

    /// Sends a request and waits for the head of the answer. Redirects are not followed. `key`: which of the keys.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
        key: Option<usize>,
    ) -> Result<http::Response<Incoming>, NoAnswer> {
        let Some(connections) = &self.connections else {
            return Err(NoAnswer::Broken("it has no address".to_owned()));
        };
        let request = request.build(self, key).map_err(NoAnswer::Broken)?;
        match tokio::time::timeout(self.timeout, connections.request(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(NoAnswer::Broken(connections::reason(&error))),
            Err(_) => Err(NoAnswer::Timeout(self.timeout)),
        }
    }
}

fn check_base(base: &str) -> Result<(), String> {
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
        None => Ok(()),
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
