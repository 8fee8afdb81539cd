//! A small disk that a test can fill up. The test runs again in a namespace in which it may mount one.

use std::path::Path;
use std::process::Command;

const INSIDE: &str = "GATEWRIGHT_TEST_MAY_MOUNT";

/// Whether this process may mount. If not, the test has just passed in one that may. `test`: its name, with
/// its modules.
///
/// # Panics
/// Panics if it failed there, or if this machine permits no namespaces.
pub fn may_mount(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let program = std::env::current_exe().expect("this program");
    let done = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare, of util-linux");
    let output = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && output.contains("1 passed"), "{output}");
    false
}

/// Mounts a disk of this size at a folder, which is created if it is missing. `size`: such as `256k`.
///
/// # Panics
/// Panics if this process may not [mount](may_mount).
pub fn mount(folder: &Path, size: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    run(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", text(folder)]);
}

/// Makes the disk at a folder read-only.
///
/// # Panics
/// Panics if this process may not [mount](may_mount).
pub fn make_read_only(folder: &Path) {
    run(&["-o", "remount,ro", text(folder)]);
}

fn text(folder: &Path) -> &str {
    folder.to_str().expect("text")
}

fn run(arguments: &[&str]) {
    let done = Command::new("mount").args(arguments).output().expect("mount");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
