//! HTTP methods beyond those of the specification, and CORS (ours).

use gatewright_gateway::{BindError, Config, Gateway};
use reqwest::{Method, Response};
use serde_json::json;

use crate::support::{KEY, Server, send, start, start_with};

async fn preflight(server: &Server, origin: &str) -> Response {
    preflight_of(server, origin, "POST", "/v1/responses").await
}

async fn preflight_of(server: &Server, origin: &str, method: &str, path: &str) -> Response {
    let request = server.bare(Method::OPTIONS, path).header("origin", origin);
    let request = request.header("access-control-request-method", method);
    send(request.header("access-control-request-headers", "authorization,content-type")).await
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

#[tokio::test]
async fn head_is_supported_wherever_get_is() {
    let server = start().await;
    for path in ["/v1/models", "/v1beta/models"] {
        let whole = send(server.get(path)).await;
        let length = whole.bytes().await.expect("a body").len().to_string();
        let head = send(server.bare(Method::HEAD, path).bearer_auth(KEY)).await;
        assert_eq!((head.status().as_u16(), header(&head, "content-length")), (200, Some(length.as_str())));
    }
    assert_eq!(send(server.bare(Method::HEAD, "/v1/models")).await.status(), 401);
    let refused = send(server.bare(Method::HEAD, "/v1/responses").bearer_auth(KEY)).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "allow")), (405, Some("POST, OPTIONS")));
}

#[tokio::test]
async fn options_lists_the_allowed_methods() {
    let server = start().await;
    for (path, methods) in [
        ("/v1/models", "GET, HEAD, OPTIONS"),
        ("/v1/responses", "POST, OPTIONS"),
        ("/files/x.png", "GET, HEAD, OPTIONS"),
    ] {
        let answer = send(server.bare(Method::OPTIONS, path)).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "allow")), (204, Some(methods)), "{path}");
    }
    assert_eq!(send(server.bare(Method::OPTIONS, "/v1/nothing")).await.status(), 404);
}

#[tokio::test]
async fn cors_allows_only_configured_origins() {
    let allowed_origins = vec!["https://app.example".to_owned()];
    let server = start_with(Config { allowed_origins, ..Config::default() }).await;
    let allowed = preflight(&server, "https://app.example").await;
    assert_eq!(header(&allowed, "access-control-allow-origin"), Some("https://app.example"));
    assert_eq!(header(&allowed, "access-control-allow-headers"), Some("authorization,content-type"));
    let deletion = preflight_of(&server, "https://app.example", "DELETE", "/v1/responses/resp_1").await;
    let methods = header(&deletion, "access-control-allow-methods").expect("methods");
    let methods: Vec<&str> = methods.split(',').map(str::trim).collect();
    assert!(["GET", "HEAD", "POST", "DELETE"].iter().all(|method| methods.contains(method)), "{methods:?}");
    let refused = preflight(&server, "https://other.example").await;
    assert_eq!(header(&refused, "access-control-allow-origin"), None);
    // Errors and their request id must be readable, too.
    let answer = server.post("/v1/responses", &json!({})).header("origin", "https://app.example");
    let answer = send(answer).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(header(&answer, "access-control-allow-origin"), Some("https://app.example"));
    let exposed = header(&answer, "access-control-expose-headers").expect("a list");
    let exposed: Vec<&str> = exposed.split(',').map(str::trim).collect();
    for name in [
        "x-request-id",
        "retry-after",
        "x-gatewright-upstream",
        "x-gatewright-dropped",
        "x-gatewright-estimated",
    ] {
        assert!(exposed.contains(&name), "{name} in {exposed:?}");
    }
}

#[tokio::test]
async fn cors_is_off_by_default_and_a_star_allows_all_origins() {
    let closed = preflight(&start().await, "https://app.example").await;
    assert_eq!(header(&closed, "access-control-allow-origin"), None);
    let config = Config { allowed_origins: vec!["*".to_owned()], ..Config::default() };
    let open = preflight(&start_with(config).await, "https://app.example").await;
    assert_eq!(header(&open, "access-control-allow-origin"), Some("*"));
}

#[tokio::test]
async fn invalid_origin_is_a_configuration_error() {
    for origin in ["app.example", "https://app.example/path", "file:///x", ""] {
        let allowed_origins = vec![origin.to_owned()];
        let config = Config { listen: vec!["127.0.0.1:0".to_owned()], allowed_origins, ..Config::default() };
        assert!(matches!(Gateway::bind(config).await, Err(BindError::Origin(_))), "{origin}");
    }
}
