//! A gateway of the built program on a free local port; it runs as long as the value lives.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::artefacts::program;
use crate::process::command;

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

    /// The same, with further arguments.
    pub(crate) fn start_with(arguments: &[&str]) -> Result<Self> {
        let mut child = command(program())
            .args(["serve", "--listen", "127.0.0.1:0", "--json"])
            .args(arguments)
            .env_remove("GATEWRIGHT_API_KEY")
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

    /// The base URL on which it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The key that its clients send.
    pub(crate) fn key(&self) -> &str {
        &self.key
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
