//! `gatewright serve`: runs a gateway.
//!
//! A flag goes before its variable, a variable before the configuration file, and that before the defaults.

mod key;
mod limits;
mod logging;
mod reload;
pub(crate) mod store;
mod watch;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gatewright::webhook::{Secret, WEBHOOK_SECRET_VARIABLE};
use gatewright_gateway::{Config, ConfigFile, Faults, Gateway, InvalidFault, Kind};

use self::key::{KeyArguments, Origin};
use self::limits::Limits;
use self::logging::Logging;
use self::reload::Reloading;
use self::watch::Watch;
use crate::exit::{Exit, Failure, say};
use crate::signals::{Hangup, Hangups, stop_signal};

#[derive(Debug, Args)]
#[command(
    after_help = "Webhooks are signed with the secret of the configuration file, else with the first secret of \
                        GATEWRIGHT_WEBHOOK_SECRET, else with a random one, which is shown. The key of the operations \
                        under /admin is in GATEWRIGHT_SERVE_ADMIN_KEY or in the configuration file. \
                        GATEWRIGHT_SERVE_STORE_URL is the address of a Postgres database that several gateways share, and \
                        GATEWRIGHT_SERVE_PEPPER their pepper."
)]
pub(crate) struct Arguments {
    /// Configuration file, read again when it changes; see gatewright config [default: none, a simulated provider]
    #[arg(long, value_name = "FILE", env = "GATEWRIGHT_SERVE_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free port; repeat it for several [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    #[command(flatten)]
    key: KeyArguments,
    /// Scheme, host and port under which clients reach the gateway, for file URLs [default: from the Host header]
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
    /// Origin whose web pages may call the gateway (CORS), such as https://app.example; * allows all
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(env = "GATEWRIGHT_SERVE_ALLOW_ORIGIN", hide_env_values = true)]
    allow_origin: Vec<String>,
    /// Folder of what lasts: keys, usage, places of responses, files [default: none, everything is in memory]
    #[arg(long, value_name = "DIR", env = "GATEWRIGHT_SERVE_DATA", hide_env_values = true)]
    data: Option<PathBuf>,
    /// Allow webhook_url to use plain http and to point to this machine or a private network; for development
    #[arg(long)]
    allow_private_webhooks: bool,
    /// Faults to inject into every response, such as truncate=3@create_response; an unknown fault lists all
    #[arg(long, value_name = "FAULTS")]
    fault: Vec<String>,
    /// Print one JSON line when ready: {"listening": "http://…", "key": "…", "webhook_secret": "whsec_…"}; what is from
    /// the configuration file is null
    #[arg(long)]
    json: bool,
    /// Serve /metrics, in the text form of Prometheus, to everyone who reaches the gateway
    #[arg(long)]
    open_metrics: bool,
    #[command(flatten)]
    logging: Logging,
    #[command(flatten)]
    limits: Limits,
}

/// A configuration with what the command line says, and where its secrets are from; `None`: they are made.
struct Settled {
    config: Config,
    key: Option<Origin>,
    webhook_secret: Option<Origin>,
}

impl Arguments {
    /// The configuration of the file, or the default one, with what the command line says.
    fn settle(&self, mut config: Config) -> Result<Settled, Failure> {
        let (key, key_origin) = self.key.read(config.key.take())?.unzip();
        let secret_origin = webhook_secrets(&mut config)?;
        config.key = key;
        config.admin_key = key::admin_key()?.or(config.admin_key);
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        // An empty variable counts as unset.
        if let Some(url) = self.public_url.as_ref().filter(|url| !url.is_empty()) {
            config.public_url = Some(url.clone());
        }
        if let Some(data) = self.data.as_ref().filter(|data| !data.as_os_str().is_empty()) {
            config.data = Some(data.clone());
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
        Ok(Settled { config, key: key_origin, webhook_secret: secret_origin })
    }
}

pub(crate) async fn run(arguments: Arguments) -> Exit {
    let arguments = Arc::new(arguments);
    let path = arguments.config.clone().filter(|path| !path.as_os_str().is_empty());
    let watch = path.as_deref().map(Watch::new);
    let file = match &path {
        Some(path) => ConfigFile::read(path).map(Some).map_err(|all| Failure::Usage(all.to_string()))?,
        None => None,
    };
    let traces = arguments.logging.begin(&file.as_ref().map(|file| file.log.clone()).unwrap_or_default())?;
    let (config, warnings, files) = match file {
        Some(file) => (file.config, file.warnings, file.files),
        None => (Config::default(), Vec::new(), Vec::new()),
    };
    for warning in warnings {
        say(&format!("warning: {warning}"));
    }
    let settled = arguments.settle(config)?;
    let provider = provider(&settled.config);
    let gateway = Gateway::bind(settled.config).await.map_err(|error| Failure::Usage(error.to_string()))?;
    // Installed before the gateway says that it is ready: from then on, a signal must find its handler.
    let no_handler = |error| Failure::Failed(format!("cannot install a signal handler: {error}"));
    let on_hangup = if path.is_some() { Hangup::Reloads } else { Hangup::Stops };
    let stop = stop_signal(on_hangup).map_err(no_handler)?;
    let reloading = match (path, watch) {
        (Some(path), Some(mut watch)) => {
            watch.set(&files);
            let hangups = Hangups::new().map_err(no_handler)?;
            let control = gateway.control();
            let reloading = Reloading { arguments: Arc::clone(&arguments), path, control, watch, hangups };
            Some(tokio::spawn(reloading.run()))
        }
        _ => None,
    };
    announce(&gateway, &provider, settled.key, settled.webhook_secret, arguments.json)?;
    for task in gateway.serve(stop).await {
        say(&format!("the video task {task} failed: the gateway stopped before the video was ready"));
    }
    if let Some(reloading) = reloading {
        reloading.abort();
    }
    // Exporting blocks, and the runtime has other threads for that.
    if let Some(traces) = traces {
        _ = tokio::task::spawn_blocking(|| traces.end()).await;
    }
    Ok(0)
}

/// The secrets that sign webhooks: of the configuration file, else those in GATEWRIGHT_WEBHOOK_SECRET, the variable that
/// receivers read, too; the present one first. Gives where the present one is from.
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

/// Who answers, for the announcement.
fn provider(config: &Config) -> String {
    if config.upstreams.iter().all(|upstream| upstream.kind == Kind::Simulator) {
        return "a simulated provider".to_owned();
    }
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    match names.as_slice() {
        [one] => format!("the upstream {one}"),
        several => format!("the upstreams {}", several.join(", ")),
    }
}

/// `key`, `webhook_secret`: where they are from. What is in the configuration file is not printed.
fn announce(
    gateway: &Gateway,
    provider: &str,
    key_origin: Option<Origin>,
    secret_origin: Option<Origin>,
    json: bool,
) -> io::Result<()> {
    let (url, key, secret) = (gateway.url(), gateway.key().expose(), gateway.webhook_secret().expose());
    let mut out = io::stdout().lock();
    if json {
        let shown = |text, origin| (origin != Some(Origin::ConfigFile)).then_some(text);
        let (key, secret) = (shown(key, key_origin), shown(secret.as_str(), secret_origin));
        writeln!(out, "{}", serde_json::json!({"listening": url, "key": key, "webhook_secret": secret}))?;
    } else {
        writeln!(out, "Gateway at {}, with {provider}. Ctrl-C stops it.", gateway.urls().join(", "))?;
        if key_origin.is_none() {
            writeln!(out, "\nTo call it:\n  export GATEWRIGHT_BASE_URL={url} GATEWRIGHT_API_KEY={key}")?;
        }
        if secret_origin.is_none() {
            writeln!(out, "\nTo verify its webhooks:\n  export {WEBHOOK_SECRET_VARIABLE}={secret}")?;
        }
    }
    out.flush()
}
