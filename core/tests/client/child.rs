//! For tests of what a process reads from its environment: the test runs itself again in a child process with the
//! environment under test.

use std::io::Write as _;
use std::process::Output;

use tokio::process::Command;

const TASK: &str = "GATEWRIGHT_TEST_TASK";

/// The task that the parent gave to this process; none in the parent.
pub(crate) fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Runs a test of this program in a process of its own, with these variables and without any others that a client
/// reads.
pub(crate) async fn run(test: &str, task: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(TASK, task);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.to_ascii_lowercase().ends_with("_proxy") || name.starts_with("GATEWRIGHT_") {
            command.env_remove(name);
        }
    }
    command.env(TASK, task).envs(variables.iter().copied());
    command.kill_on_drop(true).output().await.unwrap()
}

/// Prints a line that [`reports`] finds.
pub(crate) fn report(line: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(format!("\nreport: {line}\n").as_bytes()).unwrap();
}

/// The lines that a process printed with [`report`].
pub(crate) fn reports(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix("report: ")).map(str::to_owned).collect()
}
