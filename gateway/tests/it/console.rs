//! The console: the page for browsers, and what it asks.

use gatewright_gateway::{ApiKey, Config};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};

const ADMIN: &str = "gw-admin-canary-77";
const REPORT: &str = include_str!("../../../examples/reports/good.json");

async fn start_with_admin() -> Server {
    start_with(Config { admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")), ..Config::default() })
        .await
}

#[tokio::test]
async fn a_browser_gets_the_page_and_a_client_of_the_api_does_not() {
    let server = start().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let page = send(server.bare(Method::GET, "/").header("accept", browser)).await;
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().expect("a value"))
    );
    assert_eq!(page.headers()["cache-control"], "no-cache");
    let policy = page.headers()["content-security-policy"].to_str().expect("ASCII").to_owned();
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(page.text().await.expect("a text").starts_with("<!doctype html>"));
    for accept in ["*/*", "application/json"] {
        let (status, error) = read(server.bare(Method::GET, "/").header("accept", accept)).await;
        assert_eq!((status, &error["error"]["code"]), (404, &json!("not_found")), "{accept}");
    }
    let posted = send(server.bare(Method::POST, "/").header("accept", browser)).await;
    assert_eq!(posted.status(), 404);
}

#[tokio::test]
async fn a_session_says_what_a_key_may_do() {
    let server = start_with_admin().await;
    let (status, refused) = read(server.bare(Method::GET, "/console/session")).await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("missing_api_key")));
    assert_eq!(read(server.bare(Method::GET, "/console/session").bearer_auth("gw-other")).await.0, 401);
    let (_, client) = read(server.get("/console/session")).await;
    assert_eq!(
        (&client["role"], &client["key"], &client["admin"]),
        (&json!("client"), &json!("default"), &json!(true))
    );
    let (_, admin) = read(server.bare(Method::GET, "/console/session").bearer_auth(ADMIN)).await;
    assert_eq!((&admin["role"], &admin["key"]), (&json!("admin"), &Value::Null));
    assert_eq!(admin["models"], client["models"]);

    let narrow = json!({ "name": "narrow", "scopes": { "models": ["image_model_1"] } });
    let made = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&narrow);
    let (_, issued) = read(made).await;
    let secret = issued["secret"].as_str().expect("a secret");
    let (_, session) = read(server.bare(Method::GET, "/console/session").bearer_auth(secret)).await;
    let models = session["models"].as_array().expect("a list");
    assert_eq!(models.len(), 1, "{session}");
    assert_eq!((&models[0]["kind"], &models[0]["limits"]["max_n"]), (&json!("image"), &json!(1)));
}

#[tokio::test]
async fn requests_are_seen_with_the_admin_key_alone_and_hold_no_text() {
    let server = start_with_admin().await;
    let question =
        json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "a text of mine" }] });
    server.ask("/v1/chat/completions", &question).await;
    server.refused("/v1/chat/completions?key=gw-in-a-query", &json!({})).await;
    assert_eq!(read(server.get("/admin/requests")).await.0, 401);
    assert_eq!(read(server.bare(Method::GET, "/admin/requests")).await.0, 401);
    // The last part of an answer may arrive before the gateway knows that it was taken.
    let listed = async || read(server.bare(Method::GET, "/admin/requests").bearer_auth(ADMIN)).await.1;
    let mut all = listed().await;
    while all["under_way_count"] != 0 {
        tokio::task::yield_now().await;
        all = listed().await;
    }
    let recent = all["recent"].as_array().expect("a list");
    assert_eq!(recent.len(), 2, "{all}");
    assert_eq!((&recent[0]["status"], &recent[0]["outcome"]), (&json!(400), &json!("complete")));
    assert_eq!((&recent[1]["status"], &recent[1]["key"]), (&json!(200), &json!("default")));
    assert_eq!(
        (&recent[1]["model"], &recent[1]["operation"]),
        (&json!("model-sol"), &json!("create_chat_completion"))
    );
    let text = all.to_string();
    for absent in ["a text of mine", "gw-in-a-query", KEY, ADMIN] {
        assert!(!text.contains(absent), "{text}");
    }

    // Without an admin key, nothing is kept.
    let plain = start().await;
    plain.ask("/v1/chat/completions", &question).await;
    assert_eq!(read(plain.get("/admin/requests")).await.0, 404);
}

#[tokio::test]
async fn the_page_of_a_report_needs_a_key_and_keeps_to_the_bounds() {
    let server = start_with(Config { max_body_bytes: 64 * 1024, ..Config::default() }).await;
    let asked = json!({ "report": REPORT });
    assert_eq!(read(server.bare(Method::POST, "/console/report").json(&asked)).await.0, 401);
    let page = server.ask("/console/report", &asked).await;
    assert!(page["html"].as_str().expect("a page").contains("Checks and models"));
    let both = server.ask("/console/report", &json!({ "report": REPORT, "before": REPORT })).await;
    assert!(both["html"].as_str().expect("a page").contains("Nothing got worse"));

    let wrong = server.ask("/console/report", &json!({ "report": "{}", "before": REPORT })).await;
    assert_eq!(wrong["html"], Value::Null);
    assert_eq!(wrong["report"]["violations"][0]["line"], 1, "{wrong}");
    assert_eq!(wrong["before"], Value::Null);

    let (status, error) = server.refused("/console/report", &json!({ "report": "x".repeat(70_000) })).await;
    assert_eq!((status, &error["error"]["code"]), (413, &json!("request_too_large")));
    let (status, _) = server.refused("/console/report", &json!({ "reports": REPORT })).await;
    assert_eq!(status, 400);
    let cramped = start_with(Config { max_held_bytes: 100, ..Config::default() }).await;
    let (status, error) = cramped.refused("/console/report", &asked).await;
    assert_eq!((status, &error["error"]["code"]), (503, &json!("server_is_overloaded")));
}
