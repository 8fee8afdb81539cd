//! Checks that `deploy/` passes the linters for each format. Only the commands of the unit are run here: the rest needs a
//! cluster, or images from the network. `cargo xtask test nodes` runs three gateways of `compose/gatewright.toml` behind its
//! load balancer; `cargo xtask test container` builds the image and runs it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::artefacts::{npm_ci, pip_install_locked, program, python, target, venv};
use crate::pins::unpinned_images;
use crate::process::{command, files_of, output, root, run};

/// Maximum exposure of the unit, out of 100, as rated by systemd.
const EXPOSURE: &str = "20";
/// The oldest and the newest version of a cluster that the manifests are for.
const CLUSTERS: [&str; 2] = ["1.31", "1.37"];
/// The resource that is not built into clusters.
const MONITOR: &str = "service-monitor.yaml";
const KUSTOMIZATION: &str = "kustomization.yaml";
/// The lock of the package that carries helm.
const HELM: &str = "tests/tools/requirements-helm.txt";
/// How long the service may take to log a message.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where Debian's package installs it, which is not on every user's path.
pub(crate) const NGINX: &str = "/usr/sbin/nginx";

pub(crate) fn lint() -> Result<()> {
    run(command(venv(&root()).join("bin/hadolint")).arg("deploy/Containerfile"))?;
    judge_images()?;
    judge_unit()?;
    judge_compose()?;
    judge_manifests()?;
    judge_chart()
}

/// Passes over a check for which this machine lacks something. Errors: this is CI, and a check that does not run there runs nowhere.
fn skip(why: &str) -> Result<()> {
    ensure!(std::env::var_os("CI").is_none(), "{why}");
    eprintln!("    {why}");
    Ok(())
}

/// Every image is pinned by digest, except ours, which is a value of the chart.
fn judge_images() -> Result<()> {
    let mut problems = Vec::new();
    let files = ["ls-files", "deploy/*Containerfile", "deploy/*.yaml", ":!deploy/helm"];
    for path in output(command("git").args(files))?.lines() {
        let text = fs::read_to_string(root().join(path))?;
        problems.extend(unpinned_images(&text).iter().map(|found| format!("{path}: {found}")));
    }
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    Ok(())
}

fn judge_unit() -> Result<()> {
    let unit = fs::read_to_string(root().join("deploy/gatewright.service"))?;
    run_unit(&unit)?;
    let found = command("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return skip("systemd-analyze is not installed: the unit is not judged");
    }
    // The program must exist where the unit expects it.
    let unit = unit.replace("/usr/local/bin/gatewright", &program().display().to_string());
    let place = target().join("gatewright.service");
    fs::write(&place, unit)?;
    run(command("systemd-analyze").args(["verify", "--man=no"]).arg(&place))?;
    run(command("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE])
        .arg(&place)
        .stdout(Stdio::null()))
}

/// Runs the commands of the unit as written, with folders of this machine in place of its own: those before the start, the
/// start, and a reload.
fn run_unit(unit: &str) -> Result<()> {
    let home = target().join("unit");
    let (etc, state) = (home.join("etc"), home.join("state"));
    _ = fs::remove_dir_all(&home);
    fs::create_dir_all(&etc)?;
    fs::create_dir_all(&state)?;
    let configuration = etc.join("gatewright.toml");
    let write = |level: &str| {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[access]\nkey = {{ env = \"KEY_OF_THE_UNIT\" }}\n[limits]\n\
             max_percent_per_key = {level}\n"
        );
        fs::write(&configuration, text)
    };
    write("50")?;
    fs::write(etc.join("keys.env"), "KEY_OF_THE_UNIT=key-of-the-unit\n")?;
    let unit = unit
        .replace("/usr/local/bin/gatewright", &program().display().to_string())
        .replace("/etc/gatewright", &etc.display().to_string())
        .replace("/var/lib/gatewright", &state.display().to_string());
    let service = Service { unit, child: None };
    service.run("ExecStartPre", None)?;
    let mut service = service.started()?;
    write("60")?;
    // It notices by itself that the file has changed; a reload reads it anyway.
    service.waits_for_line("reloaded ")?;
    service.run("ExecReload", Some(service.id()))?;
    service.waits_for_line("reloaded ")?;
    write("\"none\"")?;
    service.waits_for_line("max_percent_per_key")?;
    service.run("ExecReload", Some(service.id()))?;
    // The configuration in use remains, and the service keeps running.
    service.waits_for_line("max_percent_per_key")?;
    ensure!(service.runs()?, "the service ended at a reload of a wrong file");
    ensure!(service.run("ExecStartPre", None).is_err(), "a wrong file passes the check before the start");
    Ok(())
}

/// A service as described by its unit.
struct Service {
    unit: String,
    child: Option<(Child, Receiver<String>)>,
}

impl Service {
    /// The value of a setting, which must occur once.
    fn value(&self, name: &str) -> Result<&str> {
        let mut values = self.unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value.trim_start_matches('-')),
            _ => bail!("the unit does not have one {name}"),
        }
    }

    /// The command of a setting, with the environment of the unit. `main`: the process of the service.
    fn command(&self, name: &str, main: Option<u32>) -> Result<Command> {
        let line = self.value(name)?.replace("$MAINPID", &main.map(|id| id.to_string()).unwrap_or_default());
        let mut words = line.split(' ');
        let mut command = command(words.next().unwrap_or_default());
        command.args(words);
        let keys = fs::read_to_string(self.value("EnvironmentFile")?)?;
        let pairs = keys.lines().chain([self.value("Environment")?]).filter_map(|pair| pair.split_once('='));
        command.envs(pairs);
        Ok(command)
    }

    fn run(&self, name: &str, main: Option<u32>) -> Result<()> {
        run(self.command(name, main)?.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts it and waits until it serves.
    fn started(mut self) -> Result<Self> {
        let mut command = self.command("ExecStart", None)?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (sender, lines) = channel();
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|output| Box::new(output) as _),
            child.stderr.take().map(|output| Box::new(output) as _),
        ];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    _ = sender.send(line);
                }
            });
        }
        self.child = Some((child, lines));
        self.waits_for_line("http://127.0.0.1:")?;
        Ok(self)
    }

    fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, |(child, _)| child.id())
    }

    /// Waits for a line that contains these words.
    fn waits_for_line(&self, words: &str) -> Result<()> {
        let (_, lines) = self.child.as_ref().context("the service was not started")?;
        let mut seen = Vec::new();
        while let Ok(line) = lines.recv_timeout(PATIENCE) {
            if line.contains(words) {
                return Ok(());
            }
            seen.push(line);
        }
        bail!("the service does not say {words:?}, but {seen:#?}")
    }

    fn runs(&mut self) -> Result<bool> {
        let (child, _) = self.child.as_mut().context("the service was not started")?;
        Ok(child.try_wait()?.is_none())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.child {
            _ = child.kill();
            _ = child.wait();
        }
    }
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
    // The secrets are not on this machine, which causes a warning.
    run(command(program()).args(["config", "check"]).arg(compose.join("gatewright.toml")))?;
    // Outside of its network, container names don't resolve.
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

/// helm's linter, and what helm makes of the chart: with its defaults the manifests, and always what a cluster accepts.
fn judge_chart() -> Result<()> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        return skip("no package has helm for this machine: the chart is not judged");
    }
    let (package, rendered) = (target().join("helm/package"), target().join("helm/rendered"));
    if !package.exists() {
        run(python().args(pip_install_locked(HELM)).args(["--no-deps", "--target"]).arg(&package))?;
    }
    run(python().arg("tests/tools/chart.py").args([&package, &rendered]))?;
    for version in CLUSTERS {
        let judge = venv(&root()).join("bin/kubernetes-validate");
        let files = files_of(&rendered, "yaml")?;
        run(command(judge).args(["--strict", "--quiet", "-k", version]).args(files))?;
    }
    Ok(())
}
