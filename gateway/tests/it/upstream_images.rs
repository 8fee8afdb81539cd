//! Images of providers: checked against their model's limits, relayed verbatim, and the errors when there are none.

use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, ModelKind, TargetConfig, UpstreamConfig};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstreams::{self, Scripted, UPSTREAM_KEY, answer, json_answer, upstream};

const PATH: &str = "/v1/images/generations";

/// A gateway with the image model `mine` at these upstreams, with the limits of a catalog model or none.
pub(crate) fn config(upstreams: Vec<UpstreamConfig>, limits: Option<&str>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = ModelKind::Image;
    config.models[0].limits = limits.map(str::to_owned);
    config
}

fn request() -> Value {
    json!({ "model": "mine", "prompt": "a lighthouse", "size": "512x512", "response_format": "b64_json", "seed": 1 })
}

/// A response whose form is preserved only by verbatim relaying.
const IMAGES: &str = "{ \"created\":1,\"data\" : [{\"b64_json\":\"AAAA\",\"future\":1e0}],\
                      \"usage\":{\"input_tokens\":7,\"output_tokens\":900,\"total_tokens\":907}}";

fn images() -> Vec<upstreams::Step> {
    vec![upstreams::Step::Write(answer(200, "application/json", IMAGES))]
}

#[tokio::test]
async fn images_are_relayed_with_only_the_model_renamed() {
    for (kind, path) in [
        (Kind::Chat, "POST /v1/images/generations HTTP/1.1"),
        (Kind::Responses, "POST /v1/images/generations HTTP/1.1"),
        (Kind::Gatewright, "POST /v1/v1/images/generations HTTP/1.1"),
    ] {
        let provider = Scripted::start([images()]).await;
        let server = start_with(config(vec![upstream("one", kind, &provider.url)], None)).await;
        let body = "{\"model\" : \"mine\",\"prompt\":\"a\", \"future\":1e0}";
        let sent =
            server.bare(Method::POST, PATH).bearer_auth(KEY).header("content-type", "application/json");
        let response = send(sent.body(body)).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "one");
        assert_eq!(
            (response.status().as_u16(), response.text().await.expect("a body")),
            (200, IMAGES.to_owned())
        );
        let seen = &provider.seen()[0];
        assert_eq!((seen.line.as_str(), seen.body.as_str()), (path, &*body.replace("mine", "theirs")));
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
    }
}

#[tokio::test]
async fn catalog_limits_are_checked_before_the_upstream_is_called() {
    // 2.8, 2.10: image_model_2 makes up to 10 images of three sizes.
    let provider = Scripted::start([images()]).await;
    let one = || vec![upstream("one", Kind::Chat, &provider.url)];
    let server = start_with(config(one(), Some("image_model_2"))).await;
    let mut body = request();
    (body["size"], body["quality"]) = (json!("640x480"), json!("hd"));
    let (status, refused) = server.refused(PATH, &body).await;
    let violations = refused["error"]["violations"].as_array().map(Vec::len);
    assert_eq!((status, violations, provider.count()), (400, Some(2), 0), "{refused}");
    server.ask(PATH, &request()).await;
    // Without limits, the rules for all models apply.
    let server = start_with(config(one(), None)).await;
    server.ask(PATH, &body).await;
    body["n"] = json!(11);
    let (status, refused) = server.refused(PATH, &body).await;
    assert_eq!((status, &refused["error"]["param"], provider.count()), (400, &json!("n"), 2));
}

#[tokio::test]
async fn upstream_without_images_in_its_response_is_skipped() {
    let page = vec![upstreams::Step::Write(answer(200, "text/html", "<html>hello</html>"))];
    let error = json!({ "error": { "message": "no", "code": "x" } });
    let cut = upstreams::Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"data\":[".to_vec());
    for failing in [
        json_answer(500, &error),
        json_answer(429, &error),
        json_answer(401, &error),
        json_answer(200, &json!({ "created": 1 })),
        page,
        vec![cut, upstreams::Step::Close],
        vec![upstreams::Step::Reset],
    ] {
        let (bad, good) = (Scripted::start([failing]).await, Scripted::start([images()]).await);
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(both, None)).await;
        let response = send(server.post(PATH, &request())).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good");
        assert_eq!((bad.count(), good.count()), (1, 1));
    }
}

#[tokio::test]
async fn image_error_is_relayed_without_the_key() {
    let message = format!("no such size for {UPSTREAM_KEY}");
    let error = json!({ "error": { "message": message, "code": "bad_size", "param": "size" } });
    let provider = Scripted::start([json_answer(400, &error)]).await;
    let both = vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
    let server = start_with(config(both, None)).await;
    let (status, refused) = server.refused(PATH, &request()).await;
    assert_eq!((status, provider.count()), (400, 1), "a request error is returned without failover");
    assert_eq!((&refused["error"]["code"], &refused["error"]["param"]), (&json!("bad_size"), &json!("size")));
    assert!(!refused.to_string().contains("canary"), "{refused}");
    // A page instead of images, and no other upstream.
    provider.then(vec![upstreams::Step::Write(answer(200, "text/html", "<html>"))]);
    let (status, refused) = server.refused(PATH, &request()).await;
    assert_eq!((status, &refused["error"]["code"]), (502, &json!("upstream_error")));
}

#[tokio::test]
async fn model_of_another_kind_is_404_with_the_right_endpoint() {
    let provider = Scripted::start([images()]).await;
    let one = vec![upstream("one", Kind::Responses, &provider.url)];
    let mut config = config(one, None);
    config.models.push(ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let server = start_with(config).await;
    for (path, model, right) in [
        ("/v1/chat/completions", "mine", "/v1/images/generations"),
        ("/v1/videos/generations", "mine", "/v1/images/generations"),
        (PATH, "words", "/v1/chat/completions"),
    ] {
        let body = json!({ "model": model, "prompt": "x", "messages": [{ "role": "user", "content": "x" }] });
        let (status, refused) = server.refused(path, &body).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
        assert!(message.ends_with(&format!("use POST {right}")), "{message}");
    }
    let mut body = request();
    body["stream"] = json!(true);
    let (status, refused) = server.refused(PATH, &body).await;
    assert_eq!((status, &refused["error"]["param"], provider.count()), (400, &json!("stream"), 0));
}

#[tokio::test]
async fn configured_models_replace_the_catalog() {
    let provider = Scripted::start([images()]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &provider.url)], None)).await;
    let (_, list) = read(server.get("/v1/models")).await;
    let ids: Vec<&Value> =
        list["data"].as_array().expect("models").iter().map(|entry| &entry["id"]).collect();
    assert_eq!(ids, ["mine"]);
    for (path, model) in [(PATH, "image_model_1"), ("/v1/videos/generations", "video_model_1")] {
        let (status, refused) = server.refused(path, &json!({ "model": model, "prompt": "x" })).await;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")));
    }
}

#[tokio::test]
async fn images_pass_through_two_gateways() {
    let inner = start().await;
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(vec![next], Some("image_model_2"));
    config.models[0].targets[0].model = "image_model_2".to_owned();
    let server = start_with(config).await;
    let answer = server.ask(PATH, &json!({ "model": "mine", "prompt": "a boat", "size": "256x256" })).await;
    let url = answer["data"][0]["url"].as_str().expect("a URL");
    // The provider keeps the file.
    let path = url.strip_prefix(&inner.url).expect("an address of the inner gateway");
    assert_eq!(send(inner.bare(Method::GET, path)).await.headers()["content-type"], "image/png");
}

#[tokio::test]
async fn image_usage_is_counted_by_model_and_upstream() {
    const ADMIN: &str = "gw-admin-canary-77";
    let provider = Scripted::start([json_answer(500, &json!({})), images()]).await;
    let both = vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
    let admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    let server = start_with(Config { admin_key, ..config(both, None) }).await;
    server.ask(PATH, &request()).await;
    let row = usage_row(&server, ADMIN).await;
    let numbers = ["requests", "input_tokens", "output_tokens"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [Some(1), Some(7), Some(900)], "{row}");
    assert_eq!((&row["model"], &row["upstream"]), (&json!("mine"), &json!("two")));
}

/// The only usage row, once it exists.
pub(crate) async fn usage_row(server: &Server, admin: &str) -> Value {
    let started = std::time::Instant::now();
    loop {
        let path = "/admin/usage?by=model,upstream";
        let (status, report) = read(server.bare(Method::GET, path).bearer_auth(admin)).await;
        assert_eq!(status, 200, "{report}");
        let rows = report["usage"].as_array().expect("rows").clone();
        if let [row] = &*rows {
            return row.clone();
        }
        assert!(rows.is_empty() && started.elapsed().as_secs() < 20, "{rows:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// The tokens of an image cannot be estimated from its text form.
#[tokio::test]
async fn images_without_usage_count_as_requests_only() {
    const ADMIN: &str = "gw-admin-canary-84";
    let untold = json!({ "created": 1, "data": [{ "b64_json": "AAAA".repeat(1000) }] });
    let provider = Scripted::start([json_answer(200, &untold)]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)], None);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let server = start_with(config).await;
    server.ask(PATH, &request()).await;
    let row = usage_row(&server, ADMIN).await;
    assert_eq!(
        (&row["requests"], &row["output_tokens"], &row["estimated"]),
        (&json!(1), &json!(0), &json!(0)),
        "{row}"
    );
}
