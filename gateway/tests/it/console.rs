//! The console: its page and its API.

use gatewright::report::{Diff, Thresholds, Validator, html};
use gatewright_gateway::{ApiKey, Config, Kind, ModelPrice};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstreams::{Scripted, UPSTREAM_KEY, completion, config, json_answer, question, upstream};
use crate::videos::finished;

const ADMIN: &str = "gw-admin-canary-77";
const REPORT: &str = include_str!("../../../examples/reports/good.json");
/// Vectors with a document of additional checks.
const PROTOCOLS: &str = include_str!("../../../tests/vectors/report-forms/protocols.json");

async fn start_with_admin() -> Server {
    start_with(Config { admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")), ..Config::default() })
        .await
}

#[tokio::test]
async fn page_is_served_to_browsers_only() {
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
async fn session_reports_what_a_key_may_do() {
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
    assert_eq!((&admin["role"], &admin["key"]), (&json!("admin"), &json!("admin")));
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
async fn session_has_prices_and_limits_of_models_and_the_currency() {
    let mut config = config(vec![upstream("one", Kind::Chat, "http://127.0.0.1:9/v1")]);
    config.currency = Some("EUR".to_owned());
    let target = &mut config.models[0].targets[0];
    target.price = Some(ModelPrice::new(2.5, 10.0));
    (target.context, target.max_output) = (Some(128_000), Some(16_000));
    let mut other = target.clone();
    other.context = Some(64_000);
    config.models[0].targets.push(other);
    let server = start_with(config.clone()).await;
    let (_, session) = read(server.get("/console/session")).await;
    assert_eq!(session["currency"], "EUR");
    let model = &session["models"][0];
    assert_eq!(model["limits"], json!({ "context_tokens": 64_000, "max_output_tokens": 16_000 }));
    assert_eq!((&model["price"]["tokens"]["input"], &model["price"]["tiers"]), (&json!(2.5), &json!([])));

    // Which price applies is unknown before an upstream answers.
    config.models[0].targets[1].price = Some(ModelPrice::new(3.0, 10.0));
    let server = start_with(config).await;
    let (_, session) = read(server.get("/console/session")).await;
    assert_eq!(session["models"][0]["price"], Value::Null);
}

#[tokio::test]
async fn listed_request_has_its_tokens_and_cost() {
    let mut answer = completion("hello");
    answer["usage"] = json!({ "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010 });
    let provider = Scripted::start([json_answer(200, &answer)]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    config.models[0].targets[0].price = Some(ModelPrice::new(1.0, 100.0));
    let server = start_with(config).await;
    server.ask("/v1/chat/completions", &question(false)).await;
    let listed = async || read(server.bare(Method::GET, "/admin/requests").bearer_auth(ADMIN)).await.1;
    let mut all = listed().await;
    while all["under_way_count"] != 0 {
        tokio::task::yield_now().await;
        all = listed().await;
    }
    let request = &all["recent"][0];
    assert_eq!(
        (&request["input_tokens"], &request["output_tokens"], &request["estimated"], &request["error"]),
        (&json!(1000), &json!(10), &json!(false), &Value::Null)
    );
    assert_eq!(request["cost"], 0.002);
}

#[tokio::test]
async fn content_is_kept_only_if_configured_without_secrets_and_only_for_the_admin_key() {
    let echo = format!("you said {UPSTREAM_KEY}");
    let provider = Scripted::start([json_answer(200, &completion(&echo))]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let plain = start_with(config.clone()).await;
    config.content_requests = 2;
    let server = start_with(config).await;
    let ask = async |server: &Server, text: &str| {
        let mut body = question(false);
        body["messages"][0]["content"] = json!(text);
        let answer = send(server.post("/v1/chat/completions", &body)).await;
        answer.headers()["x-request-id"].to_str().expect("ASCII").to_owned()
    };
    let content = async |server: &Server, id: &str, key: &str| {
        read(server.bare(Method::GET, &format!("/admin/requests/{id}/content")).bearer_auth(key)).await
    };
    let secret = format!("gw-{}", "x1".repeat(21));
    let first = ask(&server, &format!("a text of mine, {KEY}, {ADMIN}, {secret}, sk-abcdefgh")).await;
    let (status, content_answer) = content(&server, &first, ADMIN).await;
    assert_eq!((status, &content_answer["request"]["cut"]), (200, &json!(false)), "{content_answer}");
    let request = content_answer["request"]["text"].as_str().expect("a text");
    assert!(request.contains("a text of mine, [redacted], [redacted], [redacted], [redacted]"), "{request}");
    let response = content_answer["response"]["text"].as_str().expect("a text");
    assert!(response.contains("you said [redacted]"), "{response}");
    assert_eq!(content(&server, &first, KEY).await.0, 401);
    assert_eq!(content(&server, "req_other", ADMIN).await.0, 404);

    // A request without a valid key doesn't take the place of another.
    let stranger = server.bare(Method::POST, "/v1/chat/completions").bearer_auth("gw-stranger");
    assert_eq!(read(stranger.json(&question(false))).await.0, 401);
    let second = ask(&server, "more").await;
    let (_, all) = read(server.bare(Method::GET, "/admin/requests").bearer_auth(ADMIN)).await;
    assert_eq!(all["content_requests"], 2);
    let is_listed = |id: &str| {
        let listed = all["under_way"].as_array().into_iter().chain(all["recent"].as_array()).flatten();
        listed.filter(|request| request["id"] == *id).any(|request| request["content"] == true)
    };
    assert!(is_listed(&first) && is_listed(&second) && !all.to_string().contains("of mine"), "{all}");
    ask(&server, "and more").await;
    assert_eq!(content(&server, &first, ADMIN).await.0, 404);
    assert_eq!(content(&server, &second, ADMIN).await.0, 200);

    let id = ask(&plain, "a text of mine").await;
    let (status, content_answer) = content(&plain, &id, ADMIN).await;
    let why = content_answer["error"]["message"].as_str().expect("a message");
    assert!(status == 404 && why.contains("observe.content_requests"), "{content_answer}");
}

#[tokio::test]
async fn failed_request_is_listed_with_model_and_upstream() {
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let unreachable = upstream("one", Kind::Chat, "http://127.0.0.1:9/v1");
    let server = start_with(Config { admin_key, ..config(vec![unreachable]) }).await;
    let unknown = json!({ "model": "no-such-model", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(server.refused("/v1/chat/completions", &question(false)).await.0, 502);
    assert_eq!(server.refused("/v1/chat/completions", &unknown).await.0, 404);
    let native = "/v1beta/models/no-such-model:generateContent";
    let contents = json!({ "contents": [{ "parts": [{ "text": "hi" }] }] });
    assert_eq!(server.refused(native, &contents).await.0, 404);
    let listed = async || read(server.bare(Method::GET, "/admin/requests").bearer_auth(ADMIN)).await.1;
    let mut all = listed().await;
    while all["under_way_count"] != 0 {
        tokio::task::yield_now().await;
        all = listed().await;
    }
    let model = question(false)["model"].clone();
    let seen: Vec<_> = all["recent"].as_array().expect("a list").iter().rev().collect();
    let expected = [(502, model, json!("one")), (404, json!("no-such-model"), Value::Null)];
    for (request, (status, model, upstream)) in seen.iter().zip(expected.iter().chain(&expected[1..])) {
        assert_eq!(
            (&request["status"], &request["model"], &request["upstream"]),
            (&json!(status), model, upstream)
        );
        let error = if *status == 502 { "upstream_error" } else { "model_not_found" };
        assert_eq!((&request["error"], &request["cost"]), (&json!(error), &Value::Null));
    }
    assert_eq!(seen.len(), 3, "{all}");
}

#[tokio::test]
async fn request_list_requires_the_admin_key_and_contains_no_text() {
    let server = start_with_admin().await;
    let question =
        json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "a text of mine" }] });
    server.ask("/v1/chat/completions", &question).await;
    server.refused("/v1/chat/completions?key=gw-in-a-query", &json!({})).await;
    assert_eq!(read(server.get("/admin/requests")).await.0, 401);
    assert_eq!(read(server.bare(Method::GET, "/admin/requests")).await.0, 401);
    // The last part of a response may arrive before the gateway knows that it was received.
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

    // Without an admin key, no requests are recorded.
    let plain = start().await;
    plain.ask("/v1/chat/completions", &question).await;
    assert_eq!(read(plain.get("/admin/requests")).await.0, 404);
}

#[tokio::test]
async fn task_list_requires_the_admin_key_and_contains_no_prompts() {
    let server = start_with(Config {
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        allow_private_webhooks: true,
        ..Config::default()
    })
    .await;
    let (receiver, _received) = crate::webhooks::receiver(0).await;
    let request =
        json!({ "model": "video_model_3", "prompt": "a river of mine", "duration": 3, "resolution": "720p" });
    let submit = async |prompt: &str| {
        let mut request = request.clone();
        (request["prompt"], request["webhook_url"]) = (json!(prompt), json!(receiver));
        server.ask("/v1/videos/generations", &request).await["id"].clone()
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
        let (_, task_answer) =
            read(server.get(&format!("/v1/videos/generations/{}", id.as_str().expect("an id")))).await;
        let task = seen(id);
        assert!(task["ended"].as_u64() >= task["created"].as_u64(), "{task}");
        let expected = json!({
            "id": id, "key": "default", "model": "video_model_3", "status": status,
            "created": task_answer["created"], "ended": task["ended"], "problem": problem,
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
async fn report_page_equals_the_report_command_output() {
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
async fn report_page_requires_a_key_and_enforces_bounds() {
    let server = start_with(Config { max_body_bytes: 64 * 1024, ..Config::default() }).await;
    let body = json!({ "report": REPORT });
    assert_eq!(read(server.bare(Method::POST, "/console/report").json(&body)).await.0, 401);
    let page = server.ask("/console/report", &body).await;
    assert!(page["html"].as_str().expect("a page").contains("Checks and models"));
    let both = server.ask("/console/report", &json!({ "report": REPORT, "before": REPORT })).await;
    assert!(both["html"].as_str().expect("a page").contains("Nothing got worse"));

    let checks: Value = serde_json::from_str(PROTOCOLS).expect("JSON");
    let checks = checks["document"].to_string();
    let page = server.ask("/console/report", &json!({ "report": checks })).await;
    assert!(page["html"].as_str().is_some_and(|page| page.contains("Other protocols")), "{page}");
    let wrong = server.ask("/console/report", &json!({ "report": checks, "before": REPORT })).await;
    assert!(wrong["report"]["violations"][0].is_object() && wrong["before"].is_null(), "{wrong}");
    let wrong = server.ask("/console/report", &json!({ "report": "{}", "before": REPORT })).await;
    assert_eq!(wrong["html"], Value::Null);
    assert_eq!(wrong["report"]["violations"][0]["line"], 1, "{wrong}");
    assert_eq!(wrong["before"], Value::Null);

    let (status, error) = server.refused("/console/report", &json!({ "report": "x".repeat(70_000) })).await;
    assert_eq!((status, &error["error"]["code"]), (413, &json!("request_too_large")));
    let (status, _) = server.refused("/console/report", &json!({ "reports": REPORT })).await;
    assert_eq!(status, 400);
    let cramped = start_with(Config { max_held_bytes: 100, ..Config::default() }).await;
    let (status, error) = cramped.refused("/console/report", &body).await;
    assert_eq!((status, &error["error"]["code"]), (503, &json!("server_is_overloaded")));
}
