//! `gatewright config push`, `show`, `history` and `rollback`, and gateways that share the pushed configuration.

use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::gateway::Serving;
use crate::webhooks::wait_until;
use crate::{gatewright, transcript};

const SHARED: &str = "[upstreams.one]\nkind = \"simulator\"\n[models.first]\n\
                      targets = [{ upstream = \"one\", model = \"model-sol\" }]\n";

/// The transcript of a command in a folder whose data folder is `data`.
fn transcript_of(folder: &Path, arguments: &[&str]) -> String {
    let mut command = gatewright();
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("GATEWRIGHT_SERVE_DATA", "data").env("USER", "ada").env_remove("MISSING_API_KEY");
    transcript(&command.output().expect("the program starts"))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("written");
}

#[test]
fn document_becomes_a_revision_is_shown_and_rolled_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "first.toml", SHARED);
    let second = "[upstreams.two]\nkind = \"chat\"\nbase_url = \"https://two.example/v1\"\n\
                  key = { env = \"MISSING_API_KEY\" }\n[models.second]\ntargets = [{ upstream = \"two\" }]\n";
    write(folder, "second.toml", second);
    write(
        folder,
        "wrong.toml",
        &format!("[server]\nlisten = \"[::]:1\"\n{}", SHARED.replace("kind", "knid")),
    );
    let transcripts = [
        transcript_of(folder, &["config", "show"]),
        transcript_of(folder, &["config", "push", "first.toml"]),
        transcript_of(folder, &["config", "push", "first.toml"]),
        transcript_of(folder, &["config", "push", "second.toml", "--by", "grace"]),
        transcript_of(folder, &["config", "push", "wrong.toml"]),
        transcript_of(folder, &["config", "push", "first.toml", "--after", "1"]),
        transcript_of(folder, &["config", "rollback", "1"]),
        transcript_of(folder, &["config", "rollback", "7"]),
        transcript_of(folder, &["config", "show"]),
        transcript_of(folder, &["config", "show", "2", "-o", "shown.toml"]),
    ];
    assert_snapshot!(transcripts.join("\n"));
    assert_eq!(std::fs::read_to_string(folder.join("shown.toml")).expect("a file"), second);
    let history = transcript_of(folder, &["config", "history"]);
    let rows: Vec<Vec<&str>> = history.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |at: usize| [rows[at][0], rows[at][2], rows[at][3]];
    assert_eq!(rows[2], ["REVISION", "MADE", "BY", "REPEATS"], "{history}");
    assert_eq!([row(3), row(4), row(5)], [["3", "ada", "1"], ["2", "grace", "-"], ["1", "ada", "-"]]);
}

#[test]
fn changes_and_documents_are_printed_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    write(folder, "first.toml", SHARED);
    write(folder, "second.toml", &SHARED.replace("first", "second"));
    let printed = |arguments: &[&str]| -> Value {
        let transcript = transcript_of(folder, &[&["config"], arguments, &["--json"]].concat());
        let document = transcript.strip_prefix("exit code 0\n--- stdout\n").expect("success");
        serde_json::from_str(document.strip_suffix("--- stderr\n").expect("no message")).expect("JSON")
    };
    let pushed = |revision: u64, is_new: bool| json!({ "revision": revision, "new": is_new, "warnings": [] });
    assert_eq!(printed(&["push", "first.toml"]), pushed(1, true));
    assert_eq!(printed(&["push", "first.toml"]), pushed(1, false));
    assert_eq!(printed(&["push", "second.toml", "--by", "grace"]), pushed(2, true));
    assert_eq!(printed(&["rollback", "1"]), pushed(3, true));
    let shown = printed(&["show"]);
    assert_eq!((&shown["revision"], &shown["by"], &shown["repeats"]), (&3.into(), &"ada".into(), &1.into()));
    assert_eq!(shown["document"], SHARED);
    assert!(shown["made"].is_u64(), "{shown}");
    let history = printed(&["history"]);
    assert_eq!((&history[1]["by"], &history[1]["document"]), (&"grace".into(), &Value::Null));
}

#[test]
fn sharing_gateway_uses_pushed_models_and_has_none_in_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let own = "[store]\ndata = \"data\"\nshared_config = true\n";
    write(folder, "gatewright.toml", own);
    write(folder, "shared.toml", SHARED);
    write(folder, "both.toml", &format!("{own}{SHARED}"));
    assert_snapshot!(
        [
            transcript_of(folder, &["config", "check", "gatewright.toml", "both.toml"]),
            transcript_of(folder, &["serve", "--config", "both.toml"])
        ]
        .join("\n")
    );
    let file = folder.join("gatewright.toml");
    let admin = ("GATEWRIGHT_SERVE_ADMIN_KEY", "gw-admin");
    let gateway = Serving::start_with(&["--config", file.to_str().expect("a path"), "--key", "k"], &[admin]);
    let mut push = gatewright();
    push.args(["config", "push", "shared.toml", "--base-url", &gateway.url])
        .current_dir(folder)
        .envs([admin]);
    let pushed = push.output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(pushed.status.success() && stderr.contains("published revision 1;"), "{stderr}");
    let models = || gateway.call("GET", "/v1/models", "")["data"].clone();
    assert_eq!(models()[0]["id"], "first");
    // Another process changes the store; the gateway notices.
    write(folder, "shared.toml", &SHARED.replace("first", "second"));
    assert!(transcript_of(folder, &["config", "push", "shared.toml"]).starts_with("exit code 0"));
    wait_until("it is in use", || models()[0]["id"] == "second");
    wait_until("it is listed", || transcript_of(folder, &["nodes", "--json"]).contains("\"config\": 2"));
}
