//! Secrets: the API key in a type that does not show it, its source, and everything else that must not be shown.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::transport::outgoing::Outgoing;
use crate::wire::api_key::ApiKey;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::redact::{REDACTED, Redactor, SHORTEST_DISTINCT};
use crate::wire::secret_names::is_secret_name;

/// Maximum number of values of a URL, and of their bytes, that are searched for in a response. Signed URLs have about
/// ten values, in 2 kB.
const MAX_QUERY_VALUES: usize = 32;
const MAX_QUERY_BYTES: usize = 4096;

/// Maximum number of API keys that a client remembers. If a provider supplies more, the latest are kept.
const MAX_KNOWN_KEYS: usize = 8;

/// The keys that a client has used, so that any of them is redacted wherever a gateway quotes it, even if the current
/// attempt does not carry it.
#[derive(Default)]
pub(crate) struct KnownKeys(Mutex<VecDeque<HeaderValue>>);

impl KnownKeys {
    pub(crate) fn remember(&self, key: &ApiKey) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.contains(&key.authorization()) {
            return;
        }
        if keys.len() == MAX_KNOWN_KEYS {
            keys.pop_front();
        }
        keys.push_back(key.authorization());
    }

    fn redactor_with(&self, others: &[String]) -> Redactor {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let secrets = keys.iter().flat_map(credentials).collect::<Vec<_>>();
        let secrets = secrets.iter().chain(others).map(String::as_str);
        // A shorter secret may well be a word in our own messages.
        Redactor::new(secrets.filter(|secret| secret.len() >= SHORTEST_DISTINCT))
    }
}

impl fmt::Debug for KnownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// With or without padding.
const BASIC: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secret parts of a header's value, as a whole and one by one, because a service may quote a single part: the text
/// after a scheme such as Bearer, the user and password of Basic (RFC 7617), and the values of cookies and other
/// parameters.
fn credentials(value: &HeaderValue) -> Vec<String> {
    let text = String::from_utf8_lossy(value.as_bytes());
    let text = text.trim();
    let (scheme, rest) = text.split_once(' ').map_or(("", text), |(scheme, rest)| (scheme, rest.trim()));
    if scheme.eq_ignore_ascii_case("bearer") {
        return vec![rest.to_owned()];
    }
    let mut secrets = vec![rest.to_owned()];
    if scheme.eq_ignore_ascii_case("basic") {
        if let Ok(decoded) = BASIC.decode(rest) {
            let pair = String::from_utf8_lossy(&decoded).into_owned();
            secrets.extend(
                pair.split_once(':')
                    .into_iter()
                    .flat_map(|(user, password)| [user, password])
                    .map(str::to_owned),
            );
            secrets.push(pair);
        }
        return secrets;
    }
    secrets.push(text.to_owned());
    let parameters = text.split([';', ',']).filter_map(|parameter| parameter.split_once('='));
    secrets.extend(parameters.map(|(_, value)| value.trim().trim_matches('"').to_owned()));
    secrets
}

/// The secrets that a gateway may quote in its response to a request: the client's keys and those in the request.
#[derive(Clone)]
pub(crate) struct Secrets {
    known: Arc<KnownKeys>,
    carried: Arc<[String]>,
    /// Whether the secrets are few and short enough to be searched for one by one in a response.
    are_bounded: bool,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { known: Arc::default(), carried: Arc::default(), are_bounded: true }
    }
}

impl Secrets {
    pub(crate) fn of(request: &Outgoing, known: &Arc<KnownKeys>) -> Self {
        let headers = request.headers.iter();
        let headers = headers.filter(|(name, value)| value.is_sensitive() || is_secret_name(name.as_str()));
        let headers = headers.flat_map(|(_, value)| credentials(value));
        let query = request.url.query_pairs().filter(|(name, _)| is_secret_name(name));
        let carried = headers.chain(query.map(|(_, value)| value.into_owned())).collect();
        Self { known: Arc::clone(known), carried, are_bounded: true }
    }

    /// Only the client's keys.
    pub(crate) fn known(known: &Arc<KnownKeys>) -> Self {
        Self { known: Arc::clone(known), ..Self::default() }
    }

    /// The secrets in a file's address: its query gives access.
    pub(crate) fn of_address(url: &Url, known: &Arc<KnownKeys>) -> Self {
        let query = url.query().unwrap_or_default();
        let are_bounded = query.len() <= MAX_QUERY_BYTES && url.query_pairs().count() <= MAX_QUERY_VALUES;
        let carried = if are_bounded {
            url.query_pairs().map(|(_, value)| value.into_owned()).collect()
        } else {
            [query.to_owned()].into()
        };
        Self { known: Arc::clone(known), carried, are_bounded }
    }

    /// Redacts an error. If there are more secrets than can be searched for, nothing of the response is shown.
    pub(crate) fn show(&self, error: Error) -> Error {
        let error = if self.are_bounded { error } else { error.without_answer() };
        error.shown(&self.redactor())
    }

    /// A redactor for these secrets and for the keys that the client has obtained since.
    pub(crate) fn redactor(&self) -> Redactor {
        self.known.redactor_with(&self.carried)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// The source of a client's key if the key is not a fixed text: a file that rotates, a vault, a token service.
///
/// It is called once per call; it may cache the key between calls. A function with this signature is a provider, too.
///
/// ```
/// use std::sync::Arc;
///
/// use gatewright::{ApiKeyProvider, BoxFuture, Client, Error, ErrorKind};
///
/// /// Reads the key anew for each call.
/// struct FromFile;
///
/// impl ApiKeyProvider for FromFile {
///     fn api_key(&self, _refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
///         let key = std::fs::read_to_string("/run/secrets/gatewright");
///         let key = key.map_err(|error| Error::new(ErrorKind::Authentication, error.to_string()));
///         Box::pin(async { key.map(|key| key.trim().to_owned()) })
///     }
/// }
///
/// let client = Client::builder().api_key_provider(Arc::new(FromFile)).build()?;
/// # Ok::<(), Error>(())
/// ```
pub trait ApiKeyProvider: Send + Sync {
    /// Returns the key. `refresh`: the gateway has just rejected the previous key (401), so a new one is needed. This
    /// happens at most once per call, and the call is then retried once.
    ///
    /// Errors: the call fails with the error. An error that is neither Configuration nor Authentication becomes the
    /// source of an Authentication error.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use gatewright::{ApiKeyProvider, BoxFuture, Error};
    ///
    /// fn keys(refresh: bool) -> BoxFuture<'static, Result<String, Error>> {
    ///     let key = if refresh { "new-key" } else { "old-key" };
    ///     Box::pin(async { Ok(key.to_owned()) })
    /// }
    ///
    /// assert_eq!(keys.api_key(true).await?, "new-key");
    /// # Ok::<(), Error>(())
    /// # }).unwrap();
    /// ```
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>>;
}

impl<F> ApiKeyProvider for F
where
    F: Fn(bool) -> BoxFuture<'static, Result<String, Error>> + Send + Sync,
{
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        self(refresh)
    }
}

/// Errors (Configuration): the text is not a key. The message does not quote it.
pub(crate) fn read_key(key: &str) -> Result<ApiKey, Error> {
    ApiKey::trimmed(key).map_err(|error| Error::new(ErrorKind::Configuration, error.to_string()))
}

/// A fixed key, or a provider to ask for one.
#[derive(Clone)]
pub(crate) enum KeySource {
    Fixed(ApiKey),
    Provider(Arc<dyn ApiKeyProvider>),
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "[redacted]",
            Self::Provider(_) => "[provider]",
        })
    }
}

/// Asks a provider for the key.
pub(crate) async fn provided(provider: &dyn ApiKeyProvider, refresh: bool) -> Result<ApiKey, Error> {
    match provider.api_key(refresh).await {
        Ok(key) => read_key(&key),
        Err(error) if matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Authentication) => {
            Err(error)
        }
        Err(error) => {
            let message = format!("the API key provider failed: {}", error.message());
            Err(Error::new(ErrorKind::Authentication, message).with_source(error))
        }
    }
}

/// The same, for places where brackets would be escaped.
const REDACTED_IN_URL: &str = "redacted";

/// Redacted headers, for display.
pub(crate) struct RedactedHeaders<'a>(pub(crate) &'a HeaderMap);

impl fmt::Debug for RedactedHeaders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|(name, value)| {
            let is_secret = value.is_sensitive() || is_secret_name(name.as_str());
            let value = if is_secret { REDACTED.into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.as_str(), value)
        });
        f.debug_map().entries(shown).finish()
    }
}

/// A redacted address: without the values of secret query parameters and without user name and password.
pub(crate) fn redacted_url(url: &Url) -> String {
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Neither call fails for a URL that has a user name or a password.
        let _ = shown.set_username(REDACTED_IN_URL);
        let _ = shown.set_password(None);
    }
    if url.query().is_some_and(|_| url.query_pairs().any(|(name, _)| is_secret_name(&name))) {
        let pairs = url.query_pairs().map(|(name, value)| {
            let value = if is_secret_name(&name) { REDACTED_IN_URL.into() } else { value };
            (name, value)
        });
        shown.query_pairs_mut().clear().extend_pairs(pairs);
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_redacted_in_debug_output() {
        let key = ApiKey::new("sk-canary").expect("a key");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert!(!format!("{:?}", key.authorization()).contains("canary"));
        assert_eq!(key.authorization(), "Bearer sk-canary");
    }

    #[test]
    fn latest_keys_are_redacted_and_short_ones_ignored() {
        let known = Arc::new(KnownKeys::default());
        for number in 10..20 {
            known.remember(&ApiKey::new(format!("canary-{number}")).expect("a key"));
            known.remember(&ApiKey::new("canary-19").expect("a key"));
        }
        known.remember(&ApiKey::new("short").expect("a key"));
        let secrets = Secrets { known, carried: ["carried-secret".to_owned()].into(), are_bounded: true };
        let text = "canary-11 canary-12 canary-13 canary-19 short carried-secret";
        assert_eq!(
            secrets.redactor().redact(text),
            "canary-11 canary-12 [redacted] [redacted] short [redacted]"
        );
        assert_eq!(format!("{secrets:?}"), "[redacted]");
    }

    #[test]
    fn every_secret_part_of_a_header_is_redacted() {
        let basic = |pair: &str| format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(pair));
        for (name, value, quoted) in [
            ("authorization", "Bearer canary-1".to_owned(), vec!["canary-1"]),
            (
                "cookie",
                "a=canary-1; b=\"canary-2\"; c=canary=3".to_owned(),
                vec!["canary-1", "canary-2", "canary=3"],
            ),
            ("authorization", basic("canary-user:canary:word"), vec!["canary-user", "canary:word"]),
            (
                "proxy-authorization",
                "Digest username=\"canary-1\", response=canary-2".to_owned(),
                vec!["canary-1", "canary-2"],
            ),
            ("x-api-key", "canary-1 and canary-2".to_owned(), vec!["canary-1 and canary-2"]),
            ("x-api-key", "canäry-1".to_owned(), vec!["canäry-1"]),
        ] {
            let mut request = Outgoing::new(http::Method::GET, Url::parse("https://h").expect("a URL"));
            request.headers.insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
            let redactor = Secrets::of(&request, &Arc::default()).redactor();
            for quoted in quoted {
                assert_eq!(redactor.redact(&format!("wrong: {quoted}!")), "wrong: [redacted]!", "{value}");
            }
            let whole = redactor.redact(&value);
            assert!(!whole.contains("can"), "{whole}");
        }
    }

    #[test]
    fn url_with_many_query_values_hides_the_whole_response() {
        let known = Arc::new(KnownKeys::default());
        let address = |values: usize, value: &str| {
            let query = vec![format!("a={value}"); values].join("&");
            Secrets::of_address(&Url::parse(&format!("https://h/f?{query}")).expect("a URL"), &known)
        };
        let quoted = |secrets: &Secrets| {
            let body = r#"{"error":{"message":"canary is no signature"}}"#.into();
            secrets.show(Error::from_body(ErrorKind::Status, body, String::new).with_status(403))
        };
        let few = address(MAX_QUERY_VALUES, "canary");
        assert_eq!(few.carried.len(), MAX_QUERY_VALUES);
        assert_eq!(quoted(&few).message(), "[redacted] is no signature");
        for many in [address(MAX_QUERY_VALUES + 1, "canary"), address(1, &"canary".repeat(1000))] {
            assert_eq!(many.carried.len(), 1);
            let error = quoted(&many);
            assert!(error.body().is_none() && error.headers().is_none(), "{error}");
            assert!(!error.to_string().contains("canary"), "{error}");
            assert_eq!(error.status(), Some(403));
        }
        let used = allocation_counter::measure(|| {
            let secrets = address(10_000, "canary");
            drop(quoted(&secrets));
        });
        assert!(used.bytes_total < 4 << 20, "{used:?}");
    }

    #[test]
    fn key_invalid_in_a_header_is_rejected_without_quoting_it() {
        for text in ["", "  ", "sk canary", "sk-canary\nx", "sk-canäry"] {
            let error = read_key(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(!error.to_string().contains("sk"), "{error}");
        }
    }
}
