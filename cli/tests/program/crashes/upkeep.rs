//! The commands that maintain a store: wherever one stops, its result is complete or marked as incomplete, and the next run
//! continues.

use std::path::Path;
use std::process::{Command, Output};

use crate::store::{keys, older, output_of, text, used};
use crate::{gatewright, run};

/// More steps than any command takes.
const MOST: u32 = 50;

/// Runs a command that stops at a step in some source files. Returns whether it did.
fn stopped(mut command: Command, step: u32, steps_of: &str) -> bool {
    command.env("GATEWRIGHT_CRASH_AT", step.to_string()).env("GATEWRIGHT_CRASH_IN", steps_of);
    let output = command.output().expect("it runs");
    // A command that stops prints nothing.
    assert!(output.status.success() != output.stderr.is_empty(), "step {step}: {output:?}");
    !output.status.success()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = gatewright();
    command.args(arguments);
    command
}

/// Tries these steps in turn until none is left. `least`: the minimum number of steps.
fn at_steps(tried: impl Iterator<Item = u32>, least: u32, mut stops: impl FnMut(u32) -> bool) {
    let mut tried = tried.take_while(|step| *step < MOST);
    let survived = tried.find(|step| !stops(*step)).expect("it reaches the end");
    assert!(survived > least, "{least} steps at least: {survived}");
}

/// All rows of a data folder.
fn rows(data: &Path) -> String {
    let output = run(&["store", "export", "-", "--data", text(data)]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Creates a data folder that an earlier version filled, and brings its tables to this version.
fn with_rows(folder: &Path) -> String {
    let data = folder.join("data");
    older::folder(&data);
    let rows = rows(&data);
    std::fs::write(folder.join("rows"), &rows).expect("written");
    rows
}

/// Either the rows exist by now, or they can be imported.
fn imported_again(output: &Output, step: u32) -> bool {
    if output.status.code() == Some(0) {
        return true;
    }
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("the store is not empty"), "step {step}: {error}");
    false
}

#[test]
fn import_is_all_or_nothing_wherever_it_stops() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows_before = with_rows(folder.path());
    let file = folder.path().join("rows");
    // Whether it had to be imported again.
    let mut again = Vec::new();
    at_steps(1.., 9, |step| {
        let to = folder.path().join(format!("to-{step}"));
        std::fs::create_dir(&to).expect("a folder");
        std::fs::copy(folder.path().join("data/pepper"), to.join("pepper")).expect("the pepper");
        let import = ["store", "import", text(&file), "--data", text(&to)];
        let has_stopped = stopped(command(&import), step, "store/src/sql/upkeep.rs");
        again.push(imported_again(&run(&import), step));
        assert_eq!(rows(&to), rows_before, "step {step}");
        has_stopped
    });
    assert!(again.starts_with(&[true]) && again.ends_with(&[false, false]), "{again:?}");
}

#[test]
fn backup_gets_its_name_only_when_complete() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    // When killed, the gateway leaves a journal.
    drop(used(&data));
    at_steps(1.., 9, |step| {
        let to = folder.path().join(format!("copy-{step}"));
        let unfinished = folder.path().join(format!("copy-{step}.unfinished"));
        let backup = ["store", "backup", text(&to), "--data", text(&data)];
        let has_stopped = stopped(command(&backup), step, "access/upkeep.rs");
        assert!(!(to.exists() && unfinished.exists()), "step {step}");
        if unfinished.exists() {
            let refused = run(&backup);
            assert_eq!(refused.status.code(), Some(2), "step {step}");
            let error = String::from_utf8_lossy(&refused.stderr);
            assert!(error.contains("remove it"), "step {step}: {error}");
            std::fs::remove_dir_all(&unfinished).expect("removed");
        }
        if !to.exists() {
            output_of(&backup);
        }
        output_of(&["store", "check", "--data", text(&to)]);
        assert_eq!(keys(&to), keys(&data), "step {step}");
        let journals = |data: &Path| std::fs::read_dir(data.join("usage")).expect("a folder").count();
        assert_eq!((journals(&to), journals(&data)), (1, 1), "step {step}");
        has_stopped
    });
}

#[test]
fn interrupted_migration_of_an_older_store_is_completed() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows_before = with_rows(folder.path());
    at_steps(1.., 5, |step| {
        let data = folder.path().join(format!("data-{step}"));
        older::folder(&data);
        std::fs::copy(folder.path().join("data/pepper"), data.join("pepper")).expect("the pepper");
        let has_stopped =
            stopped(command(&["store", "migrate", "--data", text(&data)]), step, "store/src/sql");
        assert_eq!(rows(&data), rows_before, "step {step}");
        output_of(&["store", "check", "--data", text(&data)]);
        has_stopped
    });
}

#[cfg(unix)]
mod postgres {
    use std::process::Command;

    use gatewright_test_stores::Postgres;

    use super::{at_steps, command, imported_again, older, stopped};

    /// 32 bytes in base64.
    const PEPPER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn on(url: &str, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.arg("--store").env("GATEWRIGHT_SERVE_STORE_URL", url).env("GATEWRIGHT_SERVE_PEPPER", PEPPER);
        command
    }

    fn rows(url: &str) -> String {
        let output = on(url, &["store", "export", "-"]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// The first row, some in between, and the commit that was not reported.
    #[test]
    fn import_into_a_server_is_all_or_nothing_wherever_it_stops() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("rows");
        let server = Postgres::start();
        let before = rows(&older::on_server(&server, "before"));
        std::fs::write(&file, &before).expect("written");
        let import = ["store", "import", file.to_str().expect("a path")];
        let mut again = Vec::new();
        at_steps((1..).step_by(4), 9, |step| {
            let url = older::empty_on_server(&server, &format!("to_{step}"));
            let has_stopped = stopped(on(&url, &import), step, "store/src/sql/upkeep.rs");
            again.push(imported_again(&on(&url, &import).output().expect("it runs"), step));
            assert_eq!(rows(&url), before, "step {step}");
            has_stopped
        });
        assert_eq!(again, [true, true, false, false]);
    }

    #[test]
    fn interrupted_migration_of_an_older_server_is_completed() {
        let server = Postgres::start();
        let before = rows(&older::on_server(&server, "before"));
        at_steps(1.., 3, |step| {
            let url = older::on_server(&server, &format!("from_{step}"));
            let has_stopped = stopped(on(&url, &["store", "migrate"]), step, "store/src/sql/migrations.rs");
            assert_eq!(rows(&url), before, "step {step}");
            has_stopped
        });
    }
}
