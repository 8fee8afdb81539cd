//! Help and messages about wrong usage.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::Stdio;

use insta::assert_snapshot;

use crate::{gatewright, run, transcript};

#[test]
fn help_of_every_command() {
    let reports =
        ["validate", "show", "html", "diff", "junit", "sarif", "trend", "fmt", "new", "schema", "explain"];
    let reports = reports.map(|command| format!("report {command}"));
    let commands = [
        "",
        "serve",
        "config",
        "config init",
        "config check",
        "config schema",
        "config models",
        "config push",
        "config show",
        "config history",
        "config rollback",
        "providers",
        "prices",
        "prices import",
        "import",
        "import litellm",
        "check",
        "report",
        "chat",
        "models",
        "image",
        "video",
        "keys",
        "keys create",
        "keys list",
        "keys show",
        "keys update",
        "keys rotate",
        "keys revoke",
        "keys local",
        "usage",
        "nodes",
        "store",
        "store migrate",
        "store check",
        "store backup",
        "store export",
        "store import",
        "webhooks",
        "webhooks list",
        "webhooks redeliver",
        "webhooks listen",
        "webhooks secret",
        "doctor",
        "completions",
        "man",
    ];
    for command in commands.into_iter().chain(reports.iter().map(String::as_str)) {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.push("--help");
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let name = format!("help {command}").trim_end().replace(' ', "_");
        assert_snapshot!(name, String::from_utf8(output.stdout).expect("help is UTF-8"));
    }
}

#[test]
fn version_is_the_package_s() {
    for spelling in ["--version", "-V", "-v", "version"] {
        let output = run(&[spelling]);
        assert_eq!(
            output.stdout,
            format!("gatewright {}\n", env!("CARGO_PKG_VERSION")).as_bytes(),
            "{spelling}"
        );
        assert_eq!(output.status.code(), Some(0), "{spelling}");
    }
}

#[test]
fn wrong_usage_exits_with_2_and_names_the_problem() {
    let cases: [(&str, &[&str]); 6] = [
        ("no command", &[]),
        ("unknown command", &["report", "invalidate"]),
        ("no files", &["report", "validate"]),
        ("unknown format", &["report", "validate", "--format", "xml", "-"]),
        ("no out", &["image", "a cat"]),
        ("negative interval", &["video", "a wave", "--out", "w.mp4", "--interval=-1"]),
    ];
    let mut all = String::new();
    for (name, arguments) in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{name}");
        writeln!(all, "== {name}\n{}", transcript(&output)).expect("writing to a string succeeds");
    }
    assert_snapshot!(all);
}

/// The key is never an argument of a command that calls a gateway: it would show in process lists.
#[test]
fn client_commands_have_no_key_argument() {
    for command in [&["models", "--key", "k"][..], &["chat", "hi", "--api-key", "k"]] {
        assert_eq!(run(command).status.code(), Some(2), "{command:?}");
    }
}

#[test]
fn missing_key_is_a_configuration_error() {
    assert_snapshot!(transcript(&run(&["models", "--base-url", "https://gateway.invalid"])));
}

#[test]
fn without_a_gateway_and_a_key_the_way_to_start_one_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let url = format!("http://127.0.0.1:{port}");
    for command in [&["models"][..], &["chat", "hi"]] {
        let mut command_line = gatewright();
        command_line.args(command).env("GATEWRIGHT_BASE_URL", &url).stdin(Stdio::null());
        let output = command_line.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("gatewright: no gateway runs at {url}: start one with `gatewright serve`;");
        assert!(message.starts_with(&expected), "{message}");
    }
}
