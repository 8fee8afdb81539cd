//! Sounds and transcripts in the form that a client asks for: as events, and as text.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use gatewright_gateway::{ApiKey, Config, Kind, ModelKind, ModelPrice, UpstreamConfig};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::{KEY, Server, read, send, start, start_with};
use crate::upstream_images::usage_row;
use crate::upstreams::{self, Scripted, Step, answer, json_answer, upstream};

const SPEECH: &str = "/v1/audio/speech";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TRANSLATIONS: &str = "/v1/audio/translations";
const ADMIN: &str = "gw-admin-canary-95";
/// Events that keep their form only if they are passed through.
const SPOKEN: &str = "data: {\"type\" : \"speech.audio.delta\",\"audio\":\"SUQzYQ==\",\"future\":1e0}\n\n\
                      data: {\"type\":\"speech.audio.done\",\"usage\":{\"input_tokens\":7,\"output_tokens\":2,\"total_tokens\":9}}\n\n";
const WRITTEN: &str = "event: transcript.text.delta\ndata: {\"type\":\"transcript.text.delta\",\"delta\":\"a \\u0062oat\"}\n\n\
                       event: transcript.text.done\ndata: {\"type\":\"transcript.text.done\",\"text\":\"a boat\",\
                       \"usage\":{\"type\":\"tokens\",\"input_tokens\":7,\"output_tokens\":2}}\n\n";

/// A gateway with a model `mine` of this kind, called `theirs` at these upstreams.
fn config(kind: ModelKind, upstreams: Vec<UpstreamConfig>) -> Config {
    let mut config = upstreams::config(upstreams);
    config.models[0].kind = kind;
    config.models[0].limits = None;
    config.admin_key = Some(ApiKey::new(ADMIN).expect("a key"));
    config
}

async fn in_front_of(kind: ModelKind, provider: &Scripted) -> Server {
    start_with(config(kind, vec![upstream("one", Kind::Chat, &provider.url)])).await
}

fn speech(model: &str) -> Value {
    json!({ "model": model, "input": "A boat on a lake.", "voice": "alloy", "stream_format": "sse" })
}

/// A form with a file and these fields.
fn form(server: &Server, path: &str, fields: &[(&str, &str)]) -> RequestBuilder {
    let field = |(name, value): &(&str, &str)| {
        format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file =
        "--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nRIFF\r\n--b--\r\n";
    let body = fields.iter().map(field).collect::<String>() + file;
    let media_type = "multipart/form-data; boundary=b";
    server.bare(Method::POST, path).bearer_auth(KEY).header("content-type", media_type).body(body)
}

fn passing(media_type: &str, text: &str) -> Vec<Step> {
    vec![Step::Write(answer(200, media_type, text))]
}

fn media_type(response: &Response) -> &str {
    response.headers()["content-type"].to_str().expect("ASCII")
}

/// The data of events.
fn data(events: &str) -> Vec<Value> {
    let data = events.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

/// The bytes of the events of a sound, and how many events have some. The last event is asserted to end it.
fn sound_of(events: &str) -> (Vec<u8>, usize) {
    let events = data(events);
    let (last, deltas) = events.split_last().expect("events");
    assert_eq!(last["type"], "speech.audio.done", "{last}");
    let texts = deltas.iter().map(|delta| {
        assert_eq!(delta["type"], "speech.audio.delta", "{delta}");
        delta["audio"].as_str().expect("a text")
    });
    // Joined, as clients that don't decode each event read them.
    let joined: String = texts.collect();
    (STANDARD.decode(joined).expect("Base64"), deltas.len())
}

#[tokio::test]
async fn events_of_an_upstream_pass_unchanged_and_their_usage_counts() {
    for kind in [Kind::Chat, Kind::Gatewright] {
        let provider = Scripted::start([passing("text/event-stream", SPOKEN)]).await;
        let mut config = config(ModelKind::Speech, vec![upstream("one", kind, &provider.url)]);
        let by_character = ModelPrice { speech_characters: Some(500_000.0), ..ModelPrice::default() };
        config.models[0].targets[0].price = Some(by_character);
        let server = start_with(config).await;
        let response = send(server.post(SPEECH, &speech("mine"))).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "one");
        assert_eq!(media_type(&response), "text/event-stream; charset=utf-8");
        assert_eq!(response.text().await.expect("events"), SPOKEN);
        assert_eq!(provider.seen()[0].body, speech("theirs").to_string());
        let row = usage_row(&server, ADMIN).await;
        let numbers = ["requests", "complete", "estimated", "input_tokens", "output_tokens", "unpriced"];
        assert_eq!(numbers.map(|name| row[name].as_u64()), [1, 1, 0, 7, 2, 0].map(Some), "{row}");
        assert_eq!(row["cost"], 8.5, "{row}");
    }
}

#[tokio::test]
async fn sound_of_an_upstream_that_ignores_the_word_becomes_events_as_it_arrives() {
    let write = |text: &str| Step::Write(text.as_bytes().to_vec());
    for media_type in ["audio/mpeg", "application/octet-stream"] {
        let gate = Arc::new(Semaphore::new(0));
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n");
        let steps = vec![
            write(&head),
            write("4\r\nID3a\r\n"),
            Step::Gate(Arc::clone(&gate)),
            write("1\r\nb\r\n"),
            write("6\r\ncdefgh\r\n0\r\n\r\n"),
        ];
        let provider = Scripted::start([steps]).await;
        let server = in_front_of(ModelKind::Speech, &provider).await;
        let response = send(server.post(SPEECH, &speech("mine"))).await;
        let mut stream = response.bytes_stream();
        let mut events =
            String::from_utf8(stream.next().await.expect("a beginning").expect("bytes").to_vec())
                .expect("text");
        assert_eq!(events, "data: {\"type\":\"speech.audio.delta\",\"audio\":\"SUQz\"}\n\n");
        gate.add_permits(1);
        while let Some(piece) = stream.next().await {
            events += std::str::from_utf8(&piece.expect("bytes")).expect("text");
        }
        assert_eq!(sound_of(&events).0, b"ID3abcdefgh", "{events}");
        let row = usage_row(&server, ADMIN).await;
        let numbers = ["requests", "complete", "estimated", "output_tokens"].map(|name| row[name].as_u64());
        assert_eq!(numbers, [1, 1, 1, 0].map(Some), "{row}");
    }
}

#[tokio::test]
async fn events_that_end_early_end_in_an_error() {
    let delta = "data: {\"type\":\"speech.audio.delta\",\"audio\":\"SUQz\"}\n\n";
    let cut = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 99\r\n\r\nID3";
    let failing = format!("{delta}data: {{\"error\":{{\"message\":\"no breath\",\"code\":\"hoarse\"}}}}\n\n");
    for (steps, message) in [
        (passing("text/event-stream", delta), "the provider's response ended early"),
        (passing("text/event-stream", &failing), "no breath"),
        (vec![Step::Write(cut.into()), Step::Close], "the provider's response was cut off"),
    ] {
        let provider = Scripted::start([steps]).await;
        let server = in_front_of(ModelKind::Speech, &provider).await;
        let response = send(server.post(SPEECH, &speech("mine"))).await;
        assert_eq!(response.status(), 200);
        let events = data(&response.text().await.expect("events"));
        assert_eq!(events[0]["audio"], "SUQz", "{events:?}");
        assert_eq!(events.last().expect("an end")["error"]["message"], message, "{events:?}");
        let row = usage_row(&server, ADMIN).await;
        let numbers = ["requests", "complete", "failed"].map(|name| row[name].as_u64());
        assert_eq!(numbers, [1, 0, 1].map(Some), "{row}");
    }
}

#[tokio::test]
async fn upstream_with_another_kind_of_answer_is_skipped() {
    let sound = || passing("audio/mpeg", "ID3");
    let error = json_answer(200, &json!({ "error": { "message": "no", "type": "server_error" } }));
    let event_error = "data: {\"error\":{\"message\":\"no\",\"type\":\"server_error\"}}\n\n";
    let mut as_bytes = speech("mine");
    as_bytes["stream_format"] = json!("audio");
    for (failing, request) in [
        (error, speech("mine")),
        (passing("text/event-stream", event_error), speech("mine")),
        (passing("text/event-stream", ""), speech("mine")),
        (passing("text/html", "<html>hello</html>"), speech("mine")),
        // It was asked for bytes.
        (passing("text/event-stream", SPOKEN), as_bytes),
    ] {
        let (bad, good) = (Scripted::start([failing]).await, Scripted::start([sound()]).await);
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(ModelKind::Speech, both)).await;
        let response = send(server.post(SPEECH, &request)).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good", "{request}");
        assert_eq!((bad.count(), good.count()), (1, 1));
    }
}

#[tokio::test]
async fn unlabelled_events_are_recognized() {
    let provider = Scripted::start([passing("text/plain", SPOKEN)]).await;
    let server = in_front_of(ModelKind::Speech, &provider).await;
    let response = send(server.post(SPEECH, &speech("mine"))).await;
    assert_eq!(response.text().await.expect("events"), SPOKEN);
}

#[tokio::test]
async fn boolean_that_streams_elsewhere_is_refused_with_the_word() {
    let server = start().await;
    let mut request = speech("speech_model_1");
    request["stream"] = json!(true);
    request["stream_format"] = json!(null);
    let (status, refused) = server.refused(SPEECH, &request).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("stream")), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with("set stream_format to \"sse\" instead of stream"), "{message}");
}

#[tokio::test]
async fn simulator_makes_the_same_sound_as_events_also_through_two_gateways() {
    let inner = start().await;
    let mut request = speech("speech_model_1");
    let events = send(inner.post(SPEECH, &request)).await.text().await.expect("events");
    let (sound, count) = sound_of(&events);
    request["stream_format"] = json!(null);
    assert_eq!(sound, send(inner.post(SPEECH, &request)).await.bytes().await.expect("a sound"));
    // A long sound is not one event.
    request["input"] = json!("A boat on a lake. ".repeat(50));
    let long = send(inner.post(SPEECH, &request)).await.bytes().await.expect("a sound");
    request["stream_format"] = json!("sse");
    let events = send(inner.post(SPEECH, &request)).await.text().await.expect("events");
    let (as_events, pieces) = sound_of(&events);
    // Bytes that are no group of three come last.
    let whole = long.len() / 3 * 3;
    let expected = whole.div_ceil(48_000) + usize::from(whole < long.len());
    assert_eq!((as_events == long, pieces, count), (true, expected, 2));
    let mut next = UpstreamConfig::new("inner", Kind::Gatewright, inner.url.clone());
    next.keys = vec![ApiKey::new(KEY).expect("a key")];
    let mut config = config(ModelKind::Speech, vec![next]);
    config.models[0].targets[0].model = "speech_model_1".to_owned();
    let server = start_with(config).await;
    request["model"] = json!("mine");
    assert_eq!(send(server.post(SPEECH, &request)).await.text().await.expect("events"), events);
}

#[tokio::test]
async fn transcript_arrives_as_the_events_of_the_upstream() {
    let provider = Scripted::start([passing("text/event-stream", WRITTEN)]).await;
    let server = in_front_of(ModelKind::Transcription, &provider).await;
    let response = send(form(&server, TRANSCRIPTIONS, &[("model", "mine"), ("stream", "true")])).await;
    assert_eq!(response.text().await.expect("events"), WRITTEN);
    let row = usage_row(&server, ADMIN).await;
    let numbers = ["complete", "estimated", "input_tokens", "output_tokens"].map(|name| row[name].as_u64());
    assert_eq!(numbers, [1, 0, 7, 2].map(Some), "{row}");
}

#[tokio::test]
async fn whole_transcript_becomes_events_with_its_usage() {
    let whole = r#"{"text":"a \"boat\"","usage":{"type":"duration","seconds":3}}"#;
    let provider = Scripted::start([passing("application/json", whole)]).await;
    let mut config = config(ModelKind::Transcription, vec![upstream("one", Kind::Chat, &provider.url)]);
    let by_second = ModelPrice { audio_second: Some(0.5), ..ModelPrice::default() };
    config.models[0].targets[0].price = Some(by_second);
    let server = start_with(config).await;
    let response = send(form(&server, TRANSCRIPTIONS, &[("model", "mine"), ("stream", "True")])).await;
    let events = data(&response.text().await.expect("events"));
    assert_eq!(
        events,
        [
            json!({ "type": "transcript.text.delta", "delta": "a \"boat\"" }),
            json!({
                "type": "transcript.text.done", "text": "a \"boat\"",
                "usage": { "type": "duration", "seconds": 3 },
            }),
        ]
    );
    let row = usage_row(&server, ADMIN).await;
    assert_eq!([&row["cost"], &row["complete"]], [&json!(1.5), &json!(1)], "{row}");
}

#[tokio::test]
async fn simulator_writes_words_as_events_and_as_text() {
    let server = start().await;
    let model = ("model", "transcription_model_1");
    let (_, whole) = read(form(&server, TRANSCRIPTIONS, &[model])).await;
    let words = whole["text"].as_str().expect("a text");
    let response = send(form(&server, TRANSCRIPTIONS, &[model, ("stream", "true")])).await;
    let events = data(&response.text().await.expect("events"));
    let (last, deltas) = events.split_last().expect("events");
    assert_eq!((last["text"].as_str(), &last["usage"]), (Some(words), &whole["usage"]), "{last}");
    let joined: String = deltas.iter().map(|delta| delta["delta"].as_str().expect("a text")).collect();
    assert_eq!((joined.as_str(), deltas.len()), (words, words.split(' ').count()));
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        for (format, expected) in [
            ("text", format!("{words}\n")),
            ("srt", format!("1\n00:00:00,000 --> 00:00:00,000\n{words}\n\n")),
            ("vtt", format!("WEBVTT\n\n00:00:00.000 --> 00:00:00.000\n{words}\n\n")),
        ] {
            let response = send(form(&server, path, &[model, ("response_format", format)])).await;
            assert_eq!(media_type(&response), "text/plain; charset=utf-8");
            assert_eq!(response.text().await.expect("a text"), expected);
        }
    }
}

#[tokio::test]
async fn text_of_an_upstream_passes_and_is_estimated() {
    let subtitles = "WEBVTT\r\n\r\n00:00.000 --> 00:01.000\r\na \u{e9}t\u{e9}\r\n";
    for (format, text) in [("vtt", subtitles), ("text", "a boat\n"), ("text", "")] {
        let provider = Scripted::start([passing("text/vtt", text)]).await;
        let server = in_front_of(ModelKind::Transcription, &provider).await;
        let request = form(&server, TRANSCRIPTIONS, &[("model", "mine"), ("response_format", format)]);
        let response = send(request).await;
        assert_eq!((response.status().as_u16(), media_type(&response)), (200, "text/plain; charset=utf-8"));
        assert_eq!(response.text().await.expect("a text"), text);
        let row = usage_row(&server, ADMIN).await;
        assert_eq!([&row["complete"], &row["estimated"]], [&json!(1), &json!(1)], "{row}");
    }
}

#[tokio::test]
async fn words_are_taken_out_of_json_and_subtitles_are_not_made_of_it() {
    let whole = r#"{"text":"a b\u006fat","usage":{"type":"tokens","input_tokens":7,"output_tokens":2}}"#;
    let json_transcript = || passing("application/json", whole);
    let provider = Scripted::start([json_transcript()]).await;
    let server = in_front_of(ModelKind::Transcription, &provider).await;
    let request = form(&server, TRANSCRIPTIONS, &[("model", "mine"), ("response_format", "text")]);
    assert_eq!(send(request).await.text().await.expect("a text"), "a boat");
    let row = usage_row(&server, ADMIN).await;
    assert_eq!([&row["input_tokens"], &row["estimated"]], [&json!(7), &json!(0)], "{row}");
    for failing in [
        json_transcript(),
        passing("text/html", "<!DOCTYPE html><title>Busy</title>"),
        json_answer(200, &json!({ "error": { "message": "no", "type": "server_error" } })),
    ] {
        let bad = Scripted::start([failing]).await;
        let good =
            Scripted::start([passing("text/plain", "1\n00:00:00,000 --> 00:00:01,000\na boat\n")]).await;
        let both = vec![upstream("bad", Kind::Chat, &bad.url), upstream("good", Kind::Chat, &good.url)];
        let server = start_with(config(ModelKind::Transcription, both)).await;
        let request = form(&server, TRANSLATIONS, &[("model", "mine"), ("response_format", "srt")]);
        let response = send(request).await;
        assert_eq!(response.headers()["x-gatewright-upstream"], "good");
        assert!(response.text().await.expect("a text").starts_with("1\n"));
    }
}
