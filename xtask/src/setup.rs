//! `cargo xtask setup`: installs what a fresh machine lacks. The list of programs is in `.ci/run`, which installs them on
//! Debian and its descendants, and names them elsewhere. It also adds the components that a minimal Rust lacks, and
//! checks the versions of Python and Node.

use anyhow::Result;

use crate::artefacts::{install_python_tools, npm_ci, pip_install};
use crate::process::{cargo, command, root, run, step};

/// Requirements of Python packages, besides those that every step uses.
const PYTHON_PACKAGES: [&str; 3] = [
    "tests/clients/requirements.txt",
    "tests/migration/requirements.txt",
    "examples/distributed/requirements.txt",
];

/// Folders of Node packages.
const NODE_PACKAGES: [&str; 10] = [
    "bindings-node",
    "console",
    "tests/agent",
    "tests/clients",
    "tests/clients/agents",
    "tests/migration",
    "tests/pages",
    "tests/peers",
    "tests/runtimes",
    "tests/tools",
];

pub(crate) fn run_setup() -> Result<()> {
    step("programs", || run(command(root().join(".ci/run")).arg("setup")))?;
    install_packages()?;
    eprintln!("ready: `cargo xtask demo` builds everything and shows it, `cargo xtask test` tests it");
    Ok(())
}

/// Fetches in advance what steps would otherwise fetch one after the other: crates, and the packages of
/// Python and Node.
pub(crate) fn install_packages() -> Result<()> {
    step("crates", || run(cargo().args(["fetch", "--locked"])))?;
    step("Node packages", || NODE_PACKAGES.iter().try_for_each(|folder| npm_ci(&root().join(folder))))?;
    step("Python packages, in .venv", || {
        install_python_tools()?;
        PYTHON_PACKAGES.iter().try_for_each(|file| pip_install(&root().join(file)))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::process::{Command, Output};

    use super::*;

    /// Programs that the script itself needs on every machine.
    const GIVEN: [&str; 4] = ["bash", "dirname", "id", "env"];

    /// The checks of `.ci/run` whose outcome matters: a Rust with all components, and new enough versions.
    const CARGO: (&str, &str) = ("cargo", "true");
    const RUST_ALONE: (&str, &str) = ("cargo", "[ \"$1\" != clippy ] && [ \"$1\" != fmt ]");
    const NODE: (&str, &str) = ("node", "echo v20.0.1");
    const PYTHON: (&str, &str) = ("python3", "echo Python 3.10.2");
    /// Debian has a separate package for the module `venv`.
    const PYTHON_ALONE: (&str, &str) = ("python3", "[ \"$1\" != -c ] && echo Python 3.11.2");

    /// A machine with only these programs, each of which records its calls and runs a line of Bash.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(silent: &[&str], programs: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            for name in GIVEN {
                let place = ["/usr/bin", "/bin"]
                    .map(|bin| Path::new(bin).join(name))
                    .into_iter()
                    .find(|path| path.exists());
                symlink(place.expect("a system has it"), folder.path().join(name)).expect("a link");
            }
            let silent = silent.iter().map(|name| (*name, "true"));
            for (name, line) in silent.chain(programs.iter().copied()) {
                let here = folder.path().display();
                let script = format!("#!{here}/bash\necho \"{name} $*\" >>'{here}/calls'\n{line}\n");
                let place = folder.path().join(name);
                fs::write(&place, script).expect("a program");
                fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("a program");
            }
            Self(folder)
        }

        /// A machine with Debian's installer, which installs nothing.
        fn of_debian(programs: &[(&str, &str)]) -> Self {
            let silent = ["apt-get", "sudo", "mkdir", "tee", "chmod", "rm", "cc", "c++", "git"];
            Self::new(&silent, programs)
        }

        fn set_up(&self) -> Output {
            let mut script = Command::new(root().join(".ci/run"));
            script.arg("setup").env("PATH", self.0.path()).output().expect("bash runs")
        }

        fn calls(&self) -> String {
            fs::read_to_string(self.0.path().join("calls")).unwrap_or_default()
        }
    }

    /// The message of a failing setup.
    fn complaint(machine: &Machine) -> String {
        let output = machine.set_up();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    #[test]
    fn setup_installs_missing_tools_and_runs_no_tests() {
        let machine = Machine::of_debian(&[CARGO, NODE, PYTHON_ALONE]);
        let output = machine.set_up();
        assert!(output.status.success(), "{output:?}");
        let calls = machine.calls();
        let installed = calls.lines().find(|line| line.contains("apt-get install")).expect("an installation");
        for package in ["python3-venv", "nodejs", "npm"] {
            assert!(installed.contains(package), "{calls}");
        }
        assert!(!installed.contains("build-essential"), "{calls}");
        assert!(calls.contains("cargo install --locked cargo-nextest"), "{calls}");
        assert!(!calls.contains("xtask") && !calls.contains("rustup"), "{calls}");
    }

    #[test]
    fn machine_without_apt_gets_a_list_of_missing_tools() {
        let message = complaint(&Machine::new(&["cc", "c++", "git"], &[]));
        assert!(
            message.contains("lacks") && message.contains("nodejs") && message.contains("python3-venv"),
            "{message}"
        );
    }

    #[test]
    fn missing_rust_components_are_added() {
        let machine = Machine::of_debian(&[RUST_ALONE, NODE, PYTHON, ("rustup", "true")]);
        let output = machine.set_up();
        assert!(output.status.success(), "{output:?}");
        assert!(machine.calls().contains("rustup component add clippy rustfmt\n"), "{}", machine.calls());
    }

    #[test]
    fn missing_components_without_rustup_are_listed() {
        let message = complaint(&Machine::of_debian(&[RUST_ALONE, NODE, PYTHON]));
        assert!(message.contains("lacks clippy rustfmt for its Rust"), "{message}");
    }

    #[test]
    fn outdated_versions_are_reported_with_the_minimum_and_the_fix() {
        let (node, python) = (("node", "echo v18.19.0"), ("python3", "echo Python 3.9.2"));
        let machine = Machine::of_debian(&[CARGO, node, python]);
        assert_eq!(
            complaint(&machine),
            "Python is 3.9 here, and 3.10 or later is needed: install one as python3 (with venv), for example by uv or \
             pyenv, and start again\n\
             Node is 18.19 here, and 20.0 or later is needed: install one as node (with npm), for example by fnm or \
             nvm, and start again\n"
        );
        assert!(!machine.calls().contains("cargo install"), "{}", machine.calls());
        let newer = Machine::of_debian(&[CARGO, ("node", "echo v26.1.0"), ("python3", "echo Python 4.0.0")]);
        assert!(newer.set_up().status.success());
    }

    #[test]
    fn program_without_a_version_is_reported() {
        let message = complaint(&Machine::of_debian(&[CARGO, PYTHON, ("node", "false")]));
        assert!(message.contains("Node does not say its version here"), "{message}");
    }
}
