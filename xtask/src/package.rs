//! `cargo xtask package`: the wheel and the npm tarball, and the test that installs both where nothing else is.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::artefacts::{self, build_node_package, create_venv, node_package, target, venv};
use crate::process::{cargo, command, files_of, root, run, step};

/// Writes `dist/*.whl` and `dist/*.tgz`, optimised.
pub(crate) fn run_package() -> Result<()> {
    create_venv(&venv(&root()))?;
    run(artefacts::python()
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["-r", "bindings-python/requirements-dev.txt"]))?;
    let dist = root().join("dist");
    build("dist", &dist)?;
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
    build("dev", &place)?;

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

fn build(profile: &str, into: &Path) -> Result<()> {
    step("package the wheel", || {
        let mut maturin = command(venv(&root()).join("bin/maturin"));
        maturin.args(["build", "--quiet", "--manifest-path", "bindings-python/Cargo.toml"]);
        if profile == "dist" {
            // Linked against an old glibc, so that the wheel installs on other machines than this one.
            maturin.args(["--zig", "--compatibility", "manylinux2014"]);
        }
        run(with_venv_on_path(maturin.args(["--profile", profile, "--out"]).arg(into))?)
    })?;
    step("package the tarball", || {
        run(cargo().args(["build", "-p", "gatewright-node", "--profile", profile]))?;
        let folder = if profile == "dev" { "debug" } else { profile };
        build_node_package(&root().join("bindings-node"), folder)?;
        run(node_package("npm").args(["pack", "--silent", "--pack-destination"]).arg(into))
    })
}

// maturin finds zig through the venv's python.
fn with_venv_on_path(command: &mut Command) -> Result<&mut Command> {
    let bin = venv(&root()).join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)))?;
    Ok(command.env("PATH", path))
}

fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let files = files_of(folder, extension)?;
    files.into_iter().next().with_context(|| format!("no .{extension} in {}", folder.display()))
}
