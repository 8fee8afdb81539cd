//! `cargo xtask test advisories`: looks up every locked dependency in the databases of known vulnerabilities. They come over
//! the network and change without a commit, so only the nightly workflow runs this.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::artefacts::{install_python_tools, venv};
use crate::deny::DENY;
use crate::process::{command, output, root, run};

/// The lock files of the three languages, as patterns of `git ls-files`.
const LOCKS: [&str; 3] = ["*Cargo.lock", "*package-lock.json", "*requirements*.txt"];

pub(crate) fn check() -> Result<()> {
    install_python_tools()?;
    let locks = output(command("git").arg("ls-files").args(LOCKS))?;
    report(&failures(locks.lines(), |lock| {
        eprintln!("==> {lock}");
        run(&mut audit(lock)?)
    }))
}

/// The command that looks up what a file locks. It also fails if it can't look up one of the dependencies.
fn audit(lock: &str) -> Result<Command> {
    let path = root().join(lock);
    let folder = path.parent().unwrap_or(&path);
    Ok(match path.file_name().and_then(|name| name.to_str()) {
        Some("Cargo.lock") => {
            let mut deny = DENY.installed()?;
            deny.args(["--all-features", "--locked", "--config"]).arg(root().join("deny.toml"));
            deny.arg("--manifest-path").arg(folder.join("Cargo.toml"));
            deny.args(["check", "--hide-inclusion-graph", "advisories"]);
            deny
        }
        Some("package-lock.json") => {
            let mut npm = command("npm");
            npm.current_dir(folder).args(["audit", "--package-lock-only"]);
            npm
        }
        _ => pip_audit(&path),
    })
}

fn pip_audit(requirements: &Path) -> Command {
    let mut audit = command(venv(&root()).join("bin/pip-audit"));
    // The file has all packages in their versions: nothing has to be resolved.
    audit.args(["--strict", "--disable-pip", "--no-deps", "--progress-spinner", "off", "--requirement"]);
    audit.arg(requirements);
    audit
}

/// The lock files whose audit fails. One that fails doesn't keep the others from being audited.
fn failures<'a>(
    locks: impl Iterator<Item = &'a str>,
    mut audit: impl FnMut(&str) -> Result<()>,
) -> Vec<String> {
    locks.filter_map(|lock| Some(format!("{lock}: {:#}", audit(lock).err()?))).collect()
}

fn report(failures: &[String]) -> Result<()> {
    if !failures.is_empty() {
        bail!(
            "known vulnerabilities, or an audit that could not run (its output is above):\n{}\nUpdate what is affected. If \
             no release fixes it and it can't affect us, name the advisory with the reason: in `ignore` of deny.toml for \
             a crate, in `--ignore-vuln` of xtask/src/advisories.rs for a Python package",
            failures.join("\n")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_is_audited_and_failures_are_named() {
        let mut audited = Vec::new();
        let found = failures(["a/Cargo.lock", "b/package-lock.json", "c.txt"].into_iter(), |lock| {
            audited.push(lock.to_owned());
            run(&mut command(if lock == "c.txt" { "true" } else { "false" }))
        });
        assert_eq!(audited, ["a/Cargo.lock", "b/package-lock.json", "c.txt"]);
        let message = report(&found).expect_err("two audits fail").to_string();
        assert!(message.contains("a/Cargo.lock: false ended with"), "{message}");
        assert!(message.contains("b/package-lock.json: ") && !message.contains("c.txt"), "{message}");
        report(&[]).expect("nothing fails");
    }

    #[test]
    fn audit_that_cannot_start_fails() {
        let found = failures(["a"].into_iter(), |_| run(&mut command("no-such-program")));
        assert!(found[0].contains("cannot start no-such-program"), "{found:?}");
    }

    #[test]
    fn lock_is_audited_by_the_tool_of_its_language() {
        let npm = audit("console/package-lock.json").expect("npm");
        assert_eq!(npm.get_current_dir(), Some(root().join("console").as_path()));
        assert_eq!(npm.get_args().collect::<Vec<_>>(), ["audit", "--package-lock-only"]);
        let pip = audit("tests/tools/requirements-uv.txt").expect("pip-audit");
        let program = Path::new(pip.get_program());
        assert!(program.ends_with("bin/pip-audit"), "{}", program.display());
        // Without it, a package that the database lacks would pass.
        assert!(pip.get_args().any(|argument| argument == "--strict"));
        assert_eq!(pip.get_args().last(), Some(root().join("tests/tools/requirements-uv.txt").as_os_str()));
    }
}
