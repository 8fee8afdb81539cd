//! The HTTP client that fetches generated files: no key, redirects, no decompression.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use gatewright_connect::Pool;
use http::header::LOCATION;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use url::Url;

use crate::transport::connecting;
use crate::transport::exchange::{Transport, cause_and_way_out};
use crate::transport::outgoing::Outgoing;
use crate::transport::route::{self, Body, HttpError};
use crate::transport::secret::redacted_url;
use crate::wire::error::{Error, ErrorKind};

/// Maximum number of redirects: a gateway may redirect to where its files are stored.
const MAX_REDIRECTS: usize = 5;
/// Maximum number of servers whose connections are kept.
const MAX_POOLS: usize = 8;

/// The connections for downloading files, shared by all clones of a client. They are separate from those to the gateway,
/// because files may be anywhere, and requests carry no key.
#[derive(Default)]
pub(crate) struct FileClient {
    /// The one used last is at the end.
    pools: Mutex<Vec<Pool>>,
}

/// A response whose body has not been read.
pub(crate) struct FileResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Length of the body in bytes, if the server states it.
    pub(crate) length: Option<u64>,
    /// The address after redirects.
    url: Url,
    body: gatewright_connect::Body,
    /// Maximum time without data.
    idle_timeout: Duration,
}

impl FileClient {
    /// Errors: Connection; Timeout; Status if there are too many redirects, or one leads to an address that files must not
    /// come from.
    pub(crate) async fn get(
        &self,
        transport: &Transport,
        url: Url,
        headers: HeaderMap,
    ) -> Result<FileResponse, Error> {
        let mut request = Outgoing::new(Method::GET, url);
        request.headers = headers;
        let idle_timeout = transport.idle_timeout();
        let mut redirects = 0;
        loop {
            let pool = self.pool(transport, &request.url)?;
            let answered = tokio::time::timeout(idle_timeout, route::exchange(&pool, &request)).await;
            let response = answered
                .map_err(|_| silent(&request.url, idle_timeout))?
                .map_err(|error| broken(&request.url, error))?;
            let Some(next) = redirect(&request.url, response.status(), response.headers()) else {
                let length = response.body().size_hint().exact();
                let (head, body) = response.into_parts();
                let url = request.url;
                return Ok(FileResponse {
                    status: head.status,
                    headers: head.headers,
                    length,
                    url,
                    body,
                    idle_timeout,
                });
            };
            redirects += 1;
            let refuse = |why: String| {
                // A retry would end the same way.
                Error::new(ErrorKind::Status, format!("{} cannot be fetched: {why}", shown(&request.url)))
            };
            if redirects > MAX_REDIRECTS {
                return Err(refuse(format!("there are more than {MAX_REDIRECTS} redirects")));
            }
            if !matches!((request.url.scheme(), next.scheme()), (_, "https") | ("http", "http")) {
                let why = "it redirects to an address that is not https or, from one that is not, http";
                return Err(refuse(why.to_owned()));
            }
            request.url = next;
        }
    }

    /// The connections to the server of a URL.
    fn pool(&self, transport: &Transport, url: &Url) -> Result<Pool, Error> {
        let connecting = transport.connecting();
        let server = connecting::server(url)?;
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pools.iter().position(|pool| pool.serves(&server, connecting.connect_timeout));
        let pool = match known {
            Some(place) => pools.remove(place),
            None => connecting.pool(url)?,
        };
        if pools.len() == MAX_POOLS {
            pools.remove(0);
        }
        pools.push(pool.clone());
        Ok(pool)
    }
}

impl FileResponse {
    /// The next bytes as they arrive. Errors: Connection, Timeout.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let frame = tokio::time::timeout(self.idle_timeout, self.body.frame()).await;
        let frame = frame.map_err(|_| silent(&self.url, self.idle_timeout))?.transpose();
        let frame = frame.map_err(|error| broken(&self.url, HttpError::Connection(error)))?;
        Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    pub(crate) fn into_body(self) -> Body {
        Body::Received(Box::new(self.body))
    }
}

/// Where a response redirects to.
fn redirect(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    let redirects = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = headers.get(LOCATION).filter(|_| redirects)?;
    from.join(location.to_str().ok()?).ok()
}

fn silent(url: &Url, limit: Duration) -> Error {
    let message = format!("{} cannot be fetched: no data arrived for {limit:?}", shown(url));
    Error::new(ErrorKind::Timeout, message)
}

fn broken(url: &Url, error: HttpError) -> Error {
    let kind = if error.is_timeout() { ErrorKind::Timeout } else { ErrorKind::Connection };
    Error::new(kind, format!("{} cannot be fetched", shown(url)))
        .quoting(cause_and_way_out(&error))
        .caused_by(error)
}

/// A URL without its query, which gives access.
pub(crate) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    redacted_url(&shown)
}
