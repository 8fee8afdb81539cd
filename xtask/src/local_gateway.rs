//! A gateway of the built program on a free local port; it runs as long as the value lives.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::artefacts::program;
use crate::process::{command, output};

/// Variable with the admin key.
const ADMIN_KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_ADMIN_KEY";
/// The admin key of managed gateways.
const ADMIN_KEY: &str = "admin-of-a-gateway-on-this-machine";

/// A running gateway; dropping it stops it.
pub(crate) struct LocalGateway {
    child: Child,
    address: String,
    key: String,
}

impl LocalGateway {
    /// Starts `gatewright serve` and waits until it listens.
    pub(crate) fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// The same, with additional arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Result<Self> {
        Self::start_by(command(program()).args(["serve"]).args(arguments))
    }

    /// Starts `serve` with another build of the program.
    pub(crate) fn start_program(program: &Path) -> Result<Self> {
        Self::start_by(command(program).arg("serve"))
    }

    /// The same, for a gateway that can create [further keys](Self::further_key).
    pub(crate) fn start_managed(arguments: &[&str]) -> Result<Self> {
        let mut serve = command(program());
        Self::start_by(serve.args(["serve"]).args(arguments).env(ADMIN_KEY_VARIABLE, ADMIN_KEY))
    }

    fn start_by(serve: &mut Command) -> Result<Self> {
        let mut child = serve
            .args(["--listen", "127.0.0.1:0", "--json"])
            .env_remove("GATEWRIGHT_API_KEY")
            // It doesn't belong to the user: their commands don't find it, and it neither keeps a key nor uses theirs.
            .env("XDG_RUNTIME_DIR", "/dev/null/runtime")
            .env("XDG_STATE_HOME", "/dev/null/state")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the gateway")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the gateway has no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let ready: serde_json::Value = serde_json::from_str(&line)
            .with_context(|| format!("the gateway did not report its address: {line:?}"))?;
        let (Some(address), Some(key)) = (ready["listening"].as_str(), ready["key"].as_str()) else {
            bail!("the gateway's first line lacks listening or key");
        };
        Ok(Self { address: address.to_owned(), key: key.to_owned(), child })
    }

    /// The base URL it listens on.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The key that its clients send.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Creates a key for another user. The gateway must be a managed one.
    pub(crate) fn further_key(&self, name: &str) -> Result<String> {
        let mut create = command(program());
        create.args(["keys", "create", name, "--base-url", &self.address, "--json"]);
        let issued: serde_json::Value =
            serde_json::from_str(&output(create.env(ADMIN_KEY_VARIABLE, ADMIN_KEY))?)?;
        Ok(issued["secret"].as_str().context("the key made has no secret")?.to_owned())
    }

    /// Lets a command's clients find this gateway.
    pub(crate) fn reach_from<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("GATEWRIGHT_BASE_URL", &self.address).env("GATEWRIGHT_API_KEY", &self.key)
    }
}

impl Drop for LocalGateway {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
