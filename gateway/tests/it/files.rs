//! 4 rule 4 and section 8: generated files behind signed URLs.

use gatewright_gateway::Config;
use reqwest::Method;
use serde_json::json;

use crate::support::{Server, read, send, start, start_with};

/// Path and query of the URL of a new image.
async fn address(server: &Server) -> String {
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "256x256" });
    let answer = server.ask("/v1/images/generations", &body).await;
    let url = answer["data"][0]["url"].as_str().expect("an address").to_owned();
    url.strip_prefix(&server.url).expect("an address of this gateway").to_owned()
}

#[tokio::test]
async fn file_is_served_without_a_key_as_an_attachment() {
    let server = start().await;
    let response = send(server.bare(Method::GET, &address(&server).await)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    let disposition = response.headers()["content-disposition"].to_str().expect("ASCII").to_owned();
    assert!(disposition.starts_with("attachment"), "{disposition}");
}

#[tokio::test]
async fn file_url_expires_after_one_hour() {
    let server = start().await;
    let address = address(&server).await;
    let expiry: u64 = address
        .split("exp=")
        .nth(1)
        .and_then(|rest| rest.split('&').next())
        .and_then(|text| text.parse().ok())
        .expect("an expiry");
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    assert!((3595..=3600).contains(&(expiry - now)), "{}", expiry - now);
}

#[tokio::test]
async fn tampered_file_url_is_rejected() {
    let server = start().await;
    let (address, other) = (address(&server).await, address(&server).await);
    let (path, query) = address.split_once('?').expect("a query");
    let (other_path, _) = other.split_once('?').expect("a query");
    let later = query.replacen("exp=1", "exp=9", 1);
    for tampered in [
        path.to_owned(),
        format!("{path}?{later}"),
        format!("{other_path}?{query}"),
        format!("{path}?exp=9999999999&sig=AAAA"),
        format!("{path}?{query}A"),
        format!("/files/?{query}"),
        format!("{path}%2f?{query}"),
    ] {
        let (status, body) = read(server.bare(Method::GET, &tampered)).await;
        assert_eq!((status, &body["error"]["code"]), (403, &json!("invalid_signature")), "{tampered}");
    }
    assert_eq!(read(server.bare(Method::POST, &address)).await.0, 405);
}

/// The entity tag of a file: strong and stable.
async fn response_tag(server: &Server, address: &str) -> String {
    let tag = |response: reqwest::Response| response.headers()["etag"].to_str().expect("ASCII").to_owned();
    let first = tag(send(server.bare(Method::GET, address)).await);
    assert!(first.starts_with('"') && first.ends_with('"'), "{first}");
    assert_eq!(first, tag(send(server.bare(Method::HEAD, address)).await));
    first
}

#[tokio::test]
async fn range_and_head_requests_are_served() {
    let server = start().await;
    let address = address(&server).await;
    let whole = send(server.bare(Method::GET, &address)).await.bytes().await.expect("a file");
    let response = send(server.bare(Method::GET, &address).header("range", "bytes=8-15")).await;
    assert_eq!(response.status(), 206);
    assert_eq!(response.headers()["content-range"], format!("bytes 8-15/{}", whole.len()));
    assert_eq!(response.bytes().await.expect("a part"), whole.slice(8..16));
    let tag = response_tag(&server, &address).await;
    let part =
        |tag: &str| server.bare(Method::GET, &address).header("range", "bytes=8-").header("if-range", tag);
    assert_eq!(send(part(&tag)).await.status(), 206);
    for other in ["\"other\"", &format!("W/{tag}"), "Sun, 09 Sep 2001 01:46:40 GMT"] {
        let response = send(part(other)).await;
        assert_eq!(response.status(), 200, "{other}");
        assert_eq!(response.bytes().await.expect("a file"), whole);
    }
    let response = send(server.bare(Method::GET, &address).header("range", "bytes=99999999-")).await;
    assert_eq!(response.status(), 416);
    let response = send(server.bare(Method::HEAD, &address)).await;
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-length"].to_str().ok()),
        (200, Some(whole.len().to_string().as_str()))
    );
}

#[tokio::test]
async fn full_file_storage_rejects_new_work_and_keeps_old_files() {
    // Section 8: a URL is valid for its hour.
    let server = start_with(Config { max_file_bytes: 100_000, ..Config::default() }).await;
    let address = address(&server).await;
    let body = json!({ "model": "image_model_2", "prompt": "a kite", "size": "1024x1024" });
    let (status, answer) = server.refused("/v1/images/generations", &body).await;
    assert_eq!((status, &answer["error"]["code"]), (503, &json!("file_storage_full")));
    assert_eq!(send(server.bare(Method::GET, &address)).await.status(), 200);
    // Inline images need no file space.
    let mut inline = body;
    inline["response_format"] = json!("b64_json");
    server.ask("/v1/images/generations", &inline).await;
}

#[tokio::test]
async fn file_url_works_after_a_restart_and_on_another_gateway() {
    // Section 8.
    let folder = tempfile::tempdir().expect("a folder");
    let config = || Config { data: Some(folder.path().to_path_buf()), ..Config::default() };
    let first = start_with(config()).await;
    let address = address(&first).await;
    let whole = send(first.bare(Method::GET, &address)).await.bytes().await.expect("a file");
    drop(first);
    let (second, third) = (start_with(config()).await, start_with(config()).await);
    for server in [&second, &third] {
        let response = send(server.bare(Method::GET, &address)).await;
        assert_eq!((response.status().as_u16(), response.content_length()), (200, Some(whole.len() as u64)));
        assert_eq!(response.bytes().await.expect("a file"), whole);
        let range = send(server.bare(Method::GET, &address).header("range", "bytes=-3")).await;
        assert_eq!(range.bytes().await.expect("a part"), whole.slice(whole.len() - 3..));
    }
    // Without the folder's pepper, the signature is invalid.
    let stranger = start().await;
    let (status, body) = read(stranger.bare(Method::GET, &address)).await;
    assert_eq!((status, &body["error"]["code"]), (403, &json!("invalid_signature")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;

        let mode = folder.path().join("files").metadata().expect("a folder").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[tokio::test]
async fn video_file_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = || Config { data: Some(folder.path().to_path_buf()), ..Config::default() };
    let first = start_with(config()).await;
    let body = json!({ "model": "video_model_3", "prompt": "a kite", "duration": 3, "resolution": "720p" });
    let task = first.ask("/v1/videos/generations", &body).await;
    let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
    let done = loop {
        let (_, task) = read(first.get(&path)).await;
        if task["status"] == "completed" {
            break task;
        }
        assert_ne!(task["status"], "failed", "{task}");
        tokio::task::yield_now().await;
    };
    assert_eq!(done["output"]["format"], "mp4");
    let url = done["output"]["url"].as_str().expect("an address");
    let address = url.strip_prefix(&first.url).expect("an address of this gateway");
    let whole = send(first.bare(Method::GET, address)).await.bytes().await.expect("a file");
    assert_eq!(whole.get(4..8), Some(&b"ftyp"[..]));
    drop(first);
    let second = start_with(config()).await;
    let again = send(second.bare(Method::GET, address)).await.bytes().await.expect("a file");
    assert!(again == whole, "{} bytes of {}", again.len(), whole.len());
}
