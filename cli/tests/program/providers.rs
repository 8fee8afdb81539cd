//! `gatewright providers`, and gateways in front of them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::gateway::Serving;
use crate::{gatewright, run, transcript};

fn written(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn list_has_a_line_for_each_provider() {
    let list = written(&["providers"]);
    let all: Vec<Value> = serde_json::from_str(&written(&["providers", "--json"])).expect("JSON");
    assert_eq!(list.lines().count(), all.len() + 1);
    for (line, provider) in list.lines().skip(1).zip(&all) {
        assert_eq!(line.split_whitespace().next(), provider["name"].as_str());
    }
}

#[test]
fn shown_provider_is_a_valid_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    for provider in ["openai", "anthropic", "azure-openai"] {
        let file = folder.path().join(format!("{provider}.toml"));
        let model =
            "\n[models.mine]\ntargets = [{ upstream = \"PROVIDER\" }]\n".replace("PROVIDER", provider);
        std::fs::write(&file, written(&["providers", provider]) + &model).expect("a file");
        let checked = written(&["config", "check", file.to_str().expect("a path")]);
        assert!(checked.contains("is valid: 1 upstream"), "{checked}");
    }
}

#[test]
fn gateway_for_a_provider_requires_its_name_and_key() {
    let key = ("OPENAI_API_KEY", "key-of-openai");
    let arguments = ["--provider", "openai", "--provider", "openai", "--known-models"];
    let gateway = Serving::start_with(&arguments, &[key]);
    let listed = gateway.run(&["models", "--json"]);
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.contains("gpt-5") && !listed.contains("model-sol"), "{listed}");

    let mut without = gatewright();
    without.args(["serve", "--listen", "127.0.0.1:0", "--provider", "openai"]).env_remove(key.0);
    let output = without.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("--provider openai: the variable OPENAI_API_KEY is not set"), "{message}");

    let output = run(&["serve", "--provider", "opnai"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && message.contains("'openai'"), "{message}");
}

#[test]
fn unknown_provider_is_reported_with_the_nearest_name() {
    let output = run(&["providers", "opnai"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("gatewright: provider \"opnai\": must be one of openai, "), "{message}");
    assert!(message.trim_end().ends_with("did you mean openai?"), "{message}");
}

/// A model server that lists models, and answers with the requested model. Its base URL.
fn model_server(models: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || answer(connection, models));
        }
    });
    format!("http://{address}/v1")
}

/// Answers one request. None: the client is gone.
fn answer(mut connection: TcpStream, models: &[&str]) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        length = header.strip_prefix("content-length: ").map_or(length, |text| text.parse().unwrap_or(0));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let document = if first.starts_with("GET /v1/models ") {
        let data: Vec<Value> = models.iter().map(|id| json!({ "id": id, "object": "model" })).collect();
        json!({ "object": "list", "data": data })
    } else {
        let request: Value = serde_json::from_slice(&body).ok()?;
        let message =
            json!({ "role": "assistant", "content": format!("I am {}", request["model"].as_str()?) });
        json!({
            "id": "c1", "object": "chat.completion", "created": 1, "model": request["model"],
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 3, "total_tokens": 4 },
        })
    };
    let body = document.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    write!(connection, "{head}content-length: {}\r\n\r\n{body}", body.len()).ok()
}

#[test]
fn gateway_serves_the_models_that_a_local_server_lists() {
    let url = model_server(&["llama3.2:3b", "nomic-embed-text", "/models/own.gguf"]);
    for provider in ["ollama", "vllm", "llama-cpp", "lm-studio", "sglang", "custom"] {
        let gateway = Serving::start_with(&["--provider", &format!("{provider}={url}")], &[]);
        let listed: Value = serde_json::from_str(&gateway.output_of(&["models", "--json"])).expect("JSON");
        let of = |model: &Value| (model["id"].clone(), model["kind"].clone());
        let listed: Vec<_> = listed["data"].as_array().expect("a list").iter().map(of).collect();
        let expected = [("llama3.2:3b", "text"), ("nomic-embed-text", "embedding"), ("own.gguf", "text")];
        assert_eq!(listed, expected.map(|(id, kind)| (json!(id), json!(kind))), "{provider}");
        // The first text model; and one whose name there is a path.
        assert_eq!(gateway.output_of(&["chat", "--no-stream", "hi"]), "I am llama3.2:3b\n", "{provider}");
        let own = gateway.output_of(&["chat", "--no-stream", "-m", "own.gguf", "hi"]);
        assert_eq!(own, "I am /models/own.gguf\n", "{provider}");
    }
}

#[test]
fn provider_that_cannot_be_served_says_what_is_missing() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port");
    let nowhere = format!("http://{free}/v1");
    let empty = model_server(&[]);
    let cases: [(String, &[&str]); 6] = [
        (
            format!("ollama={nowhere}"),
            &[
                "--provider ollama: ",
                &nowhere,
                "start the server with `ollama serve`",
                "--provider ollama=URL",
            ],
        ),
        (format!("ollama={empty}"), &["--provider ollama: ", &empty, "lists no models"]),
        (
            "azure-openai".to_owned(),
            &["address is missing", "names of your deployments", "config init --provider azure-openai"],
        ),
        ("bedrock".to_owned(), &["address is missing", "us-east-1", "gatewright providers bedrock"]),
        ("vertex-gemini".to_owned(), &["address is missing", "PROJECT", "--provider vertex-gemini=URL"]),
        ("ollama=canary".to_owned(), &["the address must"]),
    ];
    for (provider, parts) in cases {
        let output = run(&["serve", "--listen", "127.0.0.1:0", "--provider", &provider]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{provider}: {message}");
        for part in parts {
            assert!(message.contains(part), "{provider}: {part}: {message}");
        }
        assert!(!message.contains("canary"), "{message}");
    }
}

#[test]
fn initial_file_for_providers_has_their_upstreams_and_models() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    let file = file.to_str().expect("a path");
    let ollama = format!("ollama={}", model_server(&["llama3.2:3b"]));
    let mut init = gatewright();
    init.args(["config", "init", file, "--provider", "openai", "--provider", &ollama]);
    let output = init.env_remove("OPENAI_API_KEY").output().expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    let note = "gatewright: --provider openai: the variable OPENAI_API_KEY is not set; set it to the provider's key; without it, the \
                list of models is not requested: only the 12 models that this program knows are configured\n";
    assert_eq!(message, note);
    let text = std::fs::read_to_string(file).expect("the file");
    for line in ["[upstreams.openai]", "[upstreams.ollama]", "[models.\"gpt-5\"]", "[models.\"llama3.2:3b\"]"]
    {
        assert!(text.lines().any(|other| other == line), "{line} in:\n{text}");
    }
    assert!(written(&["config", "check", file]).contains("is valid: 2 upstreams, 13 models"), "{text}");

    let openai = ["config", "init", "--force", file, "--provider", "openai", "--known-models"];
    let output = run(&openai);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{}", transcript(&output));

    // What only the operator knows is to be filled in.
    let output = run(&["config", "init", "--force", file, "--provider", "azure-openai"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{message}");
    assert!(message.contains("still missing in the file: ") && message.contains("deployments"), "{message}");
    let text = std::fs::read_to_string(file).expect("the file");
    assert!(
        text.contains("base_url = \"https://RESOURCE.openai.azure.com/openai/v1\" # replace it by yours"),
        "{text}"
    );
    assert!(text.contains("# targets = [{ upstream = \"azure-openai\", model = \"NAME-THERE\" }]"), "{text}");
}

#[test]
fn providers_name_as_kind_is_reported_with_the_way_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(
        &file,
        "[upstreams.one]\nkind = \"openai\"\n[models.m]\ntargets = [{ upstream = \"one\" }]\n",
    )
    .expect("written");
    let output = run(&["config", "check", file.to_str().expect("a path")]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("; for this provider, set provider = \"openai\" instead of kind"), "{message}");
}
