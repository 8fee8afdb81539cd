//! Builds the request to an upstream: its path, key, and the headers that it may see.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::SystemTime;

use bytes::Bytes;
use gatewright_config::{Kind, Paths, UpstreamConfig};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::{Action, ModelListQuery, PlainAction};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use percent_encoding::utf8_percent_encode;

use uuid::Uuid;

use super::escaping::SEGMENT;
use super::key_place::AttachedKey;
use super::{Endpoint, extend_query};

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("gatewright/", env!("CARGO_PKG_VERSION")));
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Operations on a response that an upstream stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredAction {
    Retrieve,
    Delete,
    InputItems,
}

/// A request about a response that an upstream stores.
#[derive(Debug)]
pub(crate) struct StoredResponseRequest<'a> {
    pub(crate) action: StoredAction,
    /// The id of the response.
    pub(crate) response: &'a str,
    /// The client's query.
    pub(crate) query: &'a [(String, String)],
    /// The client's headers; those on the allow list are passed on.
    pub(crate) client: &'a HeaderMap,
    /// The id of the client's request.
    pub(crate) id: &'a str,
}

/// A request about a file or a batch that an upstream has, or is to have.
#[derive(Debug)]
pub(crate) struct ObjectRequest<'a> {
    pub(crate) method: Method,
    /// The segments of its path: `["files", "file-1", "content"]`.
    pub(crate) path: &'a [&'a str],
    pub(crate) body: Bytes,
    /// The media type of the body, if there is one.
    pub(crate) media_type: Option<HeaderValue>,
    /// The client's headers; those on the allow list are passed on.
    pub(crate) client: &'a HeaderMap,
    /// The id of the client's request.
    pub(crate) id: &'a str,
}

/// A request to an upstream.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) action: Action,
    /// The upstream's name for the model.
    pub(crate) model: &'a str,
    pub(crate) body: Bytes,
    /// The media type of the body, if it is a form. `None`: it is JSON.
    pub(crate) form: Option<&'a HeaderValue>,
    /// The client's headers; those on the allow list are passed on.
    pub(crate) client: &'a HeaderMap,
    /// Whether the client also speaks this protocol.
    pub(crate) relayed: bool,
    /// The id of the client's request.
    pub(crate) id: &'a str,
    /// Headers that let the upstream continue the trace.
    pub(crate) trace: Option<&'a HeaderMap>,
}

impl Request<'_> {
    pub(super) fn build(
        &self,
        endpoint: &Endpoint,
        key: Option<usize>,
    ) -> Result<http::Request<Bytes>, String> {
        let client = self.relayed.then_some(self.client);
        let body = match self.form {
            // Servers that have the model in the path accept it in a form, too.
            Some(_) => self.body.clone(),
            None => endpoint.envelope.body(self.action, self.body.clone(), client)?,
        };
        let mut request = http::Request::new(body);
        *request.method_mut() = Method::POST;
        let key = endpoint.keys.get(key);
        let ready = endpoint.targets.of(self.protocol, self.action);
        let ready = ready.filter(|_| !matches!(key, Some(AttachedKey::Query(_))));
        *request.uri_mut() = if let Some(target) = ready {
            target.clone()
        } else {
            let address = match endpoint.envelope.path(self.action, self.model) {
                Some(path) => format!("{}{path}", endpoint.base),
                None => address(&endpoint.base, endpoint.kind, self.protocol, self.action, self.model),
            };
            endpoint.uri(address, key.as_ref())?
        };
        let headers = request.headers_mut();
        headers.reserve(12);
        pass_allowed(self.client, headers, endpoint);
        let binding = self.protocol.binding();
        if let Some((name, value)) = binding.version_header {
            let name = HeaderName::from_static(name);
            headers.insert(name.clone(), HeaderValue::from_static(value));
            if self.relayed {
                pass(self.client, headers, &name);
            }
        }
        if let Some(name) = binding.beta_header.filter(|_| self.relayed && !endpoint.envelope.betas_in_body) {
            pass(self.client, headers, &HeaderName::from_static(name));
        }
        let media_type = self.form.cloned().unwrap_or(HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_TYPE, media_type);
        let accepted = match self.action {
            Action::Answer { stream: true } => binding.stream.media_type,
            // Errors are JSON, sounds of any type; a transcript may be text or events.
            Action::Plain(PlainAction::Speak | PlainAction::Transcribe | PlainAction::Translate) => "*/*",
            _ => "application/json",
        };
        headers.insert(header::ACCEPT, HeaderValue::from_static(accepted));
        // Encoded responses are decoded anyway.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in self.trace.into_iter().flatten() {
            headers.insert(name.clone(), value.clone());
        }
        introduce(&mut request, self.id, endpoint, key)?;
        Ok(request)
    }
}

/// The addresses for turns of conversations, built once, because these are most requests.
#[derive(Debug, Default)]
pub(super) struct Targets(Vec<(Protocol, Uri)>);

impl Targets {
    /// Errors: the endpoint's address is invalid.
    pub(super) fn new(base: &str, upstream: &UpstreamConfig, query: &str) -> Result<Self, String> {
        let (kind, turn) = (upstream.kind, Action::Answer { stream: false });
        let Paths { answer, stream, .. } = &upstream.envelope.paths;
        if answer.is_some() || stream.is_some() {
            return Ok(Self::default());
        }
        let mut targets = Vec::new();
        for &protocol in kind.protocols() {
            let mut address = address(base, kind, protocol, turn, "");
            extend_query(&mut address, query);
            let target = uri(&address)?;
            if !protocol.binding().model_in_path {
                targets.push((protocol, target));
            }
        }
        Ok(Self(targets))
    }

    /// None if the upstream has its own path or the path contains the model, and for rare operations.
    fn of(&self, protocol: Protocol, action: Action) -> Option<&Uri> {
        let is_turn = matches!(action, Action::Answer { .. });
        self.0.iter().find(|(named, _)| is_turn && *named == protocol).map(|(_, target)| target)
    }
}

/// The address of an operation.
fn address(base: &str, kind: Kind, protocol: Protocol, action: Action, model: &str) -> String {
    let version = version(kind, protocol);
    if action == Action::Video {
        return format!("{base}{version}{}", videos(kind));
    }
    let model: Cow<'_, str> = utf8_percent_encode(model, SEGMENT).into();
    format!("{base}{version}{}", protocol.path(action, &model))
}

impl StoredResponseRequest<'_> {
    pub(super) fn build(
        self,
        endpoint: &Endpoint,
        key: Option<usize>,
    ) -> Result<http::Request<Bytes>, String> {
        let mut request = http::Request::new(Bytes::new());
        if self.action == StoredAction::Delete {
            *request.method_mut() = Method::DELETE;
        }
        let key = endpoint.keys.get(key);
        *request.uri_mut() = endpoint.uri(self.address(endpoint), key.as_ref())?;
        let headers = request.headers_mut();
        pass_allowed(self.client, headers, endpoint);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        introduce(&mut request, self.id, endpoint, key)?;
        Ok(request)
    }

    fn address(&self, endpoint: &Endpoint) -> String {
        let version = version(endpoint.kind, Protocol::Responses);
        let id = utf8_percent_encode(self.response, SEGMENT);
        let mut address = format!("{}{version}/responses/{id}", endpoint.base);
        if self.action == StoredAction::InputItems {
            address.push_str("/input_items");
        }
        for (index, (name, value)) in self.query.iter().enumerate() {
            let mark = if index == 0 { '?' } else { '&' };
            let (name, value) = (utf8_percent_encode(name, SEGMENT), utf8_percent_encode(value, SEGMENT));
            _ = write!(address, "{mark}{name}={value}");
        }
        address
    }
}

impl ObjectRequest<'_> {
    pub(super) fn build(
        self,
        endpoint: &Endpoint,
        key: Option<usize>,
    ) -> Result<http::Request<Bytes>, String> {
        let mut address = format!("{}{}", endpoint.base, version(endpoint.kind, Protocol::Chat));
        for segment in self.path {
            _ = write!(address, "/{}", utf8_percent_encode(segment, SEGMENT));
        }
        let mut request = http::Request::new(self.body);
        *request.method_mut() = self.method;
        let key = endpoint.keys.get(key);
        *request.uri_mut() = endpoint.uri(address, key.as_ref())?;
        let headers = request.headers_mut();
        pass_allowed(self.client, headers, endpoint);
        if let Some(media_type) = self.media_type {
            headers.insert(header::CONTENT_TYPE, media_type);
        }
        // The content of a file may be anything.
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        introduce(&mut request, self.id, endpoint, key)?;
        Ok(request)
    }
}

/// Where a further page of a model list begins, according to the previous page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageStart {
    /// After a cursor of the protocol.
    Cursor(String),
    /// At the query of an address. The rest of that address doesn't matter: the key is only sent to the upstream's own.
    Query(String),
}

/// A page of the model list. `start`: `None` for the first one.
pub(super) fn model_list(
    endpoint: &Endpoint,
    start: Option<&PageStart>,
) -> Result<http::Request<Bytes>, String> {
    let protocol = endpoint.kind.main_protocol();
    let (base, version, binding) = (&endpoint.base, version(endpoint.kind, protocol), protocol.binding());
    let ModelListQuery { size, cursor } = binding.model_list;
    let mut address = format!("{base}{version}/models");
    match start {
        Some(PageStart::Query(query)) => extend_query(&mut address, query),
        Some(PageStart::Cursor(after)) => {
            address.push_str(size);
            if let Some(cursor) = cursor {
                _ = write!(address, "&{cursor}={}", utf8_percent_encode(after, SEGMENT));
            }
        }
        None => address.push_str(size),
    }
    let mut request = http::Request::new(Bytes::new());
    let key = endpoint.keys.get(Some(0));
    *request.uri_mut() = endpoint.uri(address, key.as_ref())?;
    let headers = request.headers_mut();
    if let Some((name, value)) = binding.version_header {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    introduce(&mut request, &format!("req_{}", Uuid::new_v4().simple()), endpoint, key)?;
    Ok(request)
}

pub(super) fn uri(address: &str) -> Result<Uri, String> {
    address.parse().map_err(|error| format!("the address of the request is not valid: {error}"))
}

/// Another gateway uses the paths of the specification, including the version.
fn version(kind: Kind, protocol: Protocol) -> &'static str {
    if kind == Kind::Gatewright { protocol.binding().version_path } else { "" }
}

/// Adds the user agent, the id of the client's request, the headers of each request, and the key or the signature: nothing of
/// the request may change afterwards. Errors: it cannot be signed.
pub(super) fn introduce(
    request: &mut http::Request<Bytes>,
    id: &str,
    endpoint: &Endpoint,
    key: Option<AttachedKey>,
) -> Result<(), String> {
    let headers = request.headers_mut();
    headers.insert(header::USER_AGENT, USER_AGENT);
    if let Ok(id) = HeaderValue::try_from(id) {
        headers.insert(REQUEST_ID, id);
    }
    for (name, value) in &endpoint.headers {
        headers.insert(name.clone(), value.clone());
    }
    match key {
        Some(AttachedKey::Header(name, value)) => {
            headers.insert(name, value);
            Ok(())
        }
        Some(AttachedKey::Signature(signer)) => {
            signer.sign(request, SystemTime::now()).map_err(|error| error.to_string())
        }
        Some(AttachedKey::Query(_)) | None => Ok(()),
    }
}

/// Passes on the client headers that the upstream may see.
fn pass_allowed(client: &HeaderMap, headers: &mut HeaderMap, endpoint: &Endpoint) {
    for name in &endpoint.passed {
        pass(client, headers, name);
    }
}

/// Where an upstream accepts videos.
pub(super) fn videos(kind: Kind) -> &'static str {
    if kind == Kind::Gatewright { "/videos/generations" } else { "/videos" }
}

/// Passes on a client header, with all its values.
fn pass(client: &HeaderMap, headers: &mut HeaderMap, name: &HeaderName) {
    let mut values = client.get_all(name).iter();
    if let Some(first) = values.next() {
        headers.insert(name.clone(), first.clone());
        for further in values {
            headers.append(name.clone(), further.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright::ApiKey;

    fn endpoint(kind: Kind) -> Endpoint {
        let mut upstream = UpstreamConfig::new("one", kind, "http://127.0.0.1:1/base/");
        upstream.keys = vec![ApiKey::new("k1").expect("a key"), ApiKey::new("k2").expect("a key")];
        upstream.headers = vec!["x-passed".to_owned()];
        Endpoint::new(&upstream, None).expect("an endpoint")
    }

    fn built(kind: Kind, protocol: Protocol, action: Action, client: &HeaderMap) -> http::Request<Bytes> {
        let endpoint = endpoint(kind);
        let body = Bytes::from_static(b"{}");
        Request {
            protocol,
            action,
            model: "a/b?c",
            body,
            form: None,
            client,
            relayed: true,
            id: "req_1",
            trace: None,
        }
        .build(&endpoint, Some(1))
        .expect("a request")
    }

    #[test]
    fn each_protocol_has_its_path_and_key_header() {
        let answer = Action::Answer { stream: false };
        let stream = Action::Answer { stream: true };
        for (kind, protocol, action, path, header, key) in [
            (Kind::Chat, Protocol::Chat, stream, "/base/chat/completions", "authorization", "Bearer k2"),
            (Kind::Responses, Protocol::Responses, answer, "/base/responses", "authorization", "Bearer k2"),
            (Kind::Messages, Protocol::Messages, answer, "/base/messages", "x-api-key", "k2"),
            (
                Kind::Native,
                Protocol::Native,
                stream,
                "/base/models/a%2Fb%3Fc:streamGenerateContent?alt=sse",
                "x-goog-api-key",
                "k2",
            ),
            (
                Kind::Gatewright,
                Protocol::Native,
                Action::CountTokens,
                "/base/v1beta/models/a%2Fb%3Fc:countTokens",
                "authorization",
                "Bearer k2",
            ),
            (
                Kind::Gatewright,
                Protocol::Chat,
                answer,
                "/base/v1/chat/completions",
                "authorization",
                "Bearer k2",
            ),
            (
                Kind::Chat,
                Protocol::Chat,
                Action::Image,
                "/base/images/generations",
                "authorization",
                "Bearer k2",
            ),
            (
                Kind::Responses,
                Protocol::Chat,
                Action::Plain(PlainAction::Embed { list: true }),
                "/base/embeddings",
                "authorization",
                "Bearer k2",
            ),
            (
                Kind::Native,
                Protocol::Native,
                Action::Plain(PlainAction::Embed { list: true }),
                "/base/models/a%2Fb%3Fc:batchEmbedContents",
                "x-goog-api-key",
                "k2",
            ),
            (Kind::Responses, Protocol::Chat, Action::Video, "/base/videos", "authorization", "Bearer k2"),
            (
                Kind::Gatewright,
                Protocol::Chat,
                Action::Video,
                "/base/v1/videos/generations",
                "authorization",
                "Bearer k2",
            ),
        ] {
            let request = built(kind, protocol, action, &HeaderMap::new());
            assert_eq!(request.uri().path_and_query().map(ToString::to_string).as_deref(), Some(path));
            assert_eq!(request.headers()[header], key);
            assert!(request.headers()[header].is_sensitive());
        }
    }

    #[test]
    fn configured_key_place_headers_and_query_are_sent() {
        use gatewright_config::{KeyPlace, RequestSetting};

        let request = |place: KeyPlace, action: Action| {
            let mut upstream = UpstreamConfig::new("one", Kind::Chat, "http://127.0.0.1:1/base");
            upstream.keys = vec![ApiKey::new("k&1").expect("a key")];
            upstream.key_place = Some(place);
            upstream.set_headers = vec![
                RequestSetting::new("x-title", "Our programs"),
                RequestSetting::secret("user-agent", "canary"),
            ];
            upstream.set_query =
                vec![RequestSetting::new("api-version", "v 1"), RequestSetting::secret("team", "canary")];
            let endpoint = Endpoint::new(&upstream, None).expect("an endpoint");
            let (client, body) = (HeaderMap::new(), Bytes::new());
            let (protocol, model) = (Protocol::Chat, "m");
            Request {
                protocol,
                action,
                model,
                body,
                form: None,
                client: &client,
                relayed: true,
                id: "req_1",
                trace: None,
            }
            .build(&endpoint, Some(0))
            .expect("a request")
        };
        let target = |request: &http::Request<Bytes>| {
            request.uri().path_and_query().map(ToString::to_string).unwrap_or_default()
        };
        let turn = Action::Answer { stream: false };
        let in_header = request(KeyPlace::header("x-token", "Token "), turn);
        assert_eq!(target(&in_header), "/base/chat/completions?api-version=v%201&team=canary");
        let headers = in_header.headers();
        assert_eq!(headers["x-token"], "Token k&1");
        assert_eq!(headers["x-title"], "Our programs");
        assert_eq!(headers["user-agent"], "canary", "the operator's setting overrides the gateway's");
        assert!(headers["x-token"].is_sensitive() && headers["user-agent"].is_sensitive());
        assert!(!headers.contains_key("authorization"));
        let in_query = request(KeyPlace::Query("the key".to_owned()), turn);
        let query = "?api-version=v%201&team=canary&the%20key=k%261";
        assert_eq!(target(&in_query), format!("/base/chat/completions{query}"));
        assert!(!in_query.headers().values().any(|value| value.as_bytes().ends_with(b"k&1")));
        let image = request(KeyPlace::Query("the key".to_owned()), Action::Image);
        assert_eq!(target(&image), format!("/base/images/generations{query}"));
    }

    #[test]
    fn stored_response_requests_use_its_id_and_the_clients_query() {
        let (client, endpoint) = (HeaderMap::new(), endpoint(Kind::Gatewright));
        let query = [("after".to_owned(), "msg_1&x=é".to_owned()), ("limit".to_owned(), "2".to_owned())];
        for (action, query, method, path) in [
            (StoredAction::Retrieve, &query[..0], Method::GET, "/base/v1/responses/resp_1"),
            (StoredAction::Delete, &query[..0], Method::DELETE, "/base/v1/responses/resp_1"),
            (
                StoredAction::InputItems,
                &query[..],
                Method::GET,
                "/base/v1/responses/resp_1/input_items?after=msg_1%26x%3D%C3%A9&limit=2",
            ),
        ] {
            let about =
                StoredResponseRequest { action, response: "resp_1", query, client: &client, id: "req_1" };
            let request = about.build(&endpoint, Some(0)).expect("a request");
            assert_eq!(request.uri().path_and_query().map(ToString::to_string).as_deref(), Some(path));
            assert_eq!(*request.method(), method);
            assert_eq!(request.headers()["authorization"], "Bearer k1");
        }
    }

    #[test]
    fn only_allowed_client_headers_are_forwarded() {
        let mut client = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer client"),
            ("cookie", "a=b"),
            ("x-passed", "yes"),
            ("x-other", "no"),
            ("user-agent", "curl"),
            ("connection", "x-passed"),
            ("anthropic-beta", "tools-1"),
        ] {
            client.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let answer = Action::Answer { stream: false };
        let request = built(Kind::Messages, Protocol::Messages, answer, &client);
        let mut names: Vec<&str> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "accept-encoding",
            "anthropic-beta",
            "anthropic-version",
            "content-type",
            "user-agent",
            "x-api-key",
            "x-passed",
            "x-request-id",
        ];
        assert_eq!(names, expected);
        assert!(request.headers()["user-agent"].as_bytes().starts_with(b"gatewright/"));
        let request = built(Kind::Chat, Protocol::Chat, answer, &client);
        assert!(!request.headers().contains_key("anthropic-beta"));
        assert_eq!(request.headers()["authorization"], "Bearer k2");
    }
}
