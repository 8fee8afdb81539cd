//! `gatewright check`: files, exit codes, and terminal output.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::Serving;
use crate::{gatewright, run, run_with_input};

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a path").to_owned()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).expect("a JSON document")
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file is there")
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("listed");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

fn check(gateway: &Serving, arguments: &[&str]) -> Command {
    let mut command = gateway.command(&["check", "--base-url", &gateway.url]);
    command.args(arguments);
    command
}

fn code_and_output(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn outcome(command: &mut Command) -> (Option<i32>, String, String) {
    code_and_output(&command.output().expect("the program starts"))
}

#[test]
fn compatible_gateway_passes_and_all_requested_files_are_written() {
    let gateway = Serving::start(&["--key", "gw-canary-0123456789"], None);
    let place = Place::new();
    let (code, out, err) = outcome(&mut check(
        &gateway,
        &[
            "--full",
            "--out",
            &place.path("report.json"),
            "--html",
            &place.path("report.html"),
            "--junit",
            &place.path("junit.xml"),
            "--evidence",
            &place.path("evidence"),
        ],
    ));
    // No progress output: it isn't a terminal.
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    for (what, file) in [
        ("report", "report.json"),
        ("page", "report.html"),
        ("JUnit XML", "junit.xml"),
        ("evidence", "evidence"),
    ] {
        let message = format!("Wrote the {what} to {}\n", place.path(file));
        assert!(out.contains(&message), "{message}: {out}");
    }
    assert!(out.starts_with("PASS  ") && out.contains("13 passed, 0 failed, 3 skipped"), "{out}");
    assert_eq!(place.names(), ["evidence", "junit.xml", "report.html", "report.json"]);
    let report = place.path("report.json");
    assert_eq!(run(&["report", "validate", "--strict", &report]).status.code(), Some(0));
    assert_eq!(run(&["report", "fmt", "--check", &report]).status.code(), Some(0));
    assert_eq!(place.json("report.json")["checks"].as_array().map(Vec::len), Some(16));
    let page = place.text("report.html");
    assert!(page.contains("evidence/02-responses_text-model-sol.json"), "the page links the evidence");
    let mut all = [place.text("report.json"), page, place.text("junit.xml")].concat();
    for entry in std::fs::read_dir(place.path("evidence")).expect("listed") {
        all.push_str(&std::fs::read_to_string(entry.expect("an entry").path()).expect("read"));
    }
    assert!(!all.contains("canary"));
}

#[test]
fn failed_check_exits_with_1_and_is_annotated() {
    let gateway = Serving::start(&["--fault", "wrong_model=model-mars@create_response"], None);
    let place = Place::new();
    let (code, out, _) = outcome(&mut check(
        &gateway,
        &["--models", "model-sol", "--annotations", "github", "--out", &place.path("r.json")],
    ));
    assert_eq!(code, Some(1));
    assert!(out.starts_with("FAIL  "), "{out}");
    assert!(out.contains("::error title=responses_text model-sol::verification: reported model"), "{out}");
    let report = place.json("r.json");
    assert_eq!(report["overall_status"], "fail");
    assert_eq!(report["checks"][2]["reported_model"], "model-mars");
}

/// What failed in the baseline may fail; everything else may not.
#[test]
fn baseline_allows_known_failures() {
    let faulty = Serving::start(&["--fault", "no_tool_call@create_response"], None);
    let worse =
        Serving::start(&["--fault", "no_tool_call@create_response,stream_error@create_response"], None);
    let place = Place::new();
    let (old, new) = (place.path("old.json"), place.path("new.json"));
    let arguments = ["--models", "model-sol", "--out"];
    assert_eq!(outcome(check(&faulty, &arguments).arg(&old)).0, Some(1));
    let (code, out, _) = outcome(check(&faulty, &arguments).args([&new, "--baseline", &old]));
    assert_eq!(code, Some(0));
    assert!(out.ends_with("Baseline: 1 failed before, 0 newly failed\n"), "{out}");
    assert_eq!(place.json("new.json")["overall_status"], "fail", "the report states the actual result");
    let (code, out, _) = outcome(check(&worse, &arguments).args([&new, "--baseline", &old]));
    assert_eq!(code, Some(1));
    assert!(out.ends_with("Baseline: 1 failed before, 1 newly failed\n"), "{out}");
}

#[test]
fn skipped_checks_fail_only_on_request() {
    let gateway = Serving::start(&[], None);
    let place = Place::new();
    let out = place.path("r.json");
    let arguments = ["--only", "models_endpoint,model_access", "--out", &out];
    assert_eq!(outcome(&mut check(&gateway, &arguments)).0, Some(0));
    assert_eq!(outcome(check(&gateway, &arguments).arg("--fail-on-skip")).0, Some(1));
}

#[test]
fn report_on_standard_output_is_the_only_output() {
    let gateway = Serving::start(&[], None);
    let (code, out, err) = outcome(&mut check(&gateway, &["--only", "models_endpoint", "--out", "-"]));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("PASS  "), "{err}");
    assert_eq!(run_with_input(&["report", "validate", "-"], out.as_bytes()).status.code(), Some(0));
}

#[test]
fn page_or_junit_on_standard_output_is_the_only_output() {
    let gateway = Serving::start(&[], None);
    for (option, start) in [("--html", "<!DOCTYPE html>"), ("--junit", "<?xml")] {
        let place = Place::new();
        let arguments = ["--only", "models_endpoint", "--out", &place.path("r.json"), option, "-"];
        let (code, out, err) = outcome(check(&gateway, &arguments).current_dir(place.0.path()));
        assert_eq!(code, Some(0), "{err}");
        assert!(out.starts_with(start) && err.starts_with("PASS  "), "{out}{err}");
        assert_eq!(place.names(), ["r.json"]);
    }
}

#[test]
fn report_may_replace_its_own_baseline() {
    let gateway = Serving::start(&[], None);
    let place = Place::new();
    let file = place.path("r.json");
    assert_eq!(run(&["report", "new", "--out", &file]).status.code(), Some(0));
    let arguments = ["--only", "models_endpoint", "--baseline", &file, "--out", &file, "--base-path", "/v1/"];
    assert_eq!(outcome(&mut check(&gateway, &arguments)).0, Some(0));
    assert_eq!(place.json("r.json")["summary"]["passed"], 1);
    assert_eq!(place.json("r.json")["configuration"]["base_path"], "/v1");
}

/// Report commands never overwrite the files that they read.
#[test]
fn report_is_not_overwritten_by_output_made_from_it() {
    let place = Place::new();
    let file = place.path("r.json");
    assert_eq!(run(&["report", "new", "--out", &file]).status.code(), Some(0));
    let before = place.text("r.json");
    let again = place.path("./r.json");
    let commands: [&[&str]; 5] = [
        &["report", "html", &file, "-o", &again],
        &["report", "junit", &file, "-o", &again],
        &["report", "diff", &file, &file, "-o", &again],
        &["report", "trend", &file, "-o", &again],
        &["report", "schema", "--profile", &file, "-o", &again],
    ];
    for command in commands {
        let (code, _, err) = code_and_output(&run(command));
        assert_eq!(code, Some(2), "{command:?}");
        assert!(err.contains("and --out are the same file"), "{err}");
        assert_eq!(place.text("r.json"), before, "{command:?}");
    }
    let shown = run(&["report", "show", &file]).stdout;
    assert!(shown.starts_with(b"SKIP, nothing was checked  "));
}

#[test]
fn nothing_to_check_and_too_many_jobs_are_usage_errors() {
    let place = Place::new();
    let file = place.path("e.ndjson");
    std::fs::write(&file, "\n").expect("written");
    let (code, _, err) = code_and_output(&run(&["report", "validate", &file]));
    assert_eq!(code, Some(2));
    assert!(err.contains("the file has no document"), "{err}");
    let (code, _, err) = code_and_output(&run(&["report", "validate", "--jobs", "65", &file]));
    assert_eq!(code, Some(2));
    assert!(err.contains("65 is not in 0..=64"), "{err}");
}

#[test]
fn wrong_configuration_exits_with_2_and_nothing_is_written() {
    let place = Place::new();
    let out = place.path("r.json");
    std::fs::write(place.path("bad.json"), "{}").expect("written");
    let (missing, bad) = (place.path("missing/r.json"), place.path("bad.json"));
    let (roundabout, valid) = (place.path("./r.json"), place.path("valid.json"));
    assert_eq!(run(&["report", "new", "--out", &valid]).status.code(), Some(0));
    let before = place.text("valid.json");
    let cases: &[(&str, &[&str])] = &[
        ("timeout_ms must be from 1000 to 120000, not 500", &["--timeout-ms", "500"]),
        ("agent_timeout_ms must be from 5000 to 300000, not 1", &["--agent-timeout-ms", "1"]),
        ("from 1000 to 120000", &["--timeout-ms", "-1"]),
        ("from 1000 to 120000", &["--timeout-ms", "99999999999999999999"]),
        ("from 5000 to 300000", &["--agent-timeout-ms", "-1"]),
        ("base_path contains //", &["--base-path", "//evil.example"]),
        ("--out and --html are the same file", &["--html", &out]),
        ("--out and --junit are the same file", &["--junit", &roundabout]),
        ("--baseline and --html are the same file", &["--baseline", &valid, "--html", &valid]),
        ("--profile and --junit are the same file", &["--profile", &bad, "--junit", &bad]),
        ("--html and --junit are both -", &["--html", "-", "--junit", "-"]),
        ("there is no folder", &["--junit", &missing]),
        ("(did you mean model-terra?); to test it", &["--models", "model-tera"]),
        ("base_path does not start with /", &["--base-path", "v1"]),
        ("invalid value 'responses_txt'", &["--only", "responses_txt"]),
        ("invalid value 'many'", &["--agent-mode", "many"]),
        ("no checks to run", &["--only", "model_access"]),
        ("cannot write", &["--html", &missing]),
        ("is not a valid report", &["--baseline", &bad]),
        ("cannot read", &["--baseline", &missing]),
        ("no profile", &["--profile", "/dev/null"]),
        ("unexpected argument '--key'", &["--key", "k"]),
        ("unexpected argument '--api-key'", &["--api-key", "k"]),
    ];
    for (expected, arguments) in cases {
        // Nothing listens there: nothing may be sent.
        let mut command = gatewright();
        command.args(["check", "--base-url", "http://127.0.0.1:9", "--out", &out]).args(*arguments);
        let (code, _, err) = outcome(command.env("GATEWRIGHT_API_KEY", "k").stdin(Stdio::null()));
        assert_eq!(code, Some(2), "{expected}: {err}");
        assert!(err.contains(expected), "{expected}: {err}");
    }
    let (code, _, err) = code_and_output(&run(&["check", "--base-url", "http://127.0.0.1:9", "--out", &out]));
    assert_eq!((code, err.as_str()), (Some(2), "gatewright: the API key is empty: set GATEWRIGHT_API_KEY\n"));
    assert_eq!(place.names(), ["bad.json", "valid.json"]);
    assert_eq!(place.text("valid.json"), before);
}

#[test]
fn profile_names_kit_and_models() {
    let gateway = Serving::start(&[], None);
    let place = Place::new();
    let (profile, out) = (place.path("profile.json"), place.path("r.json"));
    std::fs::write(&profile, r#"{"kit_name": "our-kit", "models": ["model-sol", "model-terra"]}"#)
        .expect("written");
    let command = &mut check(&gateway, &["--profile", &profile, "--out", &out]);
    assert_eq!(outcome(command).0, Some(0));
    assert_eq!(place.json("r.json")["kit"]["name"], "our-kit");
    let validate =
        |arguments: &[&str]| run(&[&["report", "validate", &out], arguments].concat()).status.code();
    assert_eq!(validate(&["--profile", &profile]), Some(0));
    assert_eq!(validate(&[]), Some(0));
    assert_eq!(validate(&["--strict-names"]), Some(1));
}

#[test]
fn models_of_another_gateway_need_no_profile_in_any_command() {
    let gateway = Serving::start(&[], None);
    let place = Place::new();
    let (out, page) = (place.path("r.json"), place.path("r.html"));
    // This gateway doesn't serve the model, which is what the report says.
    let (code, text, _) = outcome(&mut check(&gateway, &["--models", "gpt-5", "--out", &out]));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("expected \"gpt-5\" in it, found \"model-sol\""), "{text}");
    for command in [
        &["report", "validate", &out][..],
        &["report", "show", &out],
        &["report", "html", &out, "--out", &page],
        &["report", "diff", &out, &out],
    ] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(0), "{command:?} {output:?}");
    }
    assert_eq!(run(&["report", "validate", &out, "--strict-names"]).status.code(), Some(1));
}

/// A disk that is full when the run ends.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_report_exits_with_3_and_is_not_lost() {
    let gateway = Serving::start(&[], None);
    let (code, out, err) =
        outcome(&mut check(&gateway, &["--only", "models_endpoint", "--out", "/dev/full"]));
    assert_eq!(code, Some(3));
    assert!(err.contains("cannot write /dev/full: ") && err.contains("standard output"), "{err}");
    let end = out.find("\n}\n").expect("the report comes first") + 3;
    assert_eq!(run_with_input(&["report", "validate", "-"], &out.as_bytes()[..end]).status.code(), Some(0));
}

/// Answers the first request with a list of models, then signals the second request's arrival and never answers it.
fn half_a_service() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let body = r#"{"data":[{"id":"model-sol"},{"id":"model-terra"},{"id":"model-luna"}]}"#;
        let mut open = Vec::new();
        for (number, socket) in listener.incoming().enumerate() {
            let mut socket = socket.expect("a connection");
            let mut request = [0; 4096];
            assert!(socket.read(&mut request).expect("a request") > 0);
            if number == 0 {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
                write!(socket, "{head}: {}\r\n\r\n{body}", body.len()).expect("written");
            } else {
                // The test may be over.
                let _ = sender.send(());
            }
            open.push(socket);
        }
    });
    (url, receiver)
}

/// Ctrl-C, the signal that terminates a job, and the one for a closed terminal.
#[cfg(unix)]
#[test]
fn interrupted_run_exits_with_130_and_leaves_a_valid_report() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let (url, second_request) = half_a_service();
        let place = Place::new();
        let out = place.path("r.json");
        let mut command = gatewright();
        let page = place.path("r.html");
        command.args(["check", "--base-url", &url, "--timeout-ms", "120000", "--out", &out, "--html", &page]);
        let mut child = command
            .env("GATEWRIGHT_API_KEY", "k")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program starts");
        second_request.recv_timeout(Duration::from_secs(50)).expect("a second request");
        let began = Instant::now();
        let killed =
            Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        assert_eq!(child.wait().expect("an end").code(), Some(130), "{signal}");
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(run(&["report", "validate", "--strict", &out]).status.code(), Some(0));
        let report = place.json("r.json");
        assert_eq!(report["checks"][0]["status"], "pass");
        assert_eq!(report["checks"][2]["reason"], "aborted: the run was interrupted");
        assert_eq!(place.names(), ["r.html", "r.json"]);
        assert!(place.text("r.html").contains("</span>, interrupted "));
        let shown = run(&["report", "show", &out]).stdout;
        assert!(shown.starts_with(b"PASS, interrupted  http://"), "{signal}");
    }
}

#[test]
fn unreachable_service_fails_every_cell_and_still_produces_a_report() {
    let place = Place::new();
    let out: PathBuf = place.path("r.json").into();
    let mut command = gatewright();
    command
        .args(["check", "--base-url", "http://127.0.0.1:9", "--out"])
        .arg(&out)
        .env("GATEWRIGHT_API_KEY", "k");
    let (code, ..) = outcome(command.stdin(Stdio::null()));
    assert_eq!(code, Some(1));
    let report = place.json("r.json");
    assert_eq!(report["checks"][2]["error"]["category"], "connect");
    assert_eq!(report["checks"][1]["reason"], "dependency_failed: models_endpoint gave no list of models");
}

/// The additional checks are a file beside the report, which stays as it is.
#[test]
fn other_protocols_are_checked_beside_the_report() {
    let gateway = Serving::start(&[], None);
    let place = Place::new();
    let (report, page) = (place.path("report.json"), place.path("page.html"));
    let arguments = ["--out", &report, "--html", &page, "--models", "model-sol", "--protocols", "all"];
    let (code, output, error) = outcome(&mut check(&gateway, &arguments));
    assert_eq!((code, error.as_str()), (Some(0), ""), "{output}");
    assert!(output.contains("pass  messages_tool_stream  model-sol"), "{output}");
    assert_eq!(place.names(), ["page.html", "report.json", "report.protocols.json"]);
    assert!(
        output.contains(&format!("Wrote the additional checks to {}", place.path("report.protocols.json"))),
        "{output}"
    );
    let document = place.json("report.protocols.json");
    assert_eq!((&document["summary"]["passed"], &document["overall_status"]), (&15.into(), &"pass".into()));
    assert!(place.text("page.html").contains("Other protocols"));
    let validated = run(&["report", "validate", "--strict-names", &report]);
    assert_eq!(validated.status.code(), Some(0));
}

#[test]
fn failed_additional_check_fails_the_run() {
    let gateway = Serving::start(&["--fault", "no_tool_call@create_chat_completion"], None);
    let place = Place::new();
    let report = place.path("report.json");
    let arguments = ["--out", &report, "--only", "models_endpoint", "--protocols", "chat,native"];
    let (code, output, _) = outcome(check(&gateway, &arguments).args(["--annotations", "github"]));
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("::error title=chat_tool "), "{output}");
    assert!(output.contains("FAIL  chat_tool  ") && output.contains("pass  native_tool  "), "{output}");
    assert_eq!(place.json("report.json")["overall_status"], "pass");
    assert_eq!(place.json("report.protocols.json")["overall_status"], "fail");
}

#[test]
fn unusable_protocols_are_refused_before_anything_is_sent() {
    for (arguments, part) in [
        (&["--protocols", "chatt"][..], "a similar value exists: 'chat'"),
        (&["--protocols", "chat", "--out", "-"], "set --out to a file"),
    ] {
        let mut command = gatewright();
        command.args(["check", "--base-url", "http://127.0.0.1:1"]).args(arguments);
        let (code, _, error) = outcome(command.env("GATEWRIGHT_API_KEY", "k"));
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(part), "{error}");
    }
}

/// One document on standard output, for programs; people have the summary on standard error.
#[test]
fn json_has_both_documents_and_what_newly_failed() {
    let gateway = Serving::start(&["--fault", "no_tool_call@create_response"], None);
    let place = Place::new();
    let (report, baseline) = (place.path("report.json"), place.path("baseline.json"));
    assert_eq!(run(&["report", "new", "--out", &baseline]).status.code(), Some(0));
    let printed = |arguments: &[&str]| {
        let base = ["--out", &report, "--models", "model-sol", "--json"];
        let (code, output, error) = outcome(check(&gateway, &base).args(arguments));
        assert_eq!(code, Some(1), "{error}");
        assert!(error.starts_with("FAIL  "), "{error}");
        serde_json::from_str::<Value>(&output).expect("one document")
    };
    let document = printed(&[]);
    assert_eq!(document["report"], place.json("report.json"));
    assert_eq!((&document["interrupted"], &document["protocols"]), (&false.into(), &Value::Null));
    assert_eq!(document["new_failures"], Value::Null, "there is no baseline");
    let document = printed(&["--protocols", "messages", "--baseline", &baseline]);
    assert_eq!(document["protocols"], place.json("report.protocols.json"));
    let new = serde_json::json!([{ "id": "responses_function_tool", "model": "model-sol" }]);
    assert_eq!(document["new_failures"], new);
}

#[test]
fn json_and_a_file_on_standard_output_exclude_each_other() {
    let arguments = ["check", "--base-url", "http://127.0.0.1:1", "--json", "--junit", "-"];
    let (code, output, error) = outcome(gatewright().args(arguments).env("GATEWRIGHT_API_KEY", "k"));
    assert_eq!((code, output.as_str()), (Some(2), ""));
    assert!(error.contains("--json and --junit - both write to standard output"), "{error}");
}

#[test]
fn failed_checks_are_written_as_sarif() {
    let gateway = Serving::start(&["--fault", "no_tool_call@create_response"], None);
    let place = Place::new();
    let (report, log) = (place.path("report.json"), place.path("check.sarif"));
    let (code, _, error) = outcome(&mut check(&gateway, &["--out", &report, "--sarif", &log]));
    assert_eq!(code, Some(1), "{error}");
    let parsed: serde_sarif::sarif::Sarif =
        serde_json::from_str(&place.text("check.sarif")).expect("a SARIF log");
    let results = parsed.runs[0].results.as_ref().expect("results");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].rule_id.as_deref(), Some("responses_function_tool"));
    let log = place.json("check.sarif");
    let place_of = &log["runs"][0]["results"][0]["locations"][0];
    let line = place_of["physicalLocation"]["region"]["startLine"].as_u64().expect("a line");
    let text = place.text("report.json");
    let next = text.lines().nth(usize::try_from(line).expect("a small number")).expect("a line");
    assert_eq!(next.trim(), "\"id\": \"responses_function_tool\",");
}
