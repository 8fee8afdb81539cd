//! `gatewright serve` on a terminal: a line for each request, and a page that opens.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rexpect::session::{PtySession, spawn_command};
use serde_json::json;

use crate::{gateway, gatewright, http};

const WAIT_MS: u64 = 30_000;

/// The program on a terminal; its address.
fn serving(arguments: &[&str], variables: &[(&str, &str)]) -> (PtySession, String) {
    let like = gatewright();
    let mut command = Command::new(like.get_program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--key", "k"]).args(arguments);
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    let mut terminal = spawn_command(command, Some(WAIT_MS)).expect("it starts");
    let (_, address) = terminal.exp_regex(r"http://127\.0\.0\.1:[0-9]+").expect("its address");
    terminal.exp_string("Base URL for SDKs").expect("how to call it");
    (terminal, address)
}

fn ask(address: &str, arguments: &[&str]) {
    let mut command = gatewright();
    command.args(arguments).env("GATEWRIGHT_BASE_URL", address).env("GATEWRIGHT_API_KEY", "k");
    command.stdin(std::process::Stdio::null()).output().expect("it starts");
}

/// Stops it, and returns the rest of the screen's contents.
fn stop(mut terminal: PtySession) -> String {
    terminal.send_control('c').expect("typed");
    terminal.flush().expect("typed");
    terminal.exp_eof().expect("it ends")
}

#[test]
fn request_prints_a_short_line_on_a_terminal() {
    let (mut terminal, address) = serving(&["--color", "never"], &[]);
    ask(&address, &["chat", "say hello"]);
    terminal.exp_regex(r"[0-9:]{8}Z 200 POST /v1/chat/completions  model-sol  ").expect("a line");
    ask(&address, &["chat", "-m", "model-mars", "hi"]);
    terminal.exp_regex(r"404 POST /v1/chat/completions .*req_").expect("a line with the id of the request");
    assert!(!stop(terminal).contains('\u{1b}'));
}

#[test]
fn interrupted_gateway_says_that_it_stops() {
    let (terminal, _) = serving(&["--color", "never"], &[]);
    let rest = stop(terminal);
    assert!(rest.contains("gatewright: stopping; requests in progress have 5.0 s to finish"), "{rest}");
}

#[test]
fn lines_are_colored_and_quiet_prints_none() {
    let (mut terminal, address) = serving(&[], &[]);
    ask(&address, &["models"]);
    terminal.exp_string("\u{1b}[32m200\u{1b}[0m GET").expect("a green status");
    stop(terminal);
    for (arguments, variables) in [(&["-q"][..], &[][..]), (&[], &[("RUST_LOG", "error")])] {
        let (terminal, address) = serving(arguments, variables);
        ask(&address, &["models"]);
        assert!(!stop(terminal).contains("GET"), "{arguments:?}");
    }
}

/// The browser is a script that writes down the address it should open.
#[cfg(target_os = "linux")]
#[test]
fn its_page_opens_in_the_browser() {
    let folder = tempfile::tempdir().expect("a folder");
    let (browser, opened) = (folder.path().join("xdg-open"), folder.path().join("opened"));
    std::fs::write(&browser, format!("#!/bin/sh\necho \"$1\" > '{}'\n", opened.display())).expect("written");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let (terminal, address) = serving(&["--open"], &[("PATH", &path)]);
    let began = Instant::now();
    let mut page = String::new();
    while page.is_empty() && began.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
        page = std::fs::read_to_string(&opened).unwrap_or_default();
    }
    let code = page.trim_end().strip_prefix(&format!("{address}/#sign-in=")).expect("an address with a code");
    // The key is one letter; the code may begin with it.
    assert!(code.len() >= 43, "{page}");
    // The code is valid once.
    let exchange = || http::ask(&address, ("POST", "/console/sign-in"), code, "", "").expect("an answer");
    assert_eq!(exchange().document, json!({ "client": "k", "admin": null }));
    assert!(exchange().document["error"]["message"].as_str().expect("a message").contains("used already"));
    stop(terminal);
}

/// What a command writes to a terminal of 60 columns.
fn on_narrow_terminal(like: &Command) -> String {
    let mut command = Command::new("sh");
    command
        .args(["-c", "stty rows 24 cols 60; exec \"$0\" \"$@\""])
        .arg(like.get_program())
        .args(like.get_args());
    for (name, value) in like.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut terminal = spawn_command(command, Some(WAIT_MS)).expect("it starts");
    terminal.exp_eof().expect("it ends").replace("\r\n", "\n")
}

#[test]
fn providers_fit_a_narrow_terminal_without_broken_addresses() {
    let mut command = gatewright();
    command.arg("providers");
    let shown = on_narrow_terminal(&command);
    let wide = |line: &&str| {
        line.chars().count() > 60 && line.trim().contains(' ') && !line.contains("base url: http")
    };
    assert_eq!(shown.lines().find(wide), None, "{shown}");
    for address in ["https://api.openai.com/v1", "https://generativelanguage.googleapis.com/v1beta/openai"] {
        assert!(shown.split_whitespace().any(|word| word == address), "{address} in:\n{shown}");
    }
}

#[test]
fn answer_is_wrapped_between_words_and_followed_by_its_cost() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("gatewright.toml");
    let text = "[server]\nlisten = \"127.0.0.1:0\"\n[access]\nkey = { env = \"MY_KEY\" }\n[prices]\ncurrency = \"EUR\"\n\
                [upstreams.one]\nkind = \"simulator\"\n[models.mine]\n\
                targets = [{ upstream = \"one\", model = \"model-sol\", price = { input = 1000, output = 2000 } }]\n";
    std::fs::write(&file, text).expect("written");
    let key = "k-of-the-file";
    let gateway = gateway::Serving::try_start(
        &["--config", file.to_str().expect("a path"), "--key", key],
        &[("MY_KEY", key)],
    );
    let gateway = gateway.expect("it starts");
    let words = "quick brown foxes jump over the lazy dog and then it sleeps for a very long time";
    let shown = on_narrow_terminal(&gateway.command(&["chat", &format!("say {words}")]));
    let (answer, summary) = shown.split_once("\n(").expect("a summary");
    assert_eq!(answer.replace('\n', " ").trim(), words);
    assert!(answer.lines().count() > 1 && answer.lines().all(|line| line.len() <= 60), "{shown}");
    assert!(summary.contains(" s, cost 0.") && summary.trim_end().ends_with(" EUR)"), "{shown}");
}

#[test]
fn keys_of_providers_that_are_set_are_named_by_a_gateway_without_settings() {
    let mut command = gatewright();
    command.args(["serve", "--listen", "127.0.0.1:0", "--color", "never"]).env("OPENAI_API_KEY", "canary");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let printed: Vec<String> = lines.take_while(|line| !line.contains("Base URL for SDKs")).collect();
    child.kill().and_then(|()| child.wait()).expect("it stops");
    let hint = "OPENAI_API_KEY is set: `gatewright serve --provider openai` uses it";
    assert!(printed.iter().any(|line| line.contains(hint)), "{printed:?}");
    assert!(!printed.concat().contains("canary"));
}
