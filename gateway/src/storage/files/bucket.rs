//! Files in a bucket on S3 or a compatible service.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gatewright_config::Bucket;
use gatewright_system::crash;
use http::Method;
use http_body_util::{BodyExt as _, Limited};
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

/// Maximum time to connect, and maximum silence in a response.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many times, and for how long, a failed request is retried: a client waits meanwhile.
const RETRIES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum size of a response that isn't a file, in bytes. A page of a list names a thousand files in about half a megabyte.
const MAX_WHOLE: usize = 8 * 1024 * 1024;

/// Opens a bucket, without sending a request yet. Errors: its settings can't be used.
pub(super) fn open(bucket: &Bucket) -> Result<Arc<dyn ObjectStore>, String> {
    let (name, prefix) = bucket.place().ok_or("it must have the form s3://bucket or s3://bucket/prefix")?;
    let retry = RetryConfig { max_retries: RETRIES, retry_timeout: PATIENCE, ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(name)
        .with_region(&bucket.region)
        .with_access_key_id(bucket.access_key.expose())
        .with_secret_access_key(bucket.secret_key.expose())
        .with_retry(retry)
        // Files are removed one at a time, and not all services support bulk deletion.
        .with_disable_bulk_delete(true)
        .with_http_connector(Connector(client()?));
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
    }
    let store = builder.build().map_err(|error| error.to_string())?;
    Ok(if prefix.is_empty() { Arc::new(store) } else { Arc::new(PrefixStore::new(store, prefix)) })
}

/// Connections that trust the same authorities as the rest of the gateway.
#[derive(Debug)]
struct Connector(reqwest::Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(BoundedService(self.0.clone())))
    }
}

/// Bounds responses that are read as a whole. Has a crash point before and after each request that changes the bucket.
#[derive(Debug)]
struct BoundedService(reqwest::Client);

impl HttpService for BoundedService {
    // The signature that `async_trait` generates.
    fn call<'s, 'a>(&'s self, request: HttpRequest) -> BoxFuture<'a, Result<HttpResponse, HttpError>>
    where
        's: 'a,
        Self: 'a,
    {
        let changes = !request.method().is_safe();
        // A list is requested in the query.
        let wants_file = request.method() == Method::GET && request.uri().query().is_none();
        let request_sent = async move {
            if changes {
                crash::point();
            }
            let response = self.0.call(request).await;
            if changes {
                crash::point();
            }
            let response = response?;
            let is_file = wants_file && response.status().is_success();
            Ok(if is_file { response } else { response.map(bounded) })
        };
        request_sent.boxed()
    }
}

/// Ends a body with an error where it becomes too large. Its reader reserves the length that its header claims.
fn bounded(body: HttpResponseBody) -> HttpResponseBody {
    let body = Limited::new(body, MAX_WHOLE);
    HttpResponseBody::new(body.map_err(|error| HttpError::new(HttpErrorKind::Decode, UnreadBody(error))))
}

/// Why a bounded body can't be read.
#[derive(Debug)]
struct UnreadBody(Box<dyn std::error::Error + Send + Sync>);

impl std::fmt::Display for UnreadBody {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for UnreadBody {}

fn client() -> Result<reqwest::Client, String> {
    let roots = gatewright_trust::roots(None).map_err(|error| error.to_string())?;
    let tls = gatewright_trust::client()?.with_root_certificates(roots).with_no_client_auth();
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .connect_timeout(TIMEOUT)
        .read_timeout(TIMEOUT);
    client.build().map_err(|error| error.to_string())
}
