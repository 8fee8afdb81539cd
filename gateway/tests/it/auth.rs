//! Section 5, and the rejections that 5.3 leaves open.

use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, read, start};

#[tokio::test]
async fn missing_or_wrong_key_is_401_in_the_standard_form() {
    let server = start().await;
    let (status, body) = read(server.bare(Method::GET, "/v1/models")).await;
    assert_eq!((status, &body["error"]["code"]), (401, &json!("missing_api_key")));
    let wrong = ["Bearer wrong", "Bearer  ", "Basic Zm9v", "bearer", "wrong", "Bearer gw-canary-4f2b"];
    for value in wrong {
        let (status, body) =
            read(server.bare(Method::GET, "/v1/models").header("authorization", value)).await;
        assert_eq!(status, 401, "{value}: {body}");
        let error = body["error"].as_object().expect("an object");
        // All four members of the standard form are present.
        assert_eq!(error.keys().collect::<Vec<_>>(), ["message", "type", "param", "code"]);
        assert_eq!(error["type"], "invalid_request_error");
        // A hint at the header's form, or the usual message for a wrong key; never the key.
        let message = error["message"].as_str().expect("a message");
        assert!(
            message.starts_with("Incorrect API key provided") != message.contains("<API_KEY>"),
            "{message}"
        );
        assert!(!message.contains("gw-canary"), "{message}");
    }
}

#[tokio::test]
async fn missing_key_is_403_and_wrong_key_400_in_the_native_form() {
    let server = start().await;
    let (status, body) = read(server.bare(Method::GET, "/v1beta/models")).await;
    assert_eq!((status, &body["error"]["status"]), (403, &json!("PERMISSION_DENIED")));
    assert_eq!(body["error"]["code"], 403);
    let (status, body) =
        read(server.bare(Method::GET, "/v1beta/models").header("x-goog-api-key", "wrong")).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    let detail = &body["error"]["details"][0];
    assert_eq!(detail["reason"], "API_KEY_INVALID");
    assert!(detail["@type"].as_str().is_some_and(|kind| kind.ends_with("ErrorInfo")));
}

#[tokio::test]
async fn native_key_header_selects_native_errors_under_v1() {
    let server = start().await;
    let paths = ["/v1/models", "/v1/models/model-sol", "/v1/models/model-sol:generateContent"];
    for (key, status, word) in [("wrong", 400, "INVALID_ARGUMENT"), ("", 403, "PERMISSION_DENIED")] {
        for path in paths {
            let method = if path.contains(':') { Method::POST } else { Method::GET };
            let request = server.bare(method, path).header("x-goog-api-key", key).json(&json!({}));
            let (found, body) = read(request).await;
            assert_eq!((found, &body["error"]["status"]), (status, &json!(word)), "{path} {key:?}");
        }
    }
    for path in ["/v1/nothing", "/v1/models/model-sol:nothing", "/v1beta/nothing", "/nothing"] {
        let (status, body) =
            read(server.bare(Method::POST, path).header("x-goog-api-key", KEY).json(&json!({}))).await;
        assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")), "{path}");
    }
    // Other clients get the standard form.
    let (status, body) = read(server.get("/v1/nothing")).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn key_is_accepted_as_bearer_native_header_or_parameter() {
    let server = start().await;
    let list = || server.bare(Method::GET, "/v1beta/models");
    assert_eq!(read(list().bearer_auth(KEY)).await.0, 200);
    assert_eq!(read(list().header("authorization", format!("bearer {KEY}"))).await.0, 200);
    assert_eq!(read(list().header("x-goog-api-key", KEY)).await.0, 200);
    assert_eq!(read(server.bare(Method::GET, &format!("/v1beta/models?key={KEY}"))).await.0, 200);
    // The Authorization header is the specification's own (5 rule 1): if it is wrong, another header doesn't help.
    let both = list().header("authorization", "Bearer wrong").header("x-goog-api-key", KEY);
    assert_eq!(read(both).await.0, 400);
}

#[tokio::test]
async fn every_operation_requires_the_key() {
    let server = start().await;
    for operation in gatewright::operations::ALL {
        let path = operation.path.replace("{model}", "model-sol").replace("{task_id}", "t");
        let method: Method = operation.method.as_str().parse().expect("a method");
        let (status, _) = read(server.bare(method, &path).json(&json!({}))).await;
        assert!(matches!(status, 401 | 403), "{}: {status}", operation.id);
    }
}
