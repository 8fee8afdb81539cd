//! `spec/options.json` for the emitters: the options of a client, a call, a wait, a download and a run of the check
//! kit, with their names and documentation in each language.

pub(crate) mod references;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use super::catalog::Catalog;
use super::names;

/// All options, by scope.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    #[serde(default, rename = "$comment")]
    #[expect(dead_code, reason = "accepted, for readers; nothing is emitted from it")]
    comment: Option<String>,
    pub client: Scope,
    pub call: Scope,
    pub wait: Scope,
    pub save: Scope,
    pub check: Scope,
}

/// The scope of options: a client, one call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scope {
    pub doc: String,
    /// The guide that has the table of them, in a part that is generated.
    #[serde(default)]
    pub guide: Option<String>,
    /// Lines of Rust that use the options, for the documentation of their type; tests run them.
    #[serde(default)]
    pub rust_example: Vec<String>,
    pub options: Vec<Entry>,
}

/// One option.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "members of a JSON document, each by itself")]
pub(crate) struct Entry {
    /// snake_case, without a unit: `idle_timeout`.
    pub name: String,
    /// The scope whose option of this name it is, for the type and the texts that are not given here.
    #[serde(default, rename = "as")]
    pub like: Option<String>,
    /// Whether it is inherited: the default is the client's value.
    #[serde(skip)]
    pub follows_client: bool,
    #[serde(default, rename = "type")]
    pub kind: Option<OptionKind>,
    /// The Rust type of a number, where it is not that of its kind.
    #[serde(default)]
    pub integer: Option<String>,
    /// The default: seconds for a time, a number, a boolean, or a text.
    #[serde(default)]
    pub default: Option<Value>,
    /// The member of the catalog's defaults that is the default.
    #[serde(default)]
    pub catalog: Option<String>,
    /// The default in words; after a value, the text that follows it.
    #[serde(default)]
    pub default_text: Option<String>,
    /// The Rust constant of the default.
    #[serde(default)]
    pub constant: Option<String>,
    /// The environment variable that takes precedence over the default.
    #[serde(default)]
    pub variable: Option<String>,
    /// The Rust constant of its name.
    #[serde(default)]
    pub variable_constant: Option<String>,
    /// The languages that read it; empty means all.
    #[serde(default)]
    pub variable_only: Vec<Language>,
    /// The property of the report's configuration whose minimum and maximum, or words, bound it.
    #[serde(default)]
    pub bounds: Option<String>,
    #[serde(skip)]
    pub range: Option<(u64, u64)>,
    /// The words that it, or an item of it, may be; with `bounds`, those from there.
    #[serde(default)]
    pub words: Vec<String>,
    #[serde(default)]
    pub required: bool,
    /// Whether it is of a single call only, not of all calls of a client.
    #[serde(default)]
    pub single: bool,
    /// The languages that have it; empty means all.
    #[serde(default)]
    pub only: Vec<Language>,
    /// Whether a binding sets it for its callers.
    #[serde(default)]
    pub bindings: bool,
    /// The name of the flag's value in the program; empty for a switch. `None` if the program has no such flag.
    #[serde(default)]
    pub flag: Option<String>,
    /// What the flag is called where that is not the option's name, which stays its alias.
    #[serde(default)]
    pub flag_name: Option<String>,
    /// Whether the flag has a short form, its first letter.
    #[serde(default)]
    pub short: bool,
    /// The description: used in every language, in the guide and in the program's help.
    #[serde(default)]
    pub doc: String,
    /// Further sentences, for the documentation of the languages.
    #[serde(default)]
    pub more: String,
    /// Text for one language only.
    #[serde(default)]
    pub rust: String,
    #[serde(default)]
    pub python: String,
    #[serde(default)]
    pub node: String,
    /// Lines of Rust that set it, for the documentation of the builder's method; tests run them. A number, a time and a switch
    /// need none.
    #[serde(default)]
    pub rust_example: Vec<String>,
    /// What the guide's table says beside `doc`.
    #[serde(default)]
    pub guide: String,
}

/// What kind of value an option has. An emitter has one form for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OptionKind {
    Text,
    Path,
    /// `Duration`, seconds, or milliseconds with `Ms` after the name.
    Time,
    /// A whole number of milliseconds in every language; the name says so.
    Milliseconds,
    Count,
    Bytes,
    Boolean,
    Headers,
    Query,
    /// Members of a JSON object.
    Members,
    /// A list of texts.
    Names,
    /// A list of ids of checks.
    Checks,
    /// A list of protocols with additional checks, by the option's `words`.
    Protocols,
    AgentMode,
    Annotations,
    Profile,
    /// The API key: text, or code that gives it.
    Key,
    /// A text that is never among what is shown: handed over apart.
    Secret,
    KeyProvider,
    Proxy,
    NoProxy,
    Middleware,
    Clock,
    /// Code that is called with a task.
    Progress,
    /// Code that is called with the events of a run.
    Events,
    Signal,
}

/// Who has options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Language {
    Rust,
    Python,
    Node,
    Program,
}

impl Options {
    /// Resolves what entries take from one another, from the catalog and from the schema of the report.
    ///
    /// Errors: the target of a reference is missing.
    pub(crate) fn resolved(mut self, catalog: &Catalog, report: &Value) -> Result<Self> {
        let client = self.client.options.clone();
        for (name, scope) in self.scopes_mut() {
            for (index, entry) in scope.options.iter_mut().enumerate() {
                let place = format!("spec/options.json#/{name}/options/{index}");
                if let Some(from) = entry.like.take() {
                    if from != "client" {
                        bail!("{place}/as: options are taken from client, not from {from}; correct it");
                    }
                    let known = client.iter().find(|option| option.name == entry.name);
                    let known = known.with_context(|| {
                        format!(
                            "{place}: client has no option {}; correct the name, or give it a type and a doc",
                            entry.name
                        )
                    })?;
                    entry.inherit(known);
                    entry.follows_client = true;
                }
                if let Some(member) = &entry.catalog {
                    let value = catalog.default_of(member).with_context(|| {
                        format!("{place}/catalog: spec/catalog.json has no default {member}; correct it")
                    })?;
                    entry.default = Some(value.into());
                }
                if let Some(property) = &entry.bounds {
                    let schema = &report["$defs"]["configuration"]["properties"][property];
                    let bound = |keyword: &str| schema[keyword].as_u64();
                    entry.range = bound("minimum").zip(bound("maximum"));
                    let words = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
                    entry.words = words.map(str::to_owned).collect();
                    if entry.range.is_none() && entry.words.is_empty() {
                        bail!(
                            "{place}/bounds: spec/report.schema.json does not bound {property}; correct it"
                        );
                    }
                }
            }
        }
        Ok(self)
    }

    /// The scopes by name, in order.
    pub(crate) fn scopes(&self) -> [(&'static str, &Scope); 5] {
        [
            ("client", &self.client),
            ("call", &self.call),
            ("wait", &self.wait),
            ("save", &self.save),
            ("check", &self.check),
        ]
    }

    fn scopes_mut(&mut self) -> [(&'static str, &mut Scope); 5] {
        [
            ("client", &mut self.client),
            ("call", &mut self.call),
            ("wait", &mut self.wait),
            ("save", &mut self.save),
            ("check", &mut self.check),
        ]
    }
}

impl Scope {
    /// The options that a language has, in order.
    pub(crate) fn of(&self, language: Language) -> impl Iterator<Item = &Entry> {
        self.options.iter().filter(move |option| option.is_of(language))
    }
}

impl Entry {
    fn inherit(&mut self, from: &Self) {
        self.kind = self.kind.or(from.kind);
        self.integer = self.integer.take().or_else(|| from.integer.clone());
        for (own, known) in
            [(&mut self.doc, &from.doc), (&mut self.more, &from.more), (&mut self.guide, &from.guide)]
        {
            if own.is_empty() {
                own.clone_from(known);
            }
        }
    }

    /// The kind; the lint has seen that there is one.
    pub(crate) fn kind(&self) -> OptionKind {
        self.kind.unwrap_or(OptionKind::Text)
    }

    pub(crate) fn is_of(&self, language: Language) -> bool {
        match language {
            Language::Program => self.flag.is_some(),
            _ => self.only.is_empty() || self.only.contains(&language),
        }
    }

    /// What it is called in a language.
    pub(crate) fn name_in(&self, language: Language) -> String {
        match language {
            Language::Rust | Language::Python => self.name.clone(),
            Language::Node if self.kind == Some(OptionKind::Time) => {
                format!("{}Ms", names::camel(&self.name))
            }
            Language::Node => names::camel(&self.name),
            Language::Program => {
                format!("--{}", self.flag_name.as_ref().unwrap_or(&self.name).replace('_', "-"))
            }
        }
    }

    /// The text for one language only.
    pub(crate) fn own_text(&self, language: Language) -> &str {
        match language {
            Language::Rust => &self.rust,
            Language::Python => &self.python,
            Language::Node => &self.node,
            Language::Program => "",
        }
    }
}
