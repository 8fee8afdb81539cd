//! `cargo xtask test container`: the image of `deploy/Containerfile`, built with podman and run as that file describes. It
//! serves, runs unprivileged, stores durable data in its volume, and exits at SIGTERM once requests in progress are
//! answered.
//!
//! `GATEWRIGHT_IMAGE` names an image to test instead of building one. How podman builds and runs is podman's own
//! configuration: `containers.conf`, `BUILDAH_ISOLATION`.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::artefacts::target;
use crate::process::{command, output, run, step};

/// The name of an image to test instead.
const IMAGE_VARIABLE: &str = "GATEWRIGHT_IMAGE";
const IMAGE: &str = "localhost/gatewright-test";
/// Debian's slim image, which is 80 MB, the program, and certificates.
const MAX_IMAGE_MB: u64 = 150;
/// The image's user, which the manifests of `deploy/kubernetes` also name.
const USER: &str = "10001";
/// Where the image stores data.
const DATA: &str = "/var/lib/gatewright";
/// Minimum number of certificates that the system trusts; there are about 140.
const MIN_CERTIFICATES: u64 = 50;

/// An answer takes some seconds, longer than connections are accepted after the stop signal.
const CONFIGURATION: &str = r#"[server]
listen = "0.0.0.0:8080"
drain_delay = "3s"
shutdown_grace = "20s"

[access]
key = { env = "KEY_OF_THE_CONTAINER" }

[simulator]
event_delay = "100ms"
"#;
/// More than `drain_delay` and `shutdown_grace` together: then podman kills it, and its exit code is 137.
const STOP_SECONDS: u64 = 30;
const CONFIGURED_KEY: &str = "key-of-the-container";
/// Timeout for a gateway to be ready, and to know a new key.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn test() -> Result<()> {
    let found = command("podman").arg("--version").stdout(Stdio::null()).status();
    ensure!(
        found.is_ok_and(|status| status.success()),
        "podman is not installed: install your system's package podman, such as Debian's"
    );
    let image = match std::env::var(IMAGE_VARIABLE) {
        Ok(image) => image,
        Err(_) => step("the image builds", build).map(|()| IMAGE.to_owned())?,
    };
    let size: u64 =
        output(podman("image").args(["inspect", "--format", "{{.Size}}", &image]))?.trim().parse()?;
    let size = size / 1_000_000;
    eprintln!("    {image} has {size} MB");
    ensure!(size <= MAX_IMAGE_MB, "the image is larger than {MAX_IMAGE_MB} MB");

    let volume = Volume::make()?;
    let configuration = configuration()?;
    let started = Instant::now();
    let container = Container::start("first", &image, &volume, &configuration, &[])?;
    container.waits_until(200, "/health/ready", "")?;
    eprintln!("    it is ready after {:.1} s", started.elapsed().as_secs_f64());
    let key = step("it has no rights, and serves a key that is made in it", || {
        container.is_without_rights()?;
        container.trusts_the_roots_of_the_system()?;
        container.answers(CONFIGURED_KEY)?;
        let key = container.made_key()?;
        let streamed = container.stream(&key)?.rest()?;
        ensure!(is_whole(&streamed), "this is no whole stream: {streamed}");
        Ok(key)
    })?;
    step("its stop lets a stream end", || container.ends_when_a_stream_does(&key))?;
    drop(container);

    // Only the volume of the first one remains; and only the volume is writable, as in compose.yaml.
    let guarded =
        ["--read-only", "--tmpfs=/tmp", "--cap-drop=all", "--security-opt=no-new-privileges"].as_slice();
    step("the volume has its data, for the next one", || {
        let container = Container::start("second", &image, &volume, &configuration, guarded)?;
        container.waits_until(200, "/v1/models", &key)?;
        container.has_counted(2)?;
        container.ends()
    })
}

fn build() -> Result<()> {
    run(podman("build").args(["--file", "deploy/Containerfile", "--tag", IMAGE, "."]))
}

fn podman(subcommand: &str) -> Command {
    let mut podman = command("podman");
    podman.arg(subcommand);
    podman
}

/// The configuration file, readable for the image's user.
fn configuration() -> Result<PathBuf> {
    let folder = target().join("container");
    fs::create_dir_all(&folder)?;
    let place = folder.join("gatewright.toml");
    fs::write(&place, CONFIGURATION)?;
    fs::set_permissions(&place, Permissions::from_mode(0o644))?;
    Ok(place)
}

/// Whether these are the complete events of an answer.
fn is_whole(events: &str) -> bool {
    let chunks = events.lines().filter(|line| line.starts_with("data: {")).count();
    chunks > 2 && events.trim_end().ends_with("data: [DONE]")
}

/// A named volume; dropping it removes it.
struct Volume(String);

impl Volume {
    fn make() -> Result<Self> {
        let volume = Self(format!("gatewright-test-{}", std::process::id()));
        output(podman("volume").args(["create", &volume.0]))?;
        Ok(volume)
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // If this fails, a volume remains, but the test has its result.
        _ = output(podman("volume").args(["rm", "--force", &self.0]));
    }
}

/// A container of the image, with a port on this machine; dropping it removes it.
struct Container {
    name: String,
    address: String,
}

impl Container {
    /// Starts one as the comment in the container file describes, with additional arguments.
    fn start(
        which: &str,
        image: &str,
        volume: &Volume,
        configuration: &Path,
        further: &[&str],
    ) -> Result<Self> {
        let name = format!("{}-{which}", volume.0);
        let mut container = Self { name, address: String::new() };
        output(
            podman("run")
                .args(["--detach", "--name", &container.name, "--publish", "127.0.0.1::8080"])
                // Z: on a machine that labels files, sets this container's label. Elsewhere it has no effect.
                .arg("--volume")
                .arg(format!("{}:/etc/gatewright/gatewright.toml:ro,Z", configuration.display()))
                .args(["--volume", &format!("{}:{DATA}", volume.0)])
                .args(["--env", "KEY_OF_THE_CONTAINER"])
                .env("KEY_OF_THE_CONTAINER", CONFIGURED_KEY)
                .args(further)
                .arg(image),
        )?;
        let published = output(podman("port").args([&container.name, "8080/tcp"]))?;
        container.address = format!("http://{}", published.trim());
        Ok(container)
    }

    /// The output of a command in the container.
    fn prints(&self, words: &[&str]) -> Result<String> {
        output(podman("exec").arg(&self.name).args(words))
    }

    fn curl(&self, path: &str, key: &str) -> Command {
        let mut curl = command("curl");
        curl.args(["--silent", "--no-buffer", "--noproxy", "*", "--max-time", "60"]);
        if !key.is_empty() {
            curl.args(["--header", &format!("authorization: Bearer {key}")]);
        }
        curl.arg(format!("{}{path}", self.address)).stdin(Stdio::null());
        curl
    }

    /// Status of a response, or 0 without one.
    fn status(&self, path: &str, key: &str) -> Result<u16> {
        let answered = self
            .curl(path, key)
            .args(["--output", "/dev/null", "--write-out", "%{http_code}"])
            .output()
            .context("cannot start curl; is it installed and on PATH?")?;
        Ok(String::from_utf8(answered.stdout)?.parse()?)
    }

    fn waits_until(&self, wanted: u16, path: &str, key: &str) -> Result<()> {
        let started = Instant::now();
        loop {
            let status = self.status(path, key)?;
            if status == wanted {
                return Ok(());
            }
            if started.elapsed() > PATIENCE {
                run(podman("logs").arg(&self.name))?;
                bail!("{path} answers {status}, not {wanted}; the log of the container is above");
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn is_without_rights(&self) -> Result<()> {
        let status = self.prints(&["cat", "/proc/1/status"])?;
        let value = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            found.unwrap_or_default().split_whitespace().collect::<Vec<_>>()
        };
        ensure!(value("Name") == ["gatewright"], "the first process is not the gateway: {status}");
        for name in ["Uid", "Gid"] {
            ensure!(value(name) == [USER; 4], "{name} of the gateway is {:?}, not {USER}", value(name));
        }
        ensure!(value("CapEff") == ["0000000000000000"], "it has capabilities: {:?}", value("CapEff"));
        let folder = self.prints(&["stat", "--format", "%u:%g %a", DATA])?;
        ensure!(folder.trim() == format!("{USER}:{USER} 700"), "{DATA} is of {folder}");
        let others = self.prints(&["find", DATA, "!", "-user", USER])?;
        ensure!(others.is_empty(), "these are not of {USER}: {others}");
        let files = self.prints(&["ls", DATA])?;
        ensure!(files.contains("gatewright.db"), "{DATA} has no data, but {files}");
        Ok(())
    }

    /// The authorities that verify Postgres and Redis over TLS.
    fn trusts_the_roots_of_the_system(&self) -> Result<()> {
        let place = "/etc/ssl/certs/ca-certificates.crt";
        let found = self.prints(&["grep", "--count", "BEGIN CERTIFICATE", place])?;
        let found: u64 = found.trim().parse()?;
        ensure!(found >= MIN_CERTIFICATES, "{place} has {found} certificates");
        Ok(())
    }

    /// Creates a key as an operator does, and waits until the gateway knows it.
    fn made_key(&self) -> Result<String> {
        let key = self.prints(&["gatewright", "keys", "create", "app"])?.trim().to_owned();
        self.waits_until(200, "/v1/models", &key)?;
        Ok(key)
    }

    fn chat(&self, key: &str, stream: bool) -> Command {
        let messages = json!([{ "role": "user", "content": "Count to twenty." }]);
        let body = json!({ "model": "model-sol", "stream": stream, "messages": messages });
        let mut curl = self.curl("/v1/chat/completions", key);
        curl.args(["--fail-with-body", "--header", "content-type: application/json"]);
        curl.args(["--data", &body.to_string()]);
        curl
    }

    fn answers(&self, key: &str) -> Result<()> {
        let answer: Value = serde_json::from_str(&output(&mut self.chat(key, false))?)?;
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
        ensure!(!text.is_empty(), "the answer has no text: {answer}");
        Ok(())
    }

    /// A stream whose first event has arrived.
    fn stream(&self, key: &str) -> Result<Streamed> {
        let mut child = self.chat(key, true).stdout(Stdio::piped()).spawn()?;
        let mut events = BufReader::new(child.stdout.take().context("a piped output")?);
        let mut got = String::new();
        events.read_line(&mut got)?;
        ensure!(got.starts_with("data: {"), "the stream begins with {got:?}");
        Ok(Streamed { child, events, got })
    }

    /// Stops the container while a stream is in progress. It reports that it accepts nothing new, and exits after the
    /// stream.
    fn ends_when_a_stream_does(&self, key: &str) -> Result<()> {
        let stream = self.stream(key)?;
        let started = Instant::now();
        let mut stop = self.stop();
        let mut stopping = stop.stdout(Stdio::null()).spawn()?;
        self.waits_until(503, "/health/ready", "")?;
        let streamed = stream.rest()?;
        ensure!(is_whole(&streamed), "the stop cut a stream: {streamed}");
        ensure!(stopping.wait()?.success(), "podman could not stop the container");
        self.has_ended(started)
    }

    fn stop(&self) -> Command {
        let mut stop = podman("stop");
        stop.args(["--time", &STOP_SECONDS.to_string(), &self.name]);
        stop
    }

    /// Stops the container while it is idle.
    fn ends(&self) -> Result<()> {
        let started = Instant::now();
        output(&mut self.stop())?;
        self.has_ended(started)
    }

    fn has_ended(&self, started: Instant) -> Result<()> {
        let took = started.elapsed();
        let code =
            output(podman("container").args(["inspect", "--format", "{{.State.ExitCode}}", &self.name]))?;
        ensure!(code.trim() == "0", "it ended with {}", code.trim());
        ensure!(took < Duration::from_secs(STOP_SECONDS), "its end took {took:?}");
        eprintln!("    it ended with 0 after {:.1} s", took.as_secs_f64());
        Ok(())
    }

    /// The usage of the new key corresponds to this many requests, each answered completely.
    fn has_counted(&self, requests: u64) -> Result<()> {
        let usage =
            self.prints(&["gatewright", "usage", "--by", "key", "--key", "app", "--format", "json"])?;
        let usage: Value = serde_json::from_str(&usage)?;
        let counted = [&usage[0]["requests"], &usage[0]["complete"]];
        ensure!(counted == [&json!(requests); 2], "{requests} requests were counted so: {usage}");
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // If this fails, a container remains, but the test has its result.
        _ = output(podman("rm").args(["--force", "--time", "0", &self.name]));
    }
}

/// A response that is arriving.
struct Streamed {
    child: Child,
    events: BufReader<ChildStdout>,
    got: String,
}

impl Streamed {
    /// All of it, once it is complete.
    fn rest(mut self) -> Result<String> {
        self.events.read_to_string(&mut self.got)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "curl ended with {status} after {}", self.got);
        Ok(self.got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_stream_is_incomplete() {
        let chunk = "data: {\"choices\":[]}\n\n";
        let whole = chunk.repeat(3) + "data: [DONE]\n\n";
        assert!(is_whole(&whole));
        assert!(!is_whole(&chunk.repeat(3)));
        assert!(!is_whole("data: {\"error\":{}}\n\ndata: [DONE]\n\n"));
    }
}
