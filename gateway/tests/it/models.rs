//! The model lists of section 4, from the catalog.

use gatewright::{catalog, types};
use gatewright_gateway::Config;
use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, read, start, start_with};

#[tokio::test]
async fn model_list_contains_the_whole_catalog() {
    let server = start().await;
    let (status, list) = read(server.get("/v1/models")).await;
    assert_eq!(status, 200);
    serde_json::from_value::<types::ModelList>(list.clone()).expect("the generated type");
    assert_eq!(list["object"], "list");
    let data = list["data"].as_array().expect("models");
    let media = catalog::VIDEO_MODELS.len() + catalog::IMAGE_MODELS.len();
    let expected =
        catalog::TEXT_MODELS.len() + catalog::EMBEDDING_MODELS.len() + catalog::PLAIN_MODELS.len() + media;
    assert_eq!(data.len(), expected);
    for model in catalog::TEXT_MODELS {
        let entry = data.iter().find(|entry| entry["id"] == model.id).expect("an entry");
        assert_eq!((&entry["object"], &entry["owned_by"]), (&json!("model"), &json!(model.family)));
        assert!(entry["created"].is_u64());
        let family = catalog::FAMILIES.iter().find(|family| family.id == model.family).expect("its family");
        assert_eq!((&entry["kind"], &entry["protocols"]), (&json!("text"), &json!(family.protocols)));
    }
}

#[tokio::test]
async fn native_model_list_is_paginated() {
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
async fn each_listed_model_can_be_retrieved() {
    let server = start().await;
    let (_, list) = read(server.get("/v1/models")).await;
    for entry in list["data"].as_array().expect("models") {
        let id = entry["id"].as_str().expect("an id");
        let (status, model) = read(server.get(&format!("/v1/models/{id}"))).await;
        assert_eq!((status, &model), (200, entry));
    }
    // Ids are accepted with an escaped or unescaped slash.
    for id in ["nope", "another/model", "another%2Fmodel", "model-sol:7b"] {
        let (status, body) = read(server.get(&format!("/v1/models/{id}"))).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!("model_not_found")), "{id}");
    }
    let (status, body) = read(server.post("/v1/models/model-sol", &json!({}))).await;
    assert_eq!((status, &body["error"]["code"]), (405, &json!("method_not_allowed")));
}

#[tokio::test]
async fn each_native_listed_model_can_be_retrieved_by_name() {
    let server = start().await;
    let (_, list) = read(server.get("/v1beta/models")).await;
    for entry in list["models"].as_array().expect("models") {
        let name = entry["name"].as_str().expect("a name");
        for path in [format!("/v1beta/{name}"), format!("/v1beta/models/{name}")] {
            let (status, model) = read(server.get(&path)).await;
            assert_eq!((status, &model), (200, entry), "{path}");
        }
    }
    for id in ["nope", "video_model_1", "another/model"] {
        let (status, body) = read(server.get(&format!("/v1beta/models/{id}"))).await;
        assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")), "{id}");
    }
    // Methods of a model require POST; their path isn't a model.
    let (status, body) = read(server.get("/v1beta/models/model-sol:generateContent")).await;
    assert_eq!((status, &body["error"]["code"]), (405, &json!(405)));
}

#[tokio::test]
async fn native_key_header_selects_native_models_under_v1() {
    let server = start().await;
    let get = |path: &str| read(server.bare(Method::GET, path).header("x-goog-api-key", KEY));
    let (status, list) = get("/v1/models").await;
    assert_eq!(status, 200);
    assert!(list["models"].is_array());
    let (status, model) = get("/v1/models/model-sol").await;
    assert_eq!((status, &model["name"]), (200, &json!("models/model-sol")));
}

#[tokio::test]
async fn named_family_is_the_owner_of_its_models() {
    let mut config = Config::default();
    config.models[0].owner = Some("Family One".to_owned());
    let (named, other) = (config.models[0].id.clone(), config.models[1].clone());
    let server = start_with(config).await;
    let owner = async |id: &str| read(server.get(&format!("/v1/models/{id}"))).await.1["owned_by"].clone();
    assert_eq!(owner(&named).await, "Family One");
    assert_eq!(owner(&other.id).await, other.family);
}
