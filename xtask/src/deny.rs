//! Checks that dependencies have acceptable licenses, come from crates.io, and are not banned (`deny.toml`,
//! checked by cargo-deny), and that each is used (checked by cargo-machete).

use anyhow::Result;

use crate::installed::Tool;
use crate::process::{cargo, run};

/// Programs that are installed if they are missing.
pub(crate) const DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", program: "cargo-deny", features: None };
const MACHETE: Tool =
    Tool { name: "cargo-machete", version: "0.9.2", program: "cargo-machete", features: None };

/// Installs the tools, unless they are there, and runs them.
pub(crate) fn check() -> Result<()> {
    let (mut deny, mut machete) = (DENY.installed()?, MACHETE.installed()?);
    // cargo-deny reads the manifests of all platforms' dependencies; a build fetches only those of this platform.
    run(cargo().args(["fetch", "--locked"]))?;
    // No advisories: their database comes over the network, see `advisories`.
    run(deny.args(["--offline", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]))?;
    // With it, cargo-machete takes itself for a subcommand of cargo, and expects its name among the arguments.
    run(machete.env_remove("CARGO"))
}
