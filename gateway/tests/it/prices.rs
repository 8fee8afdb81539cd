//! What requests cost: tiers, images, video seconds, and missing prices.

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind, ModelPrice, TieredPrice, TokenPrice};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start_with};
use crate::upstreams::{self, Scripted, Step, answer, completion, json_answer, question, upstream};
use crate::{upstream_images, upstream_videos};

const ADMIN: &str = "gw-admin-canary-77";

/// A gateway whose model `mine` has this price.
async fn start(mut config: Config, price: Option<ModelPrice>) -> Server {
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    config.open_metrics = true;
    for target in config.models.iter_mut().flat_map(|model| &mut model.targets) {
        target.price.clone_from(&price);
    }
    start_with(config).await
}

/// Cost and number of unpriced requests, once this many are counted.
async fn counted(server: &Server, requests: u64) -> (f64, u64) {
    for _ in 0..200 {
        let request = server.bare(Method::GET, "/admin/usage?by=model").bearer_auth(ADMIN);
        let (_, report) = read(request).await;
        let row = &report["usage"][0];
        if row["requests"] == requests {
            return (row["cost"].as_f64().expect("an amount"), row["unpriced"].as_u64().expect("a count"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{requests} requests are never counted");
}

fn assert_close(cost: f64, expected: f64) {
    assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
}

/// A response that reports this many prompt tokens, 1,000 of them cached, and ten completion tokens, four of them for reasoning.
fn reporting(prompt: u64) -> Vec<upstreams::Step> {
    let mut answer = completion("hello");
    answer["usage"] = json!({
        "prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10,
        "prompt_tokens_details": { "cached_tokens": 1000 },
        "completion_tokens_details": { "reasoning_tokens": 4 },
    });
    json_answer(200, &answer)
}

fn tiered() -> ModelPrice {
    let mut price = ModelPrice::new(1.0, 10.0);
    price.tokens.cached_input = Some(0.1);
    price.tokens.reasoning = Some(20.0);
    price.tiers = vec![TieredPrice::new(200_000, TokenPrice::new(2.0, 30.0))];
    price
}

#[tokio::test]
async fn tier_price_applies_only_above_its_threshold() {
    let one = Scripted::start([reporting(200_000), reporting(200_001)]).await;
    let config = upstreams::config(vec![upstream("one", Kind::Chat, &one.url)]);
    let server = start(config, Some(tiered())).await;
    let ask = async || server.ask("/v1/chat/completions", &question(false)).await;
    ask().await;
    let below = (199_000.0 * 1.0 + 1_000.0 * 0.1 + 6.0 * 10.0 + 4.0 * 20.0) / 1e6;
    assert_close(counted(&server, 1).await.0, below);
    ask().await;
    let above = (200_001.0 * 2.0 + 10.0 * 30.0) / 1e6;
    assert_close(counted(&server, 2).await.0, below + above);
}

fn images(count: usize) -> Vec<upstreams::Step> {
    let images = json!({ "created": 1, "data": vec![json!({ "b64_json": "AAAA" }); count] });
    vec![upstreams::Step::Write(answer(200, "application/json", &images.to_string()))]
}

#[tokio::test]
async fn images_are_priced_per_image_or_counted_as_unpriced() {
    let body = json!({ "model": "mine", "prompt": "a lighthouse", "n": 3 });
    let by_image = ModelPrice { image: Some(0.04), ..ModelPrice::default() };
    for (price, expected) in
        [(Some(by_image), (0.12, 0)), (Some(ModelPrice::new(1.0, 1.0)), (0.0, 1)), (None, (0.0, 1))]
    {
        let one = Scripted::start([images(3)]).await;
        let config = upstream_images::config(vec![upstream("one", Kind::Chat, &one.url)], None);
        let server = start(config, price).await;
        server.ask("/v1/images/generations", &body).await;
        let (cost, unpriced) = counted(&server, 1).await;
        assert_close(cost, expected.0);
        assert_eq!(unpriced, expected.1);
    }
}

#[tokio::test]
async fn images_of_a_client_that_disconnects_are_priced() {
    let body = json!({ "model": "mine", "prompt": "a lighthouse", "n": 3 });
    let one = Scripted::start([vec![Step::Hang]]).await;
    let config = upstream_images::config(vec![upstream("one", Kind::Chat, &one.url)], None);
    let by_image = ModelPrice { image: Some(0.04), ..ModelPrice::default() };
    let server = start(config, Some(by_image)).await;
    tokio::select! {
        _ = server.post("/v1/images/generations", &body).send() => panic!("no answer yet"),
        () = upstream_videos::until_requested(&one) => {}
    }
    let (cost, unpriced) = counted(&server, 1).await;
    assert_close(cost, 0.12);
    assert_eq!(unpriced, 0);
}

#[tokio::test]
async fn videos_are_priced_per_second_or_counted_as_unpriced() {
    let by_second = || Some(ModelPrice { video_second: Some(0.1), ..ModelPrice::default() });
    let public = json!({ "model": "mine", "prompt": "a kite", "seconds": "12" });
    for (price, request, expected) in [
        (by_second(), upstream_videos::request(), (0.8, 0)),
        (by_second(), public, (1.2, 0)),
        (None, upstream_videos::request(), (0.0, 1)),
    ] {
        let queued = upstream_videos::video("queued");
        let one = Scripted::start([queued.clone(), queued]).await;
        let config = upstream_videos::config(vec![upstream("one", Kind::Chat, &one.url)], None);
        let server = start(config, price).await;
        let request = server.post("/v1/videos/generations", &request);
        assert!(send(request).await.status().is_success());
        let (cost, unpriced) = counted(&server, 1).await;
        assert_close(cost, expected.0);
        assert_eq!(unpriced, expected.1);
    }
}

#[tokio::test]
async fn unpriced_requests_are_counted_and_not_limited_by_cost_budgets() {
    let one = Scripted::start([reporting(2000), reporting(2000)]).await;
    let config = upstreams::config(vec![upstream("one", Kind::Chat, &one.url)]);
    let server = start(config, None).await;
    let new = json!({ "name": "ci", "limits": { "cost_per_day": 0.000_001 } });
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    let key = issued["secret"].as_str().expect("a secret");
    for _ in 0..2 {
        let request =
            server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&question(false));
        assert_eq!(read(request).await.0, 200);
    }
    assert_eq!(counted(&server, 2).await, (0.0, 2));
    let metrics = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    assert!(metrics.contains("\ngatewright_usage_unpriced_total 2\n"), "{metrics}");
}

#[tokio::test]
async fn simulator_is_free_and_never_unpriced() {
    let server = start(Config::default(), None).await;
    let body: Value = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(
        read(server.bare(Method::POST, "/v1/chat/completions").bearer_auth(KEY).json(&body)).await.0,
        200
    );
    assert_eq!(counted(&server, 1).await, (0.0, 0));
}
