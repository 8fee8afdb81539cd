//! Gateways in front of providers, which are asked for their models.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::gateway::Serving;
use crate::gatewright;

/// The providers' key; no message may contain it.
const KEY: &str = "key-canary-77";
/// How long the longest start of these tests may take: the time for a list, and that for a start on a busy machine.
const LONGEST_START: Duration = Duration::from_secs(30);

/// A request as the provider received it.
#[derive(Debug, Clone)]
struct Asked {
    method: String,
    /// Path and query.
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is a well-formed request for a list: providers reject others.
    fn asks_for_models(&self, key: (&str, &str)) -> bool {
        let credentials = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
        let sent = self.headers.iter().filter(|(name, _)| credentials.contains(&name.as_str()));
        let sent: Vec<_> = sent.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.method == "GET"
            && self.body.is_empty()
            && sent == [key]
            && self.header("accept") == Some("application/json")
            && self.header("host").is_some()
    }
}

/// What a provider does with a request.
enum Reply {
    Json(u16, Value),
    /// A body of this media type.
    Page(&'static str, String),
    /// Never answers.
    Silence,
    /// A list without an end.
    Endless,
}

/// A double of a provider.
struct Provider {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Provider {
    fn start(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (reply, seen) = (Arc::new(reply), Arc::clone(&asked));
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (reply, seen) = (Arc::clone(&reply), Arc::clone(&seen));
                std::thread::spawn(move || answer(connection, &*reply, &seen));
            }
        });
        Self { url, asked }
    }

    /// A provider with the chat protocol and this list.
    fn listing(list: Value) -> Self {
        Self::start(move |asked| match asked.target.as_str() {
            "/v1/models" if asked.asks_for_models(("authorization", &format!("Bearer {KEY}"))) => {
                Reply::Json(200, list.clone())
            }
            _ => Reply::Json(400, json!({ "error": { "message": "not what I expect" } })),
        })
    }

    fn targets(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").iter().map(|asked| asked.target.clone()).collect()
    }

    /// The value of `--provider`.
    fn named(&self, name: &str) -> String {
        format!("{name}={}", self.url)
    }
}

/// Answers one request. `None`: the client is gone.
fn answer(
    mut connection: TcpStream,
    reply: &dyn Fn(&Asked) -> Reply,
    seen: &Mutex<Vec<Asked>>,
) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, length)| length.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let asked = Asked { method, target, headers, body };
    let reply = reply(&asked);
    seen.lock().expect("no panic").push(asked);
    let (status, media_type, body) = match reply {
        Reply::Json(status, document) => (status, "application/json; charset=utf-8", document.to_string()),
        Reply::Page(media_type, body) => (200, media_type, body),
        Reply::Silence => {
            // Until the client gives up.
            let mut rest = Vec::new();
            return reader.read_to_end(&mut rest).ok().map(drop);
        }
        Reply::Endless => {
            write!(connection, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[").ok()?;
            let models = r#"{"id":"one-of-many","object":"model"},"#.repeat(1000);
            loop {
                connection.write_all(models.as_bytes()).ok()?;
            }
        }
    };
    let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\nconnection: close\r\n");
    write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len()).ok()
}

/// A gateway in front of providers, which are given as `--provider` expects them.
fn serving(providers: &[String], variables: &[(&str, &str)]) -> Serving {
    let arguments: Vec<&str> =
        providers.iter().flat_map(|provider| ["--provider", provider.as_str()]).collect();
    Serving::start_with(&arguments, variables)
}

/// The ids and kinds that a gateway lists.
fn models(gateway: &Serving) -> Vec<(String, String)> {
    let listed: Value = serde_json::from_str(&gateway.output_of(&["models", "--json"])).expect("JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let of = |model: &Value| (text(&model["id"]), text(&model["kind"]));
    listed["data"].as_array().expect("a list").iter().map(of).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
}

/// The models that the program knows of a provider, with their kinds.
fn known(provider: &str) -> Vec<(String, String)> {
    let output = gatewright().args(["providers", provider, "--json"]).output().expect("the program starts");
    let object: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let kinds = ["text", "embedding", "rerank", "moderation", "image", "video", "speech", "transcription"];
    let of = |kind: &str| {
        let key = if kind == "text" { "models".to_owned() } else { format!("{kind}_models") };
        let ids: Vec<String> = object[&key]
            .as_array()
            .expect("a list")
            .iter()
            .map(|id| id.as_str().expect("an id").to_owned())
            .collect();
        ids.into_iter().map(|id| (id, kind.to_owned())).collect::<Vec<_>>()
    };
    kinds.iter().flat_map(|kind| of(kind)).collect()
}

/// What OpenAI lists, and what it doesn't.
#[test]
fn models_of_the_providers_list_join_the_known_ones_with_their_kinds() {
    let list = json!({
        "object": "list",
        "has_more": false,
        "future": { "member": [1] },
        "data": [
            { "id": "gpt-99", "object": "model", "created": 1, "owned_by": "openai", "shutdown_date": null },
            { "id": "gpt-5-2025-08-07", "object": "model" },
            { "id": "gpt-99", "object": "model" },
            { "id": "text-embedding-3-small", "object": "model" },
            { "id": "gpt-image-2", "object": "model" },
            { "id": "gpt-image-9", "object": "model" },
            { "id": "sora-9", "object": "model" },
            { "id": "tts-1", "object": "model" },
            { "id": "whisper-1", "object": "model" },
            { "id": "gpt-realtime", "object": "model" },
            { "id": "babbage-002", "object": "model" },
            { "id": "ft:gpt-99:my-org:odd\"name:8a", "object": "model" },
            { "id": "with space", "object": "model" },
            { "id": "tricky%2f..", "object": "model" },
            { "id": "line\nbreak", "object": "model" },
            { "id": "ünï", "object": "model" },
            { "id": 7, "object": "model" },
            { "object": "model" },
            null,
            "text",
        ],
    });
    let provider = Provider::listing(list);
    let gateway = serving(&[provider.named("openai")], &[("OPENAI_API_KEY", KEY)]);
    let expected = [
        ("gpt-5", "text"),
        ("text-embedding-3-small", "embedding"),
        ("gpt-image-2", "image"),
        ("tts-1", "speech"),
        ("whisper-1", "transcription"),
        ("gpt-99", "text"),
        ("gpt-5-2025-08-07", "text"),
        ("gpt-image-9", "image"),
        ("sora-9", "video"),
        ("ft:gpt-99:my-org:odd\"name:8a", "text"),
        // Known, but no longer listed.
        ("gpt-5-mini", "text"),
        ("gpt-4.1", "text"),
        ("text-embedding-3-large", "embedding"),
        ("omni-moderation-latest", "moderation"),
        ("gpt-4o-mini-tts", "speech"),
        ("gpt-4o-transcribe", "transcription"),
        ("gpt-4o-mini-transcribe", "transcription"),
    ];
    assert_eq!(models(&gateway), pairs(&expected));
    assert_eq!(provider.targets(), ["/v1/models"]);
    let log = gateway.log();
    assert!(!log.contains("--provider"), "{log}");
}

/// As OpenAI's image models: they accept no response_format.
#[test]
fn image_is_generated_by_the_providers_model() {
    let provider = Provider::start(|asked| match (asked.method.as_str(), asked.target.as_str()) {
        ("GET", "/v1/models") => Reply::Json(200, json!({ "data": [{ "id": "gpt-image-2" }] })),
        ("POST", "/v1/images/generations") => {
            let request: Value = serde_json::from_slice(&asked.body).expect("JSON");
            let mut members: Vec<&String> = request.as_object().expect("an object").keys().collect();
            members.sort();
            if members != ["model", "prompt"] || request["model"] != "gpt-image-2" {
                let message = format!("Unknown parameter in {members:?}");
                return Reply::Json(400, json!({ "error": { "message": message } }));
            }
            let image = BASE64_STANDARD.encode(b"\x89PNG\r\n\x1a\nimage");
            Reply::Json(200, json!({ "created": 1, "data": [{ "b64_json": image }], "usage": {} }))
        }
        _ => Reply::Json(404, json!({ "error": { "message": "not found" } })),
    });
    let gateway = serving(&[provider.named("openai")], &[("OPENAI_API_KEY", KEY)]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cat.png");
    let file = file.to_str().expect("a path");
    assert_eq!(gateway.output_of(&["image", "a cat", "-o", file]), format!("{file}\n"));
    assert_eq!(std::fs::read(file).expect("the image"), b"\x89PNG\r\n\x1a\nimage");
}

/// As Anthropic: pages of at most 1000 models, a required version, and no tolerance for other parameters.
#[test]
fn every_page_of_a_list_is_read() {
    let provider = Provider::start(|asked| {
        if !asked.asks_for_models(("x-api-key", KEY))
            || asked.header("anthropic-version") != Some("2023-06-01")
        {
            let error = json!({ "type": "invalid_request_error", "message": "bad headers" });
            return Reply::Json(400, json!({ "type": "error", "error": error }));
        }
        let page = |ids: &[&str], has_more: bool| {
            let data = ids.iter().map(|id| json!({ "type": "model", "id": id, "display_name": { "en": 1 } }));
            let (first, last) = (ids.first(), ids.last());
            json!({
                "data": data.collect::<Vec<_>>(), "has_more": has_more, "first_id": first, "last_id": last,
            })
        };
        match asked.target.as_str() {
            "/v1/models?limit=1000" => {
                Reply::Json(200, page(&["claude-sonnet-4-5-20250929", "claude-9 beta&x"], true))
            }
            "/v1/models?limit=1000&after_id=claude-9%20beta%26x" => {
                Reply::Json(200, page(&["claude-9"], false))
            }
            other => {
                let error = json!({ "type": "not_found_error", "message": other });
                Reply::Json(404, json!({ "type": "error", "error": error }))
            }
        }
    });
    let gateway = serving(&[provider.named("anthropic")], &[("ANTHROPIC_API_KEY", KEY)]);
    let expected = [
        ("claude-sonnet-4-5", "text"),
        ("claude-sonnet-4-5-20250929", "text"),
        ("claude-9", "text"),
        ("claude-opus-4-1", "text"),
        ("claude-haiku-4-5", "text"),
    ];
    assert_eq!(models(&gateway), pairs(&expected));
    assert_eq!(provider.targets().len(), 2);
}

/// As Gemini. Both variables are set: its clients read the first one.
#[test]
fn native_list_says_what_its_models_make() {
    let provider = Provider::start(|asked| {
        if !asked.asks_for_models(("x-goog-api-key", KEY)) {
            return Reply::Json(403, json!({ "error": { "code": 403, "message": "no key", "status": "X" } }));
        }
        let model = |name: &str, methods: &[&str]| json!({ "name": format!("models/{name}"), "displayName": name, "supportedGenerationMethods": methods });
        match asked.target.as_str() {
            "/v1/models?pageSize=1000" => {
                let models = [
                    model("gemini-2.5-pro", &["generateContent", "countTokens"]),
                    model("gemini-9-flash-image", &["generateContent"]),
                    model("gemini-9-tts", &["generateContent"]),
                    model("gemini-9-live", &["bidiGenerateContent"]),
                ];
                Reply::Json(200, json!({ "models": models, "nextPageToken": "a/b=" }))
            }
            "/v1/models?pageSize=1000&pageToken=a%2Fb%3D" => {
                let models = [
                    model("text-vectors-9", &["embedContent"]),
                    model("imagen-9", &["predict"]),
                    model("aqa", &["generateAnswer"]),
                ];
                Reply::Json(200, json!({ "models": models }))
            }
            _ => Reply::Json(400, json!({ "error": { "code": 400, "message": "no page", "status": "X" } })),
        }
    });
    let keys = [("GEMINI_API_KEY", "another-key"), ("GOOGLE_API_KEY", KEY)];
    let gateway = serving(&[provider.named("gemini")], &keys);
    let expected = [
        ("gemini-2.5-pro", "text"),
        ("gemini-9-flash-image", "text"),
        ("text-vectors-9", "embedding"),
        ("gemini-2.5-flash", "text"),
        ("gemini-embedding-001", "embedding"),
    ];
    assert_eq!(models(&gateway), pairs(&expected));
}

/// As Together AI, whose list is bare, and OpenRouter, which links to the next page.
#[test]
fn lists_of_other_forms_are_read() {
    let bare = Provider::listing(json!([
        { "id": "openai/gpt-oss-120b", "type": "chat", "pricing": { "input": 0.1 } },
        { "id": "some/drawer", "type": "image" },
        { "id": "some/voice", "type": "audio" },
    ]));
    let gateway = serving(&[bare.named("together")], &[("TOGETHER_API_KEY", KEY)]);
    let expected = [("openai/gpt-oss-120b", "text"), ("some/drawer", "image"), ("some/voice", "speech")];
    assert_eq!(models(&gateway), pairs(&expected));

    let linked = Provider::start(|asked| {
        let model = |id: &str, makes: &[&str]| json!({ "id": id, "name": "A: Model", "architecture": { "modality": "x->y", "output_modalities": makes } });
        match asked.target.as_str() {
            "/v1/models" => {
                let data = [model("openrouter/auto", &["text"]), model("a/free:free", &["image", "text"])];
                // The key stays with the address that the operator gave.
                let links = json!({ "next": "https://elsewhere.example/api/v1/models?offset=2&limit=2" });
                Reply::Json(200, json!({ "data": data, "links": links, "total_count": 4 }))
            }
            "/v1/models?offset=2&limit=2" => {
                let data = [model("a/vectors", &["embeddings"]), model("a/song", &["audio"])];
                Reply::Json(200, json!({ "data": data, "links": { "next": null } }))
            }
            _ => Reply::Json(400, json!({ "error": { "message": "no page" } })),
        }
    });
    let gateway = serving(&[linked.named("openrouter")], &[("OPENROUTER_API_KEY", KEY)]);
    let expected = [
        ("openrouter/auto", "text"),
        ("a/free:free", "text"),
        ("a/vectors", "embedding"),
        ("cohere/rerank-v3.5", "rerank"),
        ("openai/gpt-4o-mini-tts-2025-12-15", "speech"),
    ];
    assert_eq!(models(&gateway), pairs(&expected));
}

/// The start neither fails nor waits for long, and a line says why.
#[test]
fn provider_that_gives_no_list_is_served_with_the_known_models() {
    let echo = json!({ "error": { "message": format!("Incorrect API key:\n\t{KEY}\u{1b}[2J.") } });
    let cases: [(&str, Provider); 5] = [
        (
            "it answered 401 Unauthorized: Incorrect API key: [redacted]",
            Provider::start(move |_| Reply::Json(401, echo.clone())),
        ),
        (
            "its response is not a list of models",
            Provider::start(|_| Reply::Page("text/html", "<html>A login page</html>".to_owned())),
        ),
        ("its list did not arrive within 5 s", Provider::start(|_| Reply::Silence)),
        ("its list is cut off or larger than 8388608 bytes", Provider::start(|_| Reply::Endless)),
        (
            "its list has more than 20 pages",
            Provider::start(|_| {
                Reply::Json(200, json!({ "data": [{ "id": "m" }], "links": { "next": "?page=2" } }))
            }),
        ),
    ];
    std::thread::scope(|scope| {
        for (why, provider) in &cases {
            scope.spawn(move || {
                let started = Instant::now();
                let gateway = serving(&[provider.named("openai")], &[("OPENAI_API_KEY", KEY)]);
                assert!(started.elapsed() < LONGEST_START, "{why}: {:?}", started.elapsed());
                assert_eq!(models(&gateway), known("openai"), "{why}");
                let log = gateway.log();
                let lines: Vec<&str> = log.lines().filter(|line| line.contains("--provider")).collect();
                let [line] = lines.as_slice() else { panic!("{why}: {log}") };
                let url = &provider.url;
                let expected =
                    format!("gatewright: warning: --provider openai: no list of models from {url}: {why}");
                assert!(line.starts_with(&expected), "{expected} in {line}");
                let end = "; only the 12 models that this program knows are configured";
                assert!(line.ends_with(end) && !line.contains(KEY) && !line.contains('\u{1b}'), "{line}");
            });
        }
    });
}

#[test]
fn empty_list_leaves_the_known_models_and_says_so() {
    let provider = Provider::listing(json!({ "data": [{ "id": "gpt-realtime" }] }));
    let gateway = serving(&[provider.named("openai")], &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(models(&gateway), known("openai"));
    let log = gateway.log();
    let expected =
        "lists no models that the gateway serves; only the 12 models that this program knows are configured";
    assert!(log.contains(expected), "{log}");
}

#[test]
fn provider_is_not_asked_without_its_key_or_if_only_known_models_are_wanted() {
    let provider = Provider::listing(json!({ "data": [{ "id": "listed" }] }));
    let named = provider.named("openai");
    let gateway = Serving::start_with(&["--provider", &named, "--known-models"], &[("OPENAI_API_KEY", KEY)]);
    assert_eq!(models(&gateway), known("openai"));
    let output = gatewright().args(["serve", "--listen", "127.0.0.1:0", "--provider", &named]).output();
    let output = output.expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("the variable OPENAI_API_KEY is not set"), "{message}");
    assert!(provider.targets().is_empty(), "{:?}", provider.targets());

    let gemini = gatewright().args(["serve", "--listen", "127.0.0.1:0", "--provider", "gemini"]).output();
    let message = String::from_utf8_lossy(&gemini.expect("the program starts").stderr).into_owned();
    assert!(message.contains("none of the variables GOOGLE_API_KEY, GEMINI_API_KEY is set"), "{message}");
    let alone = gatewright().args(["serve", "--known-models"]).output().expect("the program starts");
    assert_eq!(alone.status.code(), Some(2), "it says something about --provider");
}

#[test]
fn later_provider_is_the_fallback_for_models_of_the_same_name() {
    let first = Provider::listing(json!({ "data": [{ "id": "shared" }, { "id": "first-only" }] }));
    let second = Provider::listing(json!({ "data": [{ "id": "shared" }, { "id": "second-only" }] }));
    let keys = [("GROQ_API_KEY", KEY), ("CEREBRAS_API_KEY", KEY)];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    let mut init = gatewright();
    init.args(["config", "init"]).arg(&file).envs(keys);
    init.args(["--provider", &first.named("groq"), "--provider", &second.named("cerebras")]);
    let output = init.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&file).expect("the file");
    for part in [
        "[models.\"shared\"]\ntargets = [{ upstream = \"groq\" }, { upstream = \"cerebras\", order = 1 }]\n",
        "[models.\"first-only\"]\ntargets = [{ upstream = \"groq\" }]\n",
        "[models.\"second-only\"]\ntargets = [{ upstream = \"cerebras\" }]\n",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let mut check = gatewright();
    let output = check.args(["config", "check"]).arg(&file).envs(keys).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// 300 models are a number on the screen, with the way to list them.
#[test]
fn long_list_is_announced_by_its_length() {
    let data: Vec<Value> = (0..300).map(|number| json!({ "id": format!("vendor/model-{number}") })).collect();
    let provider = Provider::listing(json!({ "data": data }));
    let mut command = gatewright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--color", "never", "--provider"]);
    command.arg(provider.named("openrouter")).env("OPENROUTER_API_KEY", KEY);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let printed: Vec<String> = lines.take_while(|line| !line.contains("Base URL for SDKs")).collect();
    child.kill().and_then(|()| child.wait()).expect("it stops");
    let expected = "openrouter; 303 models, which `gatewright models` lists";
    assert!(printed.iter().any(|line| line.contains(expected)), "{printed:?}");
    let named = printed.iter().filter(|line| line.contains("vendor/model-")).count();
    assert!(named <= 1, "one in the example: {printed:?}");
}
