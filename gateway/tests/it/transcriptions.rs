//! Transcriptions and translations of sounds: forms with a file, by the simulator and by providers.

use gatewright_gateway::{
    ApiKey, Config, Kind, ModelConfig, ModelKind, ModelPrice, TargetConfig, UpstreamConfig,
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Step, UPSTREAM_KEY, answer, json_answer, upstream};

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TRANSLATIONS: &str = "/v1/audio/translations";
const ADMIN: &str = "gw-admin-canary-93";
const MEDIA_TYPE: &str = "multipart/form-data; boundary=\"x-boundary\"";
/// An answer whose form is preserved only by passing it through.
const TRANSCRIPT: &str = "{ \"text\" : \"a \\u0062oat\",\"future\":1.50,\
                          \"usage\":{\"type\":\"tokens\",\"input_tokens\":7,\"output_tokens\":2}}";

/// A gateway with a transcription model `mine`, called `theirs` at these upstreams.
fn config(upstreams: Vec<UpstreamConfig>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = ModelKind::Transcription;
    config.models[0].limits = None;
    config
}

fn field(name: &str, value: &str) -> String {
    format!("--x-boundary\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
}

fn file(content: &str) -> String {
    format!(
        "--x-boundary\r\nContent-Disposition: form-data; name=\"file\"; filename=\"boat.wav\"\r\n\
         Content-Type: audio/wav\r\n\r\n{content}\r\n"
    )
}

fn form(parts: &[String]) -> String {
    format!("{}--x-boundary--\r\n", parts.concat())
}

/// The form of most tests.
fn usual() -> String {
    form(&[file("RIFF mine"), field("model", "mine"), field("prompt", "mine")])
}

fn post(server: &Server, path: &str, body: String) -> RequestBuilder {
    server.bare(Method::POST, path).bearer_auth(KEY).header("content-type", MEDIA_TYPE).body(body)
}

fn passing(text: &str) -> Vec<Step> {
    vec![Step::Write(answer(200, "application/json", text))]
}

async fn in_front_of(provider: &Scripted) -> Server {
    start_with(config(vec![upstream("one", Kind::Chat, &provider.url)])).await
}

#[tokio::test]
async fn simulator_transcribes_deterministically() {
    let server = start().await;
    let parts = |more: &[String]| {
        let always = [field("model", "transcription_model_1"), file("RIFF")];
        form(&[&always[..], more].concat())
    };
    let (status, first) = read(post(&server, TRANSCRIPTIONS, parts(&[]))).await;
    assert_eq!(status, 200, "{first}");
    let text = first["text"].as_str().expect("a text");
    assert!(text.split(' ').count() >= 4 && first.get("words").is_none(), "{first}");
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        let verbose = [field("response_format", "verbose_json"), field("temperature", "0.5")];
        let (status, again) = read(post(&server, path, parts(&verbose))).await;
        assert_eq!((status, &again["text"]), (200, &first["text"]), "{again}");
        assert_eq!(again["segments"][0]["text"], first["text"]);
        assert!(again["duration"].is_number(), "{again}");
    }
    let timed = ["word", "segment"].map(|value| field("timestamp_granularities[]", value));
    let timed = [&[field("response_format", "verbose_json")][..], &timed].concat();
    let (_, timed) = read(post(&server, TRANSCRIPTIONS, parts(&timed))).await;
    assert_eq!(timed["words"].as_array().map(Vec::len), Some(text.split(' ').count()), "{timed}");
    let diarized = [field("response_format", "diarized_json")];
    let (_, diarized) = read(post(&server, TRANSCRIPTIONS, parts(&diarized))).await;
    assert_eq!(diarized["segments"][0]["speaker"], "A", "{diarized}");
}

#[tokio::test]
async fn form_is_relayed_with_only_the_model_renamed() {
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        for (kind, at) in [(Kind::Chat, path.to_owned()), (Kind::Gatewright, format!("/v1{path}"))] {
            let provider = Scripted::start([passing(TRANSCRIPT)]).await;
            let server = start_with(config(vec![upstream("one", kind, &provider.url)])).await;
            let parts = [
                file("RIFF\r\n--x-bound\r\n mine"),
                field("future", "mine"),
                field("model", "mine"),
                field("prompt", "mine"),
            ];
            let response = send(post(&server, path, form(&parts))).await;
            assert_eq!(response.headers()["x-gatewright-upstream"], "one");
            assert!(!response.headers().contains_key("x-gatewright-estimated"));
            assert_eq!(response.text().await.expect("a body"), TRANSCRIPT);
            let seen = &provider.seen()[0];
            let expected = form(&parts).replace("name=\"model\"\r\n\r\nmine", "name=\"model\"\r\n\r\ntheirs");
            assert_eq!((seen.path(), seen.body.as_str()), (&*at, &*expected));
            assert_eq!(seen.header("content-type"), Some(MEDIA_TYPE));
            assert_eq!(seen.header("accept"), Some("*/*"));
            assert_eq!(seen.header("authorization"), Some(&*format!("Bearer {UPSTREAM_KEY}")));
        }
    }
}

#[tokio::test]
async fn malformed_forms_are_refused_before_any_upstream_is_called() {
    let provider = Scripted::start([passing(TRANSCRIPT)]).await;
    let server = in_front_of(&provider).await;
    let model = || field("model", "mine");
    let part = |head: &str| format!("--x-boundary\r\n{head}\r\n\r\nx\r\n");
    for (body, expected) in [
        (String::new(), "does not begin with its boundary"),
        (format!("preamble\r\n{}", usual()), "does not begin with its boundary"),
        (format!("{}epilogue", usual()), "something follows the last boundary"),
        (usual().replace("\r\n", "\n"), "choose another boundary"),
        (usual().replace("--x-boundary--\r\n", ""), "ends without its last boundary"),
        (form(&[file("x\n--x-boundary\r\n"), model()]), "choose another boundary"),
        (form(&[file("x"), model(), model()]), "model is in the form twice"),
        (form(&[file("x"), file("x"), model()]), "file is in the form twice"),
        (form(&[file("x"), part("X: y"), model()]), "part 2 of the form has no name"),
        (
            form(&[part(
                "Content-Disposition: form-data; name=\"a\"\r\nContent-Type: multipart/mixed; boundary=y",
            )]),
            "part 1 of the form is a form itself",
        ),
        (
            form(&[part("Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64")]),
            "has a content-transfer-encoding",
        ),
        (form(&vec![field("a", "b"); 101]), "more than 100 parts"),
        (form(&[part(&format!("X: {}", "y".repeat(100_000)))]), "the head of part 1"),
        (form(&[field("file", "x"), model()]), "file must be a file"),
    ] {
        let (status, refused) = read(post(&server, TRANSCRIPTIONS, body)).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(expected), "{expected}: {status} {refused}");
        assert!(refused.to_string().len() < 2000, "{refused}");
    }
    for (media_type, status, expected) in [
        ("application/json", 415, "must be multipart/form-data"),
        ("multipart/mixed; boundary=x-boundary", 415, "must be multipart/form-data"),
        ("multipart/form-data", 400, "names no boundary"),
        ("multipart/form-data; boundary=a; boundary=b", 400, "names two boundaries"),
        ("multipart/form-data; boundary=\"a b\"", 400, "the boundary of the content-type must be"),
    ] {
        let request = server.bare(Method::POST, TRANSCRIPTIONS).bearer_auth(KEY);
        let (found, refused) = read(request.header("content-type", media_type).body(usual())).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(found == status && message.contains(expected), "{media_type}: {found} {refused}");
    }
    assert_eq!(provider.count(), 0);
}

#[tokio::test]
async fn rules_of_the_specification_apply_to_members() {
    let provider = Scripted::start([passing(TRANSCRIPT)]).await;
    let server = in_front_of(&provider).await;
    let with = |name: &str, value: &str| form(&[file("x"), field("model", "mine"), field(name, value)]);
    for (body, param) in [
        (form(&[field("model", "mine")]), "file"),
        (form(&[file("x")]), "model"),
        (form(&[file("x"), field("model", "")]), "model"),
        (with("temperature", "1.5"), "temperature"),
        (with("temperature", "warm"), "temperature"),
        (with("response_format", "new"), "response_format"),
        (with("stream", "no"), "stream"),
    ] {
        let (status, refused) = read(post(&server, TRANSCRIPTIONS, body)).await;
        assert_eq!((status, &refused["error"]["param"]), (400, &json!(param)), "{refused}");
    }
    let (status, refused) = read(post(&server, TRANSLATIONS, with("stream", "true"))).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("stream")), "{refused}");
    assert_eq!(provider.count(), 0);
    let (status, answer) = read(post(&server, TRANSCRIPTIONS, with("stream", "false"))).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn body_larger_than_the_limit_is_refused() {
    let provider = Scripted::start([passing(TRANSCRIPT)]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.max_body_bytes = 10_000;
    let server = start_with(config).await;
    let large = form(&[file(&"x".repeat(10_000)), field("model", "mine")]);
    assert_eq!(read(post(&server, TRANSCRIPTIONS, large)).await.0, 413);
    let (status, answer) = read(post(&server, TRANSCRIPTIONS, usual())).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn upstream_with_a_useless_answer_is_skipped() {
    let error = |status: u16| json_answer(status, &json!({ "error": { "message": "no", "code": "x" } }));
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"text\":".to_vec();
    for failing in [
        error(500),
        error(429),
        error(401),
        json_answer(200, &json!({ "error": { "message": "no", "type": "server_error" } })),
        json_answer(200, &json!({ "words": [] })),
        vec![Step::Write(answer(200, "text/plain", "a boat"))],
        vec![Step::Write(answer(200, "text/html", "<html>hello</html>"))],
        vec![Step::Write(cut), Step::Close],
        vec![Step::Reset],
    ] {
        let (bad, good) = (Scripted::start([failing]).await, Scripted::start([passing(TRANSCRIPT)]).await);
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(both)).await;
        let response = send(post(&server, TRANSCRIPTIONS, usual())).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good");
        assert_eq!((bad.count(), good.count()), (1, 1));
        assert_eq!(bad.seen()[0].body, good.seen()[0].body);
    }
}

#[tokio::test]
async fn request_error_of_a_provider_is_relayed_without_the_key() {
    let error = json!({ "error": { "message": format!("no ears for {UPSTREAM_KEY}"), "type": "invalid_request_error" } });
    let provider = Scripted::start([json_answer(400, &error)]).await;
    let both = vec![upstream("one", Kind::Chat, &provider.url), upstream("two", Kind::Chat, &provider.url)];
    let server = start_with(config(both)).await;
    let (status, refused) = read(post(&server, TRANSCRIPTIONS, usual())).await;
    assert_eq!((status, provider.count()), (400, 1), "a request error is returned without failover");
    assert!(!refused.to_string().contains("canary"), "{refused}");
}

#[tokio::test]
async fn reported_usage_is_counted_and_priced_and_other_is_estimated() {
    let seconds = r#"{"text":"a boat on a lake","usage":{"type":"duration","seconds":3}}"#;
    for (transcript, estimated, expected) in [(TRANSCRIPT, 0, Some((7, 2))), (seconds, 1, None)] {
        let provider = Scripted::start([passing(transcript)]).await;
        let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
        config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
        config.models[0].targets[0].price = Some(ModelPrice::new(1000.0, 1000.0));
        let server = start_with(config).await;
        let long = form(&[file(&"x".repeat(100_000)), field("model", "mine")]);
        let (status, answer) = read(post(&server, TRANSCRIPTIONS, long)).await;
        assert_eq!(status, 200, "{answer}");
        let row = usage_row(&server, ADMIN).await;
        assert_eq!((&row["requests"], &row["estimated"]), (&json!(1), &json!(estimated)), "{row}");
        let tokens = ["input_tokens", "output_tokens"].map(|name| row[name].as_u64().expect("a count"));
        match expected {
            Some((input, output)) => assert_eq!(tokens, [input, output], "{row}"),
            // The file is no text.
            None => assert!(tokens[0] < 100 && tokens[1] > 0, "{row}"),
        }
        let cost = row["cost"].as_f64().expect("a cost");
        let sum = u32::try_from(tokens[0] + tokens[1]).expect("few");
        assert!((cost - f64::from(sum) / 1000.0).abs() < 1e-9, "{row}");
    }
}

#[tokio::test]
async fn sound_is_priced_by_the_seconds_that_are_stated_or_estimated() {
    let billed = r#"{"text":"a boat","usage":{"type":"duration","seconds":3},"duration":2.5}"#;
    let measured = r#"{"text":"a boat","duration":2.5}"#;
    let unknown = r#"{"text":"a boat"}"#;
    // Of 16 kB, four seconds are estimated.
    for (transcript, cost) in [(billed, 1.5), (measured, 1.25), (unknown, 2.0)] {
        let provider = Scripted::start([passing(transcript)]).await;
        let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
        config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
        let by_second = ModelPrice { audio_second: Some(0.5), ..ModelPrice::default() };
        config.models[0].targets[0].price = Some(by_second);
        let server = start_with(config).await;
        let body = form(&[file(&"x".repeat(16_000)), field("model", "mine")]);
        let (status, answer) = read(post(&server, TRANSCRIPTIONS, body)).await;
        assert_eq!(status, 200, "{answer}");
        let row = usage_row(&server, ADMIN).await;
        assert_eq!([&row["cost"], &row["unpriced"]], [&json!(cost), &json!(0)], "{row}");
    }
}

#[tokio::test]
async fn price_of_something_else_is_no_price() {
    let provider = Scripted::start([passing(r#"{"text":"a boat"}"#)]).await;
    let mut config = config(vec![upstream("one", Kind::Chat, &provider.url)]);
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    let by_character = ModelPrice { speech_characters: Some(0.5), ..ModelPrice::default() };
    config.models[0].targets[0].price = Some(by_character);
    let server = start_with(config).await;
    let (status, answer) = read(post(&server, TRANSCRIPTIONS, usual())).await;
    assert_eq!(status, 200, "{answer}");
    let row = usage_row(&server, ADMIN).await;
    assert_eq!([&row["cost"], &row["unpriced"]], [&json!(0.0), &json!(1)], "{row}");
}

#[tokio::test]
async fn answer_has_the_clients_name_of_the_model() {
    let provider = Scripted::start([passing(r#"{"model":"theirs","text":"a boat"}"#)]).await;
    let server = in_front_of(&provider).await;
    let (_, answer) = read(post(&server, TRANSCRIPTIONS, usual())).await;
    assert_eq!(answer, json!({ "model": "mine", "text": "a boat" }));
}

#[tokio::test]
async fn repeated_request_with_an_idempotency_key_is_answered_once() {
    let provider = Scripted::start([passing(TRANSCRIPT)]).await;
    let server = in_front_of(&provider).await;
    let keyed = |body: String| post(&server, TRANSCRIPTIONS, body).header("idempotency-key", "k1");
    let first = read(keyed(usual())).await;
    assert_eq!(read(keyed(usual())).await, first);
    assert_eq!(provider.count(), 1);
    // The members are the same, but not the file.
    let (status, refused) = read(keyed(usual().replace("RIFF mine", "RIFF ours"))).await;
    assert_eq!((status, &refused["error"]["code"]), (422, &json!("idempotency_key_reused")), "{refused}");
}

#[tokio::test]
async fn scoped_key_gets_403_for_every_other_model_in_a_form() {
    let config = Config { admin_key: Some(ApiKey::new(ADMIN).expect("a key")), ..Config::default() };
    let server = start_with(config).await;
    let new = json!({ "name": "narrow", "scopes": { "models": ["transcription_model_1"] } });
    let made = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new);
    let key = read(made).await.1["secret"].as_str().expect("a secret").to_owned();
    for (model, expected) in [("transcription_model_1", 200), ("speech_model_1", 403), ("nope", 403)] {
        let body = form(&[file("RIFF"), field("model", model)]);
        let request = server.bare(Method::POST, TRANSCRIPTIONS).bearer_auth(&key);
        let (status, answer) = read(request.header("content-type", MEDIA_TYPE).body(body)).await;
        assert_eq!(status, expected, "{model}: {answer}");
    }
}

#[tokio::test]
async fn faults_are_found_in_forms() {
    let server = start().await;
    let of_model = |model: &str| form(&[file("RIFF"), field("model", model)]);
    let (status, refused) =
        read(post(&server, TRANSCRIPTIONS, of_model("transcription_model_1~status=503"))).await;
    assert_eq!(status, 503, "{refused}");
    let in_header = post(&server, TRANSCRIPTIONS, of_model("transcription_model_1"));
    let (status, refused) = read(in_header.header("x-gatewright-fault", "status=502")).await;
    assert_eq!(status, 502, "{refused}");
    let once = || post(&server, TRANSCRIPTIONS, of_model("transcription_model_1~fail_once"));
    assert!(read(once()).await.0 >= 429);
    let (status, answer) = read(once()).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn model_of_another_kind_is_404_with_its_kind_and_endpoint() {
    let provider = Scripted::start([passing(TRANSCRIPT)]).await;
    let mut config = config(vec![upstream("one", Kind::Responses, &provider.url)]);
    config.models.push(ModelConfig::new("words", "family_one", TargetConfig::new("one", "words")));
    let server = start_with(config).await;
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        let body = form(&[file("x"), field("model", "words")]);
        let (status, refused) = read(post(&server, path, body)).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("model_not_found")), "{refused}");
        let expected =
            format!("is a text model, which POST {path} does not serve; use POST /v1/chat/completions");
        assert!(message.ends_with(&expected), "{message}");
    }
    let question: Value = upstreams::question(false);
    let (status, refused) = server.refused("/v1/chat/completions", &question).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(status == 404 && message.ends_with("use POST /v1/audio/transcriptions"), "{message}");
    let (_, list) = read(server.get("/v1/models")).await;
    let shown = &list["data"][0];
    assert_eq!(
        (&shown["kind"], &shown["protocols"]),
        (&json!("transcription"), &json!(["transcriptions", "translations"]))
    );
}

#[tokio::test]
async fn transcription_passes_through_two_gateways() {
    let inner = start().await;
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(vec![next]);
    config.models[0].targets[0].model = "transcription_model_1".to_owned();
    let server = start_with(config).await;
    let (_, passed) = read(post(&server, TRANSCRIPTIONS, usual())).await;
    let body = usual().replace("name=\"model\"\r\n\r\nmine", "name=\"model\"\r\n\r\ntranscription_model_1");
    let (_, direct) = read(post(&inner, TRANSCRIPTIONS, body)).await;
    assert_eq!(passed, direct);
    assert!(passed["text"].is_string(), "{passed}");
}
