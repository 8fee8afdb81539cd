//! Dependencies have licences that allow their use, come from crates.io, and none of the banned ones is among them:
//! `deny.toml`, judged by cargo-deny.

use anyhow::Result;

use crate::artefacts::target;
use crate::process::{cargo, command, run, step};

/// The version that is installed where it is missing.
const VERSION: &str = "0.20.2";

/// Installs cargo-deny below the target folder, unless it is there, and asks it.
pub(crate) fn check() -> Result<()> {
    let tools = target().join("tools");
    let program = tools.join("bin/cargo-deny");
    if !program.exists() {
        // A debug build: it takes a third of the time, and the check itself is over in seconds.
        let mut install = cargo();
        install.args([
            "install",
            "cargo-deny",
            "--locked",
            "--debug",
            "--quiet",
            "--version",
            VERSION,
            "--root",
        ]);
        step("install cargo-deny", || {
            run(install
                .arg(&tools)
                .env("CARGO_TARGET_DIR", tools.join("build"))
                .env("CARGO_PROFILE_DEV_DEBUG", "0"))
        })?;
        std::fs::remove_dir_all(tools.join("build"))?;
    }
    // cargo-deny reads the manifests of all platforms' dependencies, and a build fetches those of this one alone.
    run(cargo().args(["fetch", "--locked"]))?;
    // Advisories are not asked for: their database comes over the network and changes without us.
    run(command(program).args([
        "--offline",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))
}
