//! What `deploy/` holds passes the linters of its makers' worlds. Nothing of it is run here: that takes a machine of its own, or a
//! cluster, and images over the network. `cargo xtask test nodes` runs three gateways of `compose/gatewright.toml` behind its load
//! balancer.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Result, ensure};

use crate::artefacts::{npm_ci, program, target, venv};
use crate::process::{command, root, run};

/// Exposure of the unit, of 100, as systemd judges it.
const EXPOSURE: &str = "20";
/// The oldest version of a cluster that the manifests are for, and the newest.
const CLUSTERS: [&str; 2] = ["1.31", "1.37"];
/// The resource that is not the cluster's own.
const MONITOR: &str = "service-monitor.yaml";
const KUSTOMIZATION: &str = "kustomization.yaml";
/// Where Debian's package puts it, which is not on every user's path.
pub(crate) const NGINX: &str = "/usr/sbin/nginx";

pub(crate) fn lint() -> Result<()> {
    run(command(venv(&root()).join("bin/hadolint")).arg("deploy/Containerfile"))?;
    judge_unit()?;
    judge_compose()?;
    judge_manifests()
}

fn judge_unit() -> Result<()> {
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

fn judge_compose() -> Result<()> {
    let deploy = root().join("deploy");
    let compose = deploy.join("compose");
    let judge = venv(&root()).join("bin/check-jsonschema");
    run(command(judge)
        .args(["--builtin-schema", "vendor.compose-spec"])
        .arg(deploy.join("compose.yaml"))
        .stdout(Stdio::null()))?;
    run(command("sh").arg("-n").arg(compose.join("secrets.sh")))?;
    // The secrets are not on this machine, which is a warning.
    run(command(program()).args(["config", "check"]).arg(compose.join("gatewright.toml")))?;
    // Outside of its network, names of containers are nobody's.
    let balancer = fs::read_to_string(compose.join("nginx.conf"))?;
    let balancer = (1..=3).fold(balancer, |text, number| {
        text.replace(&format!("gateway-{number}:"), &format!("127.0.0.{number}:"))
    });
    ensure!(!balancer.contains("gateway-"), "nginx.conf names a gateway that compose.yaml does not have");
    let place = target().join("nginx.conf");
    fs::write(&place, balancer)?;
    run(command(NGINX).args(["-t", "-q", "-e", "stderr", "-c"]).arg(&place))
}

fn judge_manifests() -> Result<()> {
    let folder = root().join("deploy/kubernetes");
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(&folder)? {
        files.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    ensure!(files.remove(KUSTOMIZATION), "deploy/kubernetes has no {KUSTOMIZATION}");
    let listed = fs::read_to_string(folder.join(KUSTOMIZATION))?;
    let listed: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  - "))
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "yaml"))
        .map(str::to_owned)
        .collect();
    ensure!(listed == files, "{KUSTOMIZATION} lists {listed:?}, and the folder has {files:?}");
    ensure!(files.remove(MONITOR), "deploy/kubernetes has no {MONITOR}");
    let files: Vec<PathBuf> = files.iter().map(|name| folder.join(name)).collect();
    for version in CLUSTERS {
        let judge = venv(&root()).join("bin/kubernetes-validate");
        run(command(judge).args(["--strict", "--quiet", "-k", version]).args(&files))?;
    }
    let tools = root().join("tests/tools");
    npm_ci(&tools)?;
    run(command("node").arg(tools.join("service-monitor.mjs")).arg(folder.join(MONITOR)))
}
