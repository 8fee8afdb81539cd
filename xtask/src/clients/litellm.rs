//! `LiteLLM`'s proxy, a third-party gateway, in front of another server, for as long as the value lives.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::artefacts::{install_into, target};
use crate::process::{command, root};

/// Start timeout: it loads a lot of Python.
const START: Duration = Duration::from_mins(4);
/// The key that its clients send; it rejects short ones.
const KEY: &str = "sk-clients-of-the-proxy-4b1d9c77e2";

/// A running proxy; dropping it stops it.
pub(super) struct LitellmProxy {
    child: Child,
    pub(super) address: String,
}

fn venv() -> PathBuf {
    target().join("litellm-venv")
}

/// Installs it: about 600 MB.
pub(super) fn install() -> Result<()> {
    install_into(&venv(), &[root().join("tests/servers/requirements.txt")])
}

impl LitellmProxy {
    pub(super) const KEY: &str = KEY;

    /// Starts it in front of a chat server, whose models keep their names. It drops the requested format of images, which
    /// it would reject for an unknown model. It is ready when [`wait`](Self::wait) returns.
    pub(super) fn start(folder: &Path, behind: &str) -> Result<Self> {
        let (config, log) = (folder.join("litellm.yaml"), File::create(folder.join("litellm.log"))?);
        fs::write(
            &config,
            format!(
                "model_list:\n  - model_name: \"*\"\n    litellm_params:\n      model: openai/*\n      \
                 api_base: {behind}/v1\n      api_key: any-key\n  - model_name: \"image-*\"\n    litellm_params:\n      model: openai/image-*\n      \
                 api_base: {behind}/v1\n      api_key: any-key\n      drop_params: true\nlitellm_settings:\n  num_retries: 0\n  \
                 telemetry: false\nrouter_settings:\n  num_retries: 0\n  disable_cooldowns: true\n"
            ),
        )?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = command(venv().join("bin/litellm"))
            .current_dir(folder)
            .arg("--config")
            .arg(&config)
            .args(["--host", "127.0.0.1", "--port", &port.to_string()])
            .env("LITELLM_MASTER_KEY", KEY)
            // Otherwise model prices are fetched.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start LiteLLM's proxy")?;
        Ok(Self { child, address: format!("http://127.0.0.1:{port}") })
    }

    /// Waits until it is ready. A listening port is not enough: a connection to a free port may connect to
    /// itself.
    pub(super) fn wait(&mut self) -> Result<()> {
        let (started, host) = (Instant::now(), self.address.trim_start_matches("http://"));
        while !lives(host) {
            if let Some(status) = self.child.try_wait()? {
                bail!("LiteLLM's proxy ended with {status}; see litellm.log in target/clients");
            }
            if started.elapsed() > START {
                bail!("LiteLLM's proxy does not answer after {} s", START.as_secs());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// Whether a proxy reports that it is alive.
fn lives(host: &str) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut socket = TcpStream::connect(host)?;
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(socket, "GET /health/liveliness HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")?;
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line)?;
        Ok(line)
    };
    ask().is_ok_and(|line| line.starts_with("HTTP/1.1 200"))
}

impl Drop for LitellmProxy {
    fn drop(&mut self) {
        // Both only fail if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
