//! Sections 2.8, 2.10, 2.11 and 7 rule 3: images.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use gatewright::{catalog, types};
use gatewright_gateway::Config;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::support::{Server, send, start, start_with};

const PATH: &str = "/v1/images/generations";

/// Width and height of a fully decoded PNG.
fn decode(file: &[u8]) -> (u32, u32) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a whole picture");
    assert!(pixels.iter().any(|sample| *sample != pixels[0]), "a picture of one colour");
    (info.width, info.height)
}

async fn fetch(server: &Server, url: &Value) -> Vec<u8> {
    let path =
        url.as_str().and_then(|url| url.strip_prefix(&server.url)).expect("an address of this gateway");
    let response = send(server.bare(Method::GET, path)).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"image/png".parse().expect("a value"))
    );
    response.bytes().await.expect("a file").to_vec()
}

#[tokio::test]
async fn every_catalog_size_is_drawn_at_that_size() {
    let server = start().await;
    for model in catalog::IMAGE_MODELS {
        for size in model.sizes.unwrap_or(&["320x200"]) {
            let body = json!({ "model": model.id, "prompt": "a lighthouse", "size": size });
            let answer = server.ask(PATH, &body).await;
            serde_json::from_value::<types::ImageGenerationResponse>(answer.clone())
                .expect("the generated type");
            let image = &answer["data"][0];
            let (width, height) = decode(&fetch(&server, &image["url"]).await);
            assert_eq!(format!("{width}x{height}"), *size);
            assert_eq!(image["revised_prompt"].is_string(), model.revises_prompt, "2.11");
            assert!(image.get("b64_json").is_none());
        }
    }
}

#[tokio::test]
async fn base64_and_multiple_images_are_returned_on_request() {
    let server = start().await;
    let body = json!({ "model": "image_model_2", "prompt": "waves", "n": 3, "size": "256x256", "response_format": "b64_json" });
    let answer = server.ask(PATH, &body).await;
    let files: std::collections::HashSet<Vec<u8>> = answer["data"]
        .as_array()
        .expect("images")
        .iter()
        .map(|image| BASE64_STANDARD.decode(image["b64_json"].as_str().expect("base64")).expect("base64"))
        .collect();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| decode(file) == (256, 256)));
    // Equal requests get equal pictures.
    assert_eq!(server.ask(PATH, &body).await["data"], answer["data"]);
}

#[tokio::test]
async fn model_limit_violations_are_reported_together() {
    // 7 rule 3, 8: n, size, quality, style and the prompt's length depend on the model.
    let server = start().await;
    let body = json!({ "model": "image_model_1", "prompt": "x".repeat(4001), "n": 2, "size": "256x256" });
    let (status, answer) = server.refused(PATH, &body).await;
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_value")));
    assert_eq!(pointers(&answer), ["/n", "/prompt", "/size"]);
    let body =
        json!({ "model": "image_model_2", "prompt": "x", "quality": "hd", "style": "natural", "n": 11 });
    assert_eq!(pointers(&server.refused(PATH, &body).await.1), ["/n", "/quality", "/style"]);
    let body = json!({ "model": "image_model_4", "prompt": "x", "size": "1024x1025" });
    assert_eq!(pointers(&server.refused(PATH, &body).await.1), ["/size"]);
    let (status, answer) = server.refused(PATH, &json!({ "model": "model-sol", "prompt": "x" })).await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")));
}

/// Sorted, without duplicates.
fn pointers(answer: &Value) -> Vec<String> {
    let violations = answer["error"]["violations"].as_array().expect("violations");
    let pointers = violations.iter().filter_map(|violation| violation["pointer"].as_str().map(str::to_owned));
    pointers.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn file_of_a_disconnected_image_request_is_still_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config { data: Some(folder.path().to_path_buf()), ..Config::default() };
    let server = start_with(config).await;
    // Readers proceed meanwhile, writers do not.
    let options = SqliteConnectOptions::new().filename(folder.path().join("gatewright.db"));
    let mut database = SqliteConnection::connect_with(&options).await.expect("a connection");
    while sqlx::query("BEGIN IMMEDIATE").execute(&mut database).await.is_err() {}
    let model = catalog::IMAGE_MODELS[0];
    let size = model.sizes.and_then(|sizes| sizes.first()).unwrap_or(&"256x256");
    let body = json!({ "model": model.id, "prompt": "a lighthouse", "size": size });
    let drawing = tokio::spawn(server.post(PATH, &body).send());
    let written = || std::fs::read_dir(folder.path().join("files")).expect("a folder").count() > 0;
    while !written() && !drawing.is_finished() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    drawing.abort();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    sqlx::query("COMMIT").execute(&mut database).await.expect("the lock is released");
    let started = std::time::Instant::now();
    loop {
        let count: (i64,) =
            sqlx::query_as("SELECT count(*) FROM files").fetch_one(&mut database).await.expect("a count");
        if count.0 == 1 {
            break;
        }
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "it is not recorded");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
