//! One raw HTTP exchange: a new connection, one request, the complete response. No retry, redirect, proxy or
//! decompression, so that the exchange shows exactly what the service did.

use std::error::Error as _;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gatewright::is_secret_name;
use gatewright::redact::REDACTED;
use http::{HeaderMap, Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::failure::{Category, Failure};
use gatewright::ApiKey;

/// Maximum size of a response body, in bytes: far more than a check needs.
pub const MAX_BODY_BYTES: usize = 8 << 20;

const USER_AGENT: &str = concat!("gatewright-checkkit/", env!("CARGO_PKG_VERSION"));

/// The target of requests.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    /// Endpoint and base path, without a trailing slash.
    pub(crate) url: Url,
    pub(crate) key: ApiKey,
    /// Timeout of a whole exchange, from the name lookup to the last byte.
    pub(crate) timeout: Duration,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    /// Headers of the protocol, besides those of every request.
    pub(crate) headers: &'static [(&'static str, &'static str)],
}

/// The recorded exchange. Not redacted.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Headers and body of the request, without the key.
    pub(crate) request: String,
    pub(crate) answer: Option<Received>,
    /// The failure that ended the exchange before the end of the response.
    pub(crate) failure: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: u16,
    pub(crate) version: http::Version,
    pub(crate) headers: HeaderMap,
    /// All of the body, or as much as arrived before the failure.
    pub(crate) body: Vec<u8>,
}

impl Service {
    /// Sends a GET, or a POST if there is a body. path: below the base path, with a leading slash.
    pub(crate) async fn exchange(&self, path: &str, body: Option<&Value>, accept: &'static str) -> Exchange {
        let url = format!("{}{path}", self.url.as_str().trim_end_matches('/'));
        let request = match self.request(&url, body, accept) {
            Ok(request) => request,
            Err(error) => {
                let failure =
                    Failure::new(Category::Internal, format!("the request cannot be built: {error}"));
                return Exchange { request: url, answer: None, failure: Some(failure) };
            }
        };
        let mut exchange = Exchange { request: shown(&request, &url, body), answer: None, failure: None };
        let deadline = Instant::now() + self.timeout;
        if let Err(failure) = self.carry_out(request, deadline, &mut exchange.answer).await {
            exchange.failure = Some(failure);
        }
        exchange
    }

    fn request(
        &self,
        url: &str,
        body: Option<&Value>,
        accept: &str,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let uri: Uri = url.parse()?;
        let mut request = Request::builder()
            .method(if body.is_some() { Method::POST } else { Method::GET })
            .uri(uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str))
            .header(header::HOST, authority(&self.url))
            .header(header::AUTHORIZATION, self.key.authorization())
            .header(header::ACCEPT, accept)
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::USER_AGENT, USER_AGENT)
            .header(header::CONNECTION, "close");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        request.body(Full::new(Bytes::from(body)))
    }

    async fn carry_out(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        answer: &mut Option<Received>,
    ) -> Result<(), Failure> {
        let stream = self.connect(deadline).await?;
        match &self.tls {
            None => self.talk(stream, request, deadline, answer).await,
            Some(config) => {
                let name = server_name(&self.url)?;
                let connecting = TlsConnector::from(Arc::clone(config)).connect(name, stream);
                let stream = timeout_at(deadline, connecting)
                    .await
                    .map_err(|_| self.too_late("the TLS handshake had not finished"))?
                    .map_err(|error| {
                        Failure::new(Category::Tls, format!("the TLS handshake failed: {error}"))
                    })?;
                self.talk(stream, request, deadline, answer).await
            }
        }
    }

    async fn connect(&self, deadline: Instant) -> Result<TcpStream, Failure> {
        let port = self.url.port_or_known_default().unwrap_or(80);
        let addresses: Vec<SocketAddr> = match self.url.host() {
            Some(Host::Ipv4(address)) => vec![(address, port).into()],
            Some(Host::Ipv6(address)) => vec![(address, port).into()],
            Some(Host::Domain(name)) => {
                let found = timeout_at(deadline, tokio::net::lookup_host((name, port)))
                    .await
                    .map_err(|_| self.too_late(&format!("the name {name} was not found")))?
                    .map_err(|error| no_address(name, &error.to_string()))?;
                found.collect()
            }
            None => Vec::new(),
        };
        let mut failure = no_address(self.url.host_str().unwrap_or_default(), "it has no address");
        for (index, address) in addresses.iter().enumerate() {
            // An address that never replies must leave time to try the next one.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
            failure = match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Sends small requests immediately; an error here has no other effect.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => {
                    Failure::new(Category::Connect, format!("cannot connect to {address}: {error}"))
                }
                Err(_) => self.too_late(&format!("{address} did not accept a connection")),
            };
        }
        Err(failure)
    }

    async fn talk(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        request: Request<Full<Bytes>>,
        deadline: Instant,
        answer: &mut Option<Received>,
    ) -> Result<(), Failure> {
        let (mut sender, connection) =
            timeout_at(deadline, hyper::client::conn::http1::handshake(TokioIo::new(stream)))
                .await
                .map_err(|_| self.too_late("no response had started"))?
                .map_err(|error| broken(&error))?;
        // The connection ends with the exchange: dropping the guard closes it.
        let _connection = Guard(tokio::spawn(connection));
        let response = timeout_at(deadline, sender.send_request(request))
            .await
            .map_err(|_| self.too_late("no response had started"))?
            .map_err(|error| broken(&error))?;
        let (head, mut body) = response.into_parts();
        let answer = answer.insert(Received {
            status: head.status.as_u16(),
            version: head.version,
            headers: head.headers,
            body: Vec::new(),
        });
        loop {
            match timeout_at(deadline, next_packet(&mut body)).await {
                Err(_) => return Err(self.too_late("the response had not ended")),
                Ok(None) => return Ok(()),
                Ok(Some(Err(error))) => return Err(broken(&error)),
                Ok(Some(Ok(packet))) => {
                    let room = MAX_BODY_BYTES - answer.body.len();
                    answer.body.extend_from_slice(&packet[..packet.len().min(room)]);
                    if packet.len() > room {
                        let message = format!("the body is larger than {} MiB", MAX_BODY_BYTES >> 20);
                        return Err(Failure::new(Category::Protocol, message));
                    }
                }
            }
        }
    }

    fn too_late(&self, what: &str) -> Failure {
        Failure::new(Category::Timeout, format!("{what} after {} ms", self.timeout.as_millis()))
    }
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut values =
            self.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let mut text = values.next()?.into_owned();
        for value in values {
            text.push_str(", ");
            text.push_str(&value);
        }
        Some(text)
    }

    /// Type and subtype in lower case, without parameters.
    pub(crate) fn media_type(&self) -> Option<String> {
        let text = self.header("content-type")?;
        Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    }

    /// Headers and body as text.
    pub(crate) fn shown(&self) -> String {
        let mut text = format!("{:?} {}\n", self.version, self.status);
        for (name, value) in &self.headers {
            // Their values are only for the service that sets them.
            let value = if is_secret_name(name.as_str()) {
                REDACTED.into()
            } else {
                String::from_utf8_lossy(value.as_bytes())
            };
            // Writing to a string succeeds.
            let _ = writeln!(text, "{name}: {value}");
        }
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&self.body));
        text
    }
}

struct Guard(tokio::task::JoinHandle<Result<(), hyper::Error>>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn next_packet(body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
    loop {
        match body.frame().await? {
            Ok(frame) => {
                // Trailers are not part of the body.
                if let Ok(data) = frame.into_data() {
                    return Some(Ok(data));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

fn shown(request: &Request<Full<Bytes>>, url: &str, body: Option<&Value>) -> String {
    let mut text = format!("{} {url} HTTP/1.1\n", request.method());
    for (name, value) in request.headers() {
        let value = if value.is_sensitive() {
            "Bearer [redacted]".into()
        } else if is_secret_name(name.as_str()) {
            REDACTED.into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        // Writing to a string succeeds.
        let _ = writeln!(text, "{name}: {value}");
    }
    if let Some(body) = body {
        let _ = write!(text, "\n{body}");
    }
    text
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn server_name(url: &Url) -> Result<ServerName<'static>, Failure> {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned())
        .map_err(|error| Failure::new(Category::Tls, format!("{host} cannot be verified by TLS: {error}")))
}

fn no_address(name: &str, why: &str) -> Failure {
    Failure::new(Category::Dns, format!("the name {name} was not found: {why}"))
}

/// The error of a connection: bytes that are not HTTP, or a premature end.
fn broken(error: &hyper::Error) -> Failure {
    let mut cause = error.source();
    let mut io_kind = None;
    let mut message = error.to_string();
    while let Some(source) = cause {
        if let Some(error) = source.downcast_ref::<io::Error>() {
            io_kind = Some(error.kind());
        }
        let text = source.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = source.source();
    }
    let lost = || {
        Failure::new(
            Category::ConnectionLost,
            format!("the connection ended before the response did: {message}"),
        )
    };
    let wrong = || Failure::new(Category::Protocol, format!("the response is not HTTP: {message}"));
    match io_kind {
        _ if error.is_parse() => wrong(),
        Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => wrong(),
        _ => lost(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_response_redacts_secret_headers() {
        let names = ["set-cookie", "authorization", "x-api-key", "x-auth-token", "proxy-authorization"];
        let mut headers: HeaderMap = names
            .map(|name| (http::HeaderName::from_static(name), "canary".parse().expect("a value")))
            .into_iter()
            .collect();
        headers.insert("x-request-id", "req_1".parse().expect("a value"));
        let answer = Received { status: 200, version: http::Version::HTTP_11, headers, body: Vec::new() };
        let shown = answer.shown();
        assert!(!shown.contains("canary"), "{shown}");
        assert!(
            shown.contains("x-api-key: [redacted]\n") && shown.contains("x-request-id: req_1\n"),
            "{shown}"
        );
    }
}
