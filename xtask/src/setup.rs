//! `cargo xtask setup`: what a fresh machine lacks. The list of programs is in `.ci/run`, which installs them on Debian
//! and its descendants, and names them elsewhere.

use anyhow::Result;

use crate::artefacts::{install_python_tools, npm_ci};
use crate::process::{cargo, command, root, run, step};

/// Folders of Node packages that many steps use; the others are installed by the step that needs them.
const NODE_PACKAGES: [&str; 2] = ["bindings-node", "tests/tools"];

pub(crate) fn run_setup() -> Result<()> {
    step("programs", || run(command(root().join(".ci/run")).arg("setup")))?;
    step("crates", || run(cargo().args(["fetch", "--locked"])))?;
    step("Python packages, in .venv", install_python_tools)?;
    step("Node packages", || NODE_PACKAGES.iter().try_for_each(|folder| npm_ci(&root().join(folder))))?;
    eprintln!("ready: `cargo xtask demo` builds everything and shows it, `cargo xtask test` tests it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::process::{Command, Output};

    use super::*;

    /// Programs that the script itself needs of every machine.
    const GIVEN: [&str; 4] = ["bash", "dirname", "id", "env"];

    /// Runs `.ci/run setup` on a machine that has only these programs.
    fn setup_with(programs: &[&str], folder: &Path) -> Output {
        for name in GIVEN {
            let place = ["/usr/bin", "/bin"]
                .map(|bin| Path::new(bin).join(name))
                .into_iter()
                .find(|path| path.exists());
            symlink(place.expect("a system has it"), folder.join(name)).expect("a link");
        }
        for name in programs {
            let script = format!("#!{0}/bash\necho \"{name} $*\" >>'{0}/calls'\n", folder.display());
            let place = folder.join(name);
            fs::write(&place, script).expect("a program");
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("a program");
        }
        Command::new(root().join(".ci/run")).arg("setup").env("PATH", folder).output().expect("bash runs")
    }

    fn calls(folder: &Path) -> String {
        fs::read_to_string(folder.join("calls")).unwrap_or_default()
    }

    #[test]
    fn what_a_machine_lacks_is_installed_and_nothing_is_tested() {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = ["apt-get", "cargo", "sudo", "mkdir", "tee", "chmod", "rm", "cc", "c++", "git"];
        let output = setup_with(&programs, folder.path());
        assert!(output.status.success(), "{output:?}");
        let calls = calls(folder.path());
        let installed = calls.lines().find(|line| line.contains("apt-get install")).expect("an installation");
        for package in ["python3-venv", "nodejs", "npm"] {
            assert!(installed.contains(package), "{calls}");
        }
        assert!(!installed.contains("build-essential"), "{calls}");
        assert!(calls.contains("cargo install --locked cargo-nextest"), "{calls}");
        assert!(!calls.contains("xtask"), "{calls}");
    }

    #[test]
    fn machine_without_debians_packages_is_told_what_it_lacks() {
        let folder = tempfile::tempdir().expect("a folder");
        let output = setup_with(&["cc", "c++", "git"], folder.path());
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("lacks") && said.contains("nodejs") && said.contains("python3-venv"), "{said}");
    }
}
