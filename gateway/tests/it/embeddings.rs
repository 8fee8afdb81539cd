//! Embeddings: by the simulator, and by providers of both forms. The doubles are as strict as the providers, and answer as sloppily.

use gatewright_gateway::{
    ApiKey, Config, Kind, ModelConfig, ModelKind, ModelPrice, TargetConfig, UpstreamConfig,
};
use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Seen, Step, UPSTREAM_KEY, answer, json_answer, upstream};

const PATH: &str = "/v1/embeddings";
const ADMIN: &str = "gw-admin-canary-79";

/// A gateway with the embedding model `mine`, called `theirs` at these upstreams.
fn config(upstreams: Vec<UpstreamConfig>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = ModelKind::Embedding;
    config.models[0].limits = None;
    config
}

fn request(input: &Value) -> Value {
    json!({ "model": "mine", "input": input })
}

/// An answer whose form is preserved only by passing it through.
const VECTORS: &str = "{ \"object\":\"list\",\"data\" : [{\"object\":\"embedding\",\"index\":0,\"embedding\":[1.50, -2e-3],\
                       \"future\":1e0}],\"model\":\"theirs\",\"usage\":{\"prompt_tokens\":7,\"total_tokens\":7}}";

fn vectors() -> Vec<Step> {
    vec![Step::Write(answer(200, "application/json", VECTORS))]
}

fn error(status: u16, message: &str) -> Vec<Step> {
    json_answer(
        status,
        &json!({ "error": { "message": message, "type": "invalid_request_error", "code": "x" } }),
    )
}

/// The members of an object, if it has no others.
fn only<'a>(object: &'a Value, known: &[&str]) -> Result<&'a Map<String, Value>, String> {
    let members = object.as_object().ok_or("not an object")?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(other) => Err(format!("Unknown name \"{other}\"")),
        None => Ok(members),
    }
}

/// A provider of the chat kind, which takes at most the documented members. It ignores `encoding_format`, omits positions and
/// usage, and answers in reverse if it has positions.
fn chat_provider(seen: &Seen) -> Vec<Step> {
    let body = seen.json();
    let known = ["model", "input", "encoding_format", "dimensions", "user"];
    if let Err(message) = only(&body, &known) {
        return error(400, &message);
    }
    if seen.path() != "/v1/embeddings" || body["model"] != "theirs" {
        return error(404, "no such model");
    }
    let count = match &body["input"] {
        Value::Array(inputs) if inputs.iter().all(|input| input.is_string() || input.is_array()) => {
            inputs.len()
        }
        Value::Array(_) | Value::String(_) => 1,
        _ => return error(400, "input is invalid"),
    };
    let vector = |index: usize| json!([index, 0.5]);
    let data: Vec<Value> = match body["dimensions"].as_u64() {
        Some(_) => {
            (0..count).rev().map(|index| json!({ "embedding": vector(index), "index": index })).collect()
        }
        None => (0..count).map(|index| json!({ "embedding": vector(index) })).collect(),
    };
    json_answer(200, &json!({ "data": data }))
}

/// A provider of the native kind, as strict as the JSON mapping of protocol buffers.
fn native_provider(seen: &Seen) -> Vec<Step> {
    let (path, body) = (seen.path().to_owned(), seen.json());
    let refused = |message: String| {
        json_answer(
            400,
            &json!({ "error": { "code": 400, "message": message, "status": "INVALID_ARGUMENT" } }),
        )
    };
    if seen.header("x-goog-api-key") != Some(UPSTREAM_KEY) {
        return refused("no key".to_owned());
    }
    let read = |request: &Value| -> Result<Value, String> {
        let members = only(request, &["model", "content", "taskType", "title", "outputDimensionality"])?;
        if members["model"] != "models/theirs" {
            return Err("model is not the one of the path".to_owned());
        }
        let [part] =
            &**only(&members["content"], &["parts", "role"])?["parts"].as_array().ok_or("no parts")?
        else {
            return Err("one part".to_owned());
        };
        let text = only(part, &["text"])?["text"].as_str().ok_or("no text")?.to_owned();
        Ok(json!({ "values": [text.len(), 0.25], "statistics": { "truncated": false } }))
    };
    let answered = if path.ends_with("/models/theirs:embedContent") {
        read(&body).map(|vector| json!({ "embedding": vector }))
    } else if path.ends_with("/models/theirs:batchEmbedContents") {
        let requests = only(&body, &["requests"]).map(|members| members["requests"].clone());
        let requests = requests.and_then(|requests| requests.as_array().cloned().ok_or("no list".to_owned()));
        let read = requests.and_then(|requests| requests.iter().map(read).collect::<Result<Vec<_>, _>>());
        read.map(|vectors| json!({ "embeddings": vectors, "usageMetadata": { "promptTokenCount": 11 } }))
    } else {
        Err(format!("no method {path}"))
    };
    answered.map_or_else(refused, |answer| json_answer(200, &answer))
}

#[tokio::test]
async fn simulator_embeds_every_form_of_input() {
    let server = start().await;
    for (input, count) in [
        (json!("a boat"), 1),
        (json!(["a boat", "a lake"]), 2),
        (json!([5, 6]), 1),
        (json!([[5], [6], [7]]), 3),
    ] {
        let body = json!({ "model": "embedding_model_1", "input": input, "dimensions": 4 });
        let answer = server.ask(PATH, &body).await;
        let data = answer["data"].as_array().expect("a list");
        assert_eq!((data.len(), &answer["model"]), (count, &json!("embedding_model_1")));
        for (index, entry) in data.iter().enumerate() {
            assert_eq!((&entry["object"], &entry["index"]), (&json!("embedding"), &json!(index)));
            assert_eq!(entry["embedding"].as_array().map(Vec::len), Some(4));
        }
        let usage = &answer["usage"];
        assert!(usage["prompt_tokens"].as_u64() > Some(0) && usage["total_tokens"] == usage["prompt_tokens"]);
    }
    let body = json!({ "model": "embedding_model_1", "input": "a boat", "encoding_format": "base64" });
    let answer = server.ask(PATH, &body).await;
    // 256 floats of four bytes.
    assert_eq!(answer["data"][0]["embedding"].as_str().map(str::len), Some(1368));
}

#[tokio::test]
async fn bounds_are_checked_before_any_upstream_is_called() {
    let provider = Scripted::start([vectors()]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &provider.url)])).await;
    for (input, param) in [
        (json!(""), "input"),
        (json!([]), "input"),
        (json!(vec!["a"; 2049]), "input"),
        (json!(vec![1; 32_769]), "input"),
        (json!([vec![1; 32_769]]), "input.0"),
        (json!(["a", 1]), "input.1"),
        (json!([1, -1]), "input.1"),
        (Value::Null, "input"),
    ] {
        let (status, refused) = server.refused(PATH, &request(&input)).await;
        let named = refused["error"]["param"].as_str().unwrap_or_default();
        assert_eq!((status, named.replace(['[', ']'], ".").trim_end_matches('.')), (400, param), "{refused}");
    }
    let streaming = json!({ "model": "mine", "input": "a", "stream": true });
    let (status, refused) = server.refused(PATH, &streaming).await;
    assert_eq!((status, &refused["error"]["param"], provider.count()), (400, &json!("stream"), 0));
    // The catalog's model makes vectors of at most 256 numbers.
    let long = json!({ "model": "embedding_model_1", "input": "a", "dimensions": 257 });
    let (status, refused) = start().await.refused(PATH, &long).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("dimensions")));
}

#[tokio::test]
async fn embeddings_are_relayed_with_only_the_model_renamed() {
    for (kind, path) in [
        (Kind::Chat, "POST /v1/embeddings HTTP/1.1"),
        (Kind::Responses, "POST /v1/embeddings HTTP/1.1"),
        (Kind::Gatewright, "POST /v1/v1/embeddings HTTP/1.1"),
    ] {
        let provider = Scripted::start([vectors()]).await;
        let server = start_with(config(vec![upstream("one", kind, &provider.url)])).await;
        let body = "{\"model\" : \"mine\",\"input\":\"a\", \"future\":1e0}";
        let sent =
            server.bare(Method::POST, PATH).bearer_auth(KEY).header("content-type", "application/json");
        let response = send(sent.body(body)).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "one");
        assert!(!response.headers().contains_key("x-gatewright-estimated"));
        let text = response.text().await.expect("a body");
        assert_eq!(text, VECTORS.replace("theirs", "mine"));
        let seen = &provider.seen()[0];
        assert_eq!((seen.line.as_str(), seen.body.as_str()), (path, &*body.replace("mine", "theirs")));
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
    }
}

#[tokio::test]
async fn sloppy_answers_are_completed_for_official_clients() {
    let provider = Scripted::answering(chat_provider).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &provider.url)])).await;
    let mut body = request(&json!(["a", "b", "c"]));
    body["dimensions"] = json!(2);
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-estimated"], "true");
    let answer: Value = response.json().await.expect("JSON");
    let firsts: Vec<&Value> =
        answer["data"].as_array().expect("a list").iter().map(|entry| &entry["embedding"][0]).collect();
    assert_eq!(firsts, [&json!(0), &json!(1), &json!(2)]);
    assert_eq!((&answer["object"], &answer["model"]), (&json!("list"), &json!("mine")));
    assert!(answer["usage"]["prompt_tokens"].as_u64() > Some(0), "{answer}");
    let mut body = request(&json!([[1, 2], [3]]));
    body["encoding_format"] = json!("base64");
    let answer = server.ask(PATH, &body).await;
    // 1.0 and 0.5.
    assert_eq!(answer["data"][1], json!({ "object": "embedding", "index": 1, "embedding": "AACAPwAAAD8=" }));
}

#[tokio::test]
async fn native_provider_embeds_texts_for_clients_of_the_operation() {
    let provider = Scripted::answering(native_provider).await;
    let server = start_with(config(vec![upstream("one", Kind::Native, &provider.url)])).await;
    let mut body = request(&json!("abc"));
    body["dimensions"] = json!(2);
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-estimated"], "true", "it counts no tokens of a single text");
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(answer["data"], json!([{ "object": "embedding", "index": 0, "embedding": [3, 0.25] }]));
    assert_eq!(answer["provider_extra"], json!({ "/embedding/statistics": { "truncated": false } }));
    assert_eq!(provider.seen()[0].json()["outputDimensionality"], 2);
    let mut body = request(&json!(["a", "bc"]));
    (body["encoding_format"], body["user"]) = (json!("base64"), json!("u"));
    let response = send(server.post(PATH, &body)).await;
    assert_eq!(response.headers()["x-gatewright-dropped"], "/user");
    assert!(!response.headers().contains_key("x-gatewright-estimated"));
    let answer: Value = response.json().await.expect("JSON");
    assert_eq!(
        (&answer["data"][0]["embedding"], &answer["usage"]["prompt_tokens"]),
        (&json!("AACAPwAAgD4="), &json!(11))
    );
    let strict = server.post(PATH, &body).header("x-gatewright-strict", "true");
    let (status, refused) = read(strict).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("user")));
    let (status, refused) = server.refused(PATH, &request(&json!([1, 2]))).await;
    assert_eq!(
        (status, &refused["error"]["param"], provider.count()),
        (400, &json!("input"), 2),
        "{refused}"
    );
    assert!(
        refused["error"]["message"].as_str().is_some_and(|message| message.contains("of the kind native"))
    );
}

#[tokio::test]
async fn tokens_go_to_the_upstream_that_takes_them() {
    let native = Scripted::answering(native_provider).await;
    let chat = Scripted::answering(chat_provider).await;
    let both = vec![upstream("first", Kind::Native, &native.url), upstream("second", Kind::Chat, &chat.url)];
    let server = start_with(config(both)).await;
    let response = send(server.post(PATH, &request(&json!([1, 2])))).await;
    assert_eq!((response.headers()["x-gatewright-upstream"].as_bytes(), native.count()), (&b"second"[..], 0));
}

#[tokio::test]
async fn upstream_without_a_vector_for_each_input_is_skipped() {
    let page = vec![Step::Write(answer(200, "text/html", "<html>hello</html>"))];
    let cut = Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"data\":[".to_vec());
    for failing in [
        error(500, "no"),
        error(429, "no"),
        error(401, "no"),
        json_answer(200, &json!({ "data": [] })),
        json_answer(200, &json!({ "data": [{ "embedding": null }] })),
        page,
        vec![cut, Step::Close],
        vec![Step::Reset],
    ] {
        let (bad, good) = (Scripted::start([failing]).await, Scripted::start([vectors()]).await);
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(both)).await;
        let response = send(server.post(PATH, &request(&json!("a")))).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good");
        assert_eq!((bad.count(), good.count()), (1, 1));
    }
}

#[tokio::test]
async fn request_error_of_a_provider_is_relayed_without_the_key() {
    for kind in [Kind::Chat, Kind::Native] {
        let provider = Scripted::start([error(400, &format!("too long for {UPSTREAM_KEY}"))]).await;
        let both = vec![upstream("one", kind, &provider.url), upstream("two", kind, &provider.url)];
        let server = start_with(config(both)).await;
        let (status, refused) = server.refused(PATH, &request(&json!("a"))).await;
        assert_eq!((status, provider.count()), (400, 1), "a request error is returned without failover");
        assert!(!refused.to_string().contains("canary"), "{refused}");
    }
}

#[tokio::test]
async fn only_input_tokens_are_counted_and_priced() {
    for (kind, tokens) in [(Kind::Chat, 7), (Kind::Native, 11)] {
        let provider = match kind {
            Kind::Chat => Scripted::start([vectors()]).await,
            _ => Scripted::answering(native_provider).await,
        };
        let mut config = config(vec![upstream("one", kind, &provider.url)]);
        config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
        config.models[0].targets[0].price = Some(ModelPrice::new(1000.0, 1_000_000.0));
        let server = start_with(config).await;
        server.ask(PATH, &request(&json!(["a"]))).await;
        let row = usage_row(&server, ADMIN).await;
        let numbers =
            ["requests", "input_tokens", "output_tokens", "estimated"].map(|name| row[name].as_u64());
        assert_eq!(numbers, [1, tokens, 0, 0].map(Some), "{row}");
        let cost = row["cost"].as_f64().expect("a cost");
        assert!((cost - f64::from(u32::try_from(tokens).expect("few")) / 1000.0).abs() < 1e-9, "{row}");
    }
}

#[tokio::test]
async fn uncounted_tokens_are_estimated_in_usage() {
    let provider = Scripted::answering(chat_provider).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    let server = start_with(config).await;
    let answer = server.ask(PATH, &request(&json!("word ".repeat(400)))).await;
    let counted = answer["usage"]["prompt_tokens"].as_u64();
    assert!((450..600).contains(&counted.expect("a count")), "{counted:?}");
    let row = usage_row(&server, ADMIN).await;
    let numbers = ["input_tokens", "output_tokens", "estimated"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [counted, Some(0), Some(1)], "{row}");
}

#[tokio::test]
async fn model_of_another_kind_is_404_with_the_right_endpoint() {
    let provider = Scripted::start([vectors()]).await;
    let mut config = config(vec![upstream("one", Kind::Responses, &provider.url)]);
    config.models.push(ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let server = start_with(config).await;
    for (path, model, right) in [
        ("/v1/chat/completions", "mine", PATH),
        ("/v1/images/generations", "mine", PATH),
        (PATH, "words", "/v1/chat/completions"),
    ] {
        let body = json!({
            "model": model, "prompt": "x", "input": "x", "messages": [{ "role": "user", "content": "x" }],
        });
        let (status, refused) = server.refused(path, &body).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
        assert!(message.ends_with(&format!("use POST {right}")), "{message}");
    }
    let (_, list) = read(server.get("/v1/models")).await;
    let entry = &list["data"][0];
    assert_eq!((&entry["kind"], &entry["protocols"]), (&json!("embedding"), &json!(["embeddings"])));
    let (_, native) = read(server.get("/v1beta/models")).await;
    assert_eq!(native["models"].as_array().map(Vec::len), Some(1), "conversations only: {native}");
}

#[tokio::test]
async fn embeddings_pass_through_two_gateways() {
    let inner: Server = start().await;
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(vec![next]);
    config.models[0].targets[0].model = "embedding_model_1".to_owned();
    let server = start_with(config).await;
    let body = json!({ "input": ["a boat", "a lake"], "dimensions": 3 });
    let body_for = |model: &str| {
        let mut body = body.clone();
        body["model"] = model.into();
        body
    };
    let (direct, passed) =
        (inner.ask(PATH, &body_for("embedding_model_1")).await, server.ask(PATH, &body_for("mine")).await);
    assert_eq!((&direct["data"], &direct["usage"]), (&passed["data"], &passed["usage"]));
    assert_eq!(passed["model"], "mine");
}
