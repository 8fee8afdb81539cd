//! Requests to each known provider: address, key and the rest arrive as the provider documents them.

use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gatewright_config::{ApplicationDefault, KeySource, Kind, ModelKind, Preset, presets, read_text};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::{Action, PlainAction};
use http::HeaderMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{Endpoint, LookUp, Request, StoredAction, StoredResponseRequest};

/// The head lines of each request, lowercase except for the first.
type Heads = Arc<Mutex<Vec<Vec<String>>>>;

/// A server on a free port that answers every request with an empty document.
async fn server() -> (String, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, Arc::clone(&seen)));
        }
    });
    (origin, heads)
}

async fn answer(mut connection: TcpStream, heads: Heads) {
    let (mut received, mut packet) = (Vec::new(), [0; 4096]);
    loop {
        while let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let mut lines: Vec<String> = head.lines().map(str::to_ascii_lowercase).collect();
            head.lines().next().unwrap_or_default().clone_into(&mut lines[0]);
            let length = lines.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            received.drain(..(end + 4 + length.unwrap_or(0)).min(received.len()));
            // The machine's metadata server issues access tokens.
            let document = if lines[0].contains("/computeMetadata/") {
                r#"{"access_token":"Token-of-machine","expires_in":3600}"#
            } else {
                heads.lock().expect("no panic").push(lines);
                "{}"
            };
            let head = format!(
                "HTTP/1.1 200 OK\r\nmetadata-flavor: Google\r\ncontent-length: {}\r\n\r\n",
                document.len()
            );
            let sent = connection.write_all(format!("{head}{document}").as_bytes()).await;
            sent.expect("the gateway reads");
        }
        match connection.read(&mut packet).await {
            Ok(length @ 1..) => received.extend_from_slice(&packet[..length]),
            _ => return,
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of a look-up")]
fn set(name: &str) -> Option<OsString> {
    Some(format!("Key-in-{name}").into())
}

/// The path of the provider's address, which its requests start with.
fn path_of(preset: &Preset) -> &str {
    let base = preset.base_url().unwrap_or("https://one.example/v1");
    let authority = base.split_once("://").map_or(base, |(_, rest)| rest);
    authority.find('/').map_or("", |at| &authority[at..])
}

/// The operations to test at an upstream of a provider, and how the target of each one ends.
fn operations(provider: &str, kind: Kind) -> Vec<(Protocol, Action, &'static str)> {
    let (turn, stream) = (Action::Answer { stream: false }, Action::Answer { stream: true });
    let chat = [
        (Protocol::Chat, turn, "/chat/completions"),
        (Protocol::Chat, stream, "/chat/completions"),
        (Protocol::Chat, Action::Plain(PlainAction::Embed { list: true }), "/embeddings"),
        (Protocol::Chat, Action::Plain(PlainAction::Rerank), "/rerank"),
        (Protocol::Chat, Action::Plain(PlainAction::Moderate), "/moderations"),
        (Protocol::Chat, Action::Plain(PlainAction::Speak), "/audio/speech"),
        (Protocol::Chat, Action::Plain(PlainAction::Transcribe), "/audio/transcriptions"),
        (Protocol::Chat, Action::Plain(PlainAction::Translate), "/audio/translations"),
        (Protocol::Chat, Action::Image, "/images/generations"),
        (Protocol::Chat, Action::Video, "/videos"),
    ];
    let responses = [
        (Protocol::Responses, turn, "/responses"),
        (Protocol::Responses, stream, "/responses"),
        (Protocol::Responses, Action::Compact, "/responses/compact"),
    ];
    match kind {
        _ if provider == "vertex-anthropic" => vec![
            (Protocol::Messages, turn, "/publishers/anthropic/models/m:rawPredict"),
            (Protocol::Messages, stream, "/publishers/anthropic/models/m:streamRawPredict"),
            (Protocol::Messages, Action::CountTokens, "/publishers/anthropic/models/count-tokens:rawPredict"),
        ],
        _ if provider == "vertex-gemini" => vec![
            (Protocol::Native, turn, "/publishers/google/models/m:generateContent"),
            (Protocol::Native, stream, "/publishers/google/models/m:streamGenerateContent?alt=sse"),
            (Protocol::Native, Action::CountTokens, "/publishers/google/models/m:countTokens"),
        ],
        _ if provider == "bedrock-invoke" => vec![
            (Protocol::Messages, turn, "/model/m/invoke"),
            (Protocol::Messages, stream, "/model/m/invoke-with-response-stream"),
        ],
        Kind::Messages => vec![
            (Protocol::Messages, turn, "/messages"),
            (Protocol::Messages, stream, "/messages"),
            (Protocol::Messages, Action::CountTokens, "/messages/count_tokens"),
        ],
        Kind::Native => vec![
            (Protocol::Native, turn, "/models/m:generateContent"),
            (Protocol::Native, stream, "/models/m:streamGenerateContent?alt=sse"),
            (Protocol::Native, Action::CountTokens, "/models/m:countTokens"),
        ],
        Kind::Converse => vec![
            (Protocol::Converse, turn, "/model/m/converse"),
            (Protocol::Converse, stream, "/model/m/converse-stream"),
        ],
        Kind::Responses => [&chat[..], &responses].concat(),
        _ => chat.to_vec(),
    }
}

/// The target of a request with the query parameters that each request has.
fn target(path: &str, end: &str, query: &str) -> String {
    let mark = if end.contains('?') { '&' } else { '?' };
    if query.is_empty() { format!("{path}{end}") } else { format!("{path}{end}{mark}{query}") }
}

#[tokio::test]
async fn requests_to_each_preset_use_its_paths_and_key() {
    let (origin, heads) = server().await;
    for preset in presets() {
        let path = path_of(preset);
        let text = format!(
            "[upstreams.one]\nprovider = \"{}\"\nbase_url = \"{origin}{path}\"\n[models.m]\ntargets = [{{ upstream = \
             \"one\" }}]\n",
            preset.name
        );
        let file = read_text(&text, set).unwrap_or_else(|problems| panic!("{problems}"));
        let mut upstream = file.config.upstreams[0].clone();
        if let Some(KeySource::ApplicationDefault(places)) = &mut upstream.key_source {
            *places = ApplicationDefault::of_metadata_server(origin.trim_start_matches("http://"));
        }
        let endpoint = Endpoint::new(&upstream, None).expect("an endpoint");
        let key = (upstream.key_count() > 0).then_some(0);
        let query = if preset.name == "azure-openai" { "api-version=v1" } else { "" };
        let (client, mut expected) = (HeaderMap::new(), Vec::new());

        for (protocol, action, end) in operations(preset.name, upstream.kind) {
            let (model, body, id) = ("m", Bytes::from_static(b"{}"), "req_1");
            let request = Request {
                protocol,
                action,
                model,
                body,
                form: None,
                client: &client,
                relayed: true,
                id,
                trace: None,
            };
            assert_eq!(endpoint.send(request, key).await.expect(preset.name).status(), 200);
            expected.push(format!("POST {} HTTP/1.1", target(path, end, query)));
        }
        let list = match upstream.kind {
            Kind::Messages => "/models?limit=1000",
            Kind::Native => "/models?pageSize=1000",
            _ => "/models",
        };
        endpoint.models(None).await.expect(preset.name);
        expected.push(format!("GET {} HTTP/1.1", target(path, list, query)));
        if upstream.kind == Kind::Responses {
            let action = StoredAction::Retrieve;
            let about = StoredResponseRequest {
                action,
                response: "resp_1",
                query: &[],
                client: &client,
                id: "req_1",
            };
            endpoint.ask_about(about, None).await.expect(preset.name);
            expected.push(format!("GET {} HTTP/1.1", target(path, "/responses/resp_1", query)));
        }
        if upstream.kind.serves(ModelKind::Video) {
            let mark = key.and_then(|key| endpoint.mark_of(key));
            endpoint.look_up(LookUp::State("v1"), mark, "req_1").await.expect(preset.name);
            expected.push(format!("GET {} HTTP/1.1", target(path, "/videos/v1", query)));
        }

        let heads = std::mem::take(&mut *heads.lock().expect("no panic"));
        let lines: Vec<&str> = heads.iter().map(|head| head[0].as_str()).collect();
        assert_eq!(lines, expected, "{}", preset.name);
        let (header, prefix) = match (preset.name, upstream.kind) {
            ("azure-openai", _) => ("api-key", ""),
            (_, Kind::Messages) => ("x-api-key", ""),
            (_, Kind::Native) => ("x-goog-api-key", ""),
            _ => ("authorization", "bearer "),
        };
        let shown = match (preset.key_variable(set), &upstream.key_source) {
            (Some(variable), _) => {
                Some(format!("{header}: {prefix}key-in-{}", variable.to_ascii_lowercase()))
            }
            (None, Some(KeySource::SigV4(_))) => {
                let signed = "authorization: aws4-hmac-sha256 credential=key-in-aws_access_key_id/";
                Some(signed.to_owned())
            }
            (None, Some(_)) => Some("authorization: bearer token-of-machine".to_owned()),
            (None, None) => None,
        };
        for head in &heads {
            let of_keys = ["authorization: ", "api-key: ", "x-api-key: ", "x-goog-api-key: "];
            let keys = head.iter().filter(|line| of_keys.iter().any(|name| line.starts_with(name)));
            let keys: Vec<&str> = keys.map(String::as_str).collect();
            let is_shown = match (&keys[..], &shown) {
                ([key], Some(shown)) if shown.ends_with('/') => key.starts_with(shown.as_str()),
                ([key], Some(shown)) => key == shown,
                (keys, shown) => keys.is_empty() && shown.is_none(),
            };
            assert!(is_shown, "{}: {keys:?}", preset.name);
        }
    }
}
