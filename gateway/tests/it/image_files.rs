//! `images.fetch`: images at URLs of a provider become files of the gateway, within bounds; an image that can't be copied keeps
//! the provider's URL.

use gatewright_gateway::{Config, Kind};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Server, send, start_with};
use crate::upstream_images::config;
use crate::upstreams::{Scripted, Step, answer, json_answer, upstream};

const PATH: &str = "/v1/images/generations";
/// The path of each image, which contains a secret.
const IMAGE_PATH: &str = "/pictures/1.png?sig=canary";

fn png() -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend((0..50_000_u32).map(|byte| (byte % 251) as u8));
    file
}

/// A file response whose head announces this length.
fn file(length: usize, bytes: Vec<u8>) -> Vec<Step> {
    let head = format!("HTTP/1.1 200 X\r\ncontent-type: image/png\r\ncontent-length: {length}\r\n\r\n");
    vec![Step::Write(head.into()), Step::Write(bytes)]
}

/// A provider that answers with the URLs of two images on its own host, or on another one.
async fn provider(host: Option<String>, image: Vec<Step>) -> Scripted {
    Scripted::answering(move |seen| {
        if seen.line.starts_with("GET ") {
            return image.clone();
        }
        let own = seen.header("host").expect("a host");
        let host = host.as_deref().unwrap_or(own);
        let image =
            json!({ "url": format!("http://{host}{IMAGE_PATH}"), "revised_prompt": "a boat", "x": 1.0 });
        json_answer(200, &json!({ "created": 1, "data": [image, { "b64_json": "AAAA" }, image], "y": null }))
    })
    .await
}

async fn gateway_to(provider: &Scripted, change: impl FnOnce(Config) -> Config) -> Server {
    let one = vec![upstream("one", Kind::Chat, &provider.url)];
    start_with(change(Config { fetch_images: true, ..config(one, None) })).await
}

async fn answer_of(server: &Server) -> Value {
    server.ask(PATH, &json!({ "model": "mine", "prompt": "a boat" })).await
}

fn urls(answer: &Value) -> Vec<&str> {
    answer["data"].as_array().expect("images").iter().filter_map(|image| image["url"].as_str()).collect()
}

/// Whether all images have the provider's URLs.
fn is_unchanged(answer: &Value) -> bool {
    urls(answer).iter().filter(|url| url.ends_with(IMAGE_PATH)).count() == 2
}

#[tokio::test]
async fn provider_images_are_copied_to_gateway_files() {
    // Without space for files, the images are still returned.
    let provider = provider(None, file(png().len(), png())).await;
    let server = gateway_to(&provider, |config| config).await;
    let answer = answer_of(&server).await;
    assert_eq!((&answer["created"], &answer["y"]), (&json!(1), &Value::Null), "{answer}");
    assert_eq!(answer["data"][1], json!({ "b64_json": "AAAA" }));
    let urls = urls(&answer);
    assert!(urls.len() == 2 && urls[0] != urls[1], "{urls:?}");
    for (url, index) in urls.into_iter().zip([0, 2]) {
        let image = &answer["data"][index];
        assert_eq!((&image["revised_prompt"], image["x"].to_string()), (&json!("a boat"), "1.0".to_owned()));
        let path = url.strip_prefix(&server.url).expect("an address of this gateway");
        assert!(path.starts_with("/files/"), "{path}");
        let response = send(server.bare(Method::GET, path)).await;
        assert_eq!(response.headers()["content-type"], "image/png");
        assert_eq!(response.bytes().await.expect("a file").to_vec(), png());
    }
    // The URL grants access: the provider's key is not sent with it.
    let fetched: Vec<_> = provider.seen().into_iter().filter(|seen| seen.line.starts_with("GET ")).collect();
    assert_eq!(fetched.len(), 2);
    assert!(fetched.iter().all(|seen| seen.header("authorization").is_none()), "{fetched:?}");
}

#[tokio::test]
async fn images_are_not_copied_if_fetching_is_disabled() {
    let provider = provider(None, file(png().len(), png())).await;
    let server = gateway_to(&provider, |config| Config { fetch_images: false, ..config }).await;
    assert!(is_unchanged(&answer_of(&server).await));
    assert_eq!(provider.count(), 1);
}

#[tokio::test]
async fn uncopyable_image_keeps_the_provider_url() {
    const TOO_LARGE: usize = 32 * 1024 * 1024 + 1;
    let page = vec![Step::Write(answer(200, "image/png", "<svg onload='alert(1)'></svg>"))];
    for image in [
        page,
        json_answer(404, &json!({ "error": "expired" })),
        file(TOO_LARGE, png()),
        [file(png().len() + 1, png()), vec![Step::Close]].concat(),
        vec![Step::Reset],
    ] {
        let provider = provider(None, image).await;
        let server = gateway_to(&provider, |config| config).await;
        assert!(is_unchanged(&answer_of(&server).await));
        assert!(provider.count() >= 3, "both images were requested");
    }
    // No space for files: the images are still worth having.
    let provider = provider(None, file(png().len(), png())).await;
    let server = gateway_to(&provider, |config| Config { max_file_bytes: 1000, ..config }).await;
    assert!(is_unchanged(&answer_of(&server).await));
}

#[tokio::test]
async fn images_are_not_fetched_from_internal_addresses() {
    for allow_private_webhooks in [false, true] {
        let elsewhere = Scripted::start([file(png().len(), png())]).await;
        let host = elsewhere.url.strip_prefix("http://").and_then(|url| url.strip_suffix("/v1"));
        let provider = provider(host.map(str::to_owned), Vec::new()).await;
        let server = gateway_to(&provider, |config| Config { allow_private_webhooks, ..config }).await;
        assert_eq!(is_unchanged(&answer_of(&server).await), !allow_private_webhooks);
        assert_eq!(elsewhere.count(), if allow_private_webhooks { 2 } else { 0 });
        assert!(
            !format!("{:?}", elsewhere.seen()).contains("sk-upstream"),
            "the key stays with the upstream"
        );
    }
}
