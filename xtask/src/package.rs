//! `cargo xtask package`: the wheel and the npm tarball, and the test that installs both into clean environments.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::artefacts::{self, Examples, build_node_package, create_venv, node_package, target, venv};
use crate::building;
use crate::process::{cargo, command, files_of, host, root, run, step};

/// Writes `dist/*.whl` and `dist/*.tgz`, optimised.
pub(crate) fn run_package() -> Result<()> {
    create_venv(&venv(&root()))?;
    run(artefacts::python()
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["-r", "bindings-python/requirements-dev.txt"]))?;
    let dist = root().join("dist");
    build_to_publish(&dist)?;
    for path in files_of(&dist, "whl")?.into_iter().chain(files_of(&dist, "tgz")?) {
        eprintln!("    {} ({} KiB)", path.display(), path.metadata()?.len() / 1024);
    }
    Ok(())
}

/// Packages with the debug profile, installs both into a clean venv and a clean folder, and runs the vectors there.
pub(crate) fn check_installed() -> Result<()> {
    let place = target().join("package-check");
    if place.exists() {
        std::fs::remove_dir_all(&place)?;
    }
    std::fs::create_dir_all(&place)?;
    build_as_tested(&place)?;

    let clean = place.join("venv");
    create_venv(&clean)?;
    let pip = || {
        let mut pip = command(clean.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    run(pip().arg("--no-index").arg(only(&place, "whl")?))?;
    run(pip().args(["pytest==9.2.0", "pytest-asyncio==1.5.0"]))?;
    run(command(clean.join("bin/python")).current_dir(&place).args(["-c", INSTALLED]).arg(&clean))?;
    run(command(clean.join("bin/python"))
        .current_dir(&place)
        .args(["-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(root().join("bindings-python/tests/test_vectors.py")))?;
    run(command(clean.join("bin/gatewright")).current_dir(&place).arg("--version"))?;

    let folder = place.join("node");
    std::fs::create_dir_all(folder.join("test/support"))?;
    std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    run(command("npm")
        .current_dir(&folder)
        .args(["install", "--silent", "--no-audit", "--no-fund", "--offline"])
        .arg(only(&place, "tgz")?))?;
    for name in ["vectors.test.mjs", "report.test.mjs", "support/vectors.mjs", "support/server.mjs"] {
        std::fs::copy(root().join("bindings-node/test").join(name), folder.join("test").join(name))?;
    }
    run(command("node")
        .current_dir(&folder)
        .env("GATEWRIGHT_VECTORS", root().join("tests/vectors"))
        .args(["--test", "test/vectors.test.mjs", "test/report.test.mjs"]))?;
    run(command("npx").current_dir(&folder).args(["--no-install", "gatewright", "--version"]))
}

/// Fails unless the package that is imported is the installed one.
const INSTALLED: &str =
    "import sys, gatewright; assert gatewright.__file__.startswith(sys.argv[1]), gatewright.__file__";

/// The oldest glibc that published packages run with: that of manylinux2014.
const OLDEST_GLIBC: &str = "2.17";

/// Builds both optimised, linked against an old glibc, so that they work on other machines.
fn build_to_publish(into: &Path) -> Result<()> {
    let zig = Zig::new()?;
    step("package the wheel", || {
        let compatible = ["--compatibility", "manylinux2014", "--target", &zig.target];
        building::build(zig.links(maturin("dist", into).args(compatible))?)
    })?;
    step("package the tarball", || {
        // The wheel's build has built the dependencies, with the same features.
        let mut addon = cargo();
        addon.args(["build", "-p", "gatewright-node", "--profile", "dist", "--target", &zig.target]);
        building::build(zig.links(&mut addon)?)?;
        pack(&format!("{}/dist", zig.target), into)
    })
}

/// Builds both from the artefacts of the tests.
fn build_as_tested(into: &Path) -> Result<()> {
    step("package the wheel", || building::build(maturin("dev", into).arg("--all-features")))?;
    step("package the tarball", || {
        artefacts::build_engines(&root(), Examples::All)?;
        pack("debug", into)
    })
}

fn maturin(profile: &str, into: &Path) -> Command {
    let mut maturin = command(venv(&root()).join("bin/maturin"));
    maturin.args(["build", "--manifest-path", "bindings-python/Cargo.toml", "--profile", profile, "--out"]);
    maturin.arg(into);
    maturin
}

/// folder: that of the built addon, below the target folder.
fn pack(folder: &str, into: &Path) -> Result<()> {
    build_node_package(&root().join("bindings-node"), folder)?;
    run(node_package("npm").args(["pack", "--silent", "--pack-destination"]).arg(into))
}

/// The C compiler and linker for old releases of glibc. Wheel and addon use the same names: a build script with another
/// compiler would run again, and everything that depends on it would be built again.
struct Zig {
    /// The triple of this machine, from rustc.
    target: String,
    folder: PathBuf,
}

impl Zig {
    fn new() -> Result<Self> {
        let target = host()?;
        let Some(processor) = target.strip_suffix("-unknown-linux-gnu") else {
            bail!("packages are made on Linux with glibc, and this is {target}");
        };
        let folder = artefacts::target().join("zig");
        std::fs::create_dir_all(&folder)?;
        let maturin = venv(&root()).join("bin/maturin");
        let glibc = format!("-g -fno-sanitize=all -target {processor}-linux-gnu.{OLDEST_GLIBC}");
        for (name, call) in [("cc", format!("cc -- {glibc}")), ("c++", format!("c++ -- {glibc}"))] {
            let place = folder.join(name);
            let script = format!("#!/bin/sh\nexec '{}' zig {call} \"$@\"\n", maturin.display());
            if std::fs::read_to_string(&place).is_ok_and(|there| there == script) {
                continue;
            }
            std::fs::write(&place, script)?;
            std::fs::set_permissions(&place, Permissions::from_mode(0o755))?;
        }
        Ok(Self { target, folder })
    }

    fn links<'a>(&self, command: &'a mut Command) -> Result<&'a mut Command> {
        let name = self.target.replace('-', "_");
        command
            .env(format!("CC_{name}"), self.folder.join("cc"))
            .env(format!("CXX_{name}"), self.folder.join("c++"))
            .env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), self.folder.join("cc"));
        // maturin finds zig through the venv's python.
        let bin = venv(&root()).join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?;
        Ok(command.env("PATH", path))
    }
}

fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let files = files_of(folder, extension)?;
    files.into_iter().next().with_context(|| format!("no .{extension} in {}", folder.display()))
}
