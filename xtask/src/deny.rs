//! Dependencies have licences that allow their use, come from crates.io, none of the banned ones is among them
//! (`deny.toml`, judged by cargo-deny), and each is used (judged by cargo-machete).

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::artefacts::target;
use crate::building::build;
use crate::process::{cargo, command, run, step};

/// Programs that are installed if they are missing.
const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
const MACHETE: Tool = Tool { name: "cargo-machete", version: "0.9.2" };

/// Installs the tools below the target folder, unless they are there, and runs them.
pub(crate) fn check() -> Result<()> {
    let (mut deny, mut machete) = (DENY.installed()?, MACHETE.installed()?);
    // cargo-deny reads the manifests of all platforms' dependencies; a build fetches only those of this platform.
    run(cargo().args(["fetch", "--locked"]))?;
    // No advisories: their database comes over the network, and changes independently of this repository.
    run(deny.args(["--offline", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
    run(&mut machete)
}

struct Tool {
    name: &'static str,
    version: &'static str,
}

impl Tool {
    fn installed(&self) -> Result<Command> {
        // One folder per version.
        let place = target().join("tools").join(format!("{}-{}", self.name, self.version));
        let program = place.join("bin").join(self.name);
        if !program.exists() {
            step(&format!("install {}", self.name), || self.install(&place))?;
        }
        Ok(command(program))
    }

    fn install(&self, place: &Path) -> Result<()> {
        let folder = place.join("build");
        // A debug build takes a third of the time, and the check itself takes only seconds.
        let mut install = cargo();
        install.args(["install", self.name, "--locked", "--debug", "--version", self.version, "--root"]);
        install.arg(place).env("CARGO_TARGET_DIR", &folder).env("CARGO_PROFILE_DEV_DEBUG", "0");
        build(&mut install)?;
        Ok(std::fs::remove_dir_all(folder)?)
    }
}
