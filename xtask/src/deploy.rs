//! The unit and the container file of `deploy/` pass the linters of their makers' worlds. Neither is run: that takes a
//! machine of its own, and images over the network.

use std::fs;
use std::process::Stdio;

use anyhow::Result;

use crate::artefacts::{program, target, venv};
use crate::process::{command, root, run};

/// Exposure of the unit, of 100, as systemd judges it.
const EXPOSURE: &str = "20";

pub(crate) fn lint() -> Result<()> {
    run(command(venv(&root()).join("bin/hadolint")).arg("deploy/Containerfile"))?;
    let found = command("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("    systemd-analyze is not installed: the unit is not judged");
        return Ok(());
    }
    // The program has to exist where the unit says.
    let unit = fs::read_to_string(root().join("deploy/gatewright.service"))?;
    let unit = unit.replace("/usr/local/bin/gatewright", &program().display().to_string());
    let place = target().join("gatewright.service");
    fs::write(&place, unit)?;
    run(command("systemd-analyze").args(["verify", "--man=no"]).arg(&place))?;
    run(command("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE])
        .arg(&place)
        .stdout(Stdio::null()))
}
