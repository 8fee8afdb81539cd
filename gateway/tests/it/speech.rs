//! Speech: by the simulator, and by providers whose bytes are relayed as they arrive.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use gatewright_gateway::{
    ApiKey, Config, Kind, ModelConfig, ModelKind, ModelPrice, TargetConfig, UpstreamConfig,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Step, UPSTREAM_KEY, answer, json_answer, upstream};

const SPEECH: &str = "/v1/audio/speech";
const ADMIN: &str = "gw-admin-canary-92";
/// The beginning of an answer of unknown length.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ntransfer-encoding: chunked\r\n\r\n";

/// A gateway with a speech model `mine`, called `theirs` at these upstreams.
fn config(upstreams: Vec<UpstreamConfig>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = ModelKind::Speech;
    config.models[0].limits = None;
    config
}

fn request() -> Value {
    json!({ "model": "mine", "input": "A boat on a lake.", "voice": "alloy" })
}

fn sound(media_type: &str, bytes: &str) -> Vec<Step> {
    vec![Step::Write(answer(200, media_type, bytes))]
}

fn write(text: &str) -> Step {
    Step::Write(text.as_bytes().to_vec())
}

async fn in_front_of(provider: &Scripted) -> Server {
    start_with(config(vec![upstream("one", Kind::Chat, &provider.url)])).await
}

#[tokio::test]
async fn simulator_makes_a_deterministic_tone() {
    let server = start().await;
    let mut body = json!({ "model": "speech_model_1", "input": "A boat on a lake.", "voice": "alloy" });
    let spoken = async |body: &Value| {
        let response = send(server.post(SPEECH, body)).await;
        assert_eq!(response.status(), 200);
        let media_type = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        (media_type, response.bytes().await.expect("a sound"))
    };
    let (media_type, wav) = spoken(&body).await;
    assert_eq!((media_type.as_str(), &wav[..4], &wav[8..12]), ("audio/wav", &b"RIFF"[..], &b"WAVE"[..]));
    // 17 characters of 20 ms, 24,000 samples of 2 bytes per second, and a header.
    assert_eq!(wav.len(), 17 * 480 * 2 + 44);
    body["response_format"] = json!("wav");
    assert_eq!(spoken(&body).await.1, wav);
    body["response_format"] = json!("pcm");
    let (media_type, samples) = spoken(&body).await;
    assert_eq!((media_type.as_str(), &samples[..]), ("audio/pcm", &wav[44..]));
    body["speed"] = json!(2);
    assert_eq!(spoken(&body).await.1.len(), samples.len() / 2);
    body["voice"] = json!("onyx");
    assert_ne!(spoken(&body).await.1[..], samples[..samples.len() / 2]);
    for format in ["mp3", "opus", "new"] {
        body["response_format"] = json!(format);
        let (status, refused) = server.refused(SPEECH, &body).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["param"]), (400, &json!("response_format")), "{refused}");
        assert!(message.ends_with("use wav or pcm"), "{message}");
    }
}

#[tokio::test]
async fn request_is_relayed_with_only_the_model_renamed() {
    for (kind, at) in [(Kind::Chat, "/v1/audio/speech"), (Kind::Gatewright, "/v1/v1/audio/speech")] {
        let provider = Scripted::start([sound("audio/x-new; rate=8000", "\u{0}abc")]).await;
        let server = start_with(config(vec![upstream("one", kind, &provider.url)])).await;
        let body = request().to_string().replacen('{', "{ \"future\" : 1e0, ", 1);
        let sent =
            server.bare(Method::POST, SPEECH).bearer_auth(KEY).header("content-type", "application/json");
        let response = send(sent.body(body.clone())).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "one");
        assert_eq!(response.headers()["content-type"], "audio/x-new; rate=8000");
        assert_eq!(response.text().await.expect("a body"), "\u{0}abc");
        let seen = &provider.seen()[0];
        assert_eq!((seen.path(), seen.body.as_str()), (at, &*body.replace("mine", "theirs")));
        assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
        assert_eq!(seen.header("accept"), Some("*/*"));
    }
}

#[tokio::test]
async fn bytes_arrive_before_the_sound_is_complete() {
    let gate = Arc::new(Semaphore::new(0));
    let steps = vec![
        write(HEAD),
        write("4\r\nID3a\r\n"),
        Step::Gate(Arc::clone(&gate)),
        write("3\r\nbcd\r\n0\r\n\r\n"),
    ];
    let provider = Scripted::start([steps]).await;
    let server = in_front_of(&provider).await;
    let response = send(server.post(SPEECH, &request())).await;
    let mut bytes = response.bytes_stream();
    assert_eq!(&bytes.next().await.expect("a beginning").expect("bytes")[..], b"ID3a");
    gate.add_permits(1);
    let mut rest = Vec::new();
    while let Some(piece) = bytes.next().await {
        rest.extend_from_slice(&piece.expect("bytes"));
    }
    assert_eq!(rest, b"bcd");
}

#[tokio::test]
async fn bounds_are_checked_before_any_upstream_is_called() {
    let provider = Scripted::start([sound("audio/mpeg", "ID3")]).await;
    let server = in_front_of(&provider).await;
    for (name, value) in [
        ("input", json!("")),
        ("input", json!("a".repeat(4097))),
        ("input", json!(["a"])),
        ("voice", json!("")),
        ("voice", Value::Null),
        ("speed", json!(0.2)),
        ("speed", json!(4.1)),
        ("speed", json!("1")),
        ("stream_format", json!("new")),
        ("model", json!("")),
        ("stream", json!(true)),
    ] {
        let mut body = request();
        body[name] = value;
        let (status, refused) = server.refused(SPEECH, &body).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(name)), "{refused}");
    }
    assert_eq!(provider.count(), 0);
    let mut body = request();
    body["input"] = json!("é".repeat(4096));
    assert_eq!(send(server.post(SPEECH, &body)).await.status(), 200);
}

#[tokio::test]
async fn upstream_without_a_sound_is_skipped() {
    let error = |status: u16| json_answer(status, &json!({ "error": { "message": "no", "code": "x" } }));
    let server_error = json!({ "error": { "message": "no voice today", "type": "server_error" } });
    for failing in [
        error(500),
        error(429),
        error(401),
        json_answer(200, &server_error),
        sound("application/octet-stream", &server_error.to_string()),
        sound("application/octet-stream", &format!("{server_error:#}")),
        sound("text/html", "<html>hello</html>"),
        sound("text/event-stream", "data: {}\n\n"),
        sound("audio/mpeg", ""),
        vec![write(HEAD), Step::Close],
        vec![write(HEAD), Step::Reset],
        vec![Step::Reset],
    ] {
        let (bad, good) =
            (Scripted::start([failing]).await, Scripted::start([sound("audio/mpeg", "ID3")]).await);
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(both)).await;
        let response = send(server.post(SPEECH, &request())).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good");
        assert_eq!(response.text().await.expect("a sound"), "ID3");
        assert_eq!((bad.count(), good.count()), (1, 1));
    }
}

#[tokio::test]
async fn silent_upstream_is_skipped() {
    let bad = Scripted::start([vec![write(HEAD), Step::Hang]]).await;
    let good = Scripted::start([sound("audio/mpeg", "ID3")]).await;
    let mut silent = upstream("bad", Kind::Chat, &bad.url);
    silent.idle_timeout = Duration::from_millis(100);
    let server = start_with(config(vec![silent, upstream("good", Kind::Chat, &good.url)])).await;
    let response = send(server.post(SPEECH, &request())).await;
    assert_eq!(response.headers()["x-gatewright-upstream"], "good");
}

#[tokio::test]
async fn unlabelled_bytes_pass() {
    let bare = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nID3";
    for (steps, media_type) in [
        (vec![write(bare)], "application/octet-stream"),
        (sound("binary/octet-stream", "ID3"), "binary/octet-stream"),
    ] {
        let provider = Scripted::start([steps]).await;
        let server = in_front_of(&provider).await;
        let response = send(server.post(SPEECH, &request())).await;
        assert_eq!(response.headers()["content-type"], media_type);
        assert_eq!(response.text().await.expect("a sound"), "ID3");
    }
}

#[tokio::test]
async fn sound_that_is_cut_off_never_looks_complete() {
    let length = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 99\r\n\r\nID3";
    for steps in [
        vec![write(HEAD), write("3\r\nID3\r\n"), Step::Close],
        vec![write(HEAD), write("3\r\nID3\r\n"), Step::Pause(Duration::from_millis(50)), Step::Reset],
        vec![write(length), Step::Close],
        vec![write(HEAD), write("3\r\nID3\r\n"), Step::Hang],
    ] {
        let provider = Scripted::start([steps]).await;
        let mut one = upstream("one", Kind::Chat, &provider.url);
        one.idle_timeout = Duration::from_millis(200);
        let mut config = config(vec![one]);
        config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
        let server = start_with(config).await;
        let response = send(server.post(SPEECH, &request())).await;
        assert_eq!(response.status(), 200);
        assert!(response.bytes().await.is_err(), "the sound looks complete");
        let row = usage_row(&server, ADMIN).await;
        let numbers = ["requests", "complete", "failed"].map(|name| row[name].as_u64());
        assert_eq!(numbers, [1, 0, 1].map(Some), "{row}");
    }
}

#[tokio::test]
async fn upstream_is_cancelled_when_the_client_leaves() {
    let mut provider = Scripted::start([vec![write(HEAD), write("3\r\nID3\r\n"), Step::Hang]]).await;
    let server = in_front_of(&provider).await;
    let response = send(server.post(SPEECH, &request())).await;
    let mut bytes = response.bytes_stream();
    assert!(bytes.next().await.is_some_and(|first| first.is_ok()));
    drop(bytes);
    provider.left().await;
}

#[tokio::test]
async fn request_error_of_a_provider_is_relayed_without_the_key() {
    let error = json!({ "error": { "message": format!("no voice for {UPSTREAM_KEY}"), "type": "invalid_request_error" } });
    for steps in [json_answer(400, &error), json_answer(200, &error)] {
        let provider = Scripted::start([steps]).await;
        let both =
            vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
        let server = start_with(config(both)).await;
        let (status, refused) = server.refused(SPEECH, &request()).await;
        assert_eq!((status, provider.count()), (400, 1), "a request error is returned without failover");
        assert!(!refused.to_string().contains("canary"), "{refused}");
    }
}

#[tokio::test]
async fn text_is_counted_and_priced() {
    let provider = Scripted::start([sound("audio/mpeg", "ID3")]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    config.models[0].targets[0].price = Some(ModelPrice::new(1000.0, 1_000_000.0));
    let server = start_with(config).await;
    let response = send(server.post(SPEECH, &request())).await;
    assert_eq!(response.text().await.expect("a sound"), "ID3");
    let row = usage_row(&server, ADMIN).await;
    let numbers = ["requests", "complete", "estimated", "output_tokens"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [1, 1, 1, 0].map(Some), "{row}");
    let tokens = row["input_tokens"].as_u64().expect("a count");
    let cost = row["cost"].as_f64().expect("a cost");
    assert!(tokens > 0, "{row}");
    assert!((cost - f64::from(u32::try_from(tokens).expect("few")) / 1000.0).abs() < 1e-9, "{row}");
}

#[tokio::test]
async fn speech_is_priced_by_the_character() {
    let provider = Scripted::start([sound("audio/mpeg", "ID3")]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    let by_character = ModelPrice { speech_characters: Some(500_000.0), ..ModelPrice::default() };
    config.models[0].targets[0].price = Some(by_character);
    let server = start_with(config).await;
    // Of members that are sent twice, the last counts.
    let request = r#"{"model":"mine","voice":"a","input":"x","inp\u0075t":"Ein Boot fährt."}"#;
    let request = server.bare(Method::POST, SPEECH).bearer_auth(KEY).body(request);
    let response = send(request.header("content-type", "application/json")).await;
    assert_eq!(response.text().await.expect("a sound"), "ID3");
    let row = usage_row(&server, ADMIN).await;
    assert_eq!([&row["cost"], &row["unpriced"]], [&json!(7.5), &json!(0)], "{row}");
}

#[tokio::test]
async fn model_of_another_kind_is_404_with_its_kind_and_endpoint() {
    let provider = Scripted::start([sound("audio/mpeg", "ID3")]).await;
    let mut config = config(vec![upstream("one", Kind::Responses, &provider.url)]);
    config.models.push(ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let server = start_with(config).await;
    for (path, model, expected) in [
        (
            "/v1/chat/completions",
            "mine",
            "is a speech model, which POST /v1/chat/completions does not serve; use POST /v1/audio/speech",
        ),
        (
            SPEECH,
            "words",
            "is a text model, which POST /v1/audio/speech does not serve; use POST /v1/chat/completions",
        ),
    ] {
        let body = json!({
            "model": model, "input": "x", "voice": "x", "messages": [{ "role": "user", "content": "x" }],
        });
        let (status, refused) = server.refused(path, &body).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
        assert!(message.ends_with(expected), "{message}");
    }
    let (_, list) = read(server.get("/v1/models")).await;
    let shown = &list["data"][0];
    assert_eq!((&shown["kind"], &shown["protocols"]), (&json!("speech"), &json!(["speech"])));
}

#[tokio::test]
async fn speech_passes_through_two_gateways() {
    let inner = start().await;
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(vec![next]);
    config.models[0].targets[0].model = "speech_model_1".to_owned();
    let server = start_with(config).await;
    let passed = send(server.post(SPEECH, &request())).await.bytes().await.expect("a sound");
    let mut body = request();
    body["model"] = "speech_model_1".into();
    let direct = send(inner.post(SPEECH, &body)).await.bytes().await.expect("a sound");
    assert_eq!(passed, direct);
    assert_eq!(&passed[..4], b"RIFF");
}
