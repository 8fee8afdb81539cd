//! Builds what the other commands run: the program, the Python package in a venv, the Node package.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::building::build;
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

/// The venv of a checkout.
pub(crate) fn venv(root: &Path) -> PathBuf {
    root.join(".venv")
}

/// A command inside the Node package.
pub(crate) fn node_package(program: &str) -> Command {
    let mut command = command(program);
    command.current_dir(root().join("bindings-node"));
    command
}

/// Which example programs to build.
#[derive(Clone, Copy)]
pub(crate) enum Examples {
    All,
    One(&'static str),
}

/// Set for the steps of `cargo xtask test` that run after the step `build` has built everything.
pub(crate) const BUILT_VARIABLE: &str = "GATEWRIGHT_XTASK_BUILT";

/// Whether the program, both packages, the examples and the tests are built. Asking cargo would only wait for its lock, and
/// other steps use the packages.
pub(crate) fn is_built() -> bool {
    std::env::var_os(BUILT_VARIABLE).is_some()
}

/// Builds the program, both engines and examples in Rust, unless they [are built](is_built).
pub(crate) fn build_engines(examples: Examples) -> Result<()> {
    if is_built() { Ok(()) } else { build_engines_of(&root(), &target(), examples) }
}

/// Builds the program, both engines and examples in Rust of a checkout, into a target folder.
pub(crate) fn build_engines_of(checkout: &Path, target: &Path, examples: Examples) -> Result<()> {
    let packages = ["gatewright-cli", "gatewright-python", "gatewright-node", "gatewright-examples"];
    let mut call = cargo();
    call.current_dir(checkout).env("CARGO_TARGET_DIR", target);
    // A single call with all features, like the build of the tests: all of them share their dependencies.
    call.args(["build", "--all-features"]).args(packages.iter().flat_map(|package| ["-p", package]));
    if let Examples::One(name) = examples {
        call.args(["--lib", "--bin", "gatewright", "--bin", name]);
    }
    build(&mut call)
}

/// Builds programs of the workspace with the same dependencies as its tests: `gatewright-python` is selected only for its
/// features.
pub(crate) fn build_programs(programs: &[(&str, &str)]) -> Result<()> {
    if is_built() {
        return Ok(());
    }
    let mut call = cargo();
    call.args(["build", "--all-features", "-p", "gatewright-python"]);
    for (package, program) in programs {
        call.args(["-p", package, "--bin", program]);
    }
    build(&mut call)
}

/// The gateway's program for the packages, which is also the name of its crate.
pub(crate) const SERVER: &str = "gatewright-server";

/// The package of the program, and the program.
pub(crate) const PROGRAM: (&str, &str) = ("gatewright-cli", "gatewright");

/// A program of the examples, see examples/rust/Cargo.toml.
pub(crate) fn example(name: impl AsRef<Path>) -> Command {
    command(target().join("debug").join(name))
}

/// Builds everything: the program, then both packages.
pub(crate) fn build_all() -> Result<()> {
    if is_built() {
        return Ok(());
    }
    step("build the program, both engines and the examples", || build_engines(Examples::All))?;
    step("set up the Python package", || {
        install_python_tools()?;
        set_up_python()
    })?;
    step("set up the Node package", set_up_node)
}

/// Builds the program, both packages and one example with only the features they need: neither those that tests require of
/// dependencies nor any tools.
pub(crate) fn build_one_example(name: &str) -> Result<()> {
    step("build the program, both engines and the example", || {
        let packages = ["gatewright-cli", "gatewright-python", "gatewright-node", "gatewright-examples"];
        let mut call = cargo();
        call.arg("build").args(packages.iter().flat_map(|package| ["-p", package]));
        build(call.args(["--lib", "--bin", PROGRAM.1, "--bin", name]))
    })?;
    step("set up the Python package", || {
        create_venv(&venv(&root()))?;
        set_up_python()
    })?;
    step("set up the Node package", set_up_node)
}

/// The venv of this checkout, with what tests, linters and packages need.
pub(crate) fn install_python_tools() -> Result<()> {
    install_locked(&[PYTHON_TOOLS, "tests/tools/requirements.txt", "tests/peers/requirements.txt"])
}

/// The same with what the packages alone need: maturin and zig are among the tools of the Python package.
pub(crate) fn install_packaging_tools() -> Result<()> {
    install_locked(&[PYTHON_TOOLS])
}

/// What the tests of the Python package need, in another venv.
pub(crate) fn install_python_test_tools(venv: &Path) -> Result<()> {
    install(venv, &[root().join(PYTHON_TOOLS)], &["--require-hashes"])
}

const PYTHON_TOOLS: &str = "bindings-python/requirements-dev.txt";

fn install_locked(requirements: &[&str]) -> Result<()> {
    let files: Vec<_> = requirements.iter().map(|file| root().join(file)).collect();
    install(&venv(&root()), &files, &["--require-hashes"])
}

fn set_up_python() -> Result<()> {
    let package = root().join("bindings-python/python/gatewright");
    place_engine(&target().join("debug/lib_engine.so"), &package)?;
    // An editable install: the venv finds the package in the working tree.
    let site = crate::process::output(
        python().args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]),
    )?;
    let source = root().join("bindings-python/python");
    std::fs::write(Path::new(site.trim()).join("gatewright-dev.pth"), format!("{}\n", source.display()))?;
    Ok(())
}

/// The lock of the installer for Python packages.
const UV: &str = "tests/tools/requirements-uv.txt";

/// Installs requirements files into a venv, which is created unless it exists.
pub(crate) fn install_into(venv: &Path, requirements: &[PathBuf]) -> Result<()> {
    install(venv, requirements, &[])
}

fn install(venv: &Path, requirements: &[PathBuf], options: &[&str]) -> Result<()> {
    let _lock = lock("pip")?;
    create_venv(venv)?;
    let installer = target().join("uv");
    create_venv(&installer)?;
    let uv = installer.join("bin/uv");
    if !uv.exists() {
        run(command(installer.join("bin/python")).args(pip_install_locked(UV)))?;
    }
    let mut install = command(uv);
    install.args(["pip", "install", "--quiet"]).args(options).arg("--python").arg(venv.join("bin/python"));
    run(install.args(requirements.iter().flat_map(|file| [OsStr::new("--requirement"), file.as_os_str()])))
}

/// Arguments of Python to install a lock, every file of which must have one of its hashes.
pub(crate) fn pip_install_locked(lock: &str) -> [&str; 8] {
    [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
        "--requirement",
        lock,
    ]
}

/// Installs a requirements file into the venv of this checkout.
pub(crate) fn pip_install(requirements: &Path) -> Result<()> {
    install_into(&venv(&root()), &[requirements.to_path_buf()])
}

/// Creates a venv unless it exists.
pub(crate) fn create_venv(path: &Path) -> Result<()> {
    if !path.join("bin/python").exists() {
        run(command("python3").args(["-m", "venv"]).arg(path))?;
    }
    Ok(())
}

fn set_up_node() -> Result<()> {
    build_node_package(&root().join("bindings-node"), &target(), "debug")?;
    link_node_package(&root().join("examples/node"))
}

/// Lets programs in a folder import the Node package by its name, like its users, and zod, whose schemas it takes.
pub(crate) fn link_node_package(folder: &Path) -> Result<()> {
    let modules = folder.join("node_modules");
    std::fs::create_dir_all(&modules)?;
    for (name, place) in [("gatewright", "bindings-node"), ("zod", "bindings-node/node_modules/zod")] {
        let link = modules.join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(root().join(place), link)?;
        }
    }
    Ok(())
}

/// Compiles the TypeScript of a Node package, and copies the engine of a profile beside it from a target folder.
pub(crate) fn build_node_package(package: &Path, target: &Path, profile: &str) -> Result<()> {
    npm_ci(package)?;
    let npm = || {
        let mut npm = command("npm");
        npm.current_dir(package).env("CARGO_TARGET_DIR", target);
        npm
    };
    run(npm().args(["run", "--silent", "build"]))?;
    run(npm().args(["run", "--silent", "engine", "--", profile]))
}

/// Installs from a lock file, unless that has been done already.
pub(crate) fn npm_ci(folder: &Path) -> Result<()> {
    let _lock = lock("npm")?;
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

/// Waits until no other step installs packages of this kind. The returned file holds the lock.
fn lock(kind: &str) -> Result<std::fs::File> {
    let folder = target().join("test");
    std::fs::create_dir_all(&folder)?;
    let file = std::fs::File::create(folder.join(kind).with_extension("lock"))?;
    file.lock().with_context(|| format!("cannot lock the installation of {kind} packages"))?;
    Ok(file)
}

/// Copies a Python engine to the place where its package looks for it.
pub(crate) fn place_engine(built: &Path, package: &Path) -> Result<()> {
    // Renamed into place: a process that has loaded the old engine keeps it.
    let beside = package.join("_engine.abi3.so.new");
    std::fs::copy(built, &beside).with_context(|| format!("copy {}", built.display()))?;
    Ok(std::fs::rename(&beside, package.join("_engine.abi3.so"))?)
}
