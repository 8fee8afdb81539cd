//! What requests cost: by tiers, images and seconds of video, and without a price.

use gatewright_gateway::{ApiKey, Config, Kind, ModelPrice, TieredPrice, TokenPrice};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start_with};
use crate::upstreams::{self, Scripted, answer, completion, json_answer, question, upstream};
use crate::{images_of_upstreams, videos_of_upstreams};

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

/// Cost, and how many requests are unpriced, once so many are counted.
async fn counted(server: &Server, requests: u64) -> (f64, u64) {
    for _ in 0..200 {
        let asking = server.bare(Method::GET, "/admin/usage?by=model").bearer_auth(ADMIN);
        let (_, report) = read(asking).await;
        let row = &report["usage"][0];
        if row["requests"] == requests {
            return (row["cost"].as_f64().expect("an amount"), row["unpriced"].as_u64().expect("a count"));
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{requests} requests are never counted");
}

fn assert_close(cost: f64, expected: f64) {
    assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
}

/// An answer that reports so many tokens of a prompt, of which 1,000 come from a cache, and ten of an answer, four of them reasoning.
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
async fn a_prompt_above_a_tier_costs_its_prices_and_one_at_its_boundary_does_not() {
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
async fn images_cost_their_number_and_are_unpriced_where_only_tokens_have_a_price() {
    let body = json!({ "model": "mine", "prompt": "a lighthouse", "n": 3 });
    let mut by_image = ModelPrice::default();
    by_image.image = Some(0.04);
    for (price, expected) in
        [(Some(by_image), (0.12, 0)), (Some(ModelPrice::new(1.0, 1.0)), (0.0, 1)), (None, (0.0, 1))]
    {
        let one = Scripted::start([images(3)]).await;
        let config = images_of_upstreams::config(vec![upstream("one", Kind::Chat, &one.url)], None);
        let server = start(config, price).await;
        server.ask("/v1/images/generations", &body).await;
        let (cost, unpriced) = counted(&server, 1).await;
        assert_close(cost, expected.0);
        assert_eq!(unpriced, expected.1);
    }
}

#[tokio::test]
async fn a_video_costs_its_seconds_and_is_unpriced_without_their_price() {
    let mut by_second = ModelPrice::default();
    by_second.video_second = Some(0.1);
    for (price, expected) in [(Some(by_second), (0.8, 0)), (None, (0.0, 1))] {
        let queued = videos_of_upstreams::video("queued");
        let one = Scripted::start([queued.clone(), queued]).await;
        let config = videos_of_upstreams::config(vec![upstream("one", Kind::Chat, &one.url)], None);
        let server = start(config, price).await;
        let request = server.post("/v1/videos/generations", &videos_of_upstreams::request());
        assert!(send(request).await.status().is_success());
        let (cost, unpriced) = counted(&server, 1).await;
        assert_close(cost, expected.0);
        assert_eq!(unpriced, expected.1);
    }
}

#[tokio::test]
async fn requests_without_a_price_are_counted_as_unpriced_and_no_budget_of_money_limits_them() {
    let one = Scripted::start([reporting(2000), reporting(2000)]).await;
    let config = upstreams::config(vec![upstream("one", Kind::Chat, &one.url)]);
    let server = start(config, None).await;
    let new = json!({ "name": "ci", "limits": { "cost_per_day": 0.000_001 } });
    let (status, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    assert_eq!(status, 201, "{issued}");
    let key = issued["secret"].as_str().expect("a secret");
    for _ in 0..2 {
        let asking =
            server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key).json(&question(false));
        assert_eq!(read(asking).await.0, 200);
    }
    assert_eq!(counted(&server, 2).await, (0.0, 2));
    let metrics = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    assert!(metrics.contains("\ngatewright_usage_unpriced_total 2\n"), "{metrics}");
}

#[tokio::test]
async fn the_simulator_is_free_and_never_unpriced() {
    let server = start(Config::default(), None).await;
    let body: Value = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(
        read(server.bare(Method::POST, "/v1/chat/completions").bearer_auth(KEY).json(&body)).await.0,
        200
    );
    assert_eq!(counted(&server, 1).await, (0.0, 0));
}
