//! Installs what is benchmarked below target/bench: peers once, from their registries and pinned in bench/peers; ours
//! from scratch, optimized, from any checkout.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use walkdir::WalkDir;

use crate::artefacts::{create_venv, npm_ci, place_engine, target};
use crate::building::build;
use crate::process::{cargo, command, files_of, output, root, run, step};

/// The folder for everything that is only needed for benchmarks.
pub(super) fn folder() -> PathBuf {
    target().join("bench")
}

/// Where peers come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Registry {
    /// Packages from PyPI, and our own interpreter.
    Python,
    /// litellm, which needs an older release of the official SDK.
    LiteLlm,
    /// Packages from npm.
    Node,
    /// async-openai.
    Rust,
}

impl Registry {
    /// The folder of its virtual environment, its packages or its builds.
    pub(super) fn folder(self) -> PathBuf {
        folder().join(match self {
            Self::Python => "peers-venv",
            Self::LiteLlm => "litellm-venv",
            Self::Node => "peers-node",
            Self::Rust => "rust-peers",
        })
    }

    /// Installs the pinned versions, unless they are there already.
    pub(super) fn install(self) -> Result<()> {
        let peers = root().join("bench/peers");
        match self {
            Self::Python => step("install peers of PyPI", || self.pip(&peers.join("requirements.txt"))),
            Self::LiteLlm => step("install litellm", || self.pip(&peers.join("requirements-litellm.txt"))),
            Self::Node => step("install peers of npm", || {
                let place = self.folder();
                fs::create_dir_all(&place)?;
                for file in ["package.json", "package-lock.json"] {
                    copy_if_other(&peers.join(file), &place.join(file))?;
                }
                npm_ci(&place)?;
                copy_scripts(&root(), &place)
            }),
            Self::Rust => step("build async-openai", || {
                build(
                    release()
                        .current_dir(&peers)
                        .args(["build", "--release", "--locked", "--target-dir"])
                        .arg(self.folder()),
                )
            }),
        }
    }

    fn pip(self, requirements: &Path) -> Result<()> {
        let venv = self.folder();
        create_venv(&venv)?;
        let installed = venv.join("installed.txt");
        if fs::read(&installed).ok() == Some(fs::read(requirements)?) {
            return Ok(());
        }
        let quietly = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(command(venv.join("bin/python")).args(quietly).arg(requirements))?;
        fs::copy(requirements, installed)?;
        Ok(())
    }
}

/// Copies a file unless it is identical, which preserves its modification time.
fn copy_if_other(from: &Path, to: &Path) -> Result<()> {
    if fs::read(to).ok() != Some(fs::read(from)?) {
        fs::copy(from, to)?;
    }
    Ok(())
}

fn copy_scripts(checkout: &Path, into: &Path) -> Result<()> {
    for script in files_of(&checkout.join("bench/node"), "mjs")? {
        fs::copy(&script, into.join(script.file_name().context("a script has a name")?))?;
    }
    Ok(())
}

/// cargo for release builds, whose artifacts no incremental build has touched.
fn release() -> std::process::Command {
    let mut cargo = cargo();
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo
}

/// Our packages from one checkout, as users get them.
pub(super) struct OurPackages {
    /// Its name in the tables.
    pub(super) name: String,
    checkout: PathBuf,
    target: PathBuf,
    stage: PathBuf,
}

impl OurPackages {
    /// For this checkout.
    pub(super) fn here() -> Self {
        Self { name: "ours".to_owned(), checkout: root(), target: target(), stage: folder().join("ours") }
    }

    /// For another checkout, built into a separate folder.
    pub(super) fn at(name: String, checkout: PathBuf, target: PathBuf) -> Self {
        let stage = folder().join("compared");
        Self { name, checkout, target, stage }
    }

    /// A program of bench/src/bin, built as a user builds it, next to the peer.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// The content of a package: `gatewright`, or an engine.
    pub(super) fn packaged(&self, name: &str) -> PathBuf {
        self.target.join("dist").join(name)
    }

    /// The value of `PYTHONPATH`.
    pub(super) fn python(&self) -> PathBuf {
        self.stage.join("python")
    }

    /// The folder of the Node scripts, next to the package.
    pub(super) fn node(&self) -> PathBuf {
        self.stage.join("node")
    }

    /// Builds and installs, without the features that only examples and tests require of dependencies.
    pub(super) fn install(&self) -> Result<()> {
        let cargo = || {
            let mut cargo = release();
            cargo.current_dir(&self.checkout).env("CARGO_TARGET_DIR", &self.target).arg("build");
            cargo
        };
        step(&format!("build {} as published", self.name), || {
            // Separately: in one build with the program, the packages would include the gateway, which they
            // come without.
            let apart = [
                (&["gatewright-python", "gatewright-node"][..], "dist"),
                (&["gatewright-cli"], "dist"),
                (&["gatewright-bench"], "release"),
            ];
            apart.iter().try_for_each(|(packages, profile)| {
                let packages = packages.iter().flat_map(|package| ["-p", package]);
                build(cargo().args(["--profile", profile]).args(packages))
            })
        })?;
        step(&format!("install {}", self.name), || {
            self.stage_python()?;
            self.stage_node()
        })
    }

    fn stage_python(&self) -> Result<()> {
        let package = self.python().join("gatewright");
        copy_tree(&self.checkout.join("bindings-python/python/gatewright"), &package, &["py", "typed"])?;
        place_engine(&self.packaged("lib_engine.so"), &package)?;
        // As pip does when it installs: the environment may forbid programs to write bytecode, and each would recompile.
        let venv = Registry::Python.folder();
        create_venv(&venv)?;
        run(command(venv.join("bin/python")).args(["-m", "compileall", "-q", "-f"]).arg(&package))
    }

    fn stage_node(&self) -> Result<()> {
        let source = self.checkout.join("bindings-node");
        npm_ci(&source)?;
        run(command("npm").current_dir(&source).args(["run", "--silent", "build"]))?;
        let package = self.node().join("node_modules/gatewright");
        for part in ["bin", "dist"] {
            copy_tree(&source.join(part), &package.join(part), &["js", "json", "mjs"])?;
        }
        fs::copy(source.join("package.json"), package.join("package.json"))?;
        // Earlier commits have it next to their build.
        let modules = source.join("index.mjs");
        if modules.exists() {
            fs::copy(modules, package.join("index.mjs"))?;
        }
        let name = output(
            command("node").current_dir(&package).args(["-p", "require('./dist/platform').engineFile()"]),
        )?;
        // A process that has loaded the old one keeps it.
        let beside = package.join("engine.new");
        fs::copy(self.packaged("libgatewright_node.so"), &beside)?;
        fs::rename(beside, package.join(name.trim()))?;
        copy_scripts(&root(), &self.node())
    }
}

/// Copies the files with one of the extensions, replacing existing ones.
fn copy_tree(from: &Path, to: &Path, extensions: &[&str]) -> Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let place = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(&place)?;
        } else if entry
            .path()
            .extension()
            .is_some_and(|found| extensions.iter().any(|wanted| found == *wanted))
        {
            fs::copy(entry.path(), &place)?;
        }
    }
    Ok(())
}
