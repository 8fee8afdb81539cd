//! `gatewright config`, and a gateway that runs from a configuration file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::Value;

use crate::http::ask;
use crate::{gatewright, run, transcript};

/// Long enough for a busy machine; no passing test reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

/// A gateway that runs from a file, and the lines of its standard error.
struct ByFile {
    child: Child,
    ready: Value,
    log: Receiver<String>,
}

impl ByFile {
    fn start(file: &Path, arguments: &[&str]) -> Self {
        let mut command = gatewright();
        command.arg("serve").arg("--config").arg(file).arg("--json").args(arguments);
        command.env("MY_KEY", "sk-canary-of-the-file-1").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let log = lines(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let Ok(ready) = serde_json::from_str(&line) else {
            panic!("{line:?}: {:?}", log.iter().collect::<Vec<_>>())
        };
        Self { child, ready, log }
    }

    fn url(&self) -> &str {
        self.ready["listening"].as_str().expect("a URL")
    }

    /// What `/health/ready` says about the configuration.
    fn configuration(&self) -> Value {
        let ready = ask(self.url(), ("GET", "/health/ready"), "", "", "").expect("an answer");
        ready.document["configuration"].clone()
    }

    /// The next line of standard error.
    fn next_line(&self) -> String {
        self.log.recv_timeout(PATIENCE).expect("a line")
    }

    fn models(&self, key: &str) -> String {
        let mut command = gatewright();
        command.args(["models", "--base-url", self.url()]).env("GATEWRIGHT_API_KEY", key);
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

impl Drop for ByFile {
    fn drop(&mut self) {
        // A test may have stopped it already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

const RIGHT: &str = "[server]\nlisten = \"127.0.0.1:0\"\n[access]\nkey = { env = \"MY_KEY\" }\n[upstreams.one]\n\
                     kind = \"simulator\"\n[models.mine]\ntargets = [{ upstream = \"one\", model = \"model-sol\" }]\n";

/// The transcript of a command in a folder, where files have short names.
fn in_folder(folder: &Path, arguments: &[&str]) -> String {
    let mut command = gatewright();
    let output = command.args(arguments).current_dir(folder).env_remove("MY_KEY").output();
    transcript(&output.expect("the program starts"))
}

#[test]
fn initial_file_is_valid_and_never_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let transcripts = [
        in_folder(folder.path(), &["config", "init"]),
        in_folder(folder.path(), &["config", "check"]),
        in_folder(folder.path(), &["config", "init"]),
        in_folder(folder.path(), &["config", "init", "--force"]),
    ];
    assert_snapshot!(transcripts.join("\n"));
}

#[test]
fn check_reports_each_problem_with_its_location() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write(
        "wrong.toml",
        "[server]\nlisen = \"127.0.0.1:0\"\n[access]\nkey = \"sk-canary\"\n[upstreams.one]\nkind = \"chatt\"\n",
    );
    write(
        "right.toml",
        &RIGHT
            .replace("simulator", "chat")
            .replace("\"chat\"\n", "\"chat\"\nbase_url = \"http://one.example\"\n"),
    );
    write("garbled.toml", "a = [\n");
    let arguments = ["config", "check", "wrong.toml", "right.toml", "garbled.toml", "missing.toml"];
    let output = in_folder(folder.path(), &arguments);
    assert!(!output.contains("canary"));
    assert_snapshot!(output);
}

#[test]
fn check_describes_files_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("right.toml"), RIGHT).expect("written");
    std::fs::write(folder.path().join("wrong.toml"), RIGHT.replace("kind", "knid")).expect("written");
    let mut command = gatewright();
    command.args(["config", "check", "--json", "right.toml", "wrong.toml"]).current_dir(folder.path());
    let output = command.env("MY_KEY", "sk-canary-of-the-file-1").output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report[0]["file"], &report[0]["valid"]), (&"right.toml".into(), &true.into()));
    assert_eq!(report[0]["problems"], Value::Array(Vec::new()));
    assert_eq!(report[1]["valid"], false);
    let problems = report[1]["problems"].as_array().expect("a list");
    let unknown = problems.iter().find(|problem| problem["key"] == "upstreams.one.knid").expect("the key");
    assert_eq!((&unknown["line"], &unknown["column"]), (&6.into(), &1.into()), "{report}");
    assert_eq!(unknown["message"], "unknown key; did you mean kind?");
}

#[test]
fn schema_of_configuration_files_is_a_json_schema() {
    let output = run(&["config", "schema"]);
    assert_eq!(output.status.code(), Some(0));
    let schema: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["properties"]["limits"]["properties"]["max_connections"]["minimum"], 1);
}

/// The file's key is required, and not printed.
#[test]
fn gateway_runs_from_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let gateway = ByFile::start(&file, &[]);
    assert_eq!(gateway.ready["key"], Value::Null);
    assert!(gateway.ready["webhook_secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")));
    gateway.models("sk-canary-of-the-file-1");
}

/// Flags and variables take precedence over the file.
#[test]
fn flags_take_precedence_over_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT.replace("127.0.0.1:0", "nowhere:0")).expect("written");
    let gateway = ByFile::start(&file, &["--listen", "127.0.0.1:0", "--key", "of-the-flag"]);
    assert_eq!(gateway.ready["key"], "of-the-flag");
    gateway.models("of-the-flag");
}

#[test]
fn invalid_file_does_not_start_a_gateway() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.toml"), RIGHT.replace("kind", "knid")).expect("written");
    assert_snapshot!(in_folder(folder.path(), &["serve", "--config", "a.toml"]));
}

#[test]
fn changed_file_is_reloaded_and_a_broken_one_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let gateway = ByFile::start(&file, &[]);
    let name = file.display();

    std::fs::write(&file, RIGHT.replace("kind", "knid")).expect("written");
    let missing = "the key kind is missing: set it to the upstream's protocol, or set provider";
    assert_eq!(gateway.next_line(), format!("gatewright: {name}:5:12: upstreams.one: {missing}"));
    let unknown = format!("{name}:6:1: upstreams.one.knid: unknown key; did you mean kind?");
    assert_eq!(gateway.next_line(), unknown);
    assert_eq!(gateway.next_line(), format!("cannot reload {name}: the previous configuration stays in use"));

    // The way editors and clusters replace it: with another file.
    let other = folder.path().join("other");
    let more = "[models.more]\ntargets = [{ upstream = \"one\" }]\n[limits]\nmax_connections = 7\n";
    std::fs::write(&other, format!("{RIGHT}{more}")).expect("written");
    std::fs::rename(&other, &file).expect("renamed");
    assert_eq!(gateway.next_line(), format!("gatewright: reloaded {name}: 1 upstream, 2 models"));
    assert!(gateway.next_line().ends_with("take effect only after a restart: limits.max_connections"));
    gateway.models("sk-canary-of-the-file-1");
}

#[test]
fn changed_log_settings_are_reported_to_need_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let gateway = ByFile::start(&file, &["--log-format", "text"]);
    let log =
        "[observe]\nlog_level = \"error\"\nlog_format = \"json\"\notlp_endpoint = \"http://127.0.0.1:9\"\n";
    std::fs::write(&file, format!("{RIGHT}{log}")).expect("written");
    assert!(gateway.next_line().contains("reloaded "));
    // The flag takes precedence over the file's format.
    let waiting = "take effect only after a restart: observe.log_level, observe.otlp_endpoint";
    let line = gateway.next_line();
    assert!(line.ends_with(waiting), "{line}");
    assert_eq!(gateway.configuration(), "restart_needed");
}

/// A writer that has not finished, or a disk that was full.
#[test]
fn emptied_file_or_one_without_providers_is_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    let text = RIGHT.replace("\"simulator\"", "\"chat\"\nbase_url = \"http://127.0.0.1:9/v1\"");
    std::fs::write(&file, &text).expect("written");
    let gateway = ByFile::start(&file, &[]);
    let before_upstreams = text.split("[upstreams").next().expect("a part");
    for (cut, why) in [("", "the file is empty"), (before_upstreams, "names no provider")] {
        std::fs::write(&file, cut).expect("written");
        let line = gateway.next_line();
        assert!(line.contains(why), "{line}");
        assert!(gateway.next_line().ends_with("the previous configuration stays in use"));
        assert!(gateway.models("sk-canary-of-the-file-1").contains("mine"));
        assert_eq!(gateway.configuration(), "stale");
    }
    std::fs::write(&file, text).expect("written");
    assert!(gateway.next_line().contains("reloaded "));
    assert_eq!(gateway.configuration(), Value::Null);
}

/// The secret appears after the file that names it.
#[test]
fn rejected_file_is_reloaded_when_its_missing_secret_appears() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let gateway = ByFile::start(&file, &[]);
    let text = RIGHT.replace("{ env = \"MY_KEY\" }", "{ file = \"new-key\" }");
    assert_ne!(text, RIGHT);
    std::fs::write(&file, text).expect("written");
    let line = gateway.next_line();
    assert!(line.contains("new-key does not exist"), "{line}");
    assert!(gateway.next_line().ends_with("the previous configuration stays in use"));
    std::fs::write(folder.path().join("new-key"), "sk-canary-of-the-file-2").expect("written");
    let line = gateway.next_line();
    assert!(line.contains("reloaded "), "{line}");
    gateway.next_line();
    gateway.models("sk-canary-of-the-file-2");
}

#[cfg(unix)]
#[test]
fn sighup_reloads_the_file_and_other_signals_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let mut gateway = ByFile::start(&file, &[]);
    let signal = |signal: &str| {
        let id = gateway.child.id().to_string();
        assert!(
            std::process::Command::new("kill").args([signal, &id]).status().expect("kill runs").success()
        );
    };
    signal("-HUP");
    assert!(gateway.next_line().contains("reloaded "));
    signal("-TERM");
    assert_eq!(gateway.child.wait().expect("an end").code(), Some(0));
}

/// Calls the gateway repeatedly until stopped. Returns how many responses arrived; each is complete.
#[cfg(unix)]
fn ask_until(over: &AtomicBool, address: &str) -> usize {
    let body = r#"{"model":"mine","messages":[{"role":"user","content":"Say hi"}]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer sk-canary-of-the-file-1\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        let mut socket = TcpStream::connect(address).expect("it listens");
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("a complete response");
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with('}'), "{answer}");
        count += 1;
    }
    count
}

#[cfg(unix)]
#[test]
fn sighups_under_load_apply_the_new_file_without_failing_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    std::fs::write(&file, RIGHT).expect("written");
    let gateway = ByFile::start(&file, &[]);
    let address = gateway.url().strip_prefix("http://").expect("plain").to_owned();
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (over, address) = (Arc::clone(&over), address.clone());
            std::thread::spawn(move || ask_until(&over, &address))
        })
        .collect();
    let id = gateway.child.id().to_string();
    let mut text = RIGHT.to_owned();
    for number in 1..=10 {
        let model =
            format!("[models.more-{number}]\ntargets = [{{ upstream = \"one\", model = \"model-sol\" }}]\n");
        text.push_str(&model);
        std::fs::write(&file, &text).expect("written");
        assert!(
            std::process::Command::new("kill").args(["-HUP", &id]).status().expect("kill runs").success()
        );
        // The file change may be noticed before the signal.
        let expected = format!("{} models", number + 1);
        while !gateway.next_line().contains(&expected) {}
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        assert!(client.join().expect("no request failed") > 0);
    }
    assert!(gateway.models("sk-canary-of-the-file-1").contains("more-10"));
}

/// Both ways to change a key: a watched secret file, and a signal.
#[cfg(unix)]
#[test]
fn changed_key_applies_immediately_and_the_old_one_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, secret) = (folder.path().join("gatewright.toml"), folder.path().join("key"));
    let text = RIGHT.replace("{ env = \"MY_KEY\" }", "{ file = \"key\" }");
    assert_ne!(text, RIGHT);
    std::fs::write(&file, text).expect("written");
    std::fs::write(&secret, "first-key-of-clients").expect("written");
    let gateway = ByFile::start(&file, &[]);
    gateway.models("first-key-of-clients");
    let mut before = "first-key-of-clients";
    for (key, hangs_up) in [("second-key-of-clients", false), ("third-key-of-clients", true)] {
        std::fs::write(&secret, key).expect("written");
        if hangs_up {
            let id = gateway.child.id().to_string();
            let sent = std::process::Command::new("kill").args(["-HUP", &id]).status().expect("kill runs");
            assert!(sent.success());
        }
        assert!(gateway.next_line().contains("reloaded "));
        assert!(
            gateway.next_line().ends_with("replaced keys, whose old values are now rejected: access.key")
        );
        gateway.models(key);
        let mut refused = gatewright();
        refused.args(["models", "--base-url", gateway.url()]).env("GATEWRIGHT_API_KEY", before);
        assert_ne!(refused.output().expect("the program starts").status.code(), Some(0));
        before = key;
    }
}

/// TLS, with the certificate from the file.
#[test]
fn gateway_serves_tls_and_plain_http() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).expect("written");
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    let file = folder.path().join("gatewright.toml");
    let tls = "[server.tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"cert.pem\"\nkey = \"key.pem\"\n";
    std::fs::write(&file, format!("{RIGHT}{tls}")).expect("written");
    let mut command = gatewright();
    command.arg("serve").arg("--config").arg(&file).env("MY_KEY", "k").stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let _ = child.kill();
    let _ = child.wait();
    assert!(line.contains("http://127.0.0.1:") && line.contains(", https://127.0.0.1:"), "{line}");
}

/// Each kind lists its models in its own format; an upstream that lists none does not hide the others.
#[test]
fn models_offered_by_upstreams_are_listed_next_to_configured_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = folder.path().join("served.toml");
    std::fs::write(&served, RIGHT).expect("written");
    let gateway = ByFile::start(&served, &[]);
    let upstream = |name: &str, kind: &str, base: &str, key: &str| {
        format!("[upstreams.{name}]\nkind = \"{kind}\"\nbase_url = \"{base}\"\nkey = {{ env = \"{key}\" }}\n")
    };
    let url = gateway.url();
    let text = [
        upstream("chat", "chat", &format!("{url}/v1"), "MY_KEY"),
        upstream("messages", "messages", &format!("{url}/v1"), "MY_KEY"),
        upstream("native", "native", &format!("{url}/v1beta"), "MY_KEY"),
        upstream("twin", "gatewright", url, "MY_KEY"),
        upstream("strange", "chat", &format!("{url}/v1"), "WRONG_KEY"),
        "[models.ours]\ntargets = [{ upstream = \"native\", model = \"mine\" }]\n".to_owned(),
        "[models.typo]\ntargets = [{ upstream = \"chat\", model = \"mien\" }]\n".to_owned(),
    ];
    std::fs::write(folder.path().join("gatewright.toml"), text.concat()).expect("written");
    let offered = |arguments: &[&str]| {
        let mut command = gatewright();
        command.args(["config", "models"]).args(arguments).current_dir(folder.path());
        let output = command
            .env("MY_KEY", "sk-canary-of-the-file-1")
            .env("WRONG_KEY", "sk-canary-of-the-file-2")
            .output();
        output.expect("the program starts")
    };
    let output = transcript(&offered(&[]));
    assert!(!output.contains("canary"));
    assert_snapshot!(output);
    let output = offered(&["--json", "--upstream", "native", "--upstream", "strange"]);
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(all[0]["models"][0]["configured_as"][0], "ours", "{all}");
    assert!(all[1]["error"].as_str().is_some_and(|why| why.starts_with("it answered 401")), "{all}");
    assert_eq!(offered(&["--upstream", "nobody"]).status.code(), Some(2));
}
