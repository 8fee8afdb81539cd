//! 4 rule 4 and section 8: generated files in a bucket. The service is a small one of our own, which speaks as much of S3
//! as files need.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use gatewright_gateway::{ApiKey, Bucket, Config};
use http::{Method, Request, Response, StatusCode};
use serde_json::json;

use crate::support::{Server, files_of, read, send, start_with};

/// What opens the bucket.
pub(crate) const ACCESS_KEY: &str = "id";
pub(crate) const SECRET: &str = "canary-of-the-bucket-31";

/// What the service holds.
#[derive(Default)]
struct Held {
    /// By path, with the bucket.
    objects: BTreeMap<String, Vec<u8>>,
    /// Parts of one upload, by number.
    parts: BTreeMap<u32, Vec<u8>>,
    /// Whether it refuses everything.
    refuses: bool,
}

/// A running service.
#[derive(Clone, Default)]
pub(crate) struct Service(Arc<Mutex<Held>>);

impl Service {
    pub(crate) async fn start() -> (Self, String) {
        let service = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let router = Router::new().fallback(answer).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (service, url)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().expect("no panic")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.held().objects.keys().cloned().collect()
    }
}

fn said(status: u16, text: impl Into<Body>) -> Response<Body> {
    let response = Response::builder().status(status).header("etag", "\"tag\"");
    response.header("last-modified", "Sun, 09 Sep 2001 01:46:40 GMT").body(text.into()).expect("a response")
}

async fn answer(State(service): State<Service>, request: Request<Body>) -> Response<Body> {
    let (asked, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body").to_vec();
    let signed = asked.headers.get("authorization").and_then(|value| value.to_str().ok()).unwrap_or_default();
    assert!(signed.starts_with("AWS4-HMAC-SHA256 Credential=id/") && !signed.contains(SECRET), "{signed}");
    let (path, query) = (asked.uri.path().to_owned(), asked.uri.query().unwrap_or_default().to_owned());
    let part = query.split('&').find_map(|pair| pair.strip_prefix("partNumber=")?.parse().ok());
    let mut held = service.held();
    if held.refuses {
        return said(403, "<Error><Code>AccessDenied</Code></Error>");
    }
    match (asked.method, part) {
        (Method::PUT, Some(number)) => {
            held.parts.insert(number, body);
            said(200, "")
        }
        (Method::PUT, None) => {
            held.objects.insert(path, body);
            said(200, "")
        }
        (Method::POST, _) if query.contains("uploads") => {
            said(200, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
        }
        (Method::POST, _) => {
            let whole = std::mem::take(&mut held.parts).into_values().flatten().collect();
            held.objects.insert(path, whole);
            said(200, "<CompleteMultipartUploadResult><ETag>tag</ETag></CompleteMultipartUploadResult>")
        }
        (Method::DELETE, _) => {
            held.objects.remove(&path);
            said(204, "")
        }
        (Method::GET, _) if query.contains("list-type=2") => {
            let mut list = "<ListBucketResult>".to_owned();
            for (path, object) in &held.objects {
                let key = path.strip_prefix("/my-files/").expect("the bucket");
                let size = object.len();
                let written = "<LastModified>2001-09-09T01:46:40.000Z</LastModified>";
                _ = write!(list, "<Contents><Key>{key}</Key><Size>{size}</Size>{written}</Contents>");
            }
            said(200, list + "</ListBucketResult>")
        }
        (method, _) => object(&method, &asked.headers, held.objects.get(&path)),
    }
}

/// What an object, or the part of it that is asked for, is answered with.
fn object(method: &Method, headers: &http::HeaderMap, object: Option<&Vec<u8>>) -> Response<Body> {
    let Some(object) = object else { return said(404, "<Error><Code>NoSuchKey</Code></Error>") };
    if method == Method::HEAD {
        let mut response = said(200, "");
        response.headers_mut().insert("content-length", object.len().into());
        return response;
    }
    let range = headers.get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
    let Some((start, end)) = range.and_then(|range| range.split_once('-')) else {
        return said(200, object.clone());
    };
    let (start, end): (usize, usize) = (start.parse().expect("a start"), end.parse().expect("an end"));
    let mut response = said(206, object[start..=end].to_vec());
    let range = format!("bytes {start}-{end}/{}", object.len());
    response.headers_mut().insert("content-range", range.parse().expect("a range"));
    response
}

async fn gateway(url: &str, data: &Path) -> Server {
    let key = |text| ApiKey::new(text).expect("a key");
    let mut bucket = Bucket::new("s3://my-files/of/gateways", key(ACCESS_KEY), key(SECRET));
    bucket.endpoint = Some(url.to_owned());
    start_with(Config { data: Some(data.to_path_buf()), files: Some(bucket), ..Config::default() }).await
}

/// Path and query of a fresh image.
async fn image(server: &Server) -> String {
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let answer = server.ask("/v1/images/generations", &body).await;
    let url = answer["data"][0]["url"].as_str().expect("an address");
    url.strip_prefix(&server.url).expect("an address of this gateway").to_owned()
}

#[tokio::test]
async fn files_lie_in_the_bucket_and_every_gateway_serves_them() {
    let (service, url) = Service::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let first = gateway(&url, folder.path()).await;
    let address = image(&first).await;
    let name = address.trim_start_matches("/files/").split('?').next().expect("a name");
    assert_eq!(service.names(), [format!("/my-files/of/gateways/{name}")]);
    let whole = service.held().objects.values().next().expect("an object").clone();
    drop(first);
    let second = gateway(&url, folder.path()).await;
    let served = send(second.bare(Method::GET, &address)).await.bytes().await.expect("a file");
    assert_eq!(served, whole);
    let part = send(second.bare(Method::GET, &address).header("range", "bytes=8-15")).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.expect("a part"), whole[8..16]);
    // None is in the folder, and what opens the bucket is not there either.
    for file in files_of(folder.path()) {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!file.ends_with(name) && !bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    }
}

#[tokio::test]
async fn a_bucket_that_refuses_is_told_and_costs_no_file() {
    let (service, url) = Service::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let server = gateway(&url, folder.path()).await;
    let address = image(&server).await;
    service.held().refuses = true;
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    for request in [server.post("/v1/images/generations", &body), server.bare(Method::GET, &address)] {
        let (status, error) = read(request).await;
        assert_eq!((status, &error["error"]["code"]), (503, &json!("server_is_overloaded")));
        assert!(!error.to_string().contains("my-files"), "{error}");
    }
    service.held().refuses = false;
    assert_eq!(send(server.bare(Method::GET, &address)).await.status(), 200);
    // A bucket that lost a file, or is another one, is no reason to call it expired.
    service.held().objects.clear();
    assert_eq!(read(server.bare(Method::GET, &address)).await.0, 503);
}
