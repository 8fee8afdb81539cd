//! Runs commands as a user who owns nothing, since servers refuse to run as root.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

/// The user and the group `nobody`, as Debian numbers them.
const NOBODY: u32 = 65_534;

/// A command that is ended by `signal` when the thread that starts it ends: also when the process is killed.
pub(crate) fn command(program: impl AsRef<OsStr>, signal: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", signal]);
    if is_root() {
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
    }
    command.arg("--").arg(program);
    command
}

/// Lets the user of [`command`] read and write a folder or file.
pub(crate) fn hand_over(place: &Path) {
    let mode = if place.is_dir() { 0o700 } else { 0o600 };
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(mode)).expect("permissions");
    if is_root() {
        chown(place, Some(NOBODY), Some(NOBODY)).expect("another owner");
    }
}

fn is_root() -> bool {
    Path::new("/proc/self").metadata().is_ok_and(|process| process.uid() == 0)
}
