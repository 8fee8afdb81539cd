//! Third-party programs built by cargo, which takes minutes: one folder on this machine holds them for all checkouts.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::building::build;
use crate::process::{cargo, command, step};

/// A pinned program from crates.io. It is a tool, not a dependency: nothing of it is built into ours.
pub(crate) struct Tool {
    /// Its package.
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// The program, if its name differs from the package's.
    pub(crate) program: &'static str,
    /// Cargo features to use instead of the default ones.
    pub(crate) features: Option<&'static str>,
}

impl Tool {
    /// The program, which is installed unless it is there.
    pub(crate) fn installed(&self) -> Result<Command> {
        // One folder per version.
        let place = tools_folder()?.join(format!("{}-{}", self.name, self.version));
        let program = place.join("bin").join(self.program);
        if !program.exists() {
            step(&format!("install {}", self.name), || self.install(&place))?;
        }
        Ok(command(program))
    }

    fn install(&self, place: &PathBuf) -> Result<()> {
        let folder = place.join("build");
        // A debug build takes a third of the time, and the program itself takes only seconds.
        let mut install = cargo();
        install.args(["install", self.name, "--locked", "--debug", "--force", "--version", self.version]);
        if let Some(features) = self.features {
            install.args(["--no-default-features", "--features", features]);
        }
        install.arg("--root").arg(place).env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_DEV_DEBUG", "0");
        build(&mut install)?;
        // Hundreds of megabytes that nothing reads again.
        std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))
    }
}

/// `gatewright/tools` of the user's cache.
fn tools_folder() -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("gatewright/tools"))
}
