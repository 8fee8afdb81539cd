//! `gatewright serve`, and the commands that call a gateway, against it.

mod keys;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::ask;
use crate::{gatewright, run, run_with_input};

/// A gateway at a free port, stopped when dropped.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) webhook_secret: Option<String>,
}

impl Serving {
    pub(crate) fn start(arguments: &[&str], key: Option<&str>) -> Self {
        let key = key.map(|key| ("GATEWRIGHT_API_KEY", key));
        Self::start_with(arguments, key.as_slice())
    }

    /// With environment variables.
    pub(crate) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::try_start(arguments, variables).expect("the gateway says when it is ready")
    }

    /// None if it stops before it is ready.
    pub(crate) fn try_start(arguments: &[&str], variables: &[(&str, &str)]) -> Option<Self> {
        let mut command = gatewright();
        command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).args(arguments);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        if BufReader::new(stdout).read_line(&mut line).expect("its output") == 0 {
            child.wait().expect("it has stopped");
            return None;
        }
        let ready: Value = serde_json::from_str(&line).expect("one JSON object on a line");
        let text = |name: &str| ready[name].as_str().expect("a string").to_owned();
        assert_eq!(ready.as_object().map(serde_json::Map::len), Some(3), "{line}");
        // It is printed when it is generated.
        let secret = ready["webhook_secret"].as_str();
        assert!(secret.is_none_or(|secret| secret.starts_with("whsec_")), "{line}");
        let webhook_secret = secret.map(str::to_owned);
        Some(Self { child, url: text("listening"), key: text("key"), webhook_secret })
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = gatewright();
        command.args(arguments).env("GATEWRIGHT_BASE_URL", &self.url).env("GATEWRIGHT_API_KEY", &self.key);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Sends it a signal, such as `-STOP`.
    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
    }

    /// Stops it, and returns what it has logged since it was ready.
    #[cfg(unix)]
    pub(crate) fn log(mut self) -> String {
        self.signal("-TERM");
        let mut log = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut log).expect("text");
        log
    }

    /// Whether it has stopped by itself.
    pub(crate) fn has_stopped(&mut self) -> bool {
        self.child.try_wait().expect("it was started").is_some()
    }

    /// The document that the gateway returns.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> Value {
        self.try_call(method, path, body).expect("an answer")
    }

    /// The same. None if it stops before it has answered.
    pub(crate) fn try_call(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        Some(ask(&self.url, (method, path), &self.key, "", body)?.document)
    }

    /// Standard output of a command that succeeds.
    pub(crate) fn output_of(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
        assert_eq!(error, "", "{arguments:?}");
        String::from_utf8(output.stdout).expect("output is UTF-8")
    }

    /// Message of a command that fails.
    fn complained(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        String::from_utf8(output.stderr).expect("messages are UTF-8")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // A test may have stopped it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn models_are_listed() {
    let gateway = Serving::start(&[], None);
    let listed = gateway.output_of(&["models"]);
    let sol = listed.lines().find(|line| line.starts_with("model-sol ")).expect("the model");
    let words: Vec<&str> = sol.split_whitespace().collect();
    assert_eq!(words, ["model-sol", "text", "family_one", "chat,", "responses,", "messages,", "native"]);
    for (model, kind, protocols) in
        [("embedding_model_1", "embedding", "embeddings"), ("image_model_1", "image", "media")]
    {
        let line = listed.lines().find(|line| line.starts_with(model)).expect("the model");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), [model, kind, "gateway", protocols]);
    }
    let list: Value =
        serde_json::from_str(&gateway.output_of(&["models", "--json"])).expect("a JSON document");
    assert_eq!(list["object"], "list");
    let text = gateway.output_of(&["models", "--json"]);
    assert!(text.starts_with("{\n  \"object\": \"list\",\n"), "indented, in the gateway's order: {text}");
    assert_eq!(
        list["data"].as_array().map(Vec::len),
        Some(listed.lines().count() - 1),
        "a line has the heads"
    );
}

#[test]
fn response_is_written_with_a_final_newline() {
    let gateway = Serving::start(&[], None);
    assert_eq!(gateway.output_of(&["chat", "say hello to the world"]), "hello to the world\n");
    assert_eq!(gateway.output_of(&["chat", "--model", "model-cedar", "count to 3"]), "1, 2, 3\n");
}

#[test]
fn prompt_is_read_from_standard_input() {
    let gateway = Serving::start(&["--key", "k"], None);
    let mut command = vec!["chat", "--base-url", &gateway.url, "-"];
    // Without the key's variable there is no call; base-url may be an argument, the key may not.
    assert_eq!(run_with_input(&command, b"").status.code(), Some(2));
    command.retain(|argument| *argument != "-");
    command.push("say ünïcode");
    assert_eq!(gateway.output_of(&command), "ünïcode\n");
    let mut piped = gateway.command(&["chat", "-"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(b"say it again").expect("written");
    assert_eq!(child.wait_with_output().expect("an end").stdout, b"it again\n");
}

#[test]
fn each_protocol_answers() {
    let gateway = Serving::start(&[], None);
    for protocol in ["chat", "responses", "messages", "native"] {
        let with = |further: &[&str]| {
            let flags =
                ["chat", "--protocol", protocol, "-s", "Be brief.", "--max-tokens", "100", "say hello there"];
            gateway.output_of(&[&flags[..], further].concat())
        };
        assert_eq!(with(&[]), "hello there\n", "{protocol}");
        assert_eq!(with(&["--no-stream"]), "hello there\n", "{protocol}");
        let document: Value = serde_json::from_str(&with(&["--json"])).expect("JSON");
        let member = match protocol {
            "chat" => "choices",
            "responses" => "output",
            "messages" => "content",
            _ => "candidates",
        };
        assert!(document[member].is_array(), "{protocol}: {document}");
    }
    let message = gateway.complained(2, &["chat", "--protocol", "responses", "--stop", "x", "hi"]);
    assert!(message.contains("the responses protocol has no form for this --stop"), "{message}");
    let message = gateway.complained(2, &["chat", "--protocol", "chatt", "hi"]);
    assert!(message.contains("[possible values: chat, responses, messages, native]"), "{message}");
}

/// 2.8: each image is saved at the requested path; several are numbered.
#[test]
fn images_are_saved() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let one = path("cat.png");
    assert_eq!(
        gateway.output_of(&["image", "a cat", "--out", &one, "--size", "1024x1792"]),
        format!("{one}\n")
    );
    let png = std::fs::read(&one).expect("the image is there");
    assert_eq!((&png[..8], &png[16..24]), (&b"\x89PNG\r\n\x1a\n"[..], &[0, 0, 4, 0, 0, 0, 7, 0][..]));
    let several =
        gateway.output_of(&["image", "cats", "-o", &path("cats.png"), "-m", "image_model_2", "--n", "2"]);
    assert_eq!(several, format!("{}\n{}\n", path("cats-1.png"), path("cats-2.png")));
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("listed")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cat.png", "cats-1.png", "cats-2.png"], "nothing is left over");
}

/// The extension names the file's format: any other is rejected before the request is sent, or paid for.
#[test]
fn image_or_video_name_with_a_wrong_extension_is_rejected_before_the_call() {
    let gateway = Serving::start(&[], None);
    for (command, name, right) in [("image", "cat.jpg", "cat.png"), ("video", "cat.mov", "cat.mp4")] {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join(name);
        let mut command = gateway.command(&[command, "a cat", "--out", out.to_str().expect("a path")]);
        // Nothing listens there: a call would fail with 1.
        let output =
            command.env("GATEWRIGHT_BASE_URL", "http://127.0.0.1:9").output().expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(&format!("{name} implies another format: use")) && message.contains(right),
            "{message}"
        );
        assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0);
    }
}

#[test]
fn invalid_size_is_reported_with_the_expected_format() {
    let gateway = Serving::start(&[], None);
    let message = gateway.complained(1, &["image", "a cat", "-o", "cat.png", "--size", "big"]);
    assert!(message.contains("size is \"big\", not WIDTHxHEIGHT, such as 1024x1024"), "{message}");
}

/// The status of a response that had started doesn't show what broke it.
#[test]
fn truncated_response_is_printed_and_reported_in_one_sentence() {
    let cases = [
        (
            "truncate=3",
            "the answer was interrupted after ",
            "the stream ended before the answer was complete",
        ),
        ("reset=3", "the answer was interrupted after ", "the connection "),
        ("stream_error=3", "the answer was interrupted after ", ""),
        ("truncate=0", "the answer was interrupted: ", "the body was empty"),
    ];
    for (fault, what, how) in cases {
        let gateway = Serving::start(&["--fault", fault], None);
        let output = gateway.command(&["chat", "count to 100"]).output().expect("the program starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{fault}: {message}");
        assert!(message.starts_with(&format!("gatewright: {what}")), "{fault}: {message}");
        assert!(message.contains(how) && !message.contains("status 200"), "{fault}: {message}");
        // The message starts on its own line.
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.is_empty() || printed.ends_with('\n'), "{fault}: {printed:?}");
    }
}

#[test]
fn unknown_model_is_reported_with_a_suggestion() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("a").to_str().expect("a path").to_owned();
    let cases: [(&[&str], &str); 4] = [
        (&["chat", "-m", "model-slo", "hi"], "did you mean model-sol?"),
        // Suggested models are of the wanted kind.
        (&["chat", "-m", "image_model_1", "hi"], "; a text model is, for example, model-sol"),
        (&["image", "a cat", "-m", "video_model_1", "-o", &out], "image_model_1"),
        (&["image", "a cat", "-m", "image_modle_1", "-o", &out], "did you mean image_model_1?"),
    ];
    for (arguments, offer) in cases {
        let message = gateway.complained(1, arguments);
        assert!(message.contains(offer), "{message}");
        assert!(arguments[0] == "image" || !message.contains("did you mean image"), "{message}");
    }
}

#[test]
fn answer_ends_at_a_given_text() {
    let gateway = Serving::start(&[], None);
    let text = gateway.output_of(&["chat", "--top-p", "0.5", "--stop", "4", "--stop", "3", "count to 5"]);
    assert_eq!(text, "1, 2, \n");
}

#[test]
fn saved_image_is_described_as_json() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    let image = path("cat.png");
    let image_report: Value =
        serde_json::from_str(&gateway.output_of(&["image", "a cat", "-o", &image, "--json"])).expect("JSON");
    assert_eq!(
        (&image_report["model"], &image_report["images"][0]["file"]),
        (&"image_model_1".into(), &image.into())
    );
    let video = path("cat.mp4");
    let video_report: Value =
        serde_json::from_str(&gateway.output_of(&["video", "a cat", "-o", &video, "--json"])).expect("JSON");
    assert_eq!(
        (&video_report["task"]["status"], &video_report["file"]),
        (&"completed".into(), &video.into())
    );
}

#[test]
fn invalid_flag_value_is_reported_with_the_valid_ones() {
    let gateway = Serving::start(&[], None);
    let message = gateway.complained(2, &["image", "a cat", "-o", "a.png", "--quality", "hdd"]);
    assert!(message.contains("[possible values: standard, hd]") && message.contains("'hd'"), "{message}");
    let message = gateway.complained(2, &["video", "a", "-o", "a.mp4", "--aspect-ratio", "4:3"]);
    assert!(message.contains("16:9") && message.contains("9:16"), "{message}");
}

/// Piped input is the prompt; empty input is an error.
#[test]
fn piped_prompt_needs_no_dash() {
    let gateway = Serving::start(&[], None);
    for (input, code, out) in [("say hello there", 0, "hello there\n"), (" \n", 2, "")] {
        let mut command = gateway.command(&["chat"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("an end");
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stdout)), (Some(code), out));
    }
}

#[test]
fn rejected_image_leaves_no_file_and_names_the_limit() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("cat.png");
    let out = out.to_str().expect("a path");
    let message = gateway.complained(1, &["image", "a cat", "--out", out, "--n", "3"]);
    assert!(message.contains("image_model_1 makes at most 1"), "{message}");
    assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0);
    let missing = folder.path().join("missing/cat.png");
    let message = gateway.complained(2, &["image", "a cat", "--out", missing.to_str().expect("a path")]);
    assert!(message.contains("cannot write"), "{message}");
}

/// 2.6, 2.7, 3: submitted, waited for, saved.
#[test]
fn video_is_awaited_and_saved() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("wave.mp4");
    let out = out.to_str().expect("a path");
    let output =
        gateway.output_of(&["video", "a wave", "--out", out, "--interval", "0.1", "--duration", "3"]);
    assert_eq!(output, format!("{out}\n"));
    assert_eq!(&std::fs::read(out).expect("the video is there")[4..8], b"ftyp");
}

/// 2.7: a wait that was given up is taken up again.
#[cfg(unix)]
#[test]
fn interrupted_wait_for_a_video_is_taken_up_later() {
    let gateway = Serving::start(&["--fault", "delay=300@retrieve_video"], None);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("wave.mp4");
    let out = out.to_str().expect("a path");
    let mut command =
        gateway.command(&["video", "a wave", "--out", out, "--interval", "60", "--duration", "3"]);
    let child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
    // The task must have been submitted by then.
    std::thread::sleep(Duration::from_secs(2));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill runs").success());
    let output = child.wait_with_output().expect("an end");
    let message = String::from_utf8(output.stderr).expect("messages are UTF-8");
    assert_eq!(output.status.code(), Some(130), "{message}");
    let advised = message.split_once("gatewright video --task ").expect("how to go on").1;
    let task = advised.split_whitespace().next().expect("an id");
    assert_eq!(advised.trim_end(), format!("{task} -o {out}"));
    let output = gateway.output_of(&["video", "--task", task, "-o", out, "--interval", "0.1"]);
    assert_eq!(output, format!("{out}\n"));
    assert_eq!(&std::fs::read(out).expect("the video is there")[4..8], b"ftyp");
    let message = gateway.complained(1, &["video", "--task", "video_none", "-o", out]);
    assert!(message.contains("status 404"), "{message}");
    let message = gateway.complained(2, &["video", "a wave", "--task", task, "-o", out]);
    assert!(message.contains("cannot be used with"), "{message}");
}

#[test]
fn failed_video_reports_the_reason_and_leaves_no_file() {
    let gateway = Serving::start(&[], None);
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("wave.mp4");
    let prompt = "a wave [fail: no luck today]";
    let message = gateway
        .complained(1, &["video", prompt, "--out", out.to_str().expect("a path"), "--interval", "0.1"]);
    assert!(message.contains("no luck today"), "{message}");
    assert_eq!(std::fs::read_dir(&folder).expect("listed").count(), 0);
}

#[test]
fn gateway_errors_reach_the_user() {
    let gateway = Serving::start(&[], None);
    let message = gateway.complained(1, &["chat", "--model", "model-mars", "hi"]);
    assert!(message.starts_with("gatewright: status 404: "), "{message}");
    assert!(message.contains("model-mars") && message.contains("(request req_"), "{message}");
    let mut command = gateway.command(&["models"]);
    let refused = command.env("GATEWRIGHT_API_KEY", "wrong").output().expect("the program starts");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("status 401"));
}

#[test]
fn unreachable_gateway_is_named() {
    let output = gatewright()
        .args(["models", "--base-url", "http://127.0.0.1:1"])
        .env("GATEWRIGHT_API_KEY", "k")
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("gatewright: cannot connect to http://127.0.0.1:1: "), "{message}");
    // The cause once, without the names of libraries' layers.
    assert!(!message.contains("tcp connect error"), "{message}");
    assert!(message.contains("`gatewright doctor`"), "{message}");
}

#[test]
fn rate_limit_error_says_when_to_retry() {
    let gateway = Serving::start(&["--fault", "rate_limit=200"], None);
    let message = gateway.complained(1, &["chat", "hi"]);
    assert!(message.starts_with("gatewright: status 429: "), "{message}");
    assert!(message.trim_end().ends_with("; try again in 200 s"), "{message}");
}

#[test]
fn taken_address_names_what_listens_there() {
    let gateway = Serving::start(&[], None);
    let address = gateway.url.strip_prefix("http://").expect("a plain address");
    let message = gateway.complained(2, &["serve", "--listen", address]);
    assert!(
        message.contains("another gateway listens there") && message.contains("--listen 127.0.0.1:0"),
        "{message}"
    );
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = other.local_addr().expect("bound").to_string();
    let message = gateway.complained(2, &["serve", "--listen", &address]);
    assert!(message.contains("another program listens there"), "{message}");
}

/// 2.6, 3: tasks that a shutdown ends are reported.
#[cfg(unix)]
#[test]
fn tasks_ended_by_a_shutdown_are_reported() {
    let mut gateway = Serving::start(&["--shutdown-grace", "0"], None);
    let body = r#"{"model":"video_model_1","prompt":"a wave","duration":15}"#;
    let request = format!(
        "POST /v1/videos/generations HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        gateway.key,
        body.len()
    );
    let address = gateway.url.strip_prefix("http://").expect("an address");
    let mut socket = std::net::TcpStream::connect(address).expect("a connection");
    socket.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let id = gateway.child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().expect("kill runs").success());
    assert_eq!(gateway.child.wait().expect("an end").code(), Some(0));
    let mut log = String::new();
    gateway.child.stderr.take().expect("a pipe").read_to_string(&mut log).expect("the rest");
    assert!(log.contains("the video task video_") && log.contains("failed: the gateway stopped"), "{log}");
}

#[test]
fn address_without_host_or_port_is_reported_with_a_valid_example() {
    let gateway = Serving::start(&[], None);
    for given in ["18719", ":18719", "localhost", "127.0.0.1:port"] {
        let message = gateway.complained(2, &["serve", "--listen", given]);
        let expected =
            format!("cannot listen on {given}: an address must be host and port, such as 127.0.0.1:8080");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn address_in_use_is_a_clear_error() {
    let gateway = Serving::start(&[], None);
    let address = gateway.url.strip_prefix("http://").expect("an address");
    let message = gateway.complained(2, &["serve", "--listen", address]);
    assert!(message.starts_with(&format!("gatewright: cannot listen on {address}: ")), "{message}");
}

#[cfg(unix)]
#[test]
fn both_signals_stop_the_gateway_with_0() {
    for signal in ["-INT", "-TERM"] {
        let mut gateway = Serving::start(&[], None);
        let id = gateway.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
        let started = Instant::now();
        assert_eq!(gateway.child.wait().expect("an end").code(), Some(0), "{signal}");
        assert!(started.elapsed() < Duration::from_secs(5), "{signal}: an idle gateway stops at once");
    }
}

/// Without --json, the output shows the address and, only if it was generated, the key.
#[cfg(unix)]
#[test]
fn text_announcement_shows_only_generated_secrets_that_are_needed() {
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    for (key, flags, shown) in [
        (Some("our-own-key"), &[][..], false),
        (None, &[][..], true),
        (None, &["--allow-private-webhooks"][..], true),
    ] {
        let mut command = gatewright();
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).stdout(Stdio::piped());
        if let Some(key) = key {
            // Features that are off by default are listed when enabled.
            command.args(["--fault", "delay=1", "--allow-origin", "https://app.example"]);
            command.env("GATEWRIGHT_API_KEY", key).env("GATEWRIGHT_WEBHOOK_SECRET", secret);
        }
        let mut child = command.spawn().expect("the program starts");
        let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut announced = String::new();
        reader.read_line(&mut announced).expect("a line");
        assert!(announced.starts_with("Gateway at http://127.0.0.1:"), "{announced}");
        Command::new("kill").arg(child.id().to_string()).status().expect("kill runs");
        reader.read_to_string(&mut announced).expect("the rest");
        assert_eq!(announced.contains("GATEWRIGHT_API_KEY="), shown, "{announced}");
        for part in [
            "models, which `gatewright models` lists",
            "/v1/chat/completions",
            "Base URL for SDKs: http://127.0.0.1:",
            "in memory",
            "TLS",
        ] {
            assert!(announced.contains(part), "{part}: {announced}");
        }
        for chosen in ["pages of https://app.example may call it", "injected into every response"] {
            assert_ne!(announced.contains(chosen), shown, "{chosen}: {announced}");
        }
        assert_eq!(announced.contains("Console "), cfg!(feature = "console"), "{announced}");
        let needs_secret = !flags.is_empty();
        assert_eq!(announced.contains("GATEWRIGHT_WEBHOOK_SECRET=whsec_"), needs_secret, "{announced}");
        assert_eq!(announced.contains("signed with a random secret"), shown, "{announced}");
        assert!(!announced.contains("our-own-key") && !announced.contains(secret), "{announced}");
        child.wait().expect("an end");
    }
}

/// If its reader goes away, the program ends quietly, without waiting for the rest of the stream.
#[test]
fn chat_into_a_closed_pipe_ends_quietly() {
    let gateway = Serving::start(&[], None);
    let mut command = gateway.command(&["chat", "count to 500"]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(141), &b""[..]));
}
