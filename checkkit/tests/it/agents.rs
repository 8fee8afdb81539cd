//! The agent check, against scripted agents: every way to end, to hang, and to leave something behind.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gatewright::report::{AgentMode, Check, CheckId, Evidence, Profile};
use gatewright_checkkit::{CancellationToken, CheckKit, Options};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scenario::differences;
use crate::{CANARY, key, valid_document};

/// What every script can say.
const PRELUDE: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "fake-agent 1.2.3"; exit 0; }
for prompt; do :; done
token=${prompt##* }
say() { printf '%s\n' "$1"; }
item() { say "{\"type\":\"item.completed\",\"item\":{\"type\":\"$1\",\"text\":\"$2\"}}"; }
message() { item agent_message "$1"; }
completed() { say '{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":4,"output_tokens":2}}'; }
failed() { say '{"type":"turn.failed","error":{"message":"no luck today"}}'; }
"#;

struct Script {
    name: &'static str,
    body: &'static str,
    expected: Value,
}

fn script(name: &'static str, body: &'static str, expected: Value) -> Script {
    Script { name, body, expected }
}

fn fails(category: &str, code: &str, rest: Value) -> Value {
    let mut expected = rest;
    expected["status"] = json!("fail");
    expected["error"]["category"] = json!(category);
    if !code.is_empty() {
        expected["error"]["code"] = json!(code);
    }
    expected
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn scripts() -> Vec<Script> {
    let usage = json!({ "input_tokens": 9, "output_tokens": 2, "total_tokens": null, "cached_tokens": 4,
        "cache_write_tokens": null, "reasoning_tokens": null });
    let pass = || json!({ "status": "pass" });
    let absent = json!({ "(absent)": true });
    vec![
        script(
            "answers",
            "say '{\"type\":\"thread.started\"}'; message \"$token\"; completed",
            json!({ "status": "pass", "layer": "agent", "agent_version": "1.2.3", "exit_code": 0, "signal": null,
                "timed_out": false, "unexpected_item_detected": false, "output_verified": true, "usage": usage,
                "http_status": absent, "response_headers": absent, "error": absent }),
        ),
        script("token within more text", "message \"Here: $token.\"; completed", pass()),
        script("reasons first", "item reasoning hm; message \"$token\"; completed", pass()),
        script("warns", "item error 'unknown model'; message \"$token\"; completed", pass()),
        script("prints other lines, too", "echo starting; message \"$token\"; completed; echo bye", pass()),
        script("writes to standard error", "echo oops >&2; message \"$token\"; completed", pass()),
        script("reads its input", "cat; message \"$token\"; completed", pass()),
        script(
            "exits with 1 after a failed turn",
            "failed; exit 1",
            fails("agent", "agent_exit", json!({ "exit_code": 1, "signal": null, "timed_out": false,
                "output_verified": false, "usage": null, "error": { "message": "~no luck today" } })),
        ),
        script(
            "exits with 2 and a word on standard error",
            "echo 'unexpected argument' >&2; exit 2",
            fails("agent", "agent_exit", json!({ "exit_code": 2, "error": { "message": "~unexpected argument" } })),
        ),
        script(
            "exits with 255 though it answered",
            "message \"$token\"; completed; exit 255",
            fails("agent", "agent_exit", json!({ "exit_code": 255, "output_verified": true })),
        ),
        script("says nothing", "exit 0", fails("agent", "agent_turn_not_completed", json!({ "exit_code": 0 }))),
        script(
            "exit code 0 proves nothing",
            "message \"$token\"; failed; exit 0",
            fails("agent", "agent_turn_not_completed", json!({ "exit_code": 0, "output_verified": true,
                "error": { "message": "~found turn.failed; the agent says: no luck today" } })),
        ),
        script(
            "goes on after the turn",
            "message \"$token\"; completed; say '{\"type\":\"error\",\"message\":\"late\"}'",
            fails("agent", "agent_turn_not_completed", json!({ "error": { "message": "~late" } })),
        ),
        script("prints garbage", "echo '<<<garbage>>> {{{'", fails("agent", "agent_turn_not_completed", json!({}))),
        script(
            "prints JSON that is no event",
            "echo '[]'; echo 'null'; echo '{\"type\":7}'",
            fails("agent", "agent_turn_not_completed", json!({ "error": { "message": "~found none" } })),
        ),
        script("prints binary", "head -c 300000 /dev/urandom", fails("agent", "agent_turn_not_completed", json!({}))),
        script(
            "prints without end",
            "yes '{\"type\":\"x\"}' | head -c 20000000; message \"$token\"; completed",
            // Output beyond the limit is discarded.
            fails("agent", "agent_turn_not_completed", json!({ "exit_code": 0 })),
        ),
        script(
            "answers something else",
            "message hello; completed",
            fails("verification", "", json!({ "output_verified": false, "error": { "code": null, "message": "~hello" } })),
        ),
        script(
            "answers, then says something else",
            "message \"$token\"; message done; completed",
            fails("verification", "", json!({ "output_verified": false })),
        ),
        script("only reasons", "item reasoning \"$token\"; completed", fails("verification", "", json!({}))),
        script(
            "runs a command",
            "item command_execution ls; message \"$token\"; completed",
            fails("agent", "agent_unexpected_item", json!({ "unexpected_item_detected": true, "output_verified": true,
                "error": { "message": "~command_execution" } })),
        ),
        script(
            "names the command it runs",
            "say '{\"type\":\"item.completed\",\"item\":{\"type\":\"command_execution\",\"command\":\"cat /etc/passwd\"}}'; message \"$token\"; completed",
            fails("agent", "agent_unexpected_item", json!({ "unexpected_item_detected": true,
                "error": { "message": "~found command_execution (cat /etc/passwd)" } })),
        ),
        script(
            "is told to run without tools",
            "case \" $* \" in *features.shell_tool=false*features.unified_exec=false*features.view_image=false*) message \"$token\"; completed;; esac",
            pass(),
        ),
        script(
            "begins to change a file",
            "say '{\"type\":\"item.started\",\"item\":{\"type\":\"file_change\"}}'; message \"$token\"; completed",
            fails("agent", "agent_unexpected_item", json!({ "unexpected_item_detected": true })),
        ),
        script(
            "is killed",
            "message \"$token\"; completed; kill -KILL $$",
            fails("agent", "agent_signal", json!({ "exit_code": null, "signal": "SIGKILL", "timed_out": false })),
        ),
        script(
            "crashes",
            "kill -SEGV $$",
            fails("agent", "agent_signal", json!({ "exit_code": null, "signal": "SIGSEGV" })),
        ),
        script(
            "hangs",
            "message \"$token\"; sleep 600",
            fails("timeout", "agent_timeout", json!({ "exit_code": null, "signal": "SIGTERM", "timed_out": true,
                "output_verified": true })),
        ),
        script(
            "hangs and does not want to end",
            "trap '' TERM; while :; do sleep 1; done",
            fails("timeout", "agent_timeout", json!({ "exit_code": null, "signal": "SIGKILL", "timed_out": true })),
        ),
        script(
            "hangs and ends in peace when told to",
            "trap 'exit 0' TERM; sleep 600 & wait",
            fails("timeout", "agent_timeout", json!({ "exit_code": null, "signal": "SIGTERM", "timed_out": true })),
        ),
        script(
            "prints without end and never ends",
            "yes '{\"type\":\"x\"}'",
            fails("timeout", "agent_timeout", json!({ "timed_out": true })),
        ),
        script("leaves a process behind that holds its output", "sleep 600 & message \"$token\"; completed", pass()),
        script(
            "leaves a process in a session of its own",
            "setsid sleep 600 & sleep 0.2; message \"$token\"; completed",
            pass(),
        ),
        script(
            "hangs in a session of its own",
            "setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 0.2; wait",
            fails("timeout", "agent_timeout", json!({ "timed_out": true })),
        ),
        script(
            "is in an empty folder with an empty home",
            "[ -z \"$(ls -A)\" ] && [ -z \"$(ls -A \"$HOME\")\" ] && [ \"$PWD\" != \"$HOME\" ] && message \"$token\" && completed",
            pass(),
        ),
        script(
            "finds nothing in its environment but what it needs",
            "names=$(env | cut -d= -f1 | grep -vxE 'PATH|HOME|CODEX_HOME|KIT_KEY|GATEWRIGHT_CHECK_RUN|PWD|OLDPWD|SHLVL|_')
             [ -z \"$names\" ] && message \"$token\" && completed",
            pass(),
        ),
        script(
            "is told address, model and no retries",
            "case \"$*\" in *'base_url=\"http://127.0.0.1:9/gate/v1\"'*'request_max_retries=0,stream_max_retries=0'*)
             [ \"$1 $2\" = 'exec --json' ] && message \"$token\" && completed;; esac",
            pass(),
        ),
        script(
            "spells the key out",
            "message \"$KIT_KEY $token\"; echo \"$KIT_KEY\" >&2; printf %s \"$KIT_KEY\" | base64 >&2; echo \"bad key $KIT_KEY\" >&2; exit 3",
            fails("agent", "agent_exit", json!({ "error": { "message": "~bad key [redacted]" } })),
        ),
    ]
}

/// An executable in its own folder.
fn program(body: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("agent");
    std::fs::write(&path, format!("{PRELUDE}{body}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    (folder, path)
}

fn options(program: PathBuf) -> Options {
    // Nothing listens there: scripted agents make no calls.
    let mut options = Options::new("http://127.0.0.1:9/gate");
    options.models = vec!["model-sol".to_owned()];
    options.agent_mode = AgentMode::OneModel;
    options.agent_timeout_ms = 5000;
    options.agent_program = Some(program);
    options.only = vec![CheckId::AgentCliSmoke];
    options
}

/// The agent's cell, its evidence, and anything wrong with them regardless of the script.
async fn smoke(name: &str, options: Options) -> (Check, Evidence, Vec<String>) {
    let finished = crate::run(options).await;
    let document = valid_document(&finished.report, &Profile::default());
    let check = finished.report.checks.last().expect("a cell").clone();
    let evidence = finished.evidence.into_iter().next().expect("evidence").1;
    let text = serde_json::to_string(&evidence).expect("it serializes");
    let mut wrong = Vec::new();
    if document.contains("Canary") || text.contains("Canary") {
        wrong.push(format!("{name}: the key is in the report or in the evidence: {text}"));
    }
    (check, evidence, wrong)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_script_gets_the_expected_verdict() {
    let scripts = scripts();
    assert!(scripts.len() >= 30);
    let playing = scripts.iter().map(|script| async move {
        let (_folder, path) = program(script.body);
        let began = Instant::now();
        let (check, evidence, mut wrong) = smoke(script.name, options(path)).await;
        if began.elapsed() > Duration::from_secs(40) {
            wrong.push(format!("{}: took {:?}", script.name, began.elapsed()));
        }
        let differences = differences(&check, &script.expected);
        if !differences.is_empty() {
            wrong.push(format!("{}: {differences:?}\n{evidence:#?}", script.name));
        }
        wrong
    });
    let wrong = join_all(playing).await.concat();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn missing_program_is_a_configuration_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for program in [folder.path().join("missing"), "no-such-agent-on-the-path".into()] {
        let (check, evidence, wrong) = smoke("missing", options(program)).await;
        let expected = fails(
            "configuration",
            "agent_not_found",
            json!({ "agent_version": null, "exit_code": { "(absent)": true }, "error": { "message": "~was not found" } }),
        );
        assert_eq!((differences(&check, &expected), wrong), (vec![], vec![]), "{evidence:?}");
    }
}

#[tokio::test]
async fn non_executable_program_is_a_configuration_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("agent");
    std::fs::write(&path, "no program").expect("written");
    let (check, _, wrong) = smoke("not executable", options(path)).await;
    let expected = fails("configuration", "agent_not_started", json!({}));
    assert_eq!((differences(&check, &expected), wrong), (vec![], vec![]));
}

/// Names of the processes on this machine whose command line contains the text.
#[cfg(target_os = "linux")]
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("processes");
    let lines = entries.flatten().filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

/// No agent process survives, neither past its time limit nor as an orphan in its own session.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_agent_process_outlives_its_run() {
    for (index, body) in [
        "sleep MARK & message \"$token\"; completed",
        "setsid sleep MARK & sleep 0.2; message \"$token\"; completed",
        "(trap '' TERM; sleep MARK) & sleep MARK",
        "setsid setsid sleep MARK & sleep MARK",
    ]
    .into_iter()
    .enumerate()
    {
        // A number of seconds that nothing else sleeps.
        let mark = format!("{}.{index}", 7_000_000 + std::process::id());
        let (_folder, path) = program(&body.replace("MARK", &mark));
        let (check, ..) = smoke("orphans", options(path)).await;
        assert!(check.timed_out.is_some());
        assert_eq!(processes_with(&mark), Vec::<String>::new(), "{body}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn interrupting_a_run_stops_its_agent_immediately() {
    let mark = format!("{}.77", 8_000_000 + std::process::id());
    let (_folder, path) = program(&format!("trap '' TERM; setsid sleep {mark} & sleep {mark}"));
    let mut options = options(path);
    options.agent_timeout_ms = 300_000;
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let watching = tokio::spawn({
        let mark = mark.clone();
        async move {
            while processes_with(&mark).len() < 2 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            stop.cancel();
        }
    });
    let began = Instant::now();
    let finished = kit.run(&|_| {}, &cancel).await;
    watching.await.expect("it watches");
    assert!(finished.interrupted && began.elapsed() < Duration::from_secs(50));
    let reason = finished.report.checks.last().and_then(|check| check.reason.clone());
    assert!(reason.is_some_and(|reason| reason.starts_with("aborted: ")));
    // The kernel may still be cleaning them up.
    for _ in 0..100 {
        if processes_with(&mark).is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("still there: {:?}", processes_with(&mark));
}

/// The report contains the names of the variables passed through, never their values; a value that the agent repeats is redacted.
#[tokio::test]
async fn environment_variables_are_passed_through_by_name() {
    let (_folder, path) = program("message \"$token $HOME_PAGE $CARGO_PKG_DESCRIPTION\"; completed");
    let mut options = options(path);
    options.agent_env =
        vec!["CARGO_PKG_DESCRIPTION".to_owned(), "NOT_SET_ANYWHERE".to_owned(), "PATH".to_owned()];
    let value = std::env::var("CARGO_PKG_DESCRIPTION").expect("cargo sets it for tests");
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let finished = kit.run(&|_| {}, &CancellationToken::new()).await;
    let report = &finished.report;
    assert!(report.passed(), "{report:#?}");
    assert_eq!(report.environment.agent_passthrough_env, ["PATH", "CARGO_PKG_DESCRIPTION"]);
    assert_eq!(report.environment.agent_version.as_deref(), Some("1.2.3"));
    let text = format!("{}{:?}", valid_document(report, &Profile::default()), finished.evidence);
    assert!(!text.contains(&value) && !text.contains(CANARY), "{text}");
}
