//! Secrets: the API key in a type that does not show it, where it comes from, and what else must not be shown.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use url::Url;

use crate::error::{Error, ErrorKind};
use crate::redact::{REDACTED, Redactor, SHORTEST_DISTINCT};

/// An API key. Neither `Debug` nor any error shows it.
#[derive(Clone)]
pub(crate) struct ApiKey {
    /// Marked sensitive, so that the transport's own logs redact it, too.
    authorization: HeaderValue,
}

impl ApiKey {
    /// Errors: the key is empty, or holds what no header can carry. The message does not quote it.
    pub(crate) fn new(key: &str) -> Result<Self, Error> {
        let key = key.trim();
        if key.is_empty() {
            return Err(Error::new(ErrorKind::Configuration, "the API key is empty"));
        }
        let refuse = || {
            let message = "the API key holds characters other than printable ASCII";
            Error::new(ErrorKind::Configuration, message)
        };
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refuse());
        }
        let mut authorization = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| refuse())?;
        authorization.set_sensitive(true);
        Ok(Self { authorization })
    }

    /// The value of the `Authorization` header (section 5).
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.authorization.clone()
    }
}

/// So many values of an address are looked for in an answer, and so many bytes of them: signed addresses have about
/// ten, in 2 kB.
const MAX_QUERY_VALUES: usize = 32;
const MAX_QUERY_BYTES: usize = 4096;

/// So many keys of a client are remembered: of a provider's, the latest.
const MAX_KNOWN_KEYS: usize = 8;

/// The keys a client has had, to be found wherever a gateway quotes one of them: also one that the attempt at hand
/// does not carry.
#[derive(Default)]
pub(crate) struct KnownKeys(Mutex<VecDeque<HeaderValue>>);

impl KnownKeys {
    pub(crate) fn remember(&self, key: &ApiKey) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.contains(&key.authorization) {
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
        // What is shorter may well be a word of our own messages.
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

/// What is secret of a header's value, whole and in parts, since a service may quote a part alone: what follows a
/// scheme such as Bearer, user and password of Basic (RFC 7617), the values of cookies and other parameters.
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

/// The secrets that a gateway may quote in its answer to a request: the client's keys, and what the request carried.
#[derive(Clone)]
pub(crate) struct Secrets {
    known: Arc<KnownKeys>,
    carried: Arc<[String]>,
    /// Whether they are few and short enough to be looked for one by one in an answer.
    are_bounded: bool,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { known: Arc::default(), carried: Arc::default(), are_bounded: true }
    }
}

impl Secrets {
    pub(crate) fn of(request: &reqwest::Request, known: &Arc<KnownKeys>) -> Self {
        let headers = request.headers().iter();
        let headers = headers.filter(|(name, value)| value.is_sensitive() || is_secret_name(name.as_str()));
        let headers = headers.flat_map(|(_, value)| credentials(value));
        let query = request.url().query_pairs().filter(|(name, _)| is_secret_name(name));
        let carried = headers.chain(query.map(|(_, value)| value.into_owned())).collect();
        Self { known: Arc::clone(known), carried, are_bounded: true }
    }

    /// The client's keys alone.
    pub(crate) fn known(known: &Arc<KnownKeys>) -> Self {
        Self { known: Arc::clone(known), ..Self::default() }
    }

    /// Of a file's address: its query is what gives access.
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

    /// An error as it may be shown. Where there is more that is secret than is looked for, nothing of the answer is.
    pub(crate) fn show(&self, error: Error) -> Error {
        let error = if self.are_bounded { error } else { error.without_answer() };
        error.shown(&self.redactor())
    }

    /// Knows them, and the keys that the client has had since.
    pub(crate) fn redactor(&self) -> Redactor {
        self.known.redactor_with(&self.carried)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Where a client gets its key from when it is not one text for good: a file that rotates, a vault, a token service.
///
/// It is asked once per call; keeping the key between calls is its own affair. A function of this form is one, too.
pub trait ApiKeyProvider: Send + Sync {
    /// The key. `refresh`: the gateway has just refused the one given before (401), so that a new one is needed; it
    /// is asked so at most once per call, and the call is then tried once more.
    ///
    /// Errors: the call fails with it. One that is neither Configuration nor Authentication becomes the source of an
    /// Authentication error.
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

/// One key, or somebody to ask for it.
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
        Ok(key) => ApiKey::new(&key),
        Err(error) if matches!(error.kind(), ErrorKind::Configuration | ErrorKind::Authentication) => {
            Err(error)
        }
        Err(error) => {
            let message = format!("the API key provider failed: {}", error.message());
            Err(Error::new(ErrorKind::Authentication, message).with_source(error))
        }
    }
}

/// The same where brackets would be escaped.
const REDACTED_IN_URL: &str = "redacted";

/// Whether the value of a header or query parameter of this name is taken for a secret.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 6] = ["auth", "cookie", "credential", "passw", "secret", "signature"];

    // Names of headers are in lower case already.
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    let name = if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) };
    // A challenge asks for a secret and holds none.
    let is_challenge = name.ends_with("-authenticate");
    // Tokens are counted: `x-ratelimit-remaining-tokens`.
    let is_token = name.match_indices("token").any(|(at, word)| !name[at + word.len()..].starts_with('s'));
    let is_key = name.ends_with("key") && name != "idempotency-key";
    !is_challenge && WORDS.iter().any(|word| name.contains(word)) || is_token || is_key
}

/// Headers as they may be shown.
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

/// An address as it may be shown: without the values of secret query parameters, without user and password.
pub(crate) fn redacted_url(url: &Url) -> String {
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Neither fails for a URL that has them.
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
    fn the_key_is_not_shown() {
        let key = ApiKey::new("sk-canary").expect("a key");
        assert_eq!(format!("{key:?}"), "[redacted]");
        assert!(!format!("{:?}", key.authorization()).contains("canary"));
        assert_eq!(key.authorization(), "Bearer sk-canary");
    }

    #[test]
    fn the_latest_keys_are_known_and_short_ones_are_not_looked_for() {
        let known = Arc::new(KnownKeys::default());
        for number in 10..20 {
            known.remember(&ApiKey::new(&format!("canary-{number}")).expect("a key"));
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
    fn every_part_of_a_header_that_is_a_secret_is_taken_out() {
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
            let mut request =
                reqwest::Request::new(http::Method::GET, Url::parse("https://h").expect("a URL"));
            request.headers_mut().insert(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
            let redactor = Secrets::of(&request, &Arc::default()).redactor();
            for quoted in quoted {
                assert_eq!(redactor.redact(&format!("wrong: {quoted}!")), "wrong: [redacted]!", "{value}");
            }
            let whole = redactor.redact(&value);
            assert!(!whole.contains("can"), "{whole}");
        }
    }

    #[test]
    fn an_address_of_many_values_is_one_secret_and_nothing_of_the_answer_is_shown() {
        let known = Arc::new(KnownKeys::default());
        let address = |values: usize, value: &str| {
            let query = vec![format!("a={value}"); values].join("&");
            Secrets::of_address(&Url::parse(&format!("https://h/f?{query}")).expect("a URL"), &known)
        };
        let told = |secrets: &Secrets| {
            let body = r#"{"error":{"message":"canary is no signature"}}"#.into();
            secrets.show(Error::from_body(ErrorKind::Status, body, String::new).with_status(403))
        };
        let few = address(MAX_QUERY_VALUES, "canary");
        assert_eq!(few.carried.len(), MAX_QUERY_VALUES);
        assert_eq!(told(&few).message(), "[redacted] is no signature");
        for many in [address(MAX_QUERY_VALUES + 1, "canary"), address(1, &"canary".repeat(1000))] {
            assert_eq!(many.carried.len(), 1);
            let error = told(&many);
            assert!(error.body().is_none() && error.headers().is_none(), "{error}");
            assert!(!error.to_string().contains("canary"), "{error}");
            assert_eq!(error.status(), Some(403));
        }
        let used = allocation_counter::measure(|| {
            let secrets = address(10_000, "canary");
            drop(told(&secrets));
        });
        assert!(used.bytes_total < 4 << 20, "{used:?}");
    }

    #[test]
    fn names_tell_secrets_from_challenges_and_counts() {
        for name in
            ["Authorization", "x-api-key", "x-goog-api-key", "key", "Cookie", "x-auth-token", "password"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in
            ["idempotency-key", "www-authenticate", "x-ratelimit-remaining-tokens", "x-request-id", "date"]
        {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_key_no_header_can_carry_is_refused_without_quoting_it() {
        for text in ["", "  ", "sk canary", "sk-canary\nx", "sk-canäry"] {
            let error = ApiKey::new(text).expect_err(text);
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(!error.to_string().contains("sk"), "{error}");
        }
    }
}
