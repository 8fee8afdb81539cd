//! A third-party server, from `tests/servers`, on a free port of this machine, for as long as the value lives.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};

use crate::artefacts::npm_ci;
use crate::process::{command, root};

/// A running server; dropping it stops it.
pub(crate) struct OtherServer {
    child: Child,
    pub(crate) address: String,
}

impl OtherServer {
    /// Starts a script of `tests/servers`, which prints its address.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Result<Self> {
        let folder = root().join("tests/servers");
        npm_ci(&folder)?;
        let mut child = command("node")
            .current_dir(folder)
            .arg(script)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start node")?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("the server has no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().to_owned();
        let server = Self { child, address };
        if !server.address.starts_with("http://") {
            bail!("{script} did not say where it listens: {line:?}");
        }
        Ok(server)
    }
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        // Both only fail if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
