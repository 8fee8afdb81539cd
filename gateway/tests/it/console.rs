//! The console: the page for browsers, and what it asks.

use gatewright::report::{Diff, Thresholds, Validator, html};
use gatewright_gateway::{ApiKey, Config};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::videos::finished;

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
async fn video_tasks_are_seen_with_the_admin_key_alone_and_without_what_was_asked_for() {
    let server = start_with(Config {
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        allow_private_webhooks: true,
        ..Config::default()
    })
    .await;
    let (receiver, _told) = crate::webhooks::receiver(0).await;
    let asked =
        json!({ "model": "video_model_3", "prompt": "a river of mine", "duration": 3, "resolution": "720p" });
    let submit = async |prompt: &str| {
        let mut asked = asked.clone();
        (asked["prompt"], asked["webhook_url"]) = (json!(prompt), json!(receiver));
        server.ask("/v1/videos/generations", &asked).await["id"].clone()
    };
    let (made, failed) = (submit("a river of mine").await, submit("[fail: no rivers today] of mine").await);
    let output = finished(&server, &made).await["output"]["url"].as_str().expect("an address").to_owned();
    finished(&server, &failed).await;

    assert_eq!(read(server.get("/admin/tasks")).await.0, 401);
    assert_eq!(read(server.bare(Method::GET, "/admin/tasks")).await.0, 401);
    let admin = |method, query: &str| server.bare(method, &format!("/admin/tasks{query}")).bearer_auth(ADMIN);
    let (_, all) = read(admin(Method::GET, "")).await;
    let tasks = all["tasks"].as_array().expect("a list");
    assert_eq!(tasks.len(), 2, "{all}");
    let seen = |id: &Value| tasks.iter().find(|task| task["id"] == *id).expect("the task");
    for (id, status, problem) in
        [(&made, "completed", Value::Null), (&failed, "failed", json!("no rivers today"))]
    {
        let (_, told) =
            read(server.get(&format!("/v1/videos/generations/{}", id.as_str().expect("an id")))).await;
        let task = seen(id);
        assert!(task["ended"].as_u64() >= task["created"].as_u64(), "{task}");
        let expected = json!({
            "id": id, "key": "default", "model": "video_model_3", "status": status,
            "created": told["created"], "ended": task["ended"], "problem": problem,
        });
        assert_eq!(*task, expected);
        let (_, some) = read(admin(Method::GET, &format!("?status={status}"))).await;
        assert_eq!(some["tasks"], json!([task]));
    }
    let text = all.to_string();
    for absent in ["of mine", &receiver, &output, KEY, ADMIN] {
        assert!(!text.contains(absent), "{absent} in {text}");
    }

    for (query, param) in [("?status=done", json!("status")), ("?state=failed", Value::Null)] {
        let (status, error) = read(admin(Method::GET, query)).await;
        assert_eq!((status, &error["error"]["param"]), (400, &param), "{error}");
    }
    let refused = send(admin(Method::POST, "")).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"GET, HEAD".parse().expect("a value"))
    );
}

#[tokio::test]
async fn the_page_of_a_report_is_that_of_the_report_command_byte_for_byte() {
    let read = |text: &str| Validator::default().read(text.as_bytes()).expect("the example is valid");
    let before = REPORT.replace("\"duration_ms\": 4,", "\"duration_ms\": 4000,");
    assert_ne!(before, REPORT);
    let server = start().await;
    let page = server.ask("/console/report", &json!({ "report": REPORT })).await;
    assert_eq!(page["html"], html(&read(REPORT), &[]));
    let both = server.ask("/console/report", &json!({ "report": REPORT, "before": before })).await;
    assert_eq!(both["html"], Diff::of(&read(&before), &read(REPORT), Thresholds::default()).to_html());
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
