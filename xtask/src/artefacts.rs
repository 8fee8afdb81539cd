//! Builds what the other commands run: the program, the Python package in a venv, the Node package.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{cargo, command, root, run, step};

/// The folder that cargo builds into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The `gatewright` program of the debug profile.
pub(crate) fn program() -> PathBuf {
    target().join("debug/gatewright")
}

/// The interpreter of the project's venv.
pub(crate) fn python() -> Command {
    command(venv(&root()).join("bin/python"))
}

/// Where the venv of a checkout is.
pub(crate) fn venv(root: &Path) -> PathBuf {
    root.join(".venv")
}

/// A command inside the Node package.
pub(crate) fn node_package(program: &str) -> Command {
    let mut command = command(program);
    command.current_dir(root().join("bindings-node"));
    command
}

/// Builds everything: the program, then both packages.
pub(crate) fn build_all() -> Result<()> {
    step("build the program and both native modules", || {
        run(cargo().args([
            "build",
            "-p",
            "gatewright-cli",
            "-p",
            "gatewright-python",
            "-p",
            "gatewright-node",
        ]))
    })?;
    step("set up the Python package", set_up_python)?;
    step("set up the Node package", set_up_node)
}

fn set_up_python() -> Result<()> {
    create_venv(&venv(&root()))?;
    run(python().args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args([
        "-r",
        "bindings-python/requirements-dev.txt",
        "-r",
        "tests/tools/requirements.txt",
    ]))?;
    let package = root().join("bindings-python/python/gatewright");
    replace(&target().join("debug/lib_native.so"), &package.join("_native.abi3.so"))?;
    // An editable install: the venv finds the package in the working tree.
    let site = crate::process::output(
        python().args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]),
    )?;
    let source = root().join("bindings-python/python");
    std::fs::write(Path::new(site.trim()).join("gatewright-dev.pth"), format!("{}\n", source.display()))?;
    Ok(())
}

/// Makes a venv unless there is one.
pub(crate) fn create_venv(path: &Path) -> Result<()> {
    if !path.join("bin/python").exists() {
        run(command("python3").args(["-m", "venv"]).arg(path))?;
    }
    Ok(())
}

fn set_up_node() -> Result<()> {
    npm_ci(&root().join("bindings-node"))?;
    replace(&target().join("debug/libgatewright_node.so"), &root().join("bindings-node/gatewright.node"))?;
    run(node_package("npm").args(["run", "--silent", "build"]))
}

/// Installs what a lock file names, unless it is installed already.
pub(crate) fn npm_ci(folder: &Path) -> Result<()> {
    let lock = std::fs::metadata(folder.join("package-lock.json"))
        .with_context(|| format!("{} has no package-lock.json", folder.display()))?;
    let installed = std::fs::metadata(folder.join("node_modules/.package-lock.json"));
    if let Ok(installed) = installed
        && installed.modified()? >= lock.modified()?
    {
        return Ok(());
    }
    run(command("npm").current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--silent"]))
}

// Copy beside, then rename: a process that has the old module loaded keeps it.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let beside = to.with_extension("new");
    std::fs::copy(from, &beside).with_context(|| format!("copy {}", from.display()))?;
    std::fs::rename(&beside, to)?;
    Ok(())
}
