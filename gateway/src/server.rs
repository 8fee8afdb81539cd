//! The server: connections and their limits, then each request's way to its operation.

use std::future::Future;
use std::io;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use futures_util::FutureExt as _;
use gatewright::operations::{self, ErrorStyle, Operation};
use gatewright::webhook::Secret;
use gatewright::{ErrorCode, limits};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use percent_encoding::percent_decode_str;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt as _;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use uuid::Uuid;

use crate::auth::{self, ApiKey};
use crate::call::{Call, Response};
use crate::config::Config;
use crate::connection::{self, Peers};
use crate::error::ApiError;
use crate::fault::Faults;
use crate::files;
use crate::generated::routes::{Match, dispatch, match_route};
use crate::idempotency::{self, Begun};
use crate::service::Provider;

/// Names each answer, for logs and questions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How long a browser may go by what it was told of who may call.
const PREFLIGHT_LIFETIME: Duration = Duration::from_hours(1);
/// How many connections that were turned away may wait at once for their clients to read why.
const REFUSALS: usize = 64;
/// Wait that is advised to a client that holds too many connections.
const REFUSED_WAIT_S: u64 = 1;
/// Wait after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A gateway that listens, and serves once told to.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    embedded: Embedded,
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The address is malformed, in use or not this machine's.
    #[error("cannot listen at {listen}: {source}")]
    Listen {
        /// As configured.
        listen: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// `public_url` is not scheme, host and port.
    #[error("public_url {0:?} is not of the form http://host or https://host:port")]
    PublicUrl(String),
    /// One of `allowed_origins` is not scheme, host and port.
    #[error("allowed origin {0:?} is neither * nor of the form https://host or https://host:port")]
    Origin(String),
}

impl Gateway {
    /// Binds the address. From here on connections queue; [`serve`](Self::serve) takes them.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let failed = |source| BindError::Listen { listen: config.listen.clone(), source };
        let listener = TcpListener::bind(&config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let embedded = Embedded::at(config, address)?;
        Ok(Self { listener, address, embedded })
    }

    /// The address bound, with the port that was taken for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The key that clients must send (section 5).
    pub fn key(&self) -> &ApiKey {
        self.embedded.key()
    }

    /// The secret that receivers of webhooks verify signatures with.
    pub fn webhook_secret(&self) -> &Secret {
        &self.embedded.provider.webhook_secret
    }

    /// Serves until `shutdown` is ready, then lets requests, video tasks and notifications in progress end within the
    /// configured grace. What tasks are left then end as failed; gives their ids.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Vec<String> {
        let Embedded { provider, router } = self.embedded;
        let config = &provider.config;
        let mut server = http1::Builder::new();
        // A client that ends its sending half still gets its answer; connection.rs finds out who has gone.
        server.timer(TokioTimer::new()).header_read_timeout(config.header_timeout).half_close(true);
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(config.max_connections));
        let peers = Peers::new(config.max_connections_per_peer);
        let refusals = Arc::new(Semaphore::new(REFUSALS));
        tracing::info!(address = %self.address, "listening");

        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            let (stream, address, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(held) = peers.hold(address.ip()) else {
                let most = config.max_connections_per_peer;
                let message = format!("this address holds {most} connections already; close some first");
                let error =
                    ApiError::new(&ErrorCode::TOO_MANY_CONNECTIONS, message).retry_after(REFUSED_WAIT_S);
                connection::refuse(stream, error, &refusals);
                continue;
            };
            let (socket, peer) = connection::open(stream, config.write_timeout);
            let connection =
                server.serve_connection(TokioIo::new(socket), TowerToHyperService::new(router.clone()));
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                tokio::select! {
                    ended = connection => if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    },
                    () = peer.gone() => tracing::debug!("the client has gone"),
                }
                peer.close().await;
                drop((permit, held));
            });
        }
        let ended = async {
            graceful.shutdown().await;
            provider.tasks.ended().await;
        };
        if tokio::time::timeout(config.shutdown_grace, ended).await.is_err() {
            tracing::warn!("requests or video tasks still in progress were given up");
        }
        let unfinished = provider.tasks.stop().await;
        for task in &unfinished {
            tracing::warn!(task, "ended as failed: the gateway stopped");
        }
        unfinished
    }
}

/// A gateway without a socket, for programs that call it in their own process.
#[derive(Clone)]
pub struct Embedded {
    provider: Arc<Provider>,
    router: Router,
}

impl Embedded {
    /// A gateway of this configuration; what concerns connections does not matter. It needs a Tokio runtime.
    pub fn new(config: Config) -> Result<Self, BindError> {
        Self::at(config, SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    fn at(config: Config, address: SocketAddr) -> Result<Self, BindError> {
        if let Some(public) = config.public_url.as_ref().filter(|public| !is_origin(public)) {
            return Err(BindError::PublicUrl(public.clone()));
        }
        let cors = cors(&config.allowed_origins)?;
        let provider = Arc::new(Provider::new(config, address));
        let router = Router::new().fallback(answer).with_state(Arc::clone(&provider));
        let router = match cors {
            Some(cors) => router.layer(cors),
            None => router,
        };
        Ok(Self { provider, router })
    }

    /// Answers a request. The answer always has a status; its body may be a stream.
    pub async fn answer(&self, request: http::Request<impl Into<Body>>) -> Response {
        match self.router.clone().oneshot(request.map(Into::into)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// The key that requests must carry (section 5).
    pub fn key(&self) -> &ApiKey {
        &self.provider.key
    }

    #[cfg(test)]
    pub(crate) fn provider(&self) -> &Provider {
        &self.provider
    }
}

/// Whether a text is scheme, host and port alone.
fn is_origin(text: &str) -> bool {
    let url = url::Url::parse(text).ok();
    let plain = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.path() == "/");
    plain && !text.contains(['?', '#', '@'])
}

/// What lets web pages of these origins call the gateway. None where there are none.
fn cors(origins: &[String]) -> Result<Option<CorsLayer>, BindError> {
    let mut allowed = Vec::new();
    for origin in origins.iter().filter(|origin| *origin != "*") {
        let invalid = || BindError::Origin(origin.clone());
        // Browsers send origins without a slash at their end.
        let plain = origin.trim_end_matches('/');
        allowed.push(HeaderValue::try_from(plain).ok().filter(|_| is_origin(plain)).ok_or_else(invalid)?);
    }
    let allowed = match origins {
        [] => return Ok(None),
        all if all.iter().any(|origin| origin == "*") => AllowOrigin::any(),
        _ => AllowOrigin::list(allowed),
    };
    let mut methods = vec![Method::HEAD];
    for operation in operations::ALL {
        methods.extend(
            Method::try_from(operation.method.as_str()).ok().filter(|method| !methods.contains(method)),
        );
    }
    Ok(Some(
        CorsLayer::new()
            .allow_origin(allowed)
            .allow_methods(methods)
            // Clients send headers of their own making; what they may ask for is decided by the key.
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers([REQUEST_ID, header::RETRY_AFTER, idempotency::REPLAYED_HEADER])
            .max_age(PREFLIGHT_LIFETIME),
    ))
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    loop {
        let (stream, address) = match listener.accept().await {
            // A client that left while it queued is no reason to make the next one wait.
            Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => continue,
            accepted => accepted?,
        };
        // Without it every event of a stream may wait 40 ms for the acknowledgement of the one before. Fails where
        // the client has gone, which the connection then finds out.
        _ = stream.set_nodelay(true);
        return Ok((stream, address, permit));
    }
}

/// Answers one request, whatever happens to it.
async fn answer(State(provider): State<Arc<Provider>>, request: Request) -> Response {
    let request_id = new_request_id();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let mut style = path_style(&path);
    let answered = AssertUnwindSafe(route(&provider, request, &request_id, &mut style)).catch_unwind().await;
    let mut response = match answered {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => error.into_response(style),
        // The panic's message went to standard error; it is not for the client.
        Err(_) => ApiError::new(&ErrorCode::SERVER_ERROR, "the gateway failed").into_response(style),
    };
    tracing::info!(%method, %path, status = response.status().as_u16(), %request_id, "answered");
    sign(&mut response, request_id);
    response
}

/// An answer that belongs to no request that could be read, with the headers of every answer.
pub(crate) fn signed(mut response: Response) -> Response {
    sign(&mut response, new_request_id());
    response
}

fn sign(response: &mut Response, request_id: String) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

fn new_request_id() -> String {
    format!("req_{}", Uuid::new_v4().simple())
}

/// The form of errors on a path that leads to no operation.
fn path_style(path: &str) -> ErrorStyle {
    if path.starts_with("/v1beta") { ErrorStyle::Native } else { ErrorStyle::Standard }
}

/// From the request to the operation's answer. `style` is set once the operation is known.
async fn route(
    provider: &Arc<Provider>,
    request: Request,
    request_id: &str,
    style: &mut ErrorStyle,
) -> Result<Response, ApiError> {
    let (mut head, body) = request.into_parts();
    let mut query: Vec<(String, String)> =
        url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    if let Some(name) = head.uri.path().strip_prefix(files::PREFIX) {
        if head.method == Method::OPTIONS {
            return Ok(options(files::METHODS));
        }
        return provider.files.serve(&head.method, name, &query, &head.headers);
    }
    let path = native_alias(&head.method, head.uri.path(), &head.headers);
    if auth::is_native(&head.headers) || path_style(&path) == ErrorStyle::Native {
        *style = ErrorStyle::Native;
    }
    // Where there is GET there is HEAD; the HTTP library leaves the body out.
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let (operation, parameters) = match match_route(method, &path) {
        Match::Found { operation, path } => (operation, path),
        Match::MethodNotAllowed(operations) => {
            let methods = methods(&operations);
            if head.method == Method::OPTIONS {
                return Ok(options(&methods));
            }
            let message = format!("{} is not a method of {}", head.method, head.uri.path());
            return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(&methods));
        }
        Match::NotFound => {
            return Err(ApiError::new(
                &ErrorCode::NOT_FOUND,
                format!("no operation has the path {}", head.uri.path()),
            ));
        }
    };
    *style = operation.error_style;
    provider.gatekeeper.admit(&mut head.headers, &mut query)?;
    let mut path = decode_parameters(&parameters)?;
    let violations =
        limits::check_query(operation, query.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    if !violations.is_empty() {
        return Err(ApiError::violations(violations));
    }
    let mut body = if operation.has_body {
        read_body(&provider.config, operation, &head.headers, body).await?
    } else {
        Bytes::new()
    };
    // Of the request as it came, what asks for faults included.
    let begun = if operation.has_body {
        let fingerprint = || idempotency::fingerprint(&path, &query, &body);
        provider.answers.begin(operation, &head.headers, fingerprint)?
    } else {
        Begun::Unkeyed
    };
    let configured = &provider.config.faults;
    let faults = Faults::of_request(configured, operation, &mut head.headers, &mut path, &mut body)?;
    if let Some(response) = faults.before(operation).await {
        return Ok(response);
    }
    let call =
        Call { operation, path, query, headers: head.headers, body, request_id: request_id.to_owned() };
    // A fault spoils the answer on its way: what is remembered is whole.
    let response = match begun {
        Begun::Again(response) => response,
        Begun::First(turn) => turn.answered(dispatch(provider, call).await),
        Begun::Unkeyed => dispatch(provider, call).await,
    };
    Ok(faults.distort(operation, response))
}

/// The methods of a path, for people and programs that ask.
fn methods(operations: &[&Operation]) -> String {
    let mut methods: Vec<&str> = operations.iter().map(|operation| operation.method.as_str()).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    methods.push("OPTIONS");
    methods.join(", ")
}

/// Says which methods a path has. That is no secret: no key is needed.
fn options(methods: &str) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(methods) = HeaderValue::try_from(methods) {
        response.headers_mut().insert(header::ALLOW, methods);
    }
    response
}

/// Clients of the native protocol also use /v1 (ours): its methods there, and its models when the key comes in the
/// native header.
fn native_alias(method: &Method, path: &str, headers: &HeaderMap) -> String {
    let native = match path.strip_prefix("/v1/models") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            auth::is_native(headers) || (*method == Method::POST && rest.contains(':'))
        }
        _ => false,
    };
    if native { path.replacen("/v1/", "/v1beta/", 1) } else { path.to_owned() }
}

/// Decodes path parameters once. What could mean another path to anything further on is not found; a slash, which ids
/// of models may hold, is no more than a character to what looks ids up.
fn decode_parameters(parameters: &[(&str, &str)]) -> Result<Vec<(String, String)>, ApiError> {
    let decode =
        |&(name, raw): &(&str, &str)| {
            let value = percent_decode_str(raw).decode_utf8().ok().filter(|value| {
                !value.contains(['\\', '%'])
                    && !value.contains("..")
                    && !value.contains(char::is_control)
                    && value.split('/').all(|segment| !matches!(segment, "" | "."))
            });
            match value {
                Some(value) => Ok((name.to_owned(), value.into_owned())),
                None => Err(ApiError::new(&ErrorCode::NOT_FOUND, format!("the path holds no valid {name}"))
                    .param(name)),
            }
        };
    parameters.iter().map(decode).collect()
}

async fn read_body(
    config: &Config,
    operation: &Operation,
    headers: &HeaderMap,
    body: Body,
) -> Result<Bytes, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let message =
            format!("{} takes a body of type application/json (4), not {media_type:?}", operation.id);
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT, HeaderValue::from_static("application/json")));
    }
    if !matches!(text(header::CONTENT_ENCODING), "" | "identity") {
        let message = "request bodies are not taken compressed";
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity")));
    }
    let limit = config.max_body_bytes;
    let too_large = || {
        let message = format!("the body is larger than the {limit} bytes the gateway accepts");
        ApiError::new(&ErrorCode::REQUEST_TOO_LARGE, message)
    };
    let announced = text(header::CONTENT_LENGTH).parse().unwrap_or(0_usize);
    // Who waits for leave to send has not sent anything yet.
    if announced > limit && headers.contains_key(header::EXPECT) {
        return Err(too_large());
    }
    let mut body = body;
    let read = tokio::time::timeout(config.body_timeout, Limited::new(&mut body, limit).collect()).await;
    match read {
        Err(_) => {
            let seconds = config.body_timeout.as_secs();
            Err(ApiError::new(
                &ErrorCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {seconds} s"),
            ))
        }
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            _ = tokio::time::timeout(connection::DRAIN, async {
                while let Some(Ok(_)) = body.frame().await {}
            })
            .await;
            Err(too_large())
        }
        Ok(Err(error)) => {
            Err(ApiError::new(&ErrorCode::INVALID_JSON, format!("the body broke off: {error}")))
        }
    }
}
