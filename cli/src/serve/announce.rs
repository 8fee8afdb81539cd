//! The output of `gatewright serve` when it is ready: its address, the enabled features, and how to call it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use gatewright::visible::visible;
use gatewright::webhook::WEBHOOK_SECRET_VARIABLE;
use gatewright_gateway::{Config, Faults, Gateway, Kind, ModelKind, Preset, presets};

use super::key::{LocalKeys, Origin};
use crate::amount::bytes;
use crate::terminal::{self, BOLD, DIM, Paint};

/// Maximum number of names in a line.
const MAX_NAMES: usize = 5;
/// Width of the titles of lines, with the spaces around them.
const TITLE_WIDTH: usize = 13;

/// What a configuration enables, for the user; determined before the gateway gets it.
pub(super) struct Announcement {
    provider: String,
    /// The enabled features, a line each: a title and the details.
    on: Vec<(&'static str, String)>,
    /// A model for the example; `None`: there is no text model.
    model: Option<String>,
    data: Option<PathBuf>,
    /// Whether receivers of webhooks are likely on this machine, because they are in development.
    has_private_webhooks: bool,
}

/// The sources of the gateway's secrets; `None`: they were not given.
pub(super) struct Origins {
    pub(super) key: Option<Origin>,
    pub(super) webhook_secret: Option<Origin>,
    pub(super) local_keys: LocalKeys,
}

impl Origins {
    /// Where the keys are from.
    fn keys(&self) -> String {
        let client = match (self.key, &self.local_keys.client) {
            (Some(Origin::ConfigFile), _) => return "the key in the configuration file".to_owned(),
            (Some(Origin::CommandLine), _) => return "the given key".to_owned(),
            (None, None) => {
                let why = self.local_keys.refused.as_deref().unwrap_or_default();
                return format!("below, for this run only: it cannot be kept ({why})");
            }
            (None, Some(client)) => client,
        };
        let files = client.file.display();
        let files = match &self.local_keys.admin {
            None => files.to_string(),
            Some(admin) => {
                format!("{files} and {}", admin.file.file_name().unwrap_or_default().display())
            }
        };
        if self.local_keys.are_new() {
            format!("below, made for you and kept in {files}")
        } else {
            format!("kept in {files}, which `gatewright keys local` shows")
        }
    }

    /// Whether the user can know the key for clients only from the output.
    fn shows_key(&self) -> bool {
        self.key.is_none() && self.local_keys.client.as_ref().is_none_or(|local| local.is_new)
    }
}

impl Announcement {
    /// `traces`: whether traces are exported. `unused`: how to use providers whose keys are set, a line each.
    pub(super) fn of(config: &Config, traces: bool, unused: Vec<String>) -> Self {
        let model = config.models.iter().find(|model| model.kind == ModelKind::Text);
        let mut on = vec![
            ("Upstreams", upstreams(config)),
            ("Limits", limits(config)),
            ("TLS", tls(config)),
            ("Operators", operators(config)),
        ];
        on.extend(unused.into_iter().map(|unused| ("Providers", unused)));
        on.extend(chosen(config, traces));
        Self {
            provider: provider(config),
            on,
            model: model.map(|model| model.id.clone()),
            data: config.data.clone(),
            has_private_webhooks: config.allow_private_webhooks,
        }
    }

    /// One JSON object, for programs. Secrets from the configuration file, or generated at an earlier start, are not
    /// printed.
    pub(super) fn print_json(gateway: &Gateway, origins: &Origins) -> io::Result<()> {
        let shown = |text, origin| (origin != Some(Origin::ConfigFile)).then_some(text);
        let secret = gateway.webhook_secret().expose();
        let is_printed =
            origins.webhook_secret == Some(Origin::CommandLine) || gateway.webhook_secret_is_new();
        let ready = serde_json::json!({
            "listening": gateway.url(),
            "key": shown(gateway.key().expose(), origins.key),
            "webhook_secret": is_printed.then_some(secret.as_str()),
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{ready}")?;
        out.flush()
    }

    /// For the user. Secrets that were supplied are not printed.
    pub(super) fn print(&self, gateway: &Gateway, origins: &Origins) -> io::Result<()> {
        let stdout = io::stdout();
        let text = self.text(gateway, origins, Paint::on(&stdout), terminal::width());
        let mut out = stdout.lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// `width`: that of the terminal. Commands stay whole, to be copied.
    fn text(&self, gateway: &Gateway, origins: &Origins, paint: Paint, width: Option<usize>) -> String {
        let mut out = String::new();
        let urls = gateway.urls().join(", ");
        let first =
            format!("Gateway at {}, with {}. Ctrl-C stops it.", paint.paint(BOLD, urls), self.provider);
        _ = writeln!(out, "{}\n", wrapped(&first, 0, width));
        let others = if gateway.lasts() {
            ", and those of `gatewright keys`"
        } else if gateway.config().admin_key.is_some() {
            "; others from `gatewright keys create` last until it stops"
        } else {
            "; for others, it needs --data or an admin key"
        };
        let mut lines = vec![("Keys", format!("{}{others}", origins.keys())), ("Store", self.store(gateway))];
        if cfg!(feature = "console") {
            lines.push(("Console", format!("{}/ (in a browser)", gateway.url())));
        }
        // A secret in the configuration or a variable is already known to its receivers.
        if origins.webhook_secret.is_none() {
            lines.push(("Webhooks", webhooks(gateway)));
        }
        for (title, what) in lines.iter().chain(&self.on) {
            let line = format!("  {}  {}", paint.paint(DIM, format_args!("{title:9}")), visible(what));
            _ = writeln!(out, "{}", wrapped(&line, TITLE_WIDTH, width));
        }
        self.write_call(&mut out, gateway, origins, paint);
        if self.has_private_webhooks && gateway.webhook_secret_is_new() {
            let secret = gateway.webhook_secret().expose();
            _ = writeln!(out, "\n{}", paint.paint(BOLD, "To verify its webhooks:"));
            _ = writeln!(out, "  export {WEBHOOK_SECRET_VARIABLE}={secret}");
        }
        out.push('\n');
        out
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

    fn write_call(&self, out: &mut String, gateway: &Gateway, origins: &Origins, paint: Paint) {
        let url = gateway.url();
        _ = writeln!(out, "\n{}", paint.paint(BOLD, "To call it:"));
        if origins.shows_key() {
            _ = writeln!(out, "  export GATEWRIGHT_BASE_URL={url}");
            _ = writeln!(out, "  export GATEWRIGHT_API_KEY={}", gateway.key().expose());
        } else if origins.key.is_none() {
            _ = writeln!(
                out,
                "  eval \"$(gatewright keys local)\"  # sets GATEWRIGHT_BASE_URL and GATEWRIGHT_API_KEY"
            );
        } else {
            // A key that was supplied is already known to its users.
            _ = writeln!(out, "  export GATEWRIGHT_BASE_URL={url}  # and set GATEWRIGHT_API_KEY to the key");
        }
        if let Some(admin) = origins.local_keys.admin.as_ref().filter(|local| local.is_new) {
            _ = writeln!(out, "  export GATEWRIGHT_SERVE_ADMIN_KEY={}  # for operators", admin.key.expose());
        }
        if let Some(model) = &self.model {
            let request = serde_json::json!({
                "model": model,
                "messages": [{"role": "user", "content": "Say hello"}],
            });
            let request = request.to_string().replace('\'', "\\u0027");
            _ = writeln!(out, "  curl {url}/v1/chat/completions \\");
            _ = writeln!(out, "    -H \"Authorization: Bearer $GATEWRIGHT_API_KEY\" \\");
            _ = writeln!(out, "    -H 'Content-Type: application/json' \\");
            _ = writeln!(out, "    -d '{}'", visible(&request));
        }
        _ = writeln!(out, "\nBase URL for SDKs: {url}/v1\n  {url} if the SDK adds the version");
    }
}

/// How to use the providers whose keys are set, for a gateway that only simulates one, a line each: those that need nothing else
/// are on the first one.
pub(super) fn unused_providers(variable: fn(&str) -> Option<OsString>) -> Vec<String> {
    let mut found: Vec<(&str, &Preset)> = Vec::new();
    for preset in presets() {
        let Some(name) = preset.key_variable(variable) else { continue };
        // The first provider with a variable is the main one.
        if found.iter().all(|(known, _)| *known != name) {
            found.push((name, preset));
        }
    }
    let (ready, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(_, preset)| preset.base_url().is_some());
    let names: Vec<&str> = ready.iter().map(|(name, _)| *name).collect();
    let flags: Vec<String> = ready.iter().map(|(_, preset)| format!(" --provider {}", preset.name)).collect();
    let flags = flags.concat();
    let ready = names.split_last().map(|(last, first)| match first {
        [] => format!("{last} is set: `gatewright serve{flags}` uses it"),
        first => format!("{} and {last} are set: `gatewright serve{flags}` uses them", first.join(", ")),
    });
    ready.into_iter().chain(others.into_iter().map(|(name, preset)| unaddressed(name, preset))).collect()
}

/// How to use a provider whose address only the operator knows.
fn unaddressed(variable: &str, preset: &Preset) -> String {
    let name = preset.name;
    let example = preset.example_base_url.as_deref().unwrap_or_default();
    match &preset.own_models {
        Some(own) => format!(
            "{variable} is set: `gatewright config init --provider {name}` writes a file that uses it; fill in your address, such \
             as {example}, and {own}"
        ),
        None => format!(
            "{variable} is set: `gatewright serve --provider {name}=URL` uses it; URL is your address, such as {example}"
        ),
    }
}

/// A line wrapped between words. `indent`: of further lines. `width`: of the terminal.
fn wrapped(line: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return line.to_owned() };
    let indent = " ".repeat(indent);
    // Addresses and names of files stay whole.
    let options = textwrap::Options::new(width)
        .subsequent_indent(&indent)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(line, options)
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

/// How receivers of webhooks get the generated secret, which a log should not have.
fn webhooks(gateway: &Gateway) -> String {
    if gateway.lasts() {
        "signed; `gatewright webhooks secret` prints the secret".to_owned()
    } else {
        format!("signed with a random secret; {WEBHOOK_SECRET_VARIABLE} sets it")
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

/// The features in use that are off by default.
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
    fn providers_whose_keys_are_set_are_named_with_the_command() {
        let none: [String; 0] = [];
        assert_eq!(unused_providers(|_| None), none);
        assert_eq!(unused_providers(|_| Some(OsString::new())), none, "empty variables count as unset");
        let one = unused_providers(|name| (name == "OPENAI_API_KEY").then(|| "k".into()));
        assert_eq!(one, ["OPENAI_API_KEY is set: `gatewright serve --provider openai` uses it"]);
        let two = |name: &str| ["GEMINI_API_KEY", "ANTHROPIC_API_KEY"].contains(&name).then(|| "k".into());
        let expected = "ANTHROPIC_API_KEY and GEMINI_API_KEY are set: `gatewright serve --provider anthropic --provider gemini` \
                    uses them";
        assert_eq!(unused_providers(two), [expected]);
        // Of the variables of one provider, only the one that it uses.
        let both = |name: &str| ["GEMINI_API_KEY", "GOOGLE_API_KEY"].contains(&name).then(|| "k".into());
        assert_eq!(
            unused_providers(both),
            ["GOOGLE_API_KEY is set: `gatewright serve --provider gemini` uses it"]
        );
    }

    #[test]
    fn providers_that_need_more_than_their_key_are_named_with_what_is_missing() {
        let all = |name: &str| {
            let set = ["AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_API_KEY", "CO_API_KEY"].contains(&name);
            set.then(|| "k".into())
        };
        assert_eq!(
            unused_providers(all),
            [
                "CO_API_KEY is set: `gatewright serve --provider cohere` uses it",
                "AZURE_OPENAI_API_KEY is set: `gatewright config init --provider azure-openai` writes a file that uses it; fill in \
                 your address, such as https://RESOURCE.openai.azure.com/openai/v1, and the names of your deployments",
                "AWS_BEARER_TOKEN_BEDROCK is set: `gatewright serve --provider bedrock=URL` uses it; URL is your address, such as \
                 https://bedrock-mantle.us-east-1.api.aws/v1",
            ]
        );
    }

    #[test]
    fn lines_are_wrapped_between_words_and_addresses_stay_whole() {
        let line = "  Keys       kept in /home/somebody/.local/state/gatewright/client.key and admin.key";
        let narrow = wrapped(line, TITLE_WIDTH, Some(60));
        let whole = "  Keys       kept in\n             /home/somebody/.local/state/gatewright/client.key\n             and admin.key";
        assert_eq!(narrow, whole);
        assert_eq!(wrapped(line, TITLE_WIDTH, None), line);
    }

    #[test]
    fn long_list_of_names_is_truncated() {
        assert_eq!(list(&["a", "b"]), "a, b");
        assert_eq!(list(&["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
    }
}
