//! The model lists of section 4, from the catalog.

use gatewright::{catalog, types};
use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, read, start};

#[tokio::test]
async fn the_list_holds_every_model_of_the_catalog() {
    let server = start().await;
    let (status, list) = read(server.get("/v1/models")).await;
    assert_eq!(status, 200);
    serde_json::from_value::<types::ModelList>(list.clone()).expect("the generated type");
    assert_eq!(list["object"], "list");
    let data = list["data"].as_array().expect("models");
    let expected = catalog::TEXT_MODELS.len() + catalog::VIDEO_MODELS.len() + catalog::IMAGE_MODELS.len();
    assert_eq!(data.len(), expected);
    for model in catalog::TEXT_MODELS {
        let entry = data.iter().find(|entry| entry["id"] == model.id).expect("an entry");
        assert_eq!((&entry["object"], &entry["owned_by"]), (&json!("model"), &json!(model.family)));
        assert!(entry["created"].is_u64());
    }
}

#[tokio::test]
async fn the_native_list_comes_in_pages() {
    let server = start().await;
    let mut names = Vec::new();
    let mut path = "/v1beta/models?pageSize=4".to_owned();
    loop {
        let (status, page) = read(server.get(&path)).await;
        assert_eq!(status, 200, "{page}");
        let models = page["models"].as_array().expect("models").clone();
        assert!(models.len() <= 4);
        names.extend(models.iter().filter_map(|model| model["name"].as_str().map(str::to_owned)));
        let Some(token) = page["nextPageToken"].as_str() else { break };
        path = format!("/v1beta/models?pageSize=4&pageToken={token}");
    }
    let expected: Vec<String> =
        catalog::TEXT_MODELS.iter().map(|model| format!("models/{}", model.id)).collect();
    assert_eq!(names, expected);
    for query in ["pageSize=0", "pageSize=x", "pageSize=1001", "pageToken=nope"] {
        let (status, body) = read(server.get(&format!("/v1beta/models?{query}"))).await;
        assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{query}");
    }
}

#[tokio::test]
async fn the_native_key_header_gives_the_native_list_under_v1() {
    let server = start().await;
    let (status, list) = read(server.bare(Method::GET, "/v1/models").header("x-goog-api-key", KEY)).await;
    assert_eq!(status, 200);
    assert!(list["models"].is_array());
}
