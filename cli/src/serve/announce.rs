//! What `gatewright serve` prints when it is ready: its address, what is enabled, and how to call it.

use std::io::{self, Write};
use std::path::PathBuf;

use gatewright::visible::visible;
use gatewright::webhook::WEBHOOK_SECRET_VARIABLE;
use gatewright_gateway::{Config, Faults, Gateway, Kind, ModelKind};

use super::key::Origin;
use crate::amount::bytes;
use crate::terminal::{BOLD, DIM, Paint};

/// Maximum number of names in a line.
const MAX_NAMES: usize = 5;

/// What a configuration enables, for the user; determined before the gateway gets it.
pub(super) struct Announcement {
    provider: String,
    /// What is enabled, a line each: a title and the details.
    on: Vec<(&'static str, String)>,
    /// A model for the example; `None`: there is no text model.
    model: Option<String>,
    data: Option<PathBuf>,
}

/// The sources of the gateway's secrets; `None`: they were generated.
pub(super) struct Origins {
    pub(super) key: Option<Origin>,
    pub(super) webhook_secret: Option<Origin>,
}

impl Announcement {
    /// `traces`: whether traces are exported.
    pub(super) fn of(config: &Config, traces: bool) -> Self {
        let model = config.models.iter().find(|model| model.kind == ModelKind::Text);
        let mut on = vec![
            ("Upstreams", upstreams(config)),
            ("Limits", limits(config)),
            ("TLS", tls(config)),
            ("Operators", operators(config)),
        ];
        on.extend(chosen(config, traces));
        Self {
            provider: provider(config),
            on,
            model: model.map(|model| model.id.clone()),
            data: config.data.clone(),
        }
    }

    /// One JSON object, for programs. Secrets from the configuration file, or generated at an earlier start, are not
    /// printed.
    pub(super) fn print_json(gateway: &Gateway, origins: &Origins) -> io::Result<()> {
        let shown = |text, origin| (origin != Some(Origin::ConfigFile)).then_some(text);
        let secret = gateway.webhook_secret().expose();
        let is_told = origins.webhook_secret == Some(Origin::CommandLine) || gateway.webhook_secret_is_new();
        let ready = serde_json::json!({
            "listening": gateway.url(),
            "key": shown(gateway.key().expose(), origins.key),
            "webhook_secret": is_told.then_some(secret.as_str()),
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{ready}")?;
        out.flush()
    }

    /// For the user. Secrets that were supplied are not printed.
    pub(super) fn print(&self, gateway: &Gateway, origins: &Origins) -> io::Result<()> {
        let stdout = io::stdout();
        let paint = Paint::on(&stdout);
        let mut out = stdout.lock();
        let urls = gateway.urls().join(", ");
        writeln!(out, "Gateway at {}, with {}. Ctrl-C stops it.\n", paint.paint(BOLD, urls), self.provider)?;
        let keys = match origins.key {
            None => "a key generated for this run, below; create others with `gatewright keys`",
            Some(Origin::ConfigFile) => "the key in the configuration file, and those of `gatewright keys`",
            Some(Origin::CommandLine) => "the given key, and those of `gatewright keys`",
        };
        let mut told = vec![("Keys", keys.to_owned()), ("Store", self.store(gateway))];
        if cfg!(feature = "console") {
            told.push(("Console", format!("{}/ (in a browser)", gateway.url())));
        }
        for (title, what) in told.iter().chain(&self.on) {
            writeln!(out, "  {}  {}", paint.paint(DIM, format_args!("{title:9}")), visible(what))?;
        }
        self.print_call(&mut out, gateway, origins.key, paint)?;
        if gateway.webhook_secret_is_new() {
            let secret = gateway.webhook_secret().expose();
            writeln!(out, "\n{}", paint.paint(BOLD, "To verify its webhooks:"))?;
            writeln!(out, "  export {WEBHOOK_SECRET_VARIABLE}={secret}")?;
        } else if origins.webhook_secret.is_none() {
            writeln!(out, "\nThe webhook secret is unchanged; `gatewright webhooks secret` shows it.")?;
        }
        writeln!(out)?;
        out.flush()
    }

    fn store(&self, gateway: &Gateway) -> String {
        match &self.data {
            Some(folder) => {
                format!("{}: persistent keys, usage, stored responses, tasks and files", folder.display())
            }
            None if gateway.lasts() => {
                "a shared database: persistent keys, usage, stored responses and tasks".to_owned()
            }
            None => "in memory: all data is lost when the gateway stops; use --data to keep it".to_owned(),
        }
    }

    fn print_call(
        &self,
        out: &mut impl Write,
        gateway: &Gateway,
        key: Option<Origin>,
        paint: Paint,
    ) -> io::Result<()> {
        let url = gateway.url();
        writeln!(out, "\n{}", paint.paint(BOLD, "To call it:"))?;
        write!(out, "  export GATEWRIGHT_BASE_URL={url}")?;
        // A key that was supplied is already known to its users.
        match key {
            None => writeln!(
                out,
                "
  export GATEWRIGHT_API_KEY={}",
                gateway.key().expose()
            )?,
            Some(_) => writeln!(out, "  # and set GATEWRIGHT_API_KEY to the key")?,
        }
        if let Some(model) = &self.model {
            let request = serde_json::json!({
                "model": model,
                "messages": [{"role": "user", "content": "Say hello"}],
            });
            let request = request.to_string().replace('\'', "\\u0027");
            writeln!(out, "  curl {url}/v1/chat/completions \\")?;
            writeln!(out, "    -H \"Authorization: Bearer $GATEWRIGHT_API_KEY\" \\")?;
            writeln!(out, "    -H 'Content-Type: application/json' \\")?;
            writeln!(out, "    -d '{}'", visible(&request))?;
        }
        writeln!(out, "\nBase URL for SDKs: {url}/v1\n  {url} if the SDK adds the version")
    }
}

/// The provider that answers.
fn provider(config: &Config) -> String {
    if config.upstreams.is_empty() {
        return "no provider yet".to_owned();
    }
    if config.upstreams.iter().all(|upstream| upstream.kind == Kind::Simulator) {
        return "a simulated provider".to_owned();
    }
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    match names.as_slice() {
        [one] => format!("the upstream {one}"),
        several => format!("the upstreams {}", list(several)),
    }
}

fn upstreams(config: &Config) -> String {
    if config.upstreams.is_empty() {
        return "none yet: the store has no usable configuration".to_owned();
    }
    let models = config.models.len();
    let offered = match models {
        1 => "1 model".to_owned(),
        _ => format!("{models} models"),
    };
    let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    format!("{}; {offered}, which `gatewright models` lists", list(&names))
}

/// The first names, and the number of further ones.
fn list(names: &[&str]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn limits(config: &Config) -> String {
    let body = u64::try_from(config.max_body_bytes).unwrap_or(u64::MAX);
    format!(
        "{} connections, {} per address, requests up to {}",
        config.max_connections,
        config.max_connections_per_peer,
        bytes(body)
    )
}

fn tls(config: &Config) -> String {
    match &config.tls {
        Some(tls) => {
            format!("on, at {}; the certificate is {}", tls.listen.join(", "), tls.certificate.display())
        }
        None => "off; turn it on in a configuration file".to_owned(),
    }
}

fn operators(config: &Config) -> String {
    let admin = if config.admin_key.is_some() {
        "/admin and /metrics, with the admin key"
    } else {
        "/admin is off; set GATEWRIGHT_SERVE_ADMIN_KEY to turn it on"
    };
    if config.open_metrics { format!("{admin}; /metrics needs no key") } else { admin.to_owned() }
}

/// What is off by default.
fn chosen(config: &Config, traces: bool) -> impl Iterator<Item = (&'static str, String)> {
    let origins: Vec<&str> = config.allowed_origins.iter().map(String::as_str).collect();
    let lines = [
        (
            config.shared_config.is_some(),
            "Shared",
            "upstreams and models come from the store; `gatewright config show` prints them".to_owned(),
        ),
        (
            config.counters.is_some(),
            "Counters",
            "limits are enforced across all gateways that share them".to_owned(),
        ),
        (config.files.is_some(), "Files", "in a bucket".to_owned()),
        (!origins.is_empty(), "Web pages", format!("pages of {} may call it", list(&origins))),
        (
            config.allow_private_webhooks,
            "Webhooks",
            "private addresses and plain http are allowed".to_owned(),
        ),
        (traces, "Traces", "exported over OTLP".to_owned()),
        (config.faults != Faults::default(), "Faults", "injected into every response".to_owned()),
    ];
    lines.into_iter().filter(|(is_on, ..)| *is_on).map(|(_, title, what)| (title, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_of_names_is_cut() {
        assert_eq!(list(&["a", "b"]), "a, b");
        assert_eq!(list(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
