//! Files and batches, by the simulator and by a provider.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind, ModelPrice, UpstreamConfig};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Seen, Step, UPSTREAM_KEY, answer, json_answer, upstream};

const ADMIN: &str = "gw-admin-canary-94";
const MEDIA_TYPE: &str = "multipart/form-data; boundary=\"x-boundary\"";

fn request_line(id: &str, model: &str, rest: &str) -> String {
    format!(
        r#"{{"custom_id":"{id}","method":"POST","url":"/v1/chat/completions","body":{{"model":"{model}","messages":[{{"role":"user","content":"Say mine"}}]{rest}}}}}"#
    )
}

fn form(purpose: &str, content: &str) -> String {
    format!(
        "--x-boundary\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n\
         --x-boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"requests.jsonl\"\r\n\r\n{content}\r\n\
         --x-boundary--\r\n"
    )
}

async fn upload_as(server: &Server, key: &str, purpose: &str, content: &str) -> (u16, Value) {
    let request = server.bare(Method::POST, "/v1/files").bearer_auth(key);
    read(request.header("content-type", MEDIA_TYPE).body(form(purpose, content))).await
}

async fn upload(server: &Server, content: &str) -> Value {
    let (status, file) = upload_as(server, KEY, "batch", content).await;
    assert_eq!(status, 200, "{file}");
    file
}

fn of_file(file: &Value) -> Value {
    json!({ "input_file_id": file["id"], "endpoint": "/v1/chat/completions", "completion_window": "24h" })
}

/// Waits until a batch has this status.
async fn until_status(server: &Server, batch: &Value, status: &str) -> Value {
    let path = format!("/v1/batches/{}", batch["id"].as_str().expect("an id"));
    let waiting = async {
        loop {
            let (_, batch) = read(server.get(&path)).await;
            if batch["status"] == status {
                return batch;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it gets there")
}

async fn content(server: &Server, id: &Value) -> String {
    let path = format!("/v1/files/{}/content", id.as_str().expect("an id"));
    let response = send(server.get(&path)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/octet-stream");
    response.text().await.expect("a body")
}

async fn list(server: &Server, path: &str) -> Vec<String> {
    let (status, page) = read(server.get(path)).await;
    assert_eq!(status, 200, "{page}");
    let ids = page["data"].as_array().expect("a list").iter();
    ids.map(|object| object["id"].as_str().expect("an id").to_owned()).collect()
}

async fn new_key(server: &Server, settings: &Value) -> String {
    let request = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(settings);
    let (status, key) = read(request).await;
    assert!(status < 300, "{key}");
    key["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::test]
async fn simulated_batch_has_a_result_for_each_request() {
    let server = start().await;
    let lines = [
        request_line("a", "model-sol", ""),
        request_line("b", "model-sol", r#","temperature":9"#),
        request_line("c", "model-sol", r#","max_tokens":4"#),
    ];
    let requests = lines.join("\n");
    let file = upload(&server, &requests).await;
    assert_eq!((&file["filename"], &file["bytes"]), (&json!("requests.jsonl"), &json!(requests.len())));
    assert_eq!(content(&server, &file["id"]).await, requests);
    let mut body = of_file(&file);
    body["metadata"] = json!({ "team": "billing" });
    let batch = server.ask("/v1/batches", &body).await;
    let ended = until_status(&server, &batch, "completed").await;
    assert_eq!(ended["request_counts"], json!({ "total": 3, "completed": 2, "failed": 1 }));
    assert_eq!(ended["metadata"], json!({ "team": "billing" }));
    let results = content(&server, &ended["output_file_id"]).await;
    let results: Vec<Value> = results.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(results.iter().map(|line| &line["custom_id"]).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(results[0]["response"]["status_code"], 200);
    assert!(results[0]["response"]["body"]["choices"][0]["message"]["content"].is_string(), "{results:?}");
    let errors = content(&server, &ended["error_file_id"]).await;
    let error: Value = serde_json::from_str(&errors).expect("one line");
    assert_eq!((&error["custom_id"], &error["response"]["status_code"]), (&json!("b"), &json!(400)));

    let id = |value: &Value| value.as_str().expect("an id").to_owned();
    let outputs = [id(&ended["output_file_id"]), id(&ended["error_file_id"])];
    assert_eq!(list(&server, "/v1/files?purpose=batch_output&order=asc").await, outputs);
    assert_eq!(list(&server, "/v1/batches").await, [id(&batch["id"])]);
    let (status, deleted) =
        read(server.bare(Method::DELETE, &format!("/v1/files/{}", outputs[0])).bearer_auth(KEY)).await;
    assert_eq!((status, deleted), (200, json!({ "id": outputs[0], "object": "file", "deleted": true })));
    let (status, _) = read(server.get(&format!("/v1/files/{}/content", outputs[0]))).await;
    assert_eq!(status, 404);
    let cancelled = server.ask(&format!("/v1/batches/{}/cancel", id(&batch["id"])), &json!({})).await;
    assert_eq!(cancelled, ended, "it had ended");
}

#[tokio::test]
async fn files_are_listed_page_by_page() {
    let server = start().await;
    let mut files = Vec::new();
    for content in ["1", "2", "3"] {
        let (status, file) = upload_as(&server, KEY, "user_data", content).await;
        assert_eq!(status, 200, "{file}");
        files.push(file["id"].as_str().expect("an id").to_owned());
    }
    let (_, page) = read(server.get("/v1/files?limit=2")).await;
    assert_eq!((&page["has_more"], &page["first_id"]), (&json!(true), &json!(files[2])));
    assert_eq!(page["last_id"], json!(files[1]));
    let after = list(&server, &format!("/v1/files?after={}", files[1])).await;
    assert_eq!(after, files[..1]);
    assert_eq!(list(&server, &format!("/v1/files?order=asc&after={}", files[0])).await, files[1..]);
    assert_eq!(list(&server, "/v1/files?purpose=batch").await, [""; 0]);
    let (status, refused) = read(server.get("/v1/files?after=file-x")).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("after")));
}

/// A provider of files and batches, as strict as one.
#[derive(Default)]
struct Provider {
    files: HashMap<String, String>,
    /// What it says of its one batch.
    batch: Value,
    /// How many requests for contents fail.
    failures: usize,
}

const BATCH: &str = "batch_p1";

fn provided(state: &Mutex<Provider>, seen: &Seen) -> Vec<Step> {
    let mut state = state.lock().expect("no panic");
    let (method, path) = (seen.line.split(' ').next().expect("a method"), seen.path());
    assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
    let segments: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
    let described = |id: &str, content: &str| {
        json!({ "id": id, "object": "file", "bytes": content.len(), "created_at": 7, "filename": "f.jsonl",
            "purpose": "batch", "status": "processed", "status_details": null })
    };
    let unknown = || {
        json_answer(
            404,
            &json!({ "error": { "message": "No such thing", "type": "invalid_request_error", "param": "id", "code": null } }),
        )
    };
    match (method, &segments[..]) {
        ("POST", ["files"]) => {
            let id = format!("file-p{}", state.files.len() + 1);
            let content = seen.body.split("filename=\"requests.jsonl\"\r\n\r\n").nth(1).expect("a file");
            let content = content.split("\r\n--x-boundary").next().expect("its end").to_owned();
            let answer = json_answer(200, &described(&id, &content));
            state.files.insert(id, content);
            answer
        }
        ("GET", ["files", id]) => match state.files.get(*id) {
            Some(content) => json_answer(200, &described(id, content)),
            None => unknown(),
        },
        ("GET", ["files", _, "content"]) if state.failures > 0 => {
            state.failures -= 1;
            json_answer(503, &json!({ "error": { "message": "Try again" } }))
        }
        ("GET", ["files", id, "content"]) => match state.files.get(*id) {
            Some(content) => vec![Step::Write(answer(200, "application/octet-stream", content))],
            None => unknown(),
        },
        ("DELETE", ["files", id]) => match state.files.remove(*id) {
            Some(_) => json_answer(200, &json!({ "id": id, "object": "file", "deleted": true })),
            None => unknown(),
        },
        ("POST", ["batches"]) => {
            let request = seen.json();
            let input = request["input_file_id"].as_str().expect("a file");
            if !state.files.contains_key(input) {
                return unknown();
            }
            state.batch = json!({ "id": BATCH, "object": "batch", "endpoint": request["endpoint"], "errors": null,
                "input_file_id": input, "completion_window": "24h", "status": "validating", "output_file_id": null,
                "error_file_id": null, "created_at": 1_790_000_000, "metadata": request["metadata"] });
            json_answer(200, &state.batch)
        }
        ("GET", ["batches", BATCH]) => json_answer(200, &state.batch),
        ("POST", ["batches", BATCH, "cancel"]) => {
            assert_eq!(seen.body, "");
            state.batch["status"] = json!("cancelling");
            json_answer(200, &state.batch)
        }
        _ => unknown(),
    }
}

async fn provider() -> (Scripted, Arc<Mutex<Provider>>) {
    let state = Arc::<Mutex<Provider>>::default();
    let own = Arc::clone(&state);
    (Scripted::answering(move |seen| provided(&own, seen)).await, state)
}

fn with_files(provider: &Scripted) -> UpstreamConfig {
    let mut upstream = upstream("one", Kind::Chat, &provider.url);
    upstream.capabilities.files = true;
    upstream
}

/// A gateway with a model `mine`, called `theirs` at its upstream, for two units of a currency per million tokens.
fn config(upstream: UpstreamConfig) -> Config {
    let mut config = upstreams::config(vec![upstream]);
    config.models[0].targets[0].price = Some(ModelPrice::new(2.0, 2.0));
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a valid key"));
    config.batch_poll = Duration::from_millis(20);
    config
}

/// The provider has processed its batch.
fn completed(state: &Mutex<Provider>, usage: Value) {
    let mut state = state.lock().expect("no panic");
    let result = |id: &str, input: u64| {
        json!({ "id": "r", "custom_id": id, "error": null, "response": { "status_code": 200, "request_id": "q",
            "body": { "id": "c", "model": "theirs-1", "usage": { "prompt_tokens": input, "completion_tokens": 10 } } } })
    };
    state.files.insert("file-out".to_owned(), format!("{}\n{}\n", result("a", 1_000), result("b", 3_000)));
    state.batch["status"] = json!("completed");
    state.batch["output_file_id"] = json!("file-out");
    state.batch["request_counts"] = json!({ "total": 2, "completed": 2, "failed": 0 });
    state.batch["usage"] = usage;
}

#[tokio::test]
async fn batch_is_relayed_to_the_provider_of_its_model_and_counts_once_at_half_the_price() {
    let stated = json!({ "input_tokens": 4_000, "output_tokens": 20, "total_tokens": 4_020,
        "input_tokens_details": { "cached_tokens": 0 }, "output_tokens_details": { "reasoning_tokens": 0 } });
    // Without a usage of the batch, the results state it.
    for usage in [stated, Value::Null] {
        let (provider, state) = provider().await;
        let server = start_with(config(with_files(&provider))).await;
        let requests = format!("{}\n{}\n", request_line("a", "mine", ""), request_line("b", "mine", ""));
        let file = upload(&server, &requests).await;
        assert_eq!(file["status_details"], Value::Null, "it passes as it is");
        let sent = state.lock().expect("no panic").files["file-p1"].clone();
        assert_eq!(sent, requests.replace("\"model\":\"mine\"", "\"model\":\"theirs\""));
        assert_eq!(provider.seen()[0].header("content-type"), Some(MEDIA_TYPE));

        let response = send(server.post("/v1/batches", &of_file(&file))).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "one");
        let batch: Value = response.json().await.expect("JSON");
        assert_eq!((&batch["id"], &batch["status"]), (&json!(BATCH), &json!("validating")));
        completed(&state, usage);
        let row = usage_row(&server, ADMIN).await;
        let count = |name: &str| row[name].as_u64().expect("a number");
        assert_eq!(
            (count("requests"), count("input_tokens"), count("output_tokens")),
            (2, 4_000, 20),
            "{row}"
        );
        assert_eq!((&row["model"], &row["upstream"]), (&json!("mine"), &json!("one")));
        assert_eq!(row["cost"], json!(0.00402), "{row}");
        // The results are files of the key, also before anybody asks for the batch.
        assert_eq!(list(&server, "/v1/files").await, ["file-out", "file-p1"]);
        assert_eq!(content(&server, &json!("file-out")).await.lines().count(), 2);
        let (_, listed) = read(server.get("/v1/batches")).await;
        assert_eq!(listed["data"][0]["status"], "completed");
        let asked = provider.count();
        until_status(&server, &batch, "completed").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(provider.count(), asked + 1, "it is no longer followed");
        assert_eq!(usage_row(&server, ADMIN).await, row);
    }
}

#[tokio::test]
async fn results_that_cannot_be_read_at_once_are_read_again_for_their_usage() {
    let (provider, state) = provider().await;
    let server = start_with(config(with_files(&provider))).await;
    let file = upload(&server, &request_line("a", "mine", "")).await;
    server.ask("/v1/batches", &of_file(&file)).await;
    completed(&state, Value::Null);
    state.lock().expect("no panic").failures = 2;
    let row = usage_row(&server, ADMIN).await;
    assert_eq!((&row["input_tokens"], &row["estimated"]), (&json!(4_000), &json!(0)), "{row}");
}

#[tokio::test]
async fn cancelled_batch_without_results_counts_nothing() {
    let (provider, state) = provider().await;
    let server = start_with(config(with_files(&provider))).await;
    let file = upload(&server, &request_line("a", "mine", "")).await;
    let batch = server.ask("/v1/batches", &of_file(&file)).await;
    let cancelled = server.ask(&format!("/v1/batches/{BATCH}/cancel"), &json!({})).await;
    assert_eq!(cancelled["status"], "cancelling");
    state.lock().expect("no panic").batch["status"] = json!("cancelled");
    until_status(&server, &batch, "cancelled").await;
    let row = usage_row(&server, ADMIN).await;
    assert_eq!(
        (&row["requests"], &row["input_tokens"], &row["cost"]),
        (&json!(0), &json!(0), &json!(0.0)),
        "{row}"
    );
}

#[tokio::test]
async fn files_and_batches_of_other_keys_are_unknown() {
    let (provider, _state) = provider().await;
    let server = start_with(config(with_files(&provider))).await;
    let file = upload(&server, &request_line("a", "mine", "")).await;
    server.ask("/v1/batches", &of_file(&file)).await;
    let other = new_key(&server, &json!({ "name": "other" })).await;
    let seen = provider.count();
    let ask = |method, path: &str| server.bare(method, path).bearer_auth(&other);
    for (method, path) in [
        (Method::GET, "/v1/files/file-p1"),
        (Method::GET, "/v1/files/file-p1/content"),
        (Method::DELETE, "/v1/files/file-p1"),
        (Method::GET, "/v1/batches/batch_p1"),
        (Method::POST, "/v1/batches/batch_p1/cancel"),
    ] {
        let (status, error) = read(ask(method, path)).await;
        assert_eq!((status, &error["error"]["code"]), (404, &json!("not_found")), "{path}: {error}");
    }
    let (status, error) = read(ask(Method::POST, "/v1/batches").json(&of_file(&file))).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("input_file_id")), "{error}");
    for path in ["/v1/files", "/v1/batches"] {
        let (_, page) = read(ask(Method::GET, path)).await;
        assert_eq!(page["data"], json!([]));
    }
    assert!(provider.count() <= seen + 20 && list(&server, "/v1/files").await == ["file-p1"]);
    let foreign =
        provider.seen()[seen..].iter().filter(|seen| !seen.line.starts_with("GET /v1/batches/")).count();
    assert_eq!(foreign, 0, "only the gateway itself asks for the batch");
}

#[tokio::test]
async fn requests_of_a_batch_are_held_to_the_scopes_and_budgets_of_the_key() {
    let (provider, _state) = provider().await;
    let server = start_with(config(with_files(&provider))).await;
    let scoped = new_key(&server, &json!({ "name": "scoped", "scopes": { "models": ["other"] } })).await;
    let (status, error) = upload_as(&server, &scoped, "batch", &request_line("a", "mine", "")).await;
    assert_eq!((status, &error["error"]["code"]), (403, &json!("permission_denied")), "{error}");
    let operations = json!(["create_file", "create_batch"]);
    let other = new_key(&server, &json!({ "name": "other", "scopes": { "operations": operations } })).await;
    let (status, error) = upload_as(&server, &other, "batch", &request_line("a", "mine", "")).await;
    assert_eq!((status, &error["error"]["code"]), (403, &json!("permission_denied")), "{error}");
    assert_eq!(provider.count(), 0);

    let poor = new_key(&server, &json!({ "name": "poor", "limits": { "tokens_per_day": 100 } })).await;
    let (status, file) =
        upload_as(&server, &poor, "batch", &request_line("a", "mine", r#","max_tokens":200"#)).await;
    assert_eq!(status, 200, "{file}");
    let request = server.bare(Method::POST, "/v1/batches").bearer_auth(&poor).json(&of_file(&file));
    let (status, error) = read(request).await;
    assert_eq!((status, &error["error"]["code"]), (429, &json!("insufficient_quota")), "{error}");
    assert_eq!(provider.count(), 1, "only the file was sent");
}

#[tokio::test]
async fn upload_that_no_upstream_can_take_is_refused() {
    let (provider, _state) = provider().await;
    // Without files = true.
    let server = start_with(config(upstream("one", Kind::Chat, &provider.url))).await;
    for (purpose, line, status, expected) in [
        (
            "batch",
            request_line("a", "mine", ""),
            404,
            "no upstream of the model mine supports files and batches",
        ),
        ("user_data", "x".to_owned(), 404, "no model of this API key has an upstream that supports files"),
        ("batch", request_line("a", "unknown", ""), 404, "unknown"),
        ("batch", "{}".to_owned(), 400, "line 1 has no custom_id"),
    ] {
        let (code, error) = upload_as(&server, KEY, purpose, &line).await;
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(code == status && message.contains(expected), "{code} {message}");
    }
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn provider_that_fails_or_answers_with_something_else_is_an_error() {
    for (answer, status) in [
        (json_answer(500, &json!({ "error": { "message": "no" } })), 500),
        (json_answer(200, &json!([])), 502),
        (json_answer(200, &json!({ "id": "x".repeat(257) })), 502),
        (json_answer(413, &json!({ "error": { "message": "too large" } })), 413),
        (vec![Step::Reset], 502),
    ] {
        let provider = Scripted::start([answer]).await;
        let server = start_with(config(with_files(&provider))).await;
        let (code, error) = upload_as(&server, KEY, "batch", &request_line("a", "mine", "")).await;
        assert_eq!(code, status, "{error}");
        assert_eq!(list(&server, "/v1/files").await, [""; 0]);
    }
}

fn kept(data: &Path, provider: &Scripted) -> Config {
    Config {
        data: Some(data.to_path_buf()),
        video_lease: Duration::from_millis(300),
        shutdown_grace: Duration::from_millis(10),
        ..config(with_files(provider))
    }
}

#[tokio::test]
async fn next_gateway_follows_a_batch_of_one_that_stopped() {
    let (provider, state) = provider().await;
    let data = tempfile::tempdir().expect("a folder");
    let server = start_with(kept(data.path(), &provider)).await;
    let file = upload(&server, &request_line("a", "mine", "")).await;
    server.ask("/v1/batches", &of_file(&file)).await;
    drop(server);
    let server = start_with(kept(data.path(), &provider)).await;
    completed(&state, Value::Null);
    let row = usage_row(&server, ADMIN).await;
    assert_eq!((&row["requests"], &row["input_tokens"]), (&json!(2), &json!(4_000)), "{row}");
}
