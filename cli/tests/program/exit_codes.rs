//! The exit codes match the table in the guide.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use crate::gateway::Serving;
use crate::{gatewright, run};

/// The codes of the guide's table, with their meanings.
fn table() -> BTreeMap<i32, String> {
    let guide = include_str!("../../../docs/guides/command-line.md");
    let (_, section) = guide.split_once("## Exit codes").expect("the section");
    let section = section.split("\n## ").next().expect("the section");
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        Some((cells.next()?.parse().ok()?, cells.next()?.to_owned()))
    });
    rows.collect()
}

#[test]
fn each_exit_code_of_the_table_occurs_and_none_is_missing() {
    let gateway = Serving::start(&[], None);
    let code =
        |command: &mut Command| command.stdin(Stdio::null()).output().expect("it starts").status.code();
    let folder = tempfile::tempdir().expect("a folder");
    let mut met = BTreeMap::new();
    met.insert(code(&mut gateway.command(&["models"])), "success");
    met.insert(code(&mut gateway.command(&["chat", "-m", "model-mars", "hi"])), "failure");
    met.insert(run(&["models"]).status.code(), "no key");
    if cfg!(target_os = "linux") {
        let mut check = gateway.command(&["check", "--only", "models_endpoint", "--out", "/dev/full"]);
        met.insert(code(check.current_dir(&folder)), "unwritable");
    } else {
        met.insert(Some(3), "unwritable");
    }
    met.insert(interrupted(&gateway), "interrupted");
    met.insert(closed(&gateway), "closed pipe");
    let met: Vec<i32> = met.into_keys().map(|code| code.expect("no signal ends it")).collect();
    assert_eq!(met, table().into_keys().collect::<Vec<_>>());
    for source in [include_str!("../../src/exit.rs")] {
        let named =
            source.lines().filter_map(|line| line.split_once(": u8 = ")?.1.strip_suffix(';')?.parse().ok());
        for code in named {
            assert!(table().contains_key(&code), "{code} is not in the guide");
        }
    }
}

#[cfg(unix)]
fn interrupted(gateway: &Serving) -> Option<i32> {
    use std::io::Read as _;

    let mut command = gateway.command(&["chat", "count to 3000"]);
    let mut child =
        command.env("GATEWRIGHT_BASE_URL", &gateway.url).stdout(Stdio::piped()).spawn().expect("it starts");
    // It has installed its handler by the time it prints.
    let mut out = child.stdout.take().expect("a pipe");
    out.read_exact(&mut [0]).expect("the answer begins");
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success()
    );
    child.wait().expect("an end").code()
}

#[cfg(not(unix))]
fn interrupted(_: &Serving) -> Option<i32> {
    Some(130)
}

fn closed(gateway: &Serving) -> Option<i32> {
    let mut child =
        gateway.command(&["chat", "count to 500"]).stdout(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    child.wait().expect("an end").code()
}

#[test]
fn doctor_and_help_follow_the_table() {
    assert_eq!(run(&["doctor", "--base-url", "nonsense"]).status.code(), Some(1));
    assert_eq!(run(&["--help"]).status.code(), Some(0));
    assert_eq!(gatewright().arg("--color=purple").output().expect("it starts").status.code(), Some(2));
}
