//! The Python packages: the wheel, and the source distribution that pip builds if no wheel fits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::artefacts::{create_venv, target, venv};
use crate::process::{cargo, command, files_of, output, root, run};

/// The crate of the client's wheel.
pub(super) const CLIENT: &str = "bindings-python/Cargo.toml";

/// The crate of the server's wheel, which contains the program with all commands.
pub(super) const SERVER: &str = "server/Cargo.toml";

/// Where the client's wheel takes the manual pages from, next to its pyproject.toml: maturin looks for the module's
/// name.
pub(super) const MANUAL: &str = "gatewright._engine.data/data/share/man/man1";

pub(super) fn maturin(call: &str, manifest: &str, into: &Path) -> Command {
    let mut maturin = tool("maturin");
    maturin.args([call, "--manifest-path", manifest, "--out"]).arg(into);
    maturin
}

fn tool(name: &str) -> Command {
    command(venv(&root()).join("bin").join(name))
}

/// Writes the source distribution.
pub(super) fn write_sdist(into: &Path) -> Result<()> {
    run(&mut maturin("sdist", CLIENT, into))
}

/// Packs the server's wheel around an existing build of the program: maturin, which writes its metadata, would build
/// another.
pub(super) fn pack_server(program: &Path, into: &Path) -> Result<()> {
    let folder = super::empty_folder("server-wheel")?;
    run(tool("maturin")
        .current_dir(root().join("server"))
        .args(["pep517", "write-dist-info", "--metadata-directory"])
        .arg(&folder)
        .arg("--interpreter")
        .arg(venv(&root()).join("bin/python")))?;
    let entry = fs::read_dir(&folder)?.next().context("maturin has written no metadata")??;
    let name = entry.file_name().to_string_lossy().replace(".dist-info", ".data");
    let scripts = folder.join(name).join("scripts");
    fs::create_dir_all(&scripts)?;
    fs::copy(program, scripts.join("gatewright-server"))?;
    fs::create_dir_all(into)?;
    run(tool("wheel").args(["pack", "--dest-dir"]).arg(into).arg(&folder))
}

/// Runs the index's metadata checks.
pub(super) fn check_metadata(archives: &[PathBuf]) -> Result<()> {
    run(tool("twine").args(["check", "--strict"]).args(archives))
}

/// Checks what the index checks, and what it doesn't: every package has its license and its types.
pub(super) fn check(folder: &Path) -> Result<()> {
    let (wheel, sdist) = (only(folder, "whl")?, only(folder, "gz")?);
    check_metadata(&[wheel.clone(), sdist.clone()])?;

    let listed = output(tool("python").args(["-m", "zipfile", "--list"]).arg(&wheel))?;
    for wanted in ["gatewright/py.typed", "gatewright/_engine.pyi", "/licenses/LICENSE", "/METADATA"] {
        if !listed
            .lines()
            .any(|line| line.split_whitespace().next().is_some_and(|name| name.ends_with(wanted)))
        {
            bail!("the wheel lacks {wanted}:\n{listed}");
        }
    }
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains("-cp310-abi3-") {
        bail!("{name} is not for every Python from 3.10 on: abi3-py310 of pyo3 is off");
    }
    check_sdist(&sdist)
}

/// The source distribution is a separate workspace: maturin and cargo can read it, and it contains every file that the
/// code includes.
fn check_sdist(sdist: &Path) -> Result<()> {
    let folder = unpacked(sdist)?;
    // What pip queries first. It builds nothing, and fails if something that pyproject.toml names is missing.
    run(tool("maturin")
        .current_dir(&folder)
        .args(["pep517", "write-dist-info", "--metadata-directory", "metadata", "--interpreter"])
        .arg(venv(&root()).join("bin/python")))?;
    super::check_manual(&folder.join(MANUAL).join("gatewright.1"))?;
    // Fails if a member, or a file that a manifest names, is missing.
    let described = output(
        cargo()
            .current_dir(&folder)
            .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"])
            .args(["--manifest-path", "bindings-python/Cargo.toml"]),
    )?;
    let described: Value = serde_json::from_str(&described)?;
    let packages = described["packages"].as_array().context("cargo describes packages")?;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().context("a package has a manifest")?;
        let place = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        super::included::check(place, &folder)
            .with_context(|| format!("{name} in the source distribution"))?;
    }
    if fs::read(folder.join("LICENSE")).ok() != Some(fs::read(root().join("LICENSE"))?) {
        bail!("the source distribution lacks the LICENSE of this repository at its top");
    }
    Ok(())
}

/// Installs the source distribution into a clean venv, as pip does if no wheel fits, and imports it.
pub(super) fn build_sdist(folder: &Path) -> Result<()> {
    let clean = target().join("sdist-check");
    if clean.exists() {
        fs::remove_dir_all(&clean)?;
    }
    create_venv(&clean)?;
    run(command(clean.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--no-binary", "gatewright"])
        .arg(only(folder, "gz")?))?;
    run(command(clean.join("bin/python"))
        .current_dir(&clean)
        .args(["-c", "import gatewright; gatewright.report"]))?;
    run(command(clean.join("bin/gatewright")).arg("--version"))?;
    super::check_manual(&clean.join("share/man/man1/gatewright.1"))
}

fn unpacked(sdist: &Path) -> Result<PathBuf> {
    let place = target().join("sdist");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    run(command("tar").arg("-xzf").arg(sdist).arg("-C").arg(&place))?;
    let mut entries = fs::read_dir(&place)?;
    Ok(entries.next().context("the source distribution is empty")??.path())
}

/// The one file of a folder with an extension.
pub(super) fn only(folder: &Path, extension: &str) -> Result<PathBuf> {
    match <[PathBuf; 1]>::try_from(files_of(folder, extension)?) {
        Ok([file]) => Ok(file),
        Err(files) => bail!("{} has {} files .{extension} instead of one", folder.display(), files.len()),
    }
}
