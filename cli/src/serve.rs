//! `gatewright serve`: runs a gateway with its embedded simulated provider.

mod key;
mod limits;

use std::io::{self, Write as _};

use clap::Args;
use gatewright::webhook::{Secret, WEBHOOK_SECRET_VARIABLE};
use gatewright_gateway::{Config, Faults, Gateway, InvalidFault};

use self::key::KeyArguments;
use self::limits::Limits;
use crate::outcome::{Failure, Outcome, say};

#[derive(Debug, Args)]
#[command(
    after_help = "Webhooks are signed with the first secret of GATEWRIGHT_WEBHOOK_SECRET, or with a random \
                        one, which is shown."
)]
pub(crate) struct Arguments {
    /// Address to listen at; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: String,
    #[command(flatten)]
    key: KeyArguments,
    /// Scheme, host and port that clients reach the gateway by, for the addresses of files; else what they called
    #[arg(long, value_name = "URL", env = "GATEWRIGHT_SERVE_PUBLIC_URL", hide_env_values = true)]
    public_url: Option<String>,
    /// Origin whose web pages may call the gateway, such as https://app.example; * for all (CORS)
    #[arg(long, value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(env = "GATEWRIGHT_SERVE_ALLOW_ORIGIN", hide_env_values = true)]
    allow_origin: Vec<String>,
    /// Let webhook_url be plain http and lead to this machine or network; for development
    #[arg(long)]
    allow_private_webhooks: bool,
    /// Faults of every answer, such as truncate=3@create_response; an unknown one lists them
    #[arg(long, value_name = "FAULTS")]
    fault: Vec<String>,
    /// Print one line when ready: {"listening": "http://…", "key": "…", "webhook_secret": "whsec_…"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Limits,
}

pub(crate) async fn run(arguments: Arguments) -> Outcome {
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
        // A variable that is set to nothing is none.
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
    // Before anybody is told that the gateway is ready: from then on a signal must find its handler.
    let stop = stop_signal().map_err(|error| Failure::Failed(format!("no signal handler: {error}")))?;
    announce(&gateway, made, made_secret, arguments.json)?;
    for task in gateway.serve(stop).await {
        say(&format!("the video task {task} was ended as failed: the gateway stopped before it was ready"));
    }
    Ok(0)
}

/// What webhooks are signed with: the first secret of GATEWRIGHT_WEBHOOK_SECRET, where its receivers find theirs.
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

/// Ready at the first SIGINT, SIGTERM or SIGHUP (a closed terminal); not at SIGHUP under nohup.
#[cfg(unix)]
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    Ok(async move {
        let hung_up = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    })
}

/// Whether whoever started the program wants it to outlive the terminal: a handler would undo that. Known on Linux
/// alone, where the kernel tells the ignored signals as a mask of hexadecimal digits.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // SIGHUP is signal 1: the lowest bit.
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Ready at the first Ctrl-C.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on unix")]
pub(crate) fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a handler there is no way to stop but to end the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
