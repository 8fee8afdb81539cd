//! `gatewright serve`: runs a gateway.
//!
//! Flags take precedence over their variables, variables over the configuration file, and that over the
//! defaults.

mod announce;
mod key;
mod limits;
mod lines;
mod logging;
mod reload;
pub(crate) mod store;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use gatewright::webhook::{Secret, WEBHOOK_SECRET_VARIABLE};
use gatewright_gateway::{
    BindError, Config, ConfigFile, Faults, Gateway, InvalidFault, ProviderChoice, ProviderSetup, Watch,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use self::announce::{Announcement, Origins};
use self::key::{KeyArguments, LocalKeys, Origin};
use self::limits::Limits;
use self::logging::Logging;
use self::reload::Reloading;
use crate::amount;
use crate::data_folder;
use crate::exit::{Exit, Failure, print_message};
use crate::local_keys::LocalKey;
use crate::provider_choice::{self, ProviderParser};
use crate::running::{Registration, RunningGateway};
use crate::signals::{Hangup, Hangups, stop_signal};
use crate::terminal::is_watched;

/// How long to probe whether the program at the address is a gateway.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// Maximum size of its answer, in bytes.
const MAX_PROBE_BYTES: u64 = 4 << 10;

#[derive(Debug, Args)]
#[command(
    after_help = "Webhooks are signed with the secret in the configuration file, else with the first secret in \
                  GATEWRIGHT_WEBHOOK_SECRET, else with a random one; `gatewright webhooks secret` prints that of a data folder, \
                  and --json and --allow-private-webhooks print it when it is generated. The key for the \
                  operations under /admin is read from GATEWRIGHT_SERVE_ADMIN_KEY or the configuration file. \
                  GATEWRIGHT_SERVE_STORE_URL is the address of a Postgres database that several gateways share, and \
                  GATEWRIGHT_SERVE_PEPPER is their pepper. GATEWRIGHT_SERVE_COUNTERS_URL is the address of a Redis or Valkey \
                  server, on which these gateways enforce the limits of their keys together."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[expect(clippy::option_option, reason = "the flag alone means the usual folder")]
pub(crate) struct ServeArguments {
    /// Configuration file, reloaded when it changes; see gatewright config [default: none, a simulated provider]
    #[arg(long, value_name = "FILE", env = "GATEWRIGHT_SERVE_CONFIG", hide_env_values = true)]
    #[arg(value_parser = maybe_path())]
    config: Option<PathBuf>,
    /// Provider whose models to serve, with its key in its own variable, such as OPENAI_API_KEY; with =URL if it is at an address
    /// of your own; repeatable; see gatewright providers
    #[arg(long, value_name = "NAME[=URL]", conflicts_with = "config")]
    #[arg(value_parser = ProviderParser, hide_possible_values = true)]
    provider: Vec<ProviderChoice>,
    /// Serve only those models of --provider that this program knows, without requesting the provider's list
    #[arg(long, requires = "provider")]
    known_models: bool,
    /// Address to listen on; port 0 picks a free port; repeatable [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    #[command(flatten)]
    key: KeyArguments,
    /// Name of this gateway among those that share a store [default: the host name]
    #[arg(long, value_name = "NAME", env = "GATEWRIGHT_SERVE_NAME", hide_env_values = true)]
    name: Option<String>,
    /// Scheme, host and port at which clients reach the gateway, for file URLs [default: from the Host header]
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
    /// Origin whose web pages may call the gateway (CORS), such as https://app.example; * allows all
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(env = "GATEWRIGHT_SERVE_ALLOW_ORIGIN", hide_env_values = true)]
    allow_origin: Vec<String>,
    /// Folder for persistent data: keys, usage, stored responses, tasks, files; without DIR, gatewright in the user's data
    /// folder,
    /// such as ~/.local/share [default: none, all data is in memory]
    #[arg(long, value_name = "DIR", num_args = 0..=1, env = "GATEWRIGHT_SERVE_DATA", hide_env_values = true)]
    #[arg(value_parser = maybe_path())]
    data: Option<Option<PathBuf>>,
    /// Allow webhook_url to use plain http and to point to this machine or a private network; for development
    #[arg(long)]
    allow_private_webhooks: bool,
    /// Faults to inject into every response, such as truncate=3@create_response; an unknown fault lists all
    #[arg(long, value_name = "FAULTS")]
    fault: Vec<String>,
    /// Print one JSON line when ready: {"listening": "http://…", "key": "…", "webhook_secret": "whsec_…"}; values from the
    /// configuration file are null, and so is a secret generated at an earlier start
    #[arg(long)]
    json: bool,
    /// Open the console in a browser when ready, signed in
    #[arg(long)]
    open: bool,
    /// Serve /metrics, in the Prometheus text format, without authentication
    #[arg(long)]
    open_metrics: bool,
    #[command(flatten)]
    logging: Logging,
    #[command(flatten)]
    limits: Limits,
}

/// A configuration with the command line applied, and the sources of its secrets; `None`: they are generated.
struct ResolvedConfig {
    config: Config,
    key: Option<Origin>,
    webhook_secret: Option<Origin>,
    warnings: Vec<String>,
}

impl ServeArguments {
    /// The configuration of the file, or the default one, with the command line applied.
    fn settle(&self, mut config: Config) -> Result<ResolvedConfig, Failure> {
        let mut warnings = Vec::new();
        let (key, key_origin) = self.key.read(config.key.take(), &mut warnings)?.unzip();
        let secret_origin = webhook_secrets(&mut config)?;
        config.key = key;
        config.admin_key = key::admin_key(&mut warnings)?.or(config.admin_key);
        key::check_distinct(&config)?;
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        // An empty variable counts as unset.
        if let Some(name) = self.name.as_ref().filter(|name| !name.is_empty()) {
            config.name = Some(name.clone());
        }
        if let Some(url) = self.public_url.as_ref().filter(|url| !url.is_empty()) {
            config.public_url = Some(url.clone());
        }
        match &self.data {
            None => {}
            Some(None) => config.data = Some(data_folder::usual()?),
            Some(Some(folder)) if folder.as_os_str().is_empty() => {}
            Some(Some(folder)) => config.data = Some(folder.clone()),
        }
        let origins = self.allow_origin.iter().filter(|origin| !origin.is_empty());
        if origins.clone().next().is_some() {
            config.allowed_origins = origins.cloned().collect();
        }
        config.allow_private_webhooks |= self.allow_private_webhooks;
        config.open_metrics |= self.open_metrics;
        if !self.fault.is_empty() {
            config.faults = Faults::default();
        }
        for text in &self.fault {
            let faults = text.parse().map_err(|error: InvalidFault| Failure::Usage(error.to_string()))?;
            config.faults.extend(faults);
        }
        let config = store::over(self.limits.over(config))?;
        Ok(ResolvedConfig { config, key: key_origin, webhook_secret: secret_origin, warnings })
    }
}

pub(crate) async fn run(arguments: ServeArguments) -> Exit {
    if arguments.open && !cfg!(feature = "console") {
        return Err(Failure::Usage("--open: this program was built without the console".to_owned()));
    }
    let arguments = Arc::new(arguments);
    let path = arguments.config.clone().filter(|path| !path.as_os_str().is_empty());
    let has_no_file = path.is_none();
    let watch = path.as_deref().map(Watch::new);
    let file = match &path {
        Some(path) => Some(ConfigFile::read(path)),
        None if arguments.provider.is_empty() => None,
        None => {
            let source = provider_choice::models(arguments.known_models);
            Some(ProviderSetup::of(&arguments.provider, source).await.config())
        }
    };
    let file = file.transpose().map_err(|all| Failure::Usage(all.to_string()))?;
    let log = file.as_ref().map(|file| file.log.clone()).unwrap_or_default();
    let traces = arguments.logging.begin(&log)?;
    let (config, warnings, files) = match file {
        Some(file) => (file.config, file.warnings, file.files),
        None => (Config::default(), Vec::new(), Vec::new()),
    };
    for warning in warnings {
        print_message(&format!("warning: {warning}"));
    }
    let mut settled = arguments.settle(config)?;
    let local_keys = LocalKeys::complete(&mut settled.config, path.is_some(), &mut settled.warnings)?;
    for warning in &settled.warnings {
        print_message(&format!("warning: {warning}"));
    }
    let gateway = match Gateway::bind(settled.config).await {
        Ok(gateway) => gateway,
        Err(error) => return Err(Failure::Usage(unbound(&error).await)),
    };
    // Installed before the gateway reports that it is ready: from then on, a signal must find its handler.
    let no_handler = |error| Failure::Failed(format!("cannot install a signal handler: {error}"));
    let on_hangup = if path.is_some() { Hangup::Reloads } else { Hangup::Stops };
    let stop = stop_signal(on_hangup).map_err(no_handler)?;
    let reloading = match (path, watch) {
        (Some(path), Some(mut watch)) => {
            watch.set(&files);
            let hangups = Hangups::new().map_err(no_handler)?;
            let control = gateway.control();
            let arguments = Arc::clone(&arguments);
            // A reloaded file may still leave the key out.
            let local_key = local_keys.client.as_ref().filter(|_| settled.key.is_none());
            let local_key = local_key.map(|local| local.key.clone());
            let reloading = Reloading { arguments, path, log, local_key, control, watch, hangups };
            Some(tokio::spawn(reloading.run()))
        }
        _ => None,
    };
    let registration = register(&gateway, &local_keys, arguments.key.file());
    let origins = Origins { key: settled.key, webhook_secret: settled.webhook_secret, local_keys };
    if arguments.json {
        Announcement::print_json(&gateway, &origins)?;
    } else {
        let is_simulated = has_no_file && arguments.provider.is_empty();
        let variable = |name: &str| std::env::var_os(name);
        let unused = if is_simulated { announce::unused_providers(variable) } else { Vec::new() };
        Announcement::of(&gateway.config(), traces.is_some(), unused).print(&gateway, &origins)?;
    }
    #[cfg(feature = "console")]
    if arguments.open {
        open_page(&gateway);
    }
    let grace = gateway.config().shutdown_grace;
    let stop = async move {
        stop.await;
        // The log elsewhere is for programs.
        if is_watched() {
            print_message(&format!("stopping; requests in progress have {} to finish", amount::time(grace)));
        }
    };
    for task in gateway.serve(stop).await {
        print_message(&format!(
            "the video task {task} failed: the gateway stopped before the video was ready"
        ));
    }
    drop(registration);
    if let Some(reloading) = reloading {
        reloading.abort();
    }
    // Exporting blocks, and the runtime has other threads for that.
    if let Some(traces) = traces {
        _ = tokio::task::spawn_blocking(|| traces.end()).await;
    }
    Ok(0)
}

/// Why the gateway cannot start, and a way out if its address is taken.
async fn unbound(error: &BindError) -> String {
    match error {
        BindError::Listen { listen, source } if source.kind() == io::ErrorKind::AddrInUse => {
            let other = if is_gateway(listen).await { "another gateway" } else { "another program" };
            format!(
                "{error}: {other} listens there. Stop it, or choose a free port with --listen 127.0.0.1:0"
            )
        }
        _ => error.to_string(),
    }
}

/// Whether a gateway listens at this address.
async fn is_gateway(listen: &str) -> bool {
    let probe = async {
        let mut stream = TcpStream::connect(listen).await?;
        stream.write_all(b"GET /health/live HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(MAX_PROBE_BYTES).read_to_end(&mut answer).await?;
        io::Result::Ok(answer.ends_with(br#"{"status":"live"}"#))
    };
    matches!(tokio::time::timeout(PROBE_TIME, probe).await, Ok(Ok(true)))
}

/// The secrets that sign webhooks: those of the configuration file, otherwise those in GATEWRIGHT_WEBHOOK_SECRET, the
/// variable that receivers also read; the current one first. Returns the source of the current one.
fn webhook_secrets(config: &mut Config) -> Result<Option<Origin>, Failure> {
    if config.webhook_secret.is_some() {
        return Ok(Some(Origin::ConfigFile));
    }
    if std::env::var_os(WEBHOOK_SECRET_VARIABLE).is_none_or(|secrets| secrets.is_empty()) {
        return Ok(None);
    }
    let mut secrets = Secret::from_env()?.into_iter();
    config.webhook_secret = secrets.next();
    config.webhook_previous_secrets.extend(secrets);
    Ok(config.webhook_secret.is_some().then_some(Origin::CommandLine))
}

/// An empty variable counts as unset; clap rejects an empty path.
fn maybe_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// Lets other commands of this user find the gateway. Where that is impossible, it runs all the same.
fn register(gateway: &Gateway, local_keys: &LocalKeys, key_file: Option<&Path>) -> Option<Registration> {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    let file = |local: &Option<LocalKey>| local.as_ref().map(|local| local.file.clone());
    let running = RunningGateway {
        urls: gateway.urls().iter().map(|url| reachable(url)).collect(),
        process: std::process::id(),
        key_file: file(&local_keys.client).or_else(|| key_file.and_then(absolute)),
        admin_key_file: file(&local_keys.admin),
        data: gateway.config().data.as_deref().and_then(absolute),
    };
    let registered = Registration::new(&running);
    registered.map_err(|error| tracing::debug!("other commands will not find this gateway: {error}")).ok()
}

/// The URL as programs on this machine reach it: they can't connect to a wildcard address.
fn reachable(url: &str) -> String {
    url.replacen("//0.0.0.0:", "//127.0.0.1:", 1).replacen("//[::]:", "//[::1]:", 1)
}

/// Opens the gateway's page in this machine's browser, signed in. Without a browser, the gateway still runs.
#[cfg(feature = "console")]
fn open_page(gateway: &Gateway) {
    let page = format!("{}/", reachable(&gateway.url()));
    // A fragment is sent to no server.
    if let Err(error) = open::that_detached(format!("{page}#sign-in={}", gateway.sign_in_code())) {
        print_message(&format!("no browser could be opened ({error}): open {page} in one"));
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};
    use gatewright_gateway::config_schema;
    use serde_json::Value;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        _arguments: ServeArguments,
    }

    /// Each flag, with the corresponding key of the configuration file.
    const KEYS: &[(&str, &str)] = &[
        ("provider", "upstreams"),
        ("listen", "server.listen"),
        ("key-file", "access.key"),
        ("key", "access.key"),
        ("name", "server.name"),
        ("public-url", "server.public_url"),
        ("allow-origin", "server.allowed_origins"),
        ("data", "store.data"),
        ("allow-private-webhooks", "webhooks.allow_private"),
        ("fault", "simulator.faults"),
        ("open-metrics", "observe.open_metrics"),
        ("verbose", "observe.log_level"),
        ("quiet", "observe.log_level"),
        ("log-format", "observe.log_format"),
        ("otlp-endpoint", "observe.otlp_endpoint"),
        ("max-body-bytes", "limits.max_body"),
        ("max-file-bytes", "limits.max_files"),
        ("max-held-bytes", "limits.max_held"),
        ("max-connections", "limits.max_connections"),
        ("max-connections-per-peer", "limits.max_connections_per_peer"),
        ("header-timeout", "limits.header_timeout"),
        ("body-timeout", "limits.body_timeout"),
        ("write-timeout", "limits.write_timeout"),
        ("shutdown-grace", "server.shutdown_grace"),
        ("drain-delay", "server.drain_delay"),
    ];
    /// Flags for a single start, which no file can set: the file itself, what stands for one, and the output.
    const OF_A_START: &[&str] = &["config", "known-models", "json", "open", "help"];

    #[test]
    fn each_flag_has_a_key_in_the_configuration_file() {
        let mut command = Program::command();
        command.build();
        let flags: Vec<String> =
            command.get_arguments().filter_map(|flag| flag.get_long().map(str::to_owned)).collect();
        for flag in flags.iter().filter(|flag| !OF_A_START.contains(&flag.as_str())) {
            let known = KEYS.iter().find(|(name, _)| name == flag);
            let (_, key) = known.unwrap_or_else(|| panic!("--{flag} has no key in the configuration file"));
            let properties = |table: &Value| table["properties"].clone();
            let found =
                key.split('.').fold(config_schema().clone(), |table, name| properties(&table)[name].clone());
            assert!(found.is_object(), "--{flag}: there is no key {key}");
        }
        for (flag, _) in KEYS {
            assert!(flags.iter().any(|known| known == flag), "there is no flag --{flag}");
        }
    }

    /// `cargo xtask reference` has a list of its own, since it doesn't contain this program.
    #[test]
    fn reference_lists_each_flag_with_its_key() {
        let page = include_str!("../../docs/reference/configuration.md");
        for (flag, key) in KEYS.iter().filter(|(flag, _)| *flag != "provider") {
            let (section, name) = key.split_once('.').expect("it is in a section");
            let rows = page.split("\n## ").find_map(|part| part.strip_prefix(&format!("`[{section}]`\n")));
            let is_row = |line: &str| {
                line.starts_with(&format!("| `{name}` |")) && line.contains(&format!("`--{flag}`"))
            };
            assert!(rows.is_some_and(|rows| rows.lines().any(is_row)), "--{flag} and {key} are in no row");
        }
    }
}
