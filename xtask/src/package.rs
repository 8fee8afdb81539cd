//! `cargo xtask package`: the wheel and the npm tarball, and the test that installs both where nothing else is.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::artefacts::{self, create_venv, node_package, npm_ci, target, venv};
use crate::process::{cargo, command, files_of, root, run, step};

/// Writes `dist/*.whl` and `dist/*.tgz`, optimised.
pub(crate) fn run_package() -> Result<()> {
    create_venv(&venv(&root()))?;
    run(artefacts::python()
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["-r", "bindings-python/requirements-dev.txt"]))?;
    npm_ci(&root().join("bindings-node"))?;
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
    let vectors = root().join("tests/vectors");

    let clean = place.join("venv");
    create_venv(&clean)?;
    let wheel = only(&place, "whl")?;
    run(command(clean.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--no-index"])
        .arg(wheel))?;
    run(command(clean.join("bin/python"))
        .current_dir(&place)
        .arg(root().join("tests/package/check_installed.py"))
        .arg(&vectors))?;
    run(command(clean.join("bin/gatewright")).current_dir(&place).arg("--version"))?;

    let folder = place.join("node");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
    let tarball = only(&place, "tgz")?;
    run(command("npm")
        .current_dir(&folder)
        .args(["install", "--silent", "--no-audit", "--no-fund", "--offline"])
        .arg(tarball))?;
    for script in ["check_installed.mjs", "check_installed.cjs"] {
        std::fs::copy(root().join("tests/package").join(script), folder.join(script))?;
        run(command("node").current_dir(&folder).arg(script).arg(&vectors))?;
    }
    run(command("npx").current_dir(&folder).args(["--no-install", "gatewright", "--version"]))
}

fn build(profile: &str, into: &Path) -> Result<()> {
    step("package the wheel", || {
        let mut maturin = command(venv(&root()).join("bin/maturin"));
        maturin.args(["build", "--quiet", "--manifest-path", "bindings-python/Cargo.toml"]);
        run(maturin.args(["--profile", profile, "--out"]).arg(into))
    })?;
    step("package the tarball", || {
        run(cargo().args(["build", "-p", "gatewright-node", "--profile", profile]))?;
        let built =
            target().join(if profile == "dev" { "debug" } else { profile }).join("libgatewright_node.so");
        let module = root().join("bindings-node/gatewright.node");
        let beside = module.with_extension("new");
        std::fs::copy(&built, &beside)?;
        std::fs::rename(beside, module)?;
        run(node_package("npm").args(["run", "--silent", "build"]))?;
        run(node_package("npm").args(["pack", "--silent", "--pack-destination"]).arg(into))
    })
}

fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    let files = files_of(folder, extension)?;
    files.into_iter().next().with_context(|| format!("no .{extension} in {}", folder.display()))
}
