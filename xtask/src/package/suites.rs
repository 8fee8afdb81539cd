//! The suites of the Python and the Node client on packages as they are published: with the profile, the linker and the
//! stripped code of the release, installed by pip and npm into new folders. Nothing of the checkout's builds is used, and the
//! gateway is the one in the packages.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use super::{INSTALLED, create_project, empty_folder, node};
use crate::artefacts::{self, SERVER, npm_ci};
use crate::process::{command, files_of, host, output, root, run, step, tests_at_once};
use crate::{runtimes, soak};

/// What can be run: the tests of both clients, those of the Node client on further runtimes, and the search for leaks.
pub(crate) const SUITES: [&str; 4] = ["python", "node", "runtimes", "soak"];

/// Tests that panic on purpose, which only builds with debug assertions can: the files `test_NAME.py`, `NAME.test.mjs`.
const DEBUG_ALONE: &str = "panics";

/// Runs suites, or all of them, on the packages for this machine in a folder. `python`: the interpreter for the wheels.
pub(crate) fn run_suites(dist: &Path, python: &str, chosen: &[String]) -> Result<()> {
    if let Some(unknown) = chosen.iter().find(|name| !SUITES.contains(&name.as_str())) {
        bail!("there is no suite {unknown:?} for packages; there are {}", SUITES.join(", "));
    }
    let wants =
        |names: &[&str]| chosen.is_empty() || chosen.iter().any(|chosen| names.contains(&chosen.as_str()));
    let dist = root().join(dist);
    let wheels = if wants(&["python", "soak"]) {
        Some(step("install the wheels", || Wheels::install(&dist, python))?)
    } else {
        None
    };
    let tarballs = if wants(&["node", "runtimes", "soak"]) {
        Some(step("install the tarballs", || Tarballs::install(&dist))?)
    } else {
        None
    };
    if let Some(wheels) = wheels.as_ref().filter(|_| wants(&["python"])) {
        step("the Python suite", || wheels.test())?;
    }
    if let Some(tarballs) = &tarballs {
        if wants(&["node"]) {
            step("the Node suite", || tarballs.test())?;
        }
        if wants(&["runtimes"]) {
            runtimes::test_package(&tarballs.package(), &tarballs.program()?, &tarballs.tests()?)?;
        }
    }
    if let (Some(wheels), Some(tarballs), true) = (&wheels, &tarballs, wants(&["soak"])) {
        let programs = soak::Programs {
            python: wheels.venv.join("bin/python"),
            node: tarballs.folder.join("tests/soak/soak.mjs"),
        };
        step("memory stays flat", || soak::run_short_on(&programs, &["python", "node"]))?;
    }
    Ok(())
}

/// The wheels in a new virtual environment, with what their tests need.
struct Wheels {
    venv: PathBuf,
}

impl Wheels {
    fn install(dist: &Path, python: &str) -> Result<Self> {
        let wheels = ["gatewright", "gatewright_server"].map(|name| package(dist, name, "whl"));
        let [client, server] = wheels;
        let (client, server) = (client?, server?);
        let venv = empty_folder("package-suites/python")?;
        run(command(python).args(["-m", "venv", "--clear"]).arg(&venv))?;
        artefacts::install_python_test_tools(&venv)?;
        run(command(venv.join("bin/python"))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"])
            .args([client, server]))?;
        let installed = Self { venv };
        let version = output(command(installed.venv.join("bin/python")).arg("--version"))?;
        eprintln!("    {}", version.trim());
        run(installed.python().args(["-c", INSTALLED]).arg(&installed.venv))?;
        Ok(installed)
    }

    fn python(&self) -> std::process::Command {
        let mut python = command(self.venv.join("bin/python"));
        // Its pyproject.toml says how the tests run; the package lies in a folder that Python does not search.
        python.current_dir(root().join("bindings-python"));
        python
    }

    fn test(&self) -> Result<()> {
        run(self
            .python()
            .env("GATEWRIGHT_BIN", self.venv.join("bin").join(SERVER))
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", &tests_at_once()?, "tests"])
            .arg(format!("--ignore=tests/test_{DEBUG_ALONE}.py")))
    }
}

/// The tarballs in a new folder, in which the tests and what they read lie as in a checkout.
struct Tarballs {
    folder: PathBuf,
    platform: String,
}

impl Tarballs {
    fn install(dist: &Path) -> Result<Self> {
        let platform = node::platform_of(&host()?)?;
        let names =
            ["gatewright", &format!("gatewright-{platform}"), SERVER, &format!("{SERVER}-{platform}")];
        let tarballs =
            names.map(|name| package(dist, name, "tgz")).into_iter().collect::<Result<Vec<_>>>()?;
        let folder = empty_folder("package-suites/node")?;
        create_project(&folder)?;
        node::install(&tarballs, &folder)?;
        let installed = Self { folder, platform };
        installed.lay_out()?;
        let found = output(
            command("node")
                .current_dir(installed.package().join("test"))
                .args(["-p", "require('node:fs').realpathSync(require.resolve('gatewright'))"]),
        )?;
        let expected = installed.folder.join("node_modules/gatewright");
        ensure!(
            Path::new(found.trim()).starts_with(fs::canonicalize(&expected)?),
            "the tests import {} instead of {}",
            found.trim(),
            expected.display()
        );
        Ok(installed)
    }

    /// Puts the tests, and what they read, around the installed package.
    fn lay_out(&self) -> Result<()> {
        let checkout = root().join("bindings-node");
        npm_ci(&checkout)?;
        let package = self.package();
        // Copies, because a link would lead imports back to the checkout.
        copy_files(&checkout.join("test"), &package.join("test"))?;
        copy_files(&checkout.join("test/support"), &package.join("test/support"))?;
        copy_files(&root().join("examples/node"), &self.folder.join("examples/node"))?;
        copy_files(&root().join("tests/soak"), &self.folder.join("tests/soak"))?;
        fs::copy(checkout.join("README.md"), package.join("README.md"))?;
        // What the tests need beside the package, and the files that some of them look for in it.
        symlink(checkout.join("node_modules"), package.join("node_modules"))?;
        symlink(self.folder.join("node_modules/gatewright/dist"), package.join("dist"))?;
        symlink(checkout.join("node_modules/zod"), self.folder.join("node_modules/zod"))?;
        for shared in ["spec", "tests/vectors", "examples/reports"] {
            symlink(root().join(shared), self.folder.join(shared))?;
        }
        Ok(())
    }

    /// The place of the tests' package.
    fn package(&self) -> PathBuf {
        self.folder.join("bindings-node")
    }

    /// The gateway in the packages.
    fn program(&self) -> Result<PathBuf> {
        let package = self.folder.join("node_modules/@gatewright").join(format!("server-{}", self.platform));
        let program = package.join("bin").join(SERVER);
        ensure!(program.exists(), "the package of the server has no {}", program.display());
        Ok(program)
    }

    fn tests(&self) -> Result<Vec<PathBuf>> {
        let mut tests = files_of(&self.package().join("test"), "mjs")?;
        tests.retain(|test| !test.ends_with(format!("{DEBUG_ALONE}.test.mjs")));
        Ok(tests)
    }

    fn test(&self) -> Result<()> {
        run(command("node")
            .current_dir(self.package())
            .env("GATEWRIGHT_BIN", self.program()?)
            .args(["--import", "./test/support/deadline.mjs", "--test", "--test-timeout=600000"])
            .args(["--test-reporter=dot", "--test-concurrency", &tests_at_once()?])
            .args(self.tests()?))
    }
}

/// The one file `NAME-VERSION….EXTENSION` of a folder.
fn package(folder: &Path, name: &str, extension: &str) -> Result<PathBuf> {
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let found: Vec<_> = files_of(folder, extension)?.into_iter().filter(is_it).collect();
    match <[PathBuf; 1]>::try_from(found) {
        Ok([file]) => Ok(file),
        Err(files) => bail!(
            "{} has {} files {name}-VERSION….{extension} instead of one; `cargo xtask package` writes one to dist/",
            folder.display(),
            files.len()
        ),
    }
}

/// Copies the files of a folder, without its folders.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_distinguished_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [
            "gatewright-0.1.0.tgz",
            "gatewright-linux-x64-gnu-0.1.0.tgz",
            "gatewright-server-0.1.0.tgz",
            "gatewright-server-linux-x64-gnu-0.1.0.tgz",
        ] {
            fs::write(folder.path().join(name), "").expect("a file");
        }
        for name in ["gatewright", "gatewright-linux-x64-gnu", SERVER, "gatewright-server-linux-x64-gnu"] {
            let found = package(folder.path(), name, "tgz").expect("one file");
            assert!(found.ends_with(format!("{name}-0.1.0.tgz")), "{}", found.display());
        }
        fs::write(folder.path().join("gatewright-0.2.0.tgz"), "").expect("a file");
        let error = package(folder.path(), "gatewright", "tgz").expect_err("two versions").to_string();
        assert!(error.contains("2 files gatewright-VERSION….tgz instead of one"), "{error}");
    }

    #[test]
    fn unknown_suite_is_rejected_with_the_names() {
        let error = run_suites(Path::new("dist"), "python3", &["rust".into()]).expect_err("no such suite");
        assert!(error.to_string().contains("python, node, runtimes, soak"), "{error}");
    }

    #[test]
    fn files_that_packages_cannot_run_exist() {
        assert!(root().join(format!("bindings-python/tests/test_{DEBUG_ALONE}.py")).exists());
        assert!(root().join(format!("bindings-node/test/{DEBUG_ALONE}.test.mjs")).exists());
    }
}
