//! Writes a configuration file.

use std::collections::HashSet;
use std::fmt::Write as _;

use gatewright::visible::visible;
use gatewright_gateway::preset;

/// The contents of the file.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Variable of the key that clients must send.
    pub(super) key: Option<String>,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) kind: &'static str,
    /// The provider of ours that sets the kind and more.
    pub(super) preset: Option<&'static str>,
    /// Whether requests are signed with the credentials of AWS that the gateway finds.
    pub(super) is_signed: bool,
    pub(super) base_url: String,
    /// Variable of its key.
    pub(super) key: Option<String>,
    pub(super) timeout_s: Option<f64>,
    pub(super) max_concurrent: Option<u64>,
    pub(super) max_requests_per_minute: Option<u64>,
    pub(super) region: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) id: String,
    /// The kind of output that it generates, if not text.
    pub(super) makes: Option<&'static str>,
    pub(super) aliases: Vec<String>,
    /// The limit for requests that set none.
    pub(super) default_max_tokens: Option<u64>,
    pub(super) targets: Vec<ImportedTarget>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ImportedTarget {
    pub(super) upstream: String,
    pub(super) model: String,
    pub(super) weight: u64,
    pub(super) order: u64,
    pub(super) price: Option<Price>,
}

/// Per million tokens.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Price {
    pub(super) input: f64,
    pub(super) output: f64,
    pub(super) cached_input: Option<f64>,
    pub(super) cache_write: Option<f64>,
}

impl Plan {
    /// The file's text. `source`: what it was converted from, for the first line.
    pub(super) fn to_toml(&self, source: &str) -> String {
        let source = visible(source);
        let mut text = format!(
            "# Imported from {source} by gatewright import. gatewright config init shows every key.\n"
        );
        let translated: Vec<bool> = self.models.iter().map(self.translates()).collect();
        if translated.contains(&true) {
            line(
                &mut text,
                "# translate_responses: lets clients of /v1/responses use a model whose upstreams do not support that protocol.",
            );
        }
        if let Some(variable) = &self.key {
            line(&mut text, &format!("\n[access]\nkey = {{ env = {} }}", quoted(variable)));
        }
        for upstream in &self.upstreams {
            upstream.write(&mut text);
        }
        for (model, translated) in self.models.iter().zip(translated) {
            model.write(&mut text, translated);
        }
        text
    }

    /// Whether the responses protocol reaches some upstream of a model only by translation: in the source, it reaches
    /// all of them.
    fn translates(&self) -> impl Fn(&Model) -> bool {
        let speaking = self.upstreams.iter().filter(|upstream| upstream.kind == "responses");
        let speaking: HashSet<&str> = speaking.map(|upstream| upstream.name.as_str()).collect();
        let speaks = move |target: &ImportedTarget| speaking.contains(target.upstream.as_str());
        move |model| model.makes.is_none() && !model.targets.iter().all(&speaks)
    }
}

impl Upstream {
    fn write(&self, text: &mut String) {
        line(text, &format!("\n[upstreams.{}]", key(&self.name)));
        match self.preset {
            Some(name) => line(text, &format!("provider = {}", quoted(name))),
            None => line(text, &format!("kind = {}", quoted(self.kind))),
        }
        let usual = self.preset.and_then(|name| preset(name).ok()?.base_url());
        if usual != Some(self.base_url.as_str()) {
            line(text, &format!("base_url = {}", quoted(&self.base_url)));
        }
        if self.is_signed {
            line(text, "key = { sigv4 = {} }");
        }
        if let Some(variable) = &self.key {
            line(text, &format!("key = {{ env = {} }}", quoted(variable)));
        }
        if let Some(seconds) = self.timeout_s {
            line(text, &format!("timeout = \"{seconds}s\""));
        }
        if let Some(count) = self.max_concurrent {
            line(text, &format!("max_concurrent = {count}"));
        }
        if let Some(count) = self.max_requests_per_minute {
            line(text, &format!("max_requests_per_minute = {count}"));
        }
        if let Some(region) = &self.region {
            line(text, &format!("region = {}", quoted(region)));
        }
    }
}

impl Model {
    fn write(&self, text: &mut String, translated: bool) {
        line(text, &format!("\n[models.{}]", key(&self.id)));
        if !self.aliases.is_empty() {
            let aliases: Vec<String> = self.aliases.iter().map(|alias| quoted(alias)).collect();
            line(text, &format!("aliases = [{}]", aliases.join(", ")));
        }
        if let Some(count) = self.default_max_tokens {
            line(text, &format!("default_max_tokens = {count}"));
        }
        if let Some(kind) = self.makes {
            line(text, &format!("kind = {}", quoted(kind)));
        }
        if translated {
            line(text, "translate_responses = true");
        }
        line(text, "targets = [");
        for target in &self.targets {
            let mut members = vec![
                format!("upstream = {}", quoted(&target.upstream)),
                format!("model = {}", quoted(&target.model)),
            ];
            if target.weight != 1 {
                members.push(format!("weight = {}", target.weight));
            }
            if target.order != 0 {
                members.push(format!("order = {}", target.order));
            }
            if let Some(price) = &target.price {
                members.push(format!("price = {}", price.written()));
            }
            line(text, &format!("  {{ {} }},", members.join(", ")));
        }
        line(text, "]");
    }
}

impl Price {
    fn written(&self) -> String {
        let amounts = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cached_input", self.cached_input),
            ("cache_write", self.cache_write),
        ];
        let members: Vec<String> = amounts
            .iter()
            .filter_map(|(name, amount)| amount.map(|amount| format!("{name} = {amount}")))
            .collect();
        format!("{{ {} }}", members.join(", "))
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string succeeds");
}

/// A text as TOML, which has the syntax of JSON strings. Hidden characters are escaped first.
fn quoted(text: &str) -> String {
    serde_json::Value::from(visible(text)).to_string()
}

/// A key as TOML.
fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { quoted(name) }
}
