//! `gatewright serve` on a terminal: a line for each request, and a page that opens.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use rexpect::session::{PtySession, spawn_command};
use serde_json::json;

use crate::{gatewright, http};

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
    assert!(code.len() >= 43 && !page.contains("=k"), "{page}");
    // The code is valid once.
    let exchange = || http::ask(&address, ("POST", "/console/sign-in"), code, "", "").expect("an answer");
    assert_eq!(exchange().document, json!({ "client": "k", "admin": null }));
    assert!(exchange().document["error"]["message"].as_str().expect("a message").contains("used already"));
    stop(terminal);
}
