//! `gatewright serve`: runs a gateway with its embedded simulated provider.

mod key;
mod limits;

use std::io::{self, Write as _};

use clap::Args;
use gatewright::webhook::{Secret, WEBHOOK_SECRET_VARIABLE};
use gatewright_gateway::{Config, Faults, Gateway, InvalidFault};

use self::key::KeyArguments;
use self::limits::Limits;
use crate::exit::{Exit, Failure, say};
use crate::signals::stop_signal;

#[derive(Debug, Args)]
#[command(
    after_help = "Webhooks are signed with the first secret of GATEWRIGHT_WEBHOOK_SECRET, or with a random \
                        one, which is shown."
)]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    #[command(flatten)]
    key: KeyArguments,
    /// Scheme, host and port under which clients reach the gateway, for file URLs [default: from the Host header]
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
    /// Origin whose web pages may call the gateway (CORS), such as https://app.example; * allows all
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(env = "GATEWRIGHT_SERVE_ALLOW_ORIGIN", hide_env_values = true)]
    allow_origin: Vec<String>,
    /// Allow webhook_url to use plain http and to point to this machine or a private network; for development
    #[arg(long)]
    allow_private_webhooks: bool,
    /// Faults to inject into every response, such as truncate=3@create_response; an unknown fault lists all
    #[arg(long, value_name = "FAULTS")]
    fault: Vec<String>,
    /// Print one JSON line when ready: {"listening": "http://…", "key": "…", "webhook_secret": "whsec_…"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) async fn run(arguments: Arguments) -> Exit {
    let key = arguments.key.read()?;
    let made = key.is_none();
    let webhook_secret = webhook_secret()?;
    let made_secret = webhook_secret.is_none();
    let mut faults = Faults::default();
    for text in &arguments.fault {
        faults.extend(text.parse().map_err(|error: InvalidFault| Failure::Usage(error.to_string()))?);
    }
    let config = Config {
        listen: arguments.listen,
        key,
        // An empty variable counts as unset.
        public_url: arguments.public_url.filter(|url| !url.is_empty()),
        allowed_origins: arguments.allow_origin.into_iter().filter(|origin| !origin.is_empty()).collect(),
        webhook_secret,
        allow_private_webhooks: arguments.allow_private_webhooks,
        faults,
        ..Config::default()
    };
    let gateway = Gateway::bind(arguments.limits.over(config))
        .await
        .map_err(|error| Failure::Usage(error.to_string()))?;
    // Installed before the gateway says that it is ready: from then on, a signal must find its handler.
    let stop = stop_signal()
        .map_err(|error| Failure::Failed(format!("cannot install a signal handler: {error}")))?;
    announce(&gateway, made, made_secret, arguments.json)?;
    for task in gateway.serve(stop).await {
        say(&format!("the video task {task} failed: the gateway stopped before the video was ready"));
    }
    Ok(0)
}

/// The secret that signs webhooks: the first in GATEWRIGHT_WEBHOOK_SECRET, the variable that receivers read, too.
fn webhook_secret() -> Result<Option<Secret>, Failure> {
    if std::env::var_os(WEBHOOK_SECRET_VARIABLE).is_none_or(|secrets| secrets.is_empty()) {
        return Ok(None);
    }
    Ok(Secret::from_env()?.into_iter().next())
}

fn announce(gateway: &Gateway, made_key: bool, made_secret: bool, json: bool) -> io::Result<()> {
    let (url, key, secret) = (gateway.url(), gateway.key().expose(), gateway.webhook_secret().expose());
    let mut out = io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::json!({"listening": url, "key": key, "webhook_secret": secret}))?;
    } else {
        writeln!(out, "Gateway at {url}, with a simulated provider. Ctrl-C stops it.")?;
        if made_key {
            writeln!(out, "\nTo call it:\n  export GATEWRIGHT_BASE_URL={url} GATEWRIGHT_API_KEY={key}")?;
        }
        if made_secret {
            writeln!(out, "\nTo verify its webhooks:\n  export {WEBHOOK_SECRET_VARIABLE}={secret}")?;
        }
    }
    out.flush()
}
