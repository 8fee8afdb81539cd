//! A configuration in front of providers that are given by name: the one with which `serve --provider` runs, and which
//! `config init --provider` writes.

use std::fmt::Write as _;

use futures_util::{StreamExt as _, stream};
use gatewright_config::{ConfigFile, ModelKind, Preset, Problem, Problems, check_model_id};
use indexmap::IndexMap;
use serde_json::Value;

use crate::offers::offers;

/// Maximum number of models that are taken from a provider's list.
const MAX_LISTED: usize = 1000;
/// Number of providers queried concurrently.
const AT_ONCE: usize = 8;
/// The upstream of a query, and a model that it needs to be a configuration.
const QUERIED: &str = "queried";

/// A provider to put a gateway in front of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProviderChoice {
    /// The provider.
    pub preset: &'static Preset,
    /// Its address; `None`: the preset's.
    pub base_url: Option<String>,
}

impl ProviderChoice {
    /// A provider at its usual address, or at another one.
    pub const fn new(preset: &'static Preset, base_url: Option<String>) -> Self {
        Self { preset, base_url }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.preset.name == other.preset.name && self.base_url == other.base_url
    }

    fn url(&self) -> Option<&str> {
        self.base_url.as_deref().or(self.preset.base_url())
    }
}

/// A configuration file with an upstream for each of several providers, and their models.
#[derive(Debug)]
pub struct ProviderSetup {
    text: String,
    missing: Vec<Problem>,
    notes: Vec<Problem>,
    /// The providers that need a key, and its variables.
    keys: Vec<(&'static str, &'static str)>,
}

/// A provider's name for a model, and what the model makes.
#[derive(Debug)]
struct ProviderModel {
    name: String,
    kind: ModelKind,
}

/// A model of the file: the upstreams that have it, with their names for it.
#[derive(Debug)]
struct ModelEntry {
    kind: ModelKind,
    targets: Vec<(String, String)>,
}

impl ProviderSetup {
    /// Models that the program doesn't know are requested from the providers' servers, with a limit on time and size. Needs a
    /// Tokio runtime.
    pub async fn of(choices: &[ProviderChoice]) -> Self {
        let upstreams = named(choices);
        let queries = upstreams.iter().map(|(_, choice)| models_of(choice));
        let offered: Vec<_> = stream::iter(queries).buffered(AT_ONCE).collect().await;
        Self::with(&upstreams, offered)
    }

    fn with(
        upstreams: &[(String, &ProviderChoice)],
        offered: Vec<Result<Vec<ProviderModel>, String>>,
    ) -> Self {
        let mut setup =
            Self { text: String::new(), missing: Vec::new(), notes: Vec::new(), keys: Vec::new() };
        let mut models: IndexMap<String, ModelEntry> = IndexMap::new();
        for ((upstream, choice), offered) in upstreams.iter().zip(offered) {
            setup.write_upstream(upstream, choice);
            setup.keys.extend(choice.preset.key_variable().map(|variable| (choice.preset.name, variable)));
            if choice.url().is_none() {
                setup.missing.push(problem(choice, missing_address(choice.preset)));
            }
            let offered = offered.unwrap_or_else(|why| {
                setup.missing.push(problem(choice, why));
                Vec::new()
            });
            if offered.is_empty() {
                setup.write_sample_model(upstream, choice);
            }
            setup.add(&mut models, upstream, choice, offered);
        }
        for (id, model) in &models {
            setup.write_model(id, model);
        }
        setup
    }

    /// The file's text. It lacks what is missing.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is still needed before a gateway can run with the file, and how to get it.
    pub fn missing(&self) -> &[Problem] {
        &self.missing
    }

    /// The configuration. Errors: something is missing, or the variable of a key is not set.
    pub fn config(self) -> Result<ConfigFile, Problems> {
        let unset = self
            .keys
            .iter()
            .filter(|(_, variable)| std::env::var_os(variable).is_none_or(|key| key.is_empty()));
        let unset = unset.map(|(name, variable)| {
            let message = format!(
                "the variable {variable} is not set; set it to the provider's key, or name another place of the key in a \
                 configuration file, which `gatewright config init --provider {name}` writes"
            );
            about(name, message)
        });
        let missing: Vec<Problem> = unset.chain(self.missing).collect();
        if !missing.is_empty() {
            return Err(Problems::new(missing));
        }
        let mut file = ConfigFile::of_text(&self.text, "--provider")?;
        file.warnings.extend(self.notes);
        Ok(file)
    }

    /// Merges the models of an upstream into those so far. An upstream that has a model, too, is the fallback of earlier ones.
    fn add(
        &mut self,
        models: &mut IndexMap<String, ModelEntry>,
        upstream: &str,
        choice: &ProviderChoice,
        offered: Vec<ProviderModel>,
    ) {
        let count = offered.len();
        if count > MAX_LISTED {
            let message = format!("it lists {count} models; only the first {MAX_LISTED} are configured");
            self.notes.push(problem(choice, message));
        }
        for ProviderModel { name, kind } in offered.into_iter().take(MAX_LISTED) {
            let Some(id) = id_of(&name) else { continue };
            let model =
                models.entry(id.to_owned()).or_insert_with(|| ModelEntry { kind, targets: Vec::new() });
            if model.targets.iter().all(|(known, _)| known != upstream) {
                model.targets.push((upstream.to_owned(), name));
            }
        }
    }

    fn write_upstream(&mut self, upstream: &str, choice: &ProviderChoice) {
        let ProviderChoice { preset, base_url } = choice;
        let (name, title) = (preset.name, &preset.title);
        if !self.text.is_empty() {
            self.line("");
        }
        self.line(&format!(
            "# {title}. `gatewright providers {name}` shows the settings that provider stands for."
        ));
        for note in &preset.notes {
            self.line(&format!("# - {note}"));
        }
        if let Some(variable) = preset.key_variable() {
            self.line(&format!("# - Its key is read from the variable {variable}, unless you set key."));
        }
        self.line(&format!("[upstreams.{upstream}]\nprovider = {}", quoted(name)));
        match (base_url, &preset.example_base_url) {
            (Some(url), _) => self.line(&format!("base_url = {}", quoted(url))),
            (None, Some(example)) => {
                self.line(&format!("base_url = {} # replace it by yours", quoted(example)));
            }
            (None, None) => {}
        }
    }

    /// How to add models that are not known.
    fn write_sample_model(&mut self, upstream: &str, choice: &ProviderChoice) {
        let what = choice.preset.own_models.as_deref().unwrap_or("names that the server lists");
        self.line(&format!(
            "\n# Its models: {what}. Clients use the name in the first line.\n# [models.\"my-model\"]\n\
             # targets = [{{ upstream = {}, model = \"NAME-THERE\" }}]",
            quoted(upstream)
        ));
    }

    fn write_model(&mut self, id: &str, model: &ModelEntry) {
        self.line(&format!("\n[models.{}]", quoted(id)));
        if model.kind != ModelKind::Text {
            self.line(&format!("kind = \"{}\"", model.kind.name()));
        }
        let targets = model.targets.iter().enumerate().map(|(order, (upstream, name))| {
            let name = if name == id { String::new() } else { format!(", model = {}", quoted(name)) };
            let order = if order == 0 { String::new() } else { format!(", order = {order}") };
            format!("{{ upstream = {}{name}{order} }}", quoted(upstream))
        });
        let targets = targets.collect::<Vec<_>>().join(", ");
        self.line(&format!("targets = [{targets}]"));
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("writing to a string succeeds");
    }
}

/// The choices without repetitions, each with a name of its own for its upstream.
fn named(choices: &[ProviderChoice]) -> Vec<(String, &ProviderChoice)> {
    let mut named: Vec<(String, &ProviderChoice)> = Vec::new();
    for choice in choices {
        if named.iter().any(|(_, known)| known.is_same(choice)) {
            continue;
        }
        let own = choice.preset.name;
        let earlier = named.iter().filter(|(_, known)| known.preset.name == own).count();
        named.push((if earlier == 0 { own.to_owned() } else { format!("{own}-{}", earlier + 1) }, choice));
    }
    named
}

/// What a model makes, by its name: servers list models of all kinds without saying which is which, and the names of some kinds
/// contain a word.
fn kind_by_name(name: &str) -> ModelKind {
    let name = name.to_ascii_lowercase();
    match () {
        () if name.contains("embed") => ModelKind::Embedding,
        () if name.contains("rerank") => ModelKind::Rerank,
        () if name.contains("moderation") => ModelKind::Moderation,
        () if name.contains("tts") => ModelKind::Speech,
        () if name.contains("whisper") || name.contains("transcribe") => ModelKind::Transcription,
        () => ModelKind::Text,
    }
}

/// The models of a provider: those that the program knows, else those that its server lists. Errors: why there is no list, and
/// what to do.
async fn models_of(choice: &ProviderChoice) -> Result<Vec<ProviderModel>, String> {
    let preset = choice.preset;
    let known: Vec<ProviderModel> =
        preset.all_models().map(|(kind, name)| ProviderModel { name: name.to_owned(), kind }).collect();
    if !known.is_empty() {
        return Ok(known);
    }
    if let Some(own) = &preset.own_models {
        return Err(format!(
            "its models are {own}, which no list has: {} and name them there",
            init_hint(preset)
        ));
    }
    // Without an address, there is nothing to ask, and the address is reported as missing.
    let Some(url) = choice.url() else { return Ok(Vec::new()) };
    let listed = listed(preset, url).await.map_err(|why| format!("{why}; {}", start_hint(preset)))?;
    let offered = listed.into_iter().filter(|name| id_of(name).is_some());
    let offered: Vec<ProviderModel> =
        offered.map(|name| ProviderModel { kind: kind_by_name(&name), name }).collect();
    if offered.is_empty() {
        return Err(format!("the server at {url} lists no models: load one there first"));
    }
    Ok(offered)
}

/// The models that a server lists.
async fn listed(preset: &Preset, url: &str) -> Result<Vec<String>, String> {
    // A configuration needs a model.
    let text = format!(
        "[upstreams.{QUERIED}]\nprovider = {}\nbase_url = {}\n[models.{QUERIED}]\ntargets = [{{ upstream = \"{QUERIED}\" }}]\n",
        quoted(preset.name),
        quoted(url)
    );
    let config = ConfigFile::of_text(&text, "--provider").map_err(|problems| problems.to_string())?.config;
    let offer = offers(&config).await.pop().map(|offer| offer.models);
    let models = offer.unwrap_or_else(|| Err("it was not queried".to_owned()));
    models.map_err(|why| format!("no list of models from {url}: {why}"))
}

/// The clients' name for a model, or none if no client could send it: servers of local files name them by path.
fn id_of(name: &str) -> Option<&str> {
    let short = || name.rsplit(['/', '\\']).next().unwrap_or(name);
    [name, short()]
        .into_iter()
        .find(|id| check_model_id(id).is_ok())
        .filter(|_| !name.contains(char::is_control))
}

fn missing_address(preset: &Preset) -> String {
    let example = preset.example_base_url.as_deref().unwrap_or_default();
    format!(
        "its address is missing, such as {example}: give yours as --provider {name}=URL, or {}; `gatewright providers {name}` \
         says more",
        init_hint(preset),
        name = preset.name
    )
}

fn init_hint(preset: &Preset) -> String {
    format!("write a configuration file with `gatewright config init --provider {}`", preset.name)
}

fn start_hint(preset: &Preset) -> String {
    let name = preset.name;
    let elsewhere = format!("give its address as --provider {name}=URL");
    match &preset.start {
        Some(start) => format!("start the server with `{start}`; if it runs elsewhere, {elsewhere}"),
        None => format!("if the server runs elsewhere, {elsewhere}"),
    }
}

fn problem(choice: &ProviderChoice, message: String) -> Problem {
    about(choice.preset.name, message)
}

fn about(provider: &str, message: String) -> Problem {
    Problem::of_file(&format!("--provider {provider}"), message)
}

/// A text as TOML, which has the syntax of JSON strings.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_config::{ModelKind, preset, presets, read_text};

    fn choice(name: &str, url: Option<&str>) -> ProviderChoice {
        ProviderChoice::new(preset(name).expect("a provider"), url.map(str::to_owned))
    }

    fn config_of(setup: &ProviderSetup) -> gatewright_config::Config {
        let set = |name: &str| Some(format!("key-in-{name}").into());
        let read = read_text(&setup.text, set);
        read.unwrap_or_else(|problems| panic!("{problems}\n{}", setup.text)).config
    }

    fn listing(names: &[&str]) -> Vec<ProviderModel> {
        names.iter().map(|name| ProviderModel { name: (*name).to_owned(), kind: ModelKind::Text }).collect()
    }

    #[tokio::test]
    async fn each_provider_with_known_models_needs_at_most_its_address() {
        for preset in presets().iter().filter(|preset| !preset.models.is_empty()) {
            let own = preset.base_url().is_none().then(|| "https://one.example/v1".to_owned());
            let setup = ProviderSetup::of(&[ProviderChoice::new(preset, own)]).await;
            assert!(setup.missing.is_empty(), "{}: {:?}", preset.name, setup.missing);
            let config = config_of(&setup);
            assert_eq!(config.models.len(), preset.all_models().count());
            let setup = ProviderSetup::of(&[ProviderChoice::new(preset, None)]).await;
            assert_eq!(setup.missing.is_empty(), preset.base_url().is_some(), "{}", preset.name);
        }
    }

    #[tokio::test]
    async fn missing_address_and_deployments_are_named_with_the_way_to_give_them() {
        let problems =
            ProviderSetup::of(&[choice("azure-openai", None)]).await.config().expect_err("no address");
        let message = problems.to_string();
        for part in [
            "--provider azure-openai: its address is missing",
            "https://RESOURCE.openai.azure.com/openai/v1",
            "--provider azure-openai=URL",
            "its models are the names of your deployments",
            "gatewright config init --provider azure-openai",
            "gatewright providers azure-openai",
        ] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let region = ProviderSetup::of(&[choice("bedrock", None)]).await.config().expect_err("no address");
        assert!(region.to_string().contains("bedrock-mantle.us-east-1"), "{region}");
    }

    #[test]
    fn same_provider_at_two_addresses_is_two_upstreams_and_the_later_one_is_the_fallback() {
        let choices = [
            choice("vllm", Some("http://a.example/v1")),
            choice("vllm", Some("http://b.example/v1")),
            choice("vllm", Some("http://a.example/v1")),
        ];
        let upstreams = named(&choices);
        let offered = vec![Ok(listing(&["org/one", "two"])), Ok(listing(&["two", "/models/three.gguf"]))];
        let setup = ProviderSetup::with(&upstreams, offered);
        let config = config_of(&setup);
        let names: Vec<&str> = config.upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
        assert_eq!(names, ["vllm", "vllm-2"]);
        let ids: Vec<&str> = config.models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["org/one", "two", "three.gguf"]);
        let targets = |index: usize| -> Vec<(&str, &str, u32)> {
            let targets = config.models[index].targets.iter();
            targets.map(|target| (&*target.upstream, &*target.model, target.order)).collect()
        };
        assert_eq!(targets(1), [("vllm", "two", 0), ("vllm-2", "two", 1)]);
        assert_eq!(targets(2), [("vllm-2", "/models/three.gguf", 0)]);
    }

    #[test]
    fn long_list_is_cut_with_a_note_and_unusable_names_are_skipped() {
        let one = choice("ollama", None);
        let mut offered: Vec<ProviderModel> = listing(&["bad\nname", "with space", "\u{7f}"]);
        offered.extend(
            (0..MAX_LISTED)
                .map(|number| ProviderModel { name: format!("embed-{number}"), kind: ModelKind::Embedding }),
        );
        let setup = ProviderSetup::with(&named(std::slice::from_ref(&one)), vec![Ok(offered)]);
        let config = config_of(&setup);
        assert!(config.models.len() < MAX_LISTED && config.models[0].kind == ModelKind::Embedding);
        let [note] = setup.notes.as_slice() else { panic!("{:?}", setup.notes) };
        assert_eq!(
            note.to_string(),
            "--provider ollama: it lists 1003 models; only the first 1000 are configured"
        );
    }

    #[test]
    fn file_without_models_says_how_to_add_one() {
        let one = choice("ollama", None);
        let setup = ProviderSetup::with(&named(std::slice::from_ref(&one)), vec![Err("why".to_owned())]);
        assert!(setup.text.contains("# [models.\"my-model\"]\n# targets = "), "{}", setup.text);
        assert_eq!(setup.missing[0].to_string(), "--provider ollama: why");
    }
}
