//! Providers over HTTP: each has an address, a connection pool and keys. Nothing else opens connections to providers.

mod connections;
mod credential;
mod envelope;
mod escaping;
mod key_place;
mod keys;
mod look_up;
#[cfg(test)]
mod preset_tests;
mod rate_limit;
mod request;
mod retry_after;
mod signing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright_config::{Kind, RequestSetting, UpstreamConfig};
use gatewright_connect::Pool;
use gatewright_protocol::Action;
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use percent_encoding::utf8_percent_encode;

pub(crate) use self::look_up::LookUp;
pub(crate) use self::rate_limit::tokens_left;
pub(crate) use self::request::{ObjectRequest, PageStart, Request, StoredAction, StoredResponseRequest};
pub(crate) use self::retry_after::retry_after;

use self::envelope::RequestEnvelope;
use self::escaping::SEGMENT;
use self::key_place::AttachedKey;
use self::keys::UpstreamKeys;
use self::request::Targets;

/// Header with the name of an error, where the request is signed for AWS.
const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");

/// How to reach an upstream.
pub(crate) struct Endpoint {
    pub(crate) name: Arc<str>,
    /// The name as a header value.
    pub(crate) label: HeaderValue,
    pub(crate) kind: Kind,
    /// Without a trailing slash.
    base: String,
    targets: Targets,
    envelope: RequestEnvelope,
    keys: UpstreamKeys,
    /// Headers added to each request.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Query parameters added to each request, encoded.
    query: String,
    /// Client headers that are passed on.
    passed: Vec<HeaderName>,
    /// Whether requests carry trace headers.
    pub(crate) sends_trace: bool,
    /// Whether a request that a reused connection loses is sent once more, although the upstream may have read it.
    retries_lost: bool,
    pub(crate) timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// Knows the keys.
    pub(crate) redactor: Redactor,
    /// None for the embedded provider.
    connections: Option<Pool>,
}

/// Omits the keys.
impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Endpoint")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// Why an upstream can't be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the upstream {name:?} cannot be called: {why}")]
pub(crate) struct InvalidUpstream {
    name: String,
    why: String,
}

/// Why there is no answer, as reported to clients. Contains texts of the HTTP library, but no addresses or host names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("it did not start to respond within {0:?}")]
    Timeout(Duration),
    #[error("{0}")]
    Broken(String),
}

impl Endpoint {
    /// `before`: the previous endpoint of this name; its open connections are kept.
    pub(crate) fn new(upstream: &UpstreamConfig, before: Option<&Self>) -> Result<Self, InvalidUpstream> {
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
        let keys = UpstreamKeys::new(upstream, before.map(|before| &before.keys)).map_err(invalid)?;
        let base = upstream.base_url.trim_end_matches('/').to_owned();
        let query = query(&upstream.set_query);
        let targets = match connections {
            None => Targets::default(),
            Some(_) => Targets::new(&base, upstream, &query).map_err(invalid)?,
        };
        let headers = upstream.set_headers.iter().map(header);
        let secrets = upstream.set_headers.iter().chain(&upstream.set_query);
        let secrets = secrets.filter(|setting| setting.is_secret).map(|setting| setting.value.as_str());
        let secrets = upstream.keys.iter().map(gatewright::ApiKey::expose).chain(secrets);
        let passed = |name: &String| {
            HeaderName::try_from(name).map_err(|_| invalid(format!("{name:?} is not the name of a header")))
        };
        Ok(Self {
            name: upstream.name.as_str().into(),
            label,
            kind: upstream.kind,
            base,
            targets,
            envelope: RequestEnvelope::new(&upstream.envelope),
            headers: headers.collect::<Result<_, _>>().map_err(invalid)?,
            query,
            passed: upstream.headers.iter().map(passed).collect::<Result<_, _>>()?,
            sends_trace: upstream.sends_trace(),
            retries_lost: upstream.retry_lost,
            timeout: upstream.timeout,
            idle_timeout: upstream.idle_timeout,
            redactor: Redactor::new(secrets).also_knowing(keys.changing_secrets()),
            keys,
            connections,
        })
    }

    /// Its address. None for the embedded provider.
    pub(crate) fn address(&self) -> Option<Uri> {
        self.connections.as_ref().and_then(|_| self.base.parse().ok())
    }

    /// The mark of a key.
    pub(crate) fn mark_of(&self, key: usize) -> Option<i64> {
        self.keys.mark_of(key)
    }

    /// The key with a mark, if the upstream still has it.
    pub(crate) fn key_marked(&self, mark: i64) -> Option<usize> {
        self.keys.marked(mark)
    }

    /// Sends a request and waits for the response head. Redirects are not followed. `key`: the index of the key. A request that
    /// is lost because the upstream closes a reused connection is sent once more only if the configuration allows it, since the
    /// upstream may have read it and charge for it. A video never is; a count of tokens always is, because it is free. A request
    /// whose key the upstream rejected is also sent once more, as soon as the source has provided another key.
    pub(crate) async fn send(
        &self,
        request: Request<'_>,
        key: Option<usize>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let may_repeat = match request.action {
            Action::CountTokens => true,
            Action::Video => false,
            Action::Answer { .. } | Action::Compact | Action::Plain(_) | Action::Image => self.retries_lost,
        };
        self.keys.ready().await?;
        let since = self.keys.since();
        let built = request.build(self, key).map_err(NoAnswer::Broken)?;
        let answer = self.exchange(built, self.timeout, may_repeat).await?;
        if rejects_key(&answer) && self.keys.replaced(since).await {
            drop(answer);
            let built = request.build(self, key).map_err(NoAnswer::Broken)?;
            return self.exchange(built, self.timeout, may_repeat).await;
        }
        Ok(answer)
    }

    /// The same for a response that the upstream stores. A key that no longer exists is replaced by the first one. `mark`: of the
    /// key.
    pub(crate) async fn ask_about(
        &self,
        about: StoredResponseRequest<'_>,
        mark: Option<i64>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let key = mark.and_then(|mark| self.key_marked(mark)).or(Some(0));
        self.keys.ready().await?;
        self.exchange(about.build(self, key).map_err(NoAnswer::Broken)?, self.timeout, true).await
    }

    /// The same for a file or a batch. What changes something at the upstream is sent only once.
    pub(crate) async fn ask_about_object(
        &self,
        about: ObjectRequest<'_>,
        mark: Option<i64>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let key = mark.and_then(|mark| self.key_marked(mark)).or(Some(0));
        self.keys.ready().await?;
        let may_repeat = about.method != http::Method::POST;
        self.exchange(about.build(self, key).map_err(NoAnswer::Broken)?, self.timeout, may_repeat).await
    }

    /// Requests the state or the file of a video, and waits for the response head, with a short timeout. Redirects are not
    /// followed. `mark`: of the key; none is sent to an address that grants access by itself. A key that no longer exists is
    /// replaced by the last one. `id`: of the request that the video is made for.
    pub(crate) async fn look_up(
        &self,
        look_up: LookUp<'_>,
        mark: Option<i64>,
        id: &str,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        let key = mark.map(|mark| self.key_marked(mark).unwrap_or(self.keys.count().saturating_sub(1)));
        self.keys.ready().await?;
        let request = look_up.build(self, key, id).map_err(NoAnswer::Broken)?;
        self.exchange(request, self.timeout.min(look_up::TIMEOUT), true).await
    }

    /// Requests a page of the upstream's model list. `start`: `None` for the first one.
    pub(crate) async fn models(
        &self,
        start: Option<&PageStart>,
    ) -> Result<http::Response<gatewright_connect::Body>, NoAnswer> {
        self.keys.ready().await?;
        let request = request::model_list(self, start).map_err(NoAnswer::Broken)?;
        self.exchange(request, self.timeout, true).await
    }

    /// `may_repeat`: whether the upstream may get the request twice.
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
                // Servers close idle connections at any time, also as the next request is on its way.
                Err(gatewright_connect::Error::Stale) if may_repeat => {
                    Box::pin(connections.send_anew(&request)).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(timeout, sending).await {
            Ok(Ok(answer)) => {
                if rejects_key(&answer) {
                    self.keys.refused();
                }
                Ok(answer)
            }
            Ok(Err(error)) => {
                let reason = connections::reason(&error);
                tracing::warn!(upstream = &*self.name, reason = reason.whole, "no answer");
                Err(NoAnswer::Broken(reason.for_clients))
            }
            Err(_) => Err(NoAnswer::Timeout(timeout)),
        }
    }

    /// An address of the upstream with the query parameters of each request, and with the key if it belongs there.
    fn uri(&self, mut address: String, key: Option<&AttachedKey>) -> Result<Uri, String> {
        extend_query(&mut address, &self.query);
        if let Some(AttachedKey::Query(parameter)) = key {
            extend_query(&mut address, parameter);
        }
        request::uri(&address)
    }
}

/// Whether an upstream rejects the key itself, rather than an action that the key does not permit. AWS answers expired
/// credentials with 403.
fn rejects_key<B>(answer: &http::Response<B>) -> bool {
    let is_expired = || {
        let error =
            answer.headers().get(&ERROR_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        ["ExpiredToken", "UnrecognizedClient"].iter().any(|beginning| error.starts_with(beginning))
    };
    match answer.status() {
        StatusCode::UNAUTHORIZED => true,
        StatusCode::FORBIDDEN | StatusCode::BAD_REQUEST => is_expired(),
        _ => false,
    }
}

/// A header added to each request. Errors: it is invalid; never quotes its value.
fn header(setting: &RequestSetting) -> Result<(HeaderName, HeaderValue), String> {
    let name = HeaderName::try_from(&setting.name)
        .map_err(|_| format!("{:?} is not the name of a header", setting.name))?;
    let mut value = HeaderValue::try_from(&setting.value)
        .map_err(|_| format!("the value of the header {name} is not visible ASCII"))?;
    value.set_sensitive(setting.is_secret);
    Ok((name, value))
}

/// Parameters encoded for a query.
fn query(settings: &[RequestSetting]) -> String {
    let encoded = |text| utf8_percent_encode(text, SEGMENT);
    let each = settings.iter().map(|set| format!("{}={}", encoded(&set.name), encoded(&set.value)));
    each.collect::<Vec<_>>().join("&")
}

/// Adds parameters to the query of an address.
fn extend_query(address: &mut String, parameters: &str) {
    if !parameters.is_empty() {
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(parameters);
    }
}

/// The server of a `base_url`. Errors: it can't be used.
fn server(base: &str) -> Result<Uri, String> {
    let uri: Uri = base.parse().map_err(|error| format!("its base_url is not a URL: {error}"))?;
    let authority = uri.authority().ok_or("its base_url has no host")?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        _ => return Err("its base_url must begin with http:// or https://".to_owned()),
    }
    if authority.as_str().contains('@') {
        return Err("its base_url must not contain a user name or password; use keys".to_owned());
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
    fn base_url_is_validated() {
        let made =
            |base: &str| Endpoint::new(&UpstreamConfig::new("one", Kind::Chat, base), None).map(|_| ());
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
    fn debug_output_hides_keys() {
        let mut upstream = UpstreamConfig::new("one", Kind::Chat, "http://127.0.0.1:1");
        upstream.keys.push(gatewright::ApiKey::new("canary-91").expect("a key"));
        let endpoint = Endpoint::new(&upstream, None).expect("an endpoint");
        assert!(!format!("{endpoint:?} {:?}", endpoint.keys).contains("canary"));
    }
}
