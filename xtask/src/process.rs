//! Runs the steps of a developer command: reports each step and its duration, and stops at the first failure.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Runs `body` under a heading and prints how long it took.
pub(crate) fn step<T>(title: &str, body: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("==> {title}");
    let started = Instant::now();
    let result = body().with_context(|| title.to_owned())?;
    eprintln!("    {title}: {:.1} s", started.elapsed().as_secs_f64());
    Ok(result)
}

/// A command that runs at the root of the workspace.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_this_package) {
            command.env_remove(name);
        }
    }
    command
}

/// Whether `cargo run` sets a variable for this program. Build scripts look at some of them, so that with them dependencies would be
/// built again whenever cargo runs here and then in a shell.
fn is_of_this_package(variable: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| variable.starts_with(prefix))
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command and shows its output. If it fails, the error names the command.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| missing(command))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().with_context(|| missing(command))?;
    if !output.status.success() {
        bail!("{} ended with {}\n{}", shown(command), output.status, String::from_utf8_lossy(&output.stdout));
    }
    String::from_utf8(output.stdout).context("the output is not UTF-8")
}

pub(crate) fn missing(command: &Command) -> String {
    format!("cannot start {}; is it installed and on PATH?", command.get_program().to_string_lossy())
}

pub(crate) fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Twice the number of cores: tests spend more than half of their time waiting for other processes, disks and
/// pauses.
pub(crate) fn tests_at_once() -> Result<String> {
    Ok((2 * std::thread::available_parallelism()?.get()).to_string())
}

/// The files of a folder with an extension, sorted by name.
pub(crate) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    Ok(files)
}

/// The triple of this machine, from rustc.
pub(crate) fn host() -> Result<String> {
    let version = output(command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_processes_do_not_inherit_cargo_package_variables() {
        for (variable, is_removed) in [
            ("CARGO_PKG_NAME", true),
            ("CARGO_MANIFEST_DIR", true),
            ("CARGO_TARGET_DIR", false),
            ("CARGO_PROFILE_DEV_DEBUG", false),
        ] {
            assert_eq!(is_of_this_package(variable), is_removed, "{variable}");
        }
    }
}
