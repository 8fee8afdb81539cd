//! Model lists of upstreams: arbitrary length and form cost little, and no error reveals a key (ours).

use gatewright_gateway::{ApiKey, Config, Kind, offers};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, read, start_with};
use crate::upstreams::{Scripted, Step, UPSTREAM_KEY, answer, config, json_answer, upstream};

async fn models(kind: Kind, steps: Vec<Step>) -> (Result<Vec<String>, String>, usize) {
    let provider = Scripted::start([steps]).await;
    let offer = offers(&config(vec![upstream("one", kind, &provider.url)])).await.swap_remove(0);
    (offer.models, provider.count())
}

#[tokio::test]
async fn endless_model_list_is_abandoned() {
    let page = json!({ "data": [{ "id": "m" }], "has_more": true, "last_id": "m" });
    let (models, pages) = models(Kind::Messages, json_answer(200, &page)).await;
    assert_eq!((models, pages), (Err("its list has more than 20 pages".to_owned()), 20));
}

#[tokio::test]
async fn model_list_pages_are_bounded_in_total() {
    let page = json!({ "models": [{ "name": "x".repeat(3_000_000) }], "nextPageToken": "t" });
    let (models, pages) = models(Kind::Native, json_answer(200, &page)).await;
    assert!(models.is_err_and(|why| why.contains("larger than 8388608 bytes")));
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn model_list_errors_do_not_quote_the_key() {
    let echo = json!({ "error": { "message": format!("no such key: {UPSTREAM_KEY}") } });
    for (steps, expected) in [
        (json_answer(401, &echo), "it answered 401 Unauthorized: no such key: "),
        (vec![Step::Write(answer(200, "text/html", "<html>"))], "its response is not a list of models"),
        (
            vec![Step::Write(answer(200, "application/json", &"[".repeat(100_000)))],
            "its response is not a list",
        ),
        (
            vec![Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{".to_vec()), Step::Close],
            "its list is cut off",
        ),
        (vec![Step::Reset], ""),
    ] {
        let why = models(Kind::Chat, steps).await.0.expect_err("no list");
        assert!(why.starts_with(expected) && !why.contains(UPSTREAM_KEY), "{why}");
    }
}

#[tokio::test]
async fn operators_test_an_upstream_by_one_page_of_its_list() {
    const ADMIN: &str = "gw-admin-canary-77";
    let page = json!({ "data": [{ "id": "a" }, { "id": "b" }], "has_more": true, "last_id": "b" });
    let well = Scripted::start([json_answer(200, &page)]).await;
    let echo = json!({ "error": { "message": format!("no such key: {UPSTREAM_KEY}") } });
    let ill = Scripted::start([json_answer(401, &echo)]).await;
    let redirect = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\nlocation: ";
    let moved = format!("{redirect}{}/models\r\n\r\n", well.url);
    let moving = Scripted::start([vec![Step::Write(moved.into_bytes())]]).await;
    let huge =
        Scripted::start([json_answer(200, &json!({ "data": [{ "id": "x".repeat(2_000_000) }] }))]).await;
    let upstreams = vec![
        upstream("well", Kind::Messages, &well.url),
        upstream("ill", Kind::Chat, &ill.url),
        upstream("moving", Kind::Chat, &moving.url),
        upstream("huge", Kind::Chat, &huge.url),
        upstream("converse", Kind::Converse, "http://127.0.0.1:9"),
    ];
    let admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    let server = start_with(Config { admin_key, ..config(upstreams) }).await;
    let test = async |name: &str, key: &str| {
        read(server.bare(Method::POST, &format!("/admin/upstreams/{name}/test")).bearer_auth(key)).await
    };
    let (status, result) = test("well", ADMIN).await;
    assert_eq!((status, &result["status"], &result["models"]), (200, &json!("ok"), &json!(2)), "{result}");
    assert!(result["duration_ms"].is_u64() && result["problem"].is_null(), "{result}");
    for (name, state, problem) in [
        ("ill", "failed", "it answered 401 Unauthorized: no such key: "),
        ("moving", "failed", "it answered 302"),
        ("huge", "failed", "its list is cut off or larger than 1048576 bytes"),
        ("converse", "untested", "servers of the kind converse list no models"),
    ] {
        let (_, result) = test(name, ADMIN).await;
        let why = result["problem"].as_str().expect("a problem");
        assert_eq!((&result["status"], &result["models"]), (&json!(state), &Value::Null), "{name}: {result}");
        assert!(why.starts_with(problem) && !why.contains(UPSTREAM_KEY), "{name}: {why}");
    }
    // One request each: no further page, and no redirect is followed.
    assert_eq!((well.count(), moving.count()), (1, 1));
    assert_eq!(test("none", ADMIN).await.0, 404);
    assert_eq!(test("http%3A%2F%2F127.0.0.1", ADMIN).await.0, 404);
    assert_eq!(test("well", KEY).await.0, 401);
}
