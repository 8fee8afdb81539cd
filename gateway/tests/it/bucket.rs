//! 4 rule 4 and section 8: generated files in a bucket of a third-party S3 server.

use std::path::Path;

use gatewright_gateway::{ApiKey, Bucket, Config};
use gatewright_test_stores::{Bucket as Service, BucketMode};
use http::StatusCode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, files_of, read, send, start_with};

/// The gateways' prefix in the bucket.
pub(crate) fn place_in(service: &Service) -> Bucket {
    opened_by(service, Service::SECRET_KEY)
}

fn opened_by(service: &Service, secret: &str) -> Bucket {
    let key = |text| ApiKey::new(text).expect("a key");
    let url = format!("s3://{}/of/gateways", Service::NAME);
    let mut bucket = Bucket::new(url, key(Service::ACCESS_KEY), key(secret));
    bucket.endpoint = Some(service.endpoint());
    bucket
}

async fn gateway(files: Bucket, data: &Path) -> Server {
    start_with(Config { data: Some(data.to_path_buf()), files: Some(files), ..Config::default() }).await
}

/// Path and query of the URL of a new image.
async fn image(server: &Server) -> String {
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let answer = server.ask("/v1/images/generations", &body).await;
    let url = answer["data"][0]["url"].as_str().expect("an address");
    url.strip_prefix(&server.url).expect("an address of this gateway").to_owned()
}

#[tokio::test]
async fn files_are_stored_in_the_bucket_and_served_by_every_gateway() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(&folder.path().join("service"));
    let data = folder.path().join("data");
    let first = gateway(place_in(&service), &data).await;
    let address = image(&first).await;
    let name = address.trim_start_matches("/files/").split('?').next().expect("a name");
    let objects = service.objects();
    assert!(objects.len() == 1 && objects[0].ends_with(format!("of/gateways/{name}")), "{objects:?}");
    let whole = std::fs::read(&objects[0]).expect("an object");
    drop(first);
    let second = gateway(place_in(&service), &data).await;
    let served = send(second.bare(Method::GET, &address)).await.bytes().await.expect("a file");
    assert_eq!(served, whole);
    let part = send(second.bare(Method::GET, &address).header("range", "bytes=8-15")).await;
    assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.bytes().await.expect("a part"), whole[8..16]);
    // No file is in the folder, nor are the bucket's credentials.
    let secret = Service::SECRET_KEY.as_bytes();
    for file in files_of(&data) {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!file.ends_with(name) && !bytes.windows(secret.len()).any(|part| part == secret));
    }
}

#[tokio::test]
async fn bucket_errors_are_reported_and_cost_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = Service::start(&folder.path().join("service"));
    let data = folder.path().join("data");
    let address = image(&gateway(place_in(&service), &data).await).await;
    let refuses = async |server: &Server| {
        let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
        for request in [server.post("/v1/images/generations", &body), server.bare(Method::GET, &address)] {
            let (status, error): (_, Value) = read(request).await;
            assert_eq!((status, &error["error"]["code"]), (503, &json!("server_is_overloaded")));
            assert!(!error.to_string().contains(Service::NAME), "{error}");
        }
    };
    refuses(&gateway(opened_by(&service, "another-secret"), &data).await).await;
    let server = gateway(place_in(&service), &data).await;
    assert_eq!(send(server.bare(Method::GET, &address)).await.status(), 200);
    // Makes the service return overload errors, which it never does by itself.
    service.set(BucketMode::Refuses);
    refuses(&server).await;
    service.set(BucketMode::Works);
    assert_eq!(send(server.bare(Method::GET, &address)).await.status(), 200);
    // A file missing from the bucket is an error, not an expired URL.
    for object in service.objects() {
        std::fs::remove_file(object).expect("removed");
    }
    assert_eq!(read(server.bare(Method::GET, &address)).await.0, 503);
}
