//! The program as people and scripts run it: exit codes, output, messages.

mod answers;
mod check;
mod config;
#[cfg(unix)]
mod conversation;
mod crashes;
mod doctor;
#[cfg(unix)]
mod draining;
mod exit_codes;
mod gateway;
mod help;
mod http;
mod http2;
mod import;
mod keys;
mod local;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod nodes;
mod observability;
#[cfg(target_os = "linux")]
mod power_loss;
mod prices;
#[cfg(unix)]
mod provider_models;
mod providers;
mod report;
#[cfg(unix)]
mod screen;
mod shared_config;
mod shell;
mod store;
mod terminals;
mod usage;
mod webhooks;

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Output, Stdio};

/// The program without any environment that could change its behavior: the debug build, or the one that `GATEWRIGHT_BIN` names,
/// such as a published one.
fn gatewright() -> Command {
    let program = std::env::var_os("GATEWRIGHT_BIN");
    let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_gatewright").into()));
    for variable in [
        "GATEWRIGHT_API_KEY",
        "GATEWRIGHT_SERVE_KEY",
        "GATEWRIGHT_SERVE_ADMIN_KEY",
        "GATEWRIGHT_SERVE_CONFIG",
        "GATEWRIGHT_SERVE_DATA",
        "GATEWRIGHT_SERVE_STORE_URL",
        "GATEWRIGHT_SERVE_COUNTERS_URL",
        "GATEWRIGHT_SERVE_PEPPER",
        "GATEWRIGHT_SERVE_NAME",
        "GATEWRIGHT_BASE_URL",
        "GATEWRIGHT_WEBHOOK_SECRET",
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "RUST_LOG",
        "HTTP_PROXY",
        "http_proxy",
        "GOOGLE_API_KEY",
        "GEMINI_API_KEY",
        "OPENAI_API_KEY",
    ] {
        command.env_remove(variable);
    }
    // No folder of the user who runs the tests, nor any gateway or key there: no folder can be made below a device.
    command.env("XDG_DATA_HOME", "/nowhere");
    command.env("XDG_STATE_HOME", "/dev/null/state").env("XDG_RUNTIME_DIR", "/dev/null/runtime");
    command
}

fn run(arguments: &[&str]) -> Output {
    gatewright().args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

fn run_with_input(arguments: &[&str], input: &[u8]) -> Output {
    let mut child = gatewright()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that rejects its arguments exits before it reads: the test is about its message.
    let written = child.stdin.take().expect("a pipe").write_all(input);
    if let Err(error) = written {
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "the program reads its input: {error}");
    }
    child.wait_with_output().expect("the program ends")
}

/// Exit code and both outputs, for a snapshot.
fn transcript(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("output is UTF-8");
    let code = output.status.code().expect("an exit code");
    format!("exit code {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}
