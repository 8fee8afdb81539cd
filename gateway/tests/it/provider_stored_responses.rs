//! Responses stored by their provider (ours): retrieved and continued there, for their own API key only.

mod background;

use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, TargetConfig};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::support::{KEY, Server, files_of, read, send, start, start_with};
use crate::upstreams::{
    Scripted, Step, UPSTREAM_KEY, answer, completion, config, json_answer, stream, upstream,
};

const PATH: &str = "/v1/responses";
const ADMIN: &str = "gw-admin-canary-83";

/// A response of the model that the upstream calls `theirs`.
fn response(id: &str, text: &str) -> Value {
    json!({
        "id": id, "object": "response", "created_at": 1, "status": "completed", "model": "theirs", "error": null,
        "output": [
            { "type": "reasoning", "id": format!("rs_{id}"), "summary": [] },
            { "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                "content": [{ "type": "output_text", "text": text, "annotations": [], "future": 1e0 }] },
        ],
        "future": { "a": [1e0] },
        "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 },
    })
}

/// The same response as a stream.
fn events(response: &Value) -> String {
    let mut started = response.clone();
    (started["status"], started["output"]) = (json!("in_progress"), json!([]));
    let event = |kind: &str, number: u64, response: &Value| {
        let event = json!({ "type": kind, "sequence_number": number, "response": response });
        format!("event: {kind}\ndata: {event}\n\n")
    };
    [event("response.created", 0, &started), event("response.completed", 1, response)].concat()
}

fn not_found() -> Vec<Step> {
    json_answer(404, &json!({ "error": { "message": "no such response", "type": "invalid_request_error" } }))
}

fn broken() -> Vec<Step> {
    json_answer(500, &json!({}))
}

/// A gateway whose model `mine` is at these upstreams in this order, with translation of responses.
async fn at(upstreams: &[(&str, Kind, &Scripted)]) -> Server {
    let upstreams = upstreams.iter().map(|(name, kind, provider)| upstream(name, *kind, &provider.url));
    let mut settings = config(upstreams.collect());
    settings.models[0].translate_responses = true;
    settings.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    start_with(settings).await
}

fn path(id: &str) -> String {
    format!("{PATH}/{id}")
}

async fn delete(server: &Server, id: &str) -> (u16, Value) {
    read(server.bare(Method::DELETE, &path(id)).bearer_auth(KEY)).await
}

fn question(text: &str) -> Value {
    json!({ "model": "mine", "input": text })
}

fn next(previous: &str, text: &str) -> Value {
    json!({ "model": "mine", "previous_response_id": previous, "input": text })
}

/// Role and text of each message item of a request's input.
fn message_texts(request: &Value) -> Vec<String> {
    let text = |content: &Value| match content {
        Value::Array(parts) => parts[0]["text"].as_str().unwrap_or_default().to_owned(),
        content => content.as_str().unwrap_or_default().to_owned(),
    };
    let input = request["input"].as_array().or_else(|| request["messages"].as_array()).expect("items");
    let messages = input.iter().filter(|item| item["role"].is_string());
    messages.map(|item| text(&item["content"])).collect()
}

#[tokio::test]
async fn provider_stored_response_is_retrieved_listed_and_deleted_there() {
    let made = response("resp_1", "apples");
    let mut later = made.clone();
    later["metadata"] = json!({ "changed": "there" });
    let page = r#"{"object":"list", "data":[{"type":"message","future":1.50}],"has_more":false}"#;
    let deleted = json!({ "id": "resp_1", "object": "response.deleted", "deleted": true });
    let provider = Scripted::start([
        json_answer(200, &made),
        json_answer(200, &later),
        vec![Step::Write(answer(200, "application/json", page))],
        json_answer(200, &deleted),
    ])
    .await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    server.ask(PATH, &question("Say apples")).await;

    let retrieved = send(server.get(&path("resp_1"))).await;
    assert_eq!(retrieved.headers()["x-gatewright-upstream"], "one");
    let text = retrieved.text().await.expect("a body");
    assert_eq!(text, later.to_string().replace("theirs", "mine"));
    let listed =
        send(server.get(&format!("{}/input_items?limit=2&after=msg_1&include[]=x", path("resp_1")))).await;
    assert_eq!(listed.text().await.expect("a body"), page);
    assert_eq!(delete(&server, "resp_1").await, (200, deleted));
    let lines: Vec<String> = provider.seen().into_iter().skip(1).map(|seen| seen.line).collect();
    assert_eq!(
        lines,
        [
            "GET /v1/responses/resp_1 HTTP/1.1",
            "GET /v1/responses/resp_1/input_items?limit=2&after=msg_1&include%5B%5D=x HTTP/1.1",
            "DELETE /v1/responses/resp_1 HTTP/1.1",
        ]
    );
    for seen in &provider.seen()[1..] {
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
        assert_eq!(seen.body, "");
    }
    // Deleted here as well; the upstream is not called.
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 404);
    assert_eq!(server.refused(PATH, &next("resp_1", "a")).await.0, 400);
    assert_eq!(delete(&server, "resp_1").await.0, 404);
    assert_eq!(provider.count(), 4);
}

#[tokio::test]
async fn local_copy_is_served_when_the_provider_fails() {
    let made = response("resp_1", "apples");
    for streams in [false, true] {
        let first = if streams { stream(&events(&made)) } else { json_answer(200, &made) };
        for failure in [not_found(), broken(), vec![Step::Close], json_answer(200, &json!([]))] {
            let provider = Scripted::start([first.clone(), failure]).await;
            let server = at(&[("one", Kind::Responses, &provider)]).await;
            let mut body = question("Say apples");
            body["stream"] = json!(streams);
            let response = send(server.post(PATH, &body)).await;
            assert_eq!(response.status(), 200);
            response.text().await.expect("a whole answer");
            let (status, retrieved) = read(server.get(&path("resp_1"))).await;
            let mut expected = made.clone();
            expected["model"] = json!("mine");
            assert_eq!((status, retrieved), (200, expected));
            let (status, page) = read(server.get(&format!("{}/input_items", path("resp_1")))).await;
            assert_eq!((status, &page["data"][0]["content"][0]["text"]), (200, &json!("Say apples")));
        }
    }
}

#[tokio::test]
async fn key_cannot_access_a_response_stored_for_another_key() {
    let made = response("resp_1", "apples");
    let provider = Scripted::start([json_answer(200, &made)]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    let new = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&json!({ "name": "other" }));
    let (status, issued) = read(new).await;
    assert_eq!(status, 201, "{issued}");
    let other = issued["secret"].as_str().expect("a secret");
    server.ask(PATH, &question("Say apples")).await;

    let as_other = |method: Method, path: &str| server.bare(method, path).bearer_auth(other);
    let items = format!("{}/input_items", path("resp_1"));
    for request in [
        as_other(Method::GET, &path("resp_1")),
        as_other(Method::GET, &items),
        as_other(Method::DELETE, &path("resp_1")),
    ] {
        let (status, refused) = read(request).await;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("not_found")));
    }
    let mut compact = next("resp_1", "a");
    for target in [PATH, "/v1/responses/compact"] {
        let (status, refused) = read(as_other(Method::POST, target).json(&compact)).await;
        assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
        compact["stream"] = json!(true);
    }
    // With duplicate members, one could be checked and the other one used.
    let twice = r#"{"model":"mine","input":"a","previous_response_id":null,"previous_response_id":"resp_1"}"#;
    let request = as_other(Method::POST, PATH).header("content-type", "application/json").body(twice);
    assert_eq!(read(request).await.0, 400);
    assert_eq!(provider.count(), 1);
    // The owning key can still access it.
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 200);
}

#[tokio::test]
async fn unstored_and_incomplete_responses_are_not_kept() {
    let made = response("resp_1", "apples");
    let whole = events(&made);
    let early = &whole[..whole.find("event: response.completed").expect("the last event")];
    for (stored, streams, script) in [
        (false, false, json_answer(200, &made)),
        (false, true, stream(&whole)),
        (true, true, stream(early)),
        (true, false, json_answer(200, &json!({ "object": "response", "output": [] }))),
    ] {
        let provider = Scripted::start([script]).await;
        let server = at(&[("one", Kind::Responses, &provider)]).await;
        let mut body = question("Say apples");
        body["stream"] = json!(streams);
        body["store"] = json!(stored);
        send(server.post(PATH, &body)).await.text().await.expect("an answer");
        assert_eq!(read(server.get(&path("resp_1"))).await.0, 404);
        assert_eq!(delete(&server, "resp_1").await.0, 404);
        assert_eq!(server.refused(PATH, &next("resp_1", "a")).await.0, 400);
        assert_eq!(provider.count(), 1);
    }
}

#[tokio::test]
async fn response_is_continued_verbatim_at_its_upstream() {
    let other = Scripted::start([broken(), json_answer(200, &response("resp_x", "x"))]).await;
    let (first, second) = (response("resp_1", "apples"), response("resp_2", "pears"));
    let holder = Scripted::start([json_answer(200, &first), json_answer(200, &second)]).await;
    let server = at(&[("other", Kind::Responses, &other), ("holder", Kind::Responses, &holder)]).await;
    server.ask(PATH, &question("Say apples")).await;
    let body = next("resp_1", "Say pears");
    server.ask(PATH, &body).await;
    assert_eq!((other.count(), holder.count()), (1, 2));
    assert_eq!(holder.seen()[1].body, body.to_string().replace("mine", "theirs"));
    // Other requests keep their order of upstreams.
    server.ask(PATH, &question("x")).await;
    assert_eq!((other.count(), holder.count()), (2, 2));
}

#[tokio::test]
async fn response_continues_elsewhere_when_its_upstream_fails() {
    let (first, second) = (response("resp_1", "apples"), response("resp_2", "pears"));
    let holder = Scripted::start([json_answer(200, &first), broken()]).await;
    let responses = Scripted::start([json_answer(200, &second)]).await;
    let server =
        at(&[("holder", Kind::Responses, &holder), ("responses", Kind::Responses, &responses)]).await;
    server.ask(PATH, &question("Say apples")).await;
    server.ask(PATH, &next("resp_1", "Say pears")).await;
    let seen = responses.seen()[0].json();
    assert_eq!(message_texts(&seen), ["Say apples", "apples", "Say pears"]);
    assert!(seen.get("previous_response_id").is_none());
    // State that only the first provider knows is not sent.
    assert!(!seen.to_string().contains("rs_resp_1") && !seen.to_string().contains("msg_resp_1"), "{seen}");

    // The next request continues there, and then at a provider of another protocol.
    responses.then(broken());
    let chat = Scripted::start([json_answer(200, &completion("plums"))]).await;
    let holder = Scripted::start([json_answer(200, &first), broken()]).await;
    let server = at(&[("holder", Kind::Responses, &holder), ("chat", Kind::Chat, &chat)]).await;
    server.ask(PATH, &question("Say apples")).await;
    let third = server.ask(PATH, &next("resp_1", "Say plums")).await;
    assert_eq!(message_texts(&chat.seen()[0].json()), ["Say apples", "apples", "Say plums"]);
    let (status, retrieved) = read(server.get(&path(third["id"].as_str().expect("an id")))).await;
    assert_eq!((status, retrieved), (200, third));
}

#[tokio::test]
async fn upstream_that_lost_a_response_gets_the_whole_conversation() {
    let (first, second) = (response("resp_1", "apples"), response("resp_2", "pears"));
    let unknown = json!({ "error": { "message": "Previous response with id 'resp_1' not found.",
        "type": "invalid_request_error", "param": "previous_response_id", "code": "previous_response_not_found" } });
    for refusal in [json_answer(400, &unknown), not_found()] {
        let provider = Scripted::start([json_answer(200, &first), refusal, json_answer(200, &second)]).await;
        let server = at(&[("one", Kind::Responses, &provider)]).await;
        server.ask(PATH, &question("Say apples")).await;
        server.ask(PATH, &next("resp_1", "Say pears")).await;
        assert_eq!(message_texts(&provider.seen()[2].json()), ["Say apples", "apples", "Say pears"]);
    }
    // If it rejects that as well, its error is returned.
    let provider = Scripted::start([json_answer(200, &first), json_answer(400, &unknown)]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    server.ask(PATH, &question("Say apples")).await;
    let (status, refused) = server.refused(PATH, &next("resp_1", "Say pears")).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    assert_eq!(provider.count(), 3);
}

#[tokio::test]
async fn provider_with_store_false_is_not_queried() {
    let mut first = response("resp_1", "apples");
    first["store"] = json!(false);
    let second = response("resp_2", "pears");
    let provider = Scripted::start([json_answer(200, &first), json_answer(200, &second)]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    server.ask(PATH, &question("Say apples")).await;
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 200);
    server.ask(PATH, &next("resp_1", "Say pears")).await;
    assert_eq!(provider.count(), 2);
    assert_eq!(message_texts(&provider.seen()[1].json()), ["Say apples", "apples", "Say pears"]);
}

#[tokio::test]
async fn response_without_a_copy_continues_only_at_its_provider() {
    // It is still in progress: its partial copy is not stored.
    let mut first = response("resp_1", "");
    (first["status"], first["output"]) = (json!("queued"), json!([]));
    let done = response("resp_1", "apples");
    let second = response("resp_2", "pears");
    let holder =
        Scripted::start([json_answer(200, &first), json_answer(200, &done), json_answer(200, &second)]).await;
    let other = Scripted::start([json_answer(200, &response("resp_x", "x"))]).await;
    let upstreams = vec![
        upstream("holder", Kind::Responses, &holder.url),
        upstream("other", Kind::Responses, &other.url),
    ];
    let mut settings = config(upstreams);
    settings.models.push(ModelConfig::new("others", "family_one", TargetConfig::new("other", "theirs")));
    let server = start_with(settings).await;
    let mut body = question("Say apples");
    body["background"] = json!(true);
    server.ask(PATH, &body).await;
    assert_eq!(read(server.get(&path("resp_1"))).await.1["status"], "completed");
    server.ask(PATH, &next("resp_1", "Say pears")).await;

    let mut body = next("resp_1", "Say plums");
    body["model"] = json!("others");
    let (status, refused) = server.refused(PATH, &body).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("previous_response_not_found")));
    holder.then(broken());
    body["model"] = json!("mine");
    assert_eq!(server.refused(PATH, &body).await.0, 500);
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 500);
    assert_eq!(other.count(), 0);
    holder.then(not_found());
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 404);
}

#[tokio::test]
async fn provider_held_conversation_does_not_fail_over() {
    let holder = Scripted::start([json_answer(200, &response("resp_1", "apples")), broken()]).await;
    let other = Scripted::start([json_answer(200, &response("resp_x", "x"))]).await;
    let server = at(&[("holder", Kind::Responses, &holder), ("other", Kind::Responses, &other)]).await;
    let mut body = question("Say apples");
    body["conversation"] = json!("conv_1");
    server.ask(PATH, &body).await;
    assert_eq!(server.refused(PATH, &next("resp_1", "Say pears")).await.0, 500);
    assert_eq!((holder.count(), other.count()), (2, 0));
}

#[tokio::test]
async fn failed_provider_deletion_keeps_the_response() {
    let made = response("resp_1", "apples");
    let provider = Scripted::start([json_answer(200, &made), broken()]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    server.ask(PATH, &question("Say apples")).await;
    assert_eq!(delete(&server, "resp_1").await.0, 500);
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 200);
    // One that the provider doesn't have is deleted here.
    provider.then(not_found());
    let deleted = json!({ "id": "resp_1", "object": "response", "deleted": true });
    assert_eq!(delete(&server, "resp_1").await, (200, deleted.clone()));
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 404);
    provider.then(json_answer(200, &made));
    server.ask(PATH, &question("Say apples")).await;
    provider.then(vec![Step::Write(b"HTTP/1.1 204 X\r\n\r\n".to_vec())]);
    assert_eq!(delete(&server, "resp_1").await, (200, deleted));
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 404);
}

#[tokio::test]
async fn stored_response_is_requested_with_its_original_key() {
    let refusal = json_answer(403, &json!({ "error": { "message": "no" } }));
    let made = response("resp_1", "apples");
    let provider = Scripted::start([refusal, json_answer(200, &made)]).await;
    let mut one = upstream("one", Kind::Responses, &provider.url);
    one.keys.push(ApiKey::new("sk-second").expect("a key"));
    let server = start_with(config(vec![one])).await;
    server.ask(PATH, &question("Say apples")).await;
    read(server.get(&path("resp_1"))).await;
    server.ask(PATH, &next("resp_1", "Say pears")).await;
    let seen = provider.seen();
    let keys: Vec<_> = seen.iter().map(|seen| seen.header("authorization").expect("a key")).collect();
    let first = format!("Bearer {UPSTREAM_KEY}");
    assert_eq!(keys, [first.as_str(), "Bearer sk-second", "Bearer sk-second", "Bearer sk-second"]);
}

#[tokio::test]
async fn response_is_continued_after_a_restart_by_its_key_only() {
    let made = response("resp_1", "apples");
    let provider = Scripted::start([json_answer(200, &made)]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let started = async || {
        let mut settings = config(vec![upstream("one", Kind::Responses, &provider.url)]);
        settings.data = Some(folder.path().to_path_buf());
        settings.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
        start_with(settings).await
    };
    let before = started().await;
    before.ask(PATH, &question("Say apples")).await;
    drop(before);
    // It was written before its terminal event was sent.
    let server = started().await;
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 200);
    let body = next("resp_1", "Say pears");
    server.ask(PATH, &body).await;
    assert_eq!(provider.seen().pop().expect("a request").body, body.to_string().replace("mine", "theirs"));
    let new = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&json!({ "name": "other" }));
    let (_, issued) = read(new).await;
    let other = issued["secret"].as_str().expect("a secret");
    assert_eq!(read(server.bare(Method::GET, &path("resp_1")).bearer_auth(other)).await.0, 404);
    // The conversation is not readable in the data folder.
    for file in files_of(folder.path()) {
        let bytes = std::fs::read(file).expect("a file");
        assert!(!bytes.windows(6).any(|part| part == b"apples"));
    }
}

#[tokio::test]
async fn responses_are_503_not_404_while_the_store_is_unread() {
    let provider = Scripted::start([json_answer(200, &response("resp_1", "apples"))]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let options = SqliteConnectOptions::new().filename(folder.path().join("gatewright.db"));
    let mut other = SqliteConnection::connect_with(&options.create_if_missing(true)).await.expect("a file");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
    let mut settings = config(vec![upstream("one", Kind::Responses, &provider.url)]);
    settings.data = Some(folder.path().to_path_buf());
    let server = start_with(settings).await;
    for request in [
        server.get(&path("resp_0")),
        server.bare(Method::DELETE, &path("resp_0")).bearer_auth(KEY),
        server.post(PATH, &next("resp_0", "Say pears")),
    ] {
        let response = send(request).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["retry-after"]),
            (503, &"1".parse().expect("ASCII"))
        );
    }
    assert_eq!(provider.count(), 0);
    // Responses made from now on are known.
    server.ask(PATH, &question("Say apples")).await;
    assert_eq!(read(server.get(&path("resp_1"))).await.0, 200);
}

#[tokio::test]
async fn response_of_a_chained_gateway_is_stored_and_deleted_in_both() {
    let behind = start().await;
    let mut settings = Config { upstreams: Vec::new(), models: Vec::new(), ..Config::default() };
    let mut hop = upstream("behind", Kind::Gatewright, &behind.url);
    hop.keys = vec![ApiKey::new(KEY).expect("a key")];
    settings.upstreams.push(hop);
    settings.models.push(ModelConfig::new("mine", "family_one", TargetConfig::new("behind", "model-sol")));
    let server = start_with(settings).await;
    let first = server.ask(PATH, &question("Say apples")).await;
    let id = first["id"].as_str().expect("an id").to_owned();
    assert_eq!(read(server.get(&path(&id))).await, (200, first));
    let mut body = next(&id, "Say pears");
    body["stream"] = json!(true);
    let events = server.stream(PATH, &body).await;
    let last = events.iter().find(|event| event.name.as_deref() == Some("response.completed"));
    let second = last.expect("the last event").json()["response"].clone();
    let second = second["id"].as_str().expect("an id");
    let (_, page) = read(server.get(&format!("{}/input_items?order=asc", path(second)))).await;
    let texts: Vec<_> =
        page["data"].as_array().expect("items").iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, ["Say apples", "apples", "Say pears"]);
    assert_eq!(read(behind.get(&path(&id))).await.0, 200);
    assert_eq!(delete(&server, &id).await.0, 200);
    assert_eq!(read(behind.get(&path(&id))).await.0, 404);
    assert_eq!(read(server.get(&path(&id))).await.0, 404);
}

/// A lone surrogate is valid JSON but not text: the gateway keeps no copy, and the provider continues the response.
#[tokio::test]
async fn response_without_a_readable_copy_continues_at_its_provider() {
    let cut = response("resp_1", "CUT").to_string().replace("CUT", "\\ud83d");
    let first = vec![Step::Write(answer(200, "application/json", &cut))];
    let provider = Scripted::start([first, json_answer(200, &response("resp_2", "more"))]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    assert_eq!(send(server.post(PATH, &question("Count"))).await.status(), 200);
    let answered = server.ask(PATH, &next("resp_1", "Go on")).await;
    assert_eq!(answered["id"], "resp_2");
    assert_eq!(provider.seen()[1].json()["previous_response_id"], "resp_1");
}

#[tokio::test]
async fn gateways_sharing_a_folder_see_each_others_responses() {
    let provider = Scripted::start([json_answer(200, &response("resp_1", "apples"))]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let started = async || {
        let mut settings = config(vec![upstream("one", Kind::Responses, &provider.url)]);
        settings.data = Some(folder.path().to_path_buf());
        start_with(settings).await
    };
    let (one, other) = (started().await, started().await);
    // Both have loaded the store.
    for server in [&one, &other] {
        while read(server.get(&path("resp_0"))).await.0 == 503 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
    one.ask(PATH, &question("Say apples")).await;
    // It was written before its terminal event was sent.
    assert_eq!(read(other.get(&path("resp_1"))).await.0, 200);
    let body = next("resp_1", "Say pears");
    other.ask(PATH, &body).await;
    assert_eq!(provider.seen().pop().expect("a request").body, body.to_string().replace("mine", "theirs"));
}

#[tokio::test]
async fn stored_response_may_be_compressed() {
    use std::io::Write as _;

    let made = response("resp_1", "apples");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(made.to_string().as_bytes()).expect("written to memory");
    let packed = packed.finish().expect("written to memory");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        packed.len()
    );
    let whole = [head.into_bytes(), packed].concat();
    let provider = Scripted::start([json_answer(200, &made), vec![Step::Write(whole)]]).await;
    let server = at(&[("one", Kind::Responses, &provider)]).await;
    server.ask(PATH, &question("Say apples")).await;
    let retrieved = send(server.get(&path("resp_1"))).await.text().await.expect("a body");
    assert_eq!(retrieved, made.to_string().replace("theirs", "mine"));
}
