//! Other gateways, from their registries, each relaying to the stub.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::deploy::NGINX;
use crate::process::{command, root, run};

/// How long a peer may take to start.
const START: Duration = Duration::from_mins(2);

/// The stub's models that are requested.
pub(super) const MODELS: &[&str] = &["plain", "chunks-2000", "paced-50-20"];

/// A gateway being measured.
pub(crate) struct RunningPeer {
    pub(super) name: &'static str,
    child: Child,
    /// The process that does the work: the child or one of its descendants.
    pub(super) pid: u32,
    pub(crate) host: String,
    pub(super) path: &'static str,
    pub(crate) key: String,
    /// Additional headers, each NAME: VALUE.
    pub(super) headers: Vec<String>,
    /// Prefix of the stub's model names.
    pub(super) prefix: &'static str,
}

impl RunningPeer {
    pub(super) fn new(name: &'static str, child: Child, host: String, path: &'static str) -> Self {
        let pid = child.id();
        Self { name, child, pid, host, path, key: String::new(), headers: Vec::new(), prefix: "" }
    }

    /// Asks it to exit, and waits until it has written its final output.
    pub(crate) fn end(mut self) -> Result<()> {
        run(command("kill").arg(self.pid.to_string()))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{} ended with {status}", self.name);
        Ok(())
    }
}

impl Drop for RunningPeer {
    fn drop(&mut self) {
        // Both only fail if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder that the peers are installed in.
fn folder() -> PathBuf {
    root().join("target/bench")
}

pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn wait_for(host: &str) -> Result<()> {
    let started = Instant::now();
    while TcpStream::connect(host).is_err() {
        if started.elapsed() > START {
            bail!("nothing listens at {host} after {} s", START.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

/// A virtual environment with a package.
fn python(package: &str) -> Result<PathBuf> {
    let venv = folder().join("venv");
    let python = venv.join("bin/python");
    if !python.exists() {
        run(command("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    run(command(&python).args(["-m", "pip", "install", "-q", "--disable-pip-version-check", package]))?;
    Ok(venv.join("bin"))
}

/// `LiteLLM`'s proxy does not start without a key.
const LITELLM_KEY: &str = "sk-only-for-this-measurement";

/// `LiteLLM`'s proxy with one worker.
pub(super) fn litellm(stub: &str) -> Result<RunningPeer> {
    let bin = python("litellm[proxy]==1.106.0")?;
    let config = folder().join("litellm.yaml");
    fs::write(
        &config,
        format!(
            "model_list:\n  - model_name: \"*\"\n    litellm_params:\n      model: openai/*\n      \
             api_base: http://{stub}/v1\n      api_key: none\n\
             general_settings:\n  master_key: {LITELLM_KEY}\n"
        ),
    )?;
    let port = free_port()?;
    let mut program = command(bin.join("litellm"));
    program.arg("--config").arg(&config).args(["--port", &port.to_string()]);
    // Otherwise it fetches prices from the network first.
    program.env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    let child = quiet(&mut program).spawn().context("cannot start litellm")?;
    let host = format!("127.0.0.1:{port}");
    let mut running = RunningPeer::new("LiteLLM", child, host, "/v1/chat/completions");
    LITELLM_KEY.clone_into(&mut running.key);
    wait_for(&running.host)?;
    Ok(running)
}

/// Portkey's gateway.
pub(super) fn portkey(stub: &str) -> Result<RunningPeer> {
    let folder = folder().join("portkey");
    fs::create_dir_all(&folder)?;
    if !folder.join("node_modules/@portkey-ai/gateway").exists() {
        run(command("npm").current_dir(&folder).args(["install", "--silent", "@portkey-ai/gateway@1.15.2"]))?;
    }
    let port = free_port()?;
    let program = folder.join("node_modules/@portkey-ai/gateway/build/start-server.js");
    let child = quiet(command("node").arg(program).args([&format!("--port={port}"), "--headless"]))
        .spawn()
        .context("cannot start Portkey's gateway")?;
    let mut running = RunningPeer::new("Portkey", child, format!("127.0.0.1:{port}"), "/v1/chat/completions");
    running.headers =
        vec!["x-portkey-provider: openai".to_owned(), format!("x-portkey-custom-host: http://{stub}/v1")];
    wait_for(&running.host)?;
    Ok(running)
}

/// nginx as a reverse proxy, which knows nothing about models: the cost of a hop on this machine.
pub(super) fn nginx(stub: &str) -> Result<RunningPeer> {
    let folder = folder().join("nginx");
    fs::create_dir_all(folder.join("logs"))?;
    let port = free_port()?;
    let config = folder.join("nginx.conf");
    fs::write(
        &config,
        format!(
            "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr crit;\n\
             events {{ worker_connections 4096; }}\n\
             http {{\n  access_log off;\n  client_body_temp_path body;\n  proxy_temp_path proxy;\n  \
             fastcgi_temp_path fastcgi;\n  uwsgi_temp_path uwsgi;\n  scgi_temp_path scgi;\n  \
             upstream stub {{ server {stub}; keepalive 1024; }}\n  \
             server {{\n    listen 127.0.0.1:{port};\n    keepalive_requests 1000000000;\n    \
             location / {{\n      proxy_pass http://stub;\n      proxy_http_version 1.1;\n      \
             proxy_set_header Connection \"\";\n      proxy_buffering off;\n    }}\n  }}\n}}\n"
        ),
    )?;
    let child = quiet(command(NGINX).arg("-p").arg(&folder).arg("-c").arg(&config))
        .spawn()
        .context("cannot start nginx (Debian's package nginx-light has it)")?;
    let running = RunningPeer::new("nginx", child, format!("127.0.0.1:{port}"), "/v1/chat/completions");
    wait_for(&running.host)?;
    Ok(running)
}

/// TensorZero's embedded gateway, which its Python package serves on its own port.
pub(super) fn tensorzero(stub: &str) -> Result<RunningPeer> {
    let bin = python("tensorzero==2026.6.0")?;
    python("openai==2.54.0")?;
    let config = folder().join("tensorzero.toml");
    let models = MODELS.iter().map(|model| {
        format!(
            "[models.\"{model}\"]\nrouting = [\"stub\"]\n[models.\"{model}\".providers.stub]\ntype = \"openai\"\n\
             model_name = \"{model}\"\napi_base = \"http://{stub}/v1/\"\napi_key_location = \"none\"\n"
        )
    });
    fs::write(&config, models.collect::<String>())?;
    let child = command(bin.join("python"))
        .arg("-c")
        .arg(TENSORZERO)
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start TensorZero's gateway")?;
    let mut running = RunningPeer::new("TensorZero", child, String::new(), "/openai/v1/chat/completions");
    let mut lines = BufReader::new(running.child.stdout.take().context("no standard output")?).lines();
    // It logs first, and continues to do so.
    let url = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("http://"));
    std::thread::spawn(move || lines.for_each(drop));
    let url = url.context("TensorZero ended before it printed its address")?;
    let host = url.trim_start_matches("http://").split('/').next();
    host.unwrap_or_default().clone_into(&mut running.host);
    running.prefix = "tensorzero::model_name::";
    Ok(running)
}

/// Serves the embedded gateway and prints its address.
const TENSORZERO: &str = "\
import sys, time
import openai, tensorzero
client = openai.OpenAI(api_key='none')
client = tensorzero.patch_openai_client(client, config_file=sys.argv[1], async_setup=False)
print(client.base_url, flush=True)
while True:
    time.sleep(60)
";

/// The first line that a program prints.
pub(super) fn first_line(child: &mut Child) -> Result<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().context("no standard output")?).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Whether a peer's files were already installed, for the message that explains what takes so long.
pub(super) fn is_installed() -> bool {
    Path::new(&folder().join("venv")).exists()
}
