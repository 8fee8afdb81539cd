//! The models that upstreams offer: lists of any length and form cost little, and no error tells a key (ours).

use gatewright_gateway::{Kind, offers};
use serde_json::json;

use crate::upstreams::{Scripted, Step, UPSTREAM_KEY, answer, config, json_answer, upstream};

async fn models(kind: Kind, steps: Vec<Step>) -> (Result<Vec<String>, String>, usize) {
    let provider = Scripted::start([steps]).await;
    let told = offers(&config(vec![upstream("one", kind, &provider.url)])).await.swap_remove(0);
    (told.models, provider.count())
}

#[tokio::test]
async fn a_list_without_end_is_given_up() {
    let page = json!({ "data": [{ "id": "m" }], "has_more": true, "last_id": "m" });
    let (models, asked) = models(Kind::Messages, json_answer(200, &page)).await;
    assert_eq!((models, asked), (Err("its list has more than 20 pages".to_owned()), 20));
}

#[tokio::test]
async fn pages_take_no_more_together_than_a_list_may() {
    let page = json!({ "models": [{ "name": "x".repeat(3_000_000) }], "nextPageToken": "t" });
    let (models, asked) = models(Kind::Native, json_answer(200, &page)).await;
    assert!(models.is_err_and(|why| why.contains("larger than 8388608 bytes")));
    assert_eq!(asked, 3);
}

#[tokio::test]
async fn what_is_no_list_is_told_without_the_key() {
    let echo = json!({ "error": { "message": format!("no such key: {UPSTREAM_KEY}") } });
    for (steps, told) in [
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
        assert!(why.starts_with(told) && !why.contains(UPSTREAM_KEY), "{why}");
    }
}
