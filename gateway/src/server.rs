//! The server: connections and their limits, then each request's way to its operation.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use futures_util::FutureExt as _;
use gatewright::ErrorCode;
use gatewright::operations::{ErrorStyle, Operation};
use gatewright::webhook::Secret;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use percent_encoding::percent_decode_str;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::auth::{self, ApiKey};
use crate::call::{Call, Response};
use crate::config::Config;
use crate::error::ApiError;
use crate::fault::Faults;
use crate::files;
use crate::generated::routes::{Match, dispatch, match_route};
use crate::service::Provider;

/// Names each answer, for logs and questions.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How long the rest of a refused body is thrown away, so that its sender gets to read the answer.
const DRAIN: Duration = Duration::from_secs(2);
/// Wait after a failed accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A gateway that listens, and serves once told to.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    provider: Arc<Provider>,
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
}

impl Gateway {
    /// Binds the address. From here on connections queue; [`serve`](Self::serve) takes them.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        if let Some(public) = &config.public_url {
            let url = url::Url::parse(public).ok();
            let plain = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.path() == "/");
            if !plain || public.contains(['?', '#', '@']) {
                return Err(BindError::PublicUrl(public.clone()));
            }
        }
        let failed = |source| BindError::Listen { listen: config.listen.clone(), source };
        let listener = TcpListener::bind(&config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let provider = Arc::new(Provider::new(config, address));
        Ok(Self { listener, address, provider })
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
        &self.provider.key
    }

    /// The secret that receivers of webhooks verify signatures with.
    pub fn webhook_secret(&self) -> &Secret {
        &self.provider.webhook_secret
    }

    #[cfg(test)]
    pub(crate) fn provider(&self) -> Arc<Provider> {
        Arc::clone(&self.provider)
    }

    /// Serves until `shutdown` is ready, then lets requests in progress end within the configured grace.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let config = &self.provider.config;
        let app = Router::new().fallback(answer).with_state(Arc::clone(&self.provider));
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(config.header_timeout);
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(config.max_connections));
        tracing::info!(address = %self.address, "listening");

        tokio::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            let (stream, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let connection =
                server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.clone()));
            let connection = graceful.watch(connection);
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "connection ended");
                }
                drop(permit);
            });
        }
        if tokio::time::timeout(config.shutdown_grace, graceful.shutdown()).await.is_err() {
            tracing::warn!("requests still in progress were given up");
        }
    }
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Without it every event of a stream may wait 40 ms for the acknowledgement of the one before.
    stream.set_nodelay(true)?;
    Ok((stream, permit))
}

/// Answers one request, whatever happens to it.
async fn answer(State(provider): State<Arc<Provider>>, request: Request) -> Response {
    let request_id = format!("req_{}", Uuid::new_v4().simple());
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
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::try_from(request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
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
        return provider.files.serve(&head.method, name, &query, &head.headers);
    }
    let path = native_alias(head.uri.path(), &head.headers);
    let (operation, parameters) = match match_route(&head.method, &path) {
        Match::Found { operation, path } => (operation, path),
        Match::MethodNotAllowed(operations) => {
            let methods: Vec<&str> = operations.iter().map(|operation| operation.method.as_str()).collect();
            let message = format!("{} is not a method of {}", head.method, head.uri.path());
            return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(methods.join(", ")));
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
    let mut body = if operation.has_body {
        read_body(&provider.config, operation, &head.headers, body).await?
    } else {
        Bytes::new()
    };
    let configured = &provider.config.faults;
    let faults = Faults::of_request(configured, operation, &mut head.headers, &mut path, &mut body)?;
    if let Some(response) = faults.before(operation).await {
        return Ok(response);
    }
    let call =
        Call { operation, path, query, headers: head.headers, body, request_id: request_id.to_owned() };
    Ok(faults.distort(operation, dispatch(provider, call).await))
}

/// Clients of the native protocol also use /v1 (ours): its methods there, and its model list when the key comes in
/// the native header.
fn native_alias(path: &str, headers: &HeaderMap) -> String {
    let native = match path.strip_prefix("/v1/models") {
        Some("") => {
            headers.contains_key(auth::NATIVE_KEY_HEADER) && !headers.contains_key(header::AUTHORIZATION)
        }
        Some(rest) => rest.starts_with('/') && rest.contains(':'),
        None => false,
    };
    if native { path.replacen("/v1/", "/v1beta/", 1) } else { path.to_owned() }
}

/// Decodes path parameters once. What could mean another path to anything further on is not found.
fn decode_parameters(parameters: &[(&str, &str)]) -> Result<Vec<(String, String)>, ApiError> {
    let decode =
        |&(name, raw): &(&str, &str)| {
            let value = percent_decode_str(raw).decode_utf8().ok().filter(|value| {
                !value.contains(['/', '\\', '%'])
                    && !value.contains("..")
                    && value != "."
                    && !value.contains(char::is_control)
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
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if !matches!(text(header::CONTENT_ENCODING), "" | "identity") {
        let message = "request bodies are not taken compressed";
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message));
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
            _ = tokio::time::timeout(DRAIN, async { while let Some(Ok(_)) = body.frame().await {} }).await;
            Err(too_large())
        }
        Ok(Err(error)) => {
            Err(ApiError::new(&ErrorCode::INVALID_JSON, format!("the body broke off: {error}")))
        }
    }
}
