//! A configuration in front of providers that are given by name: the one with which `serve --provider` runs, and which
//! `config init --provider` writes.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use gatewright_config::{ConfigFile, ModelKind, Preset, Problem, Problems, check_model_id};
use indexmap::IndexMap;
use serde_json::Value;

use crate::offers::{ListedModel, listed};

/// Timeout for the list of a provider of which the program knows some models: without the list, they suffice to start.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the list of another provider.
const REQUIRED_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of models that are taken from a provider's list.
const MAX_LISTED: usize = 1000;
/// Maximum number of models of a configuration.
const MAX_MODELS: usize = 10_000;
/// Maximum length of a provider's name for a model in a configuration.
const MAX_NAME_CHARS: usize = 256;
/// Number of providers queried concurrently.
const AT_ONCE: usize = 32;
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

/// Which models of a provider a configuration has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource {
    /// Those that the program knows, and those that the provider's server lists.
    ListedAndKnown,
    /// Those that the program knows. No request is sent.
    Known,
}

/// A configuration file with an upstream for each of several providers, and their models.
#[derive(Debug)]
pub struct ProviderSetup {
    text: String,
    missing: Vec<Problem>,
    notes: Vec<Problem>,
    presets: Vec<&'static Preset>,
}

/// A provider's name for a model, and what the model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ProviderModel {
    name: String,
    kind: ModelKind,
}

/// The models of a provider, and what to say about them.
#[derive(Debug, Default)]
struct Offered {
    models: Vec<ProviderModel>,
    note: Option<String>,
}

/// A model of the file: the upstreams that have it, with their names for it.
#[derive(Debug)]
struct ModelEntry {
    kind: ModelKind,
    targets: Vec<(String, String)>,
}

impl ProviderSetup {
    /// The models of the providers' servers are requested with a limit on time and size. Needs a Tokio runtime.
    pub async fn of(choices: &[ProviderChoice], source: ModelSource) -> Self {
        let upstreams = named(choices);
        let queries = upstreams.iter().map(|(_, choice)| models_of(choice, source));
        let offered: Vec<_> = stream::iter(queries).buffered(AT_ONCE).collect().await;
        Self::with(&upstreams, offered)
    }

    fn with(upstreams: &[(String, &ProviderChoice)], offered: Vec<Result<Offered, String>>) -> Self {
        let (missing, notes) = (Vec::new(), Vec::new());
        let mut setup = Self { text: String::new(), missing, notes, presets: Vec::new() };
        let mut models: IndexMap<String, ModelEntry> = IndexMap::new();
        for ((upstream, choice), offered) in upstreams.iter().zip(offered) {
            setup.write_upstream(upstream, choice);
            if setup.presets.iter().all(|known| known.name != choice.preset.name) {
                setup.presets.push(choice.preset);
            }
            if choice.url().is_none() {
                setup.missing.push(problem(choice, missing_address(choice.preset)));
            }
            let offered = offered.unwrap_or_else(|why| {
                setup.missing.push(problem(choice, why));
                Offered::default()
            });
            if offered.models.is_empty() {
                setup.write_sample_model(upstream, choice);
            }
            setup.notes.extend(offered.note.map(|note| problem(choice, note)));
            setup.add(&mut models, upstream, choice, offered.models);
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

    /// Which models of providers the file lacks, and why.
    pub fn notes(&self) -> &[Problem] {
        &self.notes
    }

    /// The configuration. Errors: something is missing, or no variable of a key is set.
    pub fn config(self) -> Result<ConfigFile, Problems> {
        let unset = self.presets.iter().filter_map(|preset| {
            let message = format!(
                "{}, or name another place of the key in a configuration file, which `gatewright config init --provider {}` \
                 writes",
                preset.missing_key(|name| std::env::var_os(name))?,
                preset.name
            );
            Some(about(preset.name, message))
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
        let mut left_out = 0;
        for ProviderModel { name, kind } in offered {
            let Some(id) = id_of(&name) else { continue };
            if models.len() == MAX_MODELS && !models.contains_key(id) {
                left_out += 1;
                continue;
            }
            let model =
                models.entry(id.to_owned()).or_insert_with(|| ModelEntry { kind, targets: Vec::new() });
            // Another provider's model of this name may make something else.
            let is_new = model.targets.iter().all(|(known, _)| known != upstream);
            if is_new && choice.preset.kind().serves(model.kind) {
                model.targets.push((upstream.to_owned(), name));
            }
        }
        if left_out > 0 {
            let message = format!(
                "{left_out} of its models are left out: a configuration has at most {MAX_MODELS} models"
            );
            self.notes.push(problem(choice, message));
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
        match preset.key_variables() {
            [] => {}
            [one] => self.line(&format!("# - Its key is read from the variable {one}, unless you set key.")),
            several => self.line(&format!(
                "# - Its key is read from the first of the variables {} that is set, unless you set key.",
                several.join(", ")
            )),
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
        if model.kind != ModelKind::in_catalog(id).unwrap_or(ModelKind::Text) {
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

/// The models of a provider. Errors: why there are none, and what to do.
async fn models_of(choice: &ProviderChoice, source: ModelSource) -> Result<Offered, String> {
    let preset = choice.preset;
    let known: Vec<ProviderModel> =
        preset.all_models().map(|(kind, name)| ProviderModel { name: name.to_owned(), kind }).collect();
    if known.is_empty()
        && let Some(own) = &preset.own_models
    {
        return Err(format!(
            "its models are {own}, which no list has: {} and name them there",
            init_hint(preset)
        ));
    }
    if source == ModelSource::Known && known.is_empty() {
        return Err("only its server knows its models: leave out --known-models".to_owned());
    }
    let rest = match known.len() {
        1 => "only the model that this program knows is configured".to_owned(),
        count => format!("only the {count} models that this program knows are configured"),
    };
    // Without an address, there is no server to query, and the address is reported as missing.
    let Some(url) = choice.url().filter(|_| source != ModelSource::Known && preset.lists_models) else {
        return Ok(Offered { models: known, note: None });
    };
    if let Some(missing) = preset.missing_key(|name| std::env::var_os(name)) {
        return Ok(Offered {
            models: known,
            note: Some(format!("{missing}; without it, the list of models is not requested: {rest}")),
        });
    }
    let timeout = if known.is_empty() { REQUIRED_TIMEOUT } else { TIMEOUT };
    match list_of(preset, url, timeout).await {
        Ok(listed) => {
            let lists_none = listed.iter().all(|model| model.kind.is_none());
            let count = listed.len();
            let Offered { models, note } = united(preset, known, listed);
            if models.is_empty() {
                return Err(match count {
                    0 => format!("the server at {url} lists no models: load one there first"),
                    _ => format!(
                        "the server at {url} lists {count} models, none of which the gateway can serve"
                    ),
                });
            }
            let none = || format!("the server at {url} lists no models that the gateway serves; {rest}");
            Ok(Offered { models, note: note.or_else(|| lists_none.then(none)) })
        }
        Err(why) if known.is_empty() => Err(format!("{why}; {}", start_hint(preset))),
        Err(why) => Ok(Offered { models: known, note: Some(format!("{why}; {rest}")) }),
    }
}

/// The models that a server lists. Errors: why there is no list.
async fn list_of(preset: &Preset, url: &str, timeout: Duration) -> Result<Vec<ListedModel>, String> {
    // A configuration needs a model.
    let text = format!(
        "[upstreams.{QUERIED}]\nprovider = {}\nbase_url = {}\n[models.{QUERIED}]\ntargets = [{{ upstream = \"{QUERIED}\" }}]\n",
        quoted(preset.name),
        quoted(url)
    );
    let config = ConfigFile::of_text(&text, "--provider").map_err(|problems| problems.to_string())?.config;
    let [upstream] = config.upstreams.as_slice() else { return Err("it was not queried".to_owned()) };
    listed(upstream, timeout).await.map_err(|why| format!("no list of models from {url}: {why}"))
}

/// The models that the program knows, with their kinds, and the others that the provider lists. Known models that the provider
/// doesn't list come last: they may no longer exist, and the first model of a kind is used as an example.
fn united(preset: &Preset, known: Vec<ProviderModel>, listed: Vec<ListedModel>) -> Offered {
    let prefix = preset.listed_prefix.as_deref().unwrap_or_default();
    let mut seen = HashSet::new();
    let mut others: Vec<ProviderModel> = listed
        .into_iter()
        .filter_map(|model| {
            let kind = model.kind.filter(|kind| preset.kind().serves(*kind))?;
            let name = model.name.strip_prefix(prefix).unwrap_or(&model.name).to_owned();
            (id_of(&name).is_some() && seen.insert(name.clone())).then_some(ProviderModel { name, kind })
        })
        .collect();
    let (confirmed, unlisted): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|model| seen.iter().any(|name| is_release_of(name, &model.name)));
    others.retain(|other| confirmed.iter().all(|model| model.name != other.name));
    let count = confirmed.len() + others.len();
    let note = (count > MAX_LISTED)
        .then(|| format!("it lists {count} models; only the first {MAX_LISTED} are configured"));
    others.truncate(MAX_LISTED.saturating_sub(confirmed.len()));
    Offered { models: confirmed.into_iter().chain(others).chain(unlisted).collect(), note }
}

/// Whether a listed name is a model's own, or that of a dated release of it, such as `claude-sonnet-4-5-20250929`.
fn is_release_of(listed: &str, model: &str) -> bool {
    let Some(rest) = listed.strip_prefix(model) else { return false };
    let is_date = |date: &str| date.len() >= 4 && date.bytes().take(4).all(|byte| byte.is_ascii_digit());
    rest.is_empty() || rest.strip_prefix('-').is_some_and(is_date)
}

/// The clients' name for a model, or none if no client could send it: servers of local files name them by path.
fn id_of(name: &str) -> Option<&str> {
    let short = || name.rsplit(['/', '\\']).next().unwrap_or(name);
    [name, short()]
        .into_iter()
        .find(|id| check_model_id(id).is_ok())
        .filter(|_| !name.contains(char::is_control) && name.chars().count() <= MAX_NAME_CHARS)
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

    fn text(name: &str) -> ProviderModel {
        ProviderModel { name: name.to_owned(), kind: ModelKind::Text }
    }

    fn offered(names: &[&str]) -> Offered {
        Offered { models: names.iter().map(|name| text(name)).collect(), note: None }
    }

    fn listing(names: impl IntoIterator<Item = impl Into<String>>) -> Vec<ListedModel> {
        let listed = |name: String| ListedModel { kind: Some(ModelKind::Text), name };
        names.into_iter().map(|name| listed(name.into())).collect()
    }

    fn names(offered: &Offered) -> Vec<&str> {
        offered.models.iter().map(|model| model.name.as_str()).collect()
    }

    #[tokio::test]
    async fn each_provider_with_known_models_needs_at_most_its_address() {
        for preset in presets().iter().filter(|preset| preset.all_models().next().is_some()) {
            let own = preset.base_url().is_none().then(|| "https://one.example/v1".to_owned());
            let setup = ProviderSetup::of(&[ProviderChoice::new(preset, own)], ModelSource::Known).await;
            assert!(
                setup.missing.is_empty() && setup.notes.is_empty(),
                "{}: {:?}",
                preset.name,
                setup.missing
            );
            let config = config_of(&setup);
            let kinds = config.models.iter().map(|model| (model.kind, model.id.as_str()));
            assert!(kinds.eq(preset.all_models()), "{}: {}", preset.name, setup.text);
            let setup = ProviderSetup::of(&[ProviderChoice::new(preset, None)], ModelSource::Known).await;
            assert_eq!(setup.missing.is_empty(), preset.base_url().is_some(), "{}", preset.name);
        }
    }

    #[tokio::test]
    async fn provider_whose_models_only_its_server_knows_needs_its_list() {
        let setup = ProviderSetup::of(&[choice("ollama", None)], ModelSource::Known).await;
        let expected = "--provider ollama: only its server knows its models: leave out --known-models";
        assert_eq!(setup.missing[0].to_string(), expected);
    }

    #[tokio::test]
    async fn missing_address_and_deployments_are_named_with_the_way_to_give_them() {
        let setup = ProviderSetup::of(&[choice("azure-openai", None)], ModelSource::ListedAndKnown).await;
        let message = setup.config().expect_err("no address").to_string();
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
        let setup = ProviderSetup::of(&[choice("bedrock", None)], ModelSource::ListedAndKnown).await;
        let region = setup.config().expect_err("no address").to_string();
        assert!(region.contains("bedrock-mantle.us-east-1"), "{region}");
    }

    #[test]
    fn same_provider_at_two_addresses_is_two_upstreams_and_the_later_one_is_the_fallback() {
        let choices = [
            choice("vllm", Some("http://a.example/v1")),
            choice("vllm", Some("http://b.example/v1")),
            choice("vllm", Some("http://a.example/v1")),
        ];
        let upstreams = named(&choices);
        let lists = vec![Ok(offered(&["org/one", "two"])), Ok(offered(&["two", "/models/three.gguf"]))];
        let setup = ProviderSetup::with(&upstreams, lists);
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
    fn provider_whose_protocol_lacks_the_kind_of_a_model_is_no_fallback() {
        let choices = [choice("openai", None), choice("anthropic", None)];
        let image = ProviderModel { name: "x".to_owned(), kind: ModelKind::Image };
        let lists = vec![Ok(Offered { models: vec![image], note: None }), Ok(offered(&["x", "y"]))];
        let config = config_of(&ProviderSetup::with(&named(&choices), lists));
        assert_eq!((config.models[0].kind, config.models[0].targets.len()), (ModelKind::Image, 1));
        assert_eq!(config.models[1].targets[0].upstream, "anthropic");
    }

    #[test]
    fn known_models_come_first_if_the_provider_lists_them_and_last_otherwise() {
        let anthropic = preset("anthropic").expect("a provider");
        let known = vec![text("gone"), text("claude-sonnet-4-5"), text("both")];
        let listed = listing(["new", "both", "claude-sonnet-4-5-20250929", "gone-mini", "new"]);
        let united = united(anthropic, known, listed);
        assert_eq!(
            names(&united),
            ["claude-sonnet-4-5", "both", "new", "claude-sonnet-4-5-20250929", "gone-mini", "gone"]
        );
        assert_eq!(united.note, None);
    }

    #[test]
    fn known_kinds_take_precedence_and_models_that_the_protocol_cannot_serve_are_left_out() {
        let openai = preset("openai").expect("a provider");
        let known = vec![ProviderModel { name: "one".to_owned(), kind: ModelKind::Moderation }];
        let mut listed = listing(["one", "two"]);
        listed.push(ListedModel { name: "speech".to_owned(), kind: None });
        let both = united(openai, known.clone(), listed.clone());
        assert_eq!(both.models, [known[0].clone(), text("two")]);
        listed.push(ListedModel { name: "drawer".to_owned(), kind: Some(ModelKind::Image) });
        assert_eq!(names(&united(openai, Vec::new(), listed.clone())), ["one", "two", "drawer"]);
        let gemini = preset("gemini").expect("a provider");
        assert_eq!(names(&united(gemini, Vec::new(), listed)), ["one", "two"]);
    }

    #[test]
    fn prefix_of_a_providers_list_is_no_part_of_its_names() {
        let compatible = preset("gemini-compatible").expect("a provider");
        let known = vec![text("gemini-2.5-pro")];
        let united = united(compatible, known, listing(["models/gemini-2.5-pro", "models/gemma-4"]));
        assert_eq!(names(&united), ["gemini-2.5-pro", "gemma-4"]);
    }

    #[test]
    fn long_list_is_cut_with_a_note_and_unusable_names_are_skipped() {
        let ollama = preset("ollama").expect("a provider");
        let long = format!("/{}/model.gguf", "x".repeat(MAX_NAME_CHARS));
        let mut listed = listing(["bad\nname", "with space", "\u{7f}", "a%20b", "a..b", "", long.as_str()]);
        listed.extend(listing((0..=MAX_LISTED).map(|number| format!("model-{number}"))));
        let offered = united(ollama, vec![text("known"), text("model-1000")], listed);
        assert_eq!((offered.models.len(), offered.models[0].name.as_str()), (MAX_LISTED + 1, "model-1000"));
        assert_eq!(offered.models[MAX_LISTED], text("known"));
        let one = choice("ollama", None);
        let setup = ProviderSetup::with(&named(std::slice::from_ref(&one)), vec![Ok(offered)]);
        assert_eq!(config_of(&setup).models.len(), MAX_LISTED + 1);
        let [note] = setup.notes.as_slice() else { panic!("{:?}", setup.notes) };
        assert_eq!(
            note.to_string(),
            "--provider ollama: it lists 1001 models; only the first 1000 are configured"
        );
    }

    #[test]
    fn models_beyond_the_maximum_of_a_configuration_are_left_out_with_a_note() {
        let urls: Vec<String> = (0..11).map(|number| format!("http://{number}.example/v1")).collect();
        let choices: Vec<_> = urls.iter().map(|url| choice("vllm", Some(url.as_str()))).collect();
        let list = |from: usize| {
            let models = (0..MAX_LISTED).map(|number| text(&format!("model-{}", from * MAX_LISTED + number)));
            Ok(Offered { models: models.collect(), note: None })
        };
        let setup = ProviderSetup::with(&named(&choices), (0..11).map(list).collect());
        assert_eq!(config_of(&setup).models.len(), MAX_MODELS);
        let [note] = setup.notes.as_slice() else { panic!("{:?}", setup.notes) };
        let expected =
            "--provider vllm: 1000 of its models are left out: a configuration has at most 10000 models";
        assert_eq!(note.to_string(), expected);
    }

    #[test]
    fn file_without_models_says_how_to_add_one() {
        let one = choice("ollama", None);
        let setup = ProviderSetup::with(&named(std::slice::from_ref(&one)), vec![Err("why".to_owned())]);
        assert!(setup.text.contains("# [models.\"my-model\"]\n# targets = "), "{}", setup.text);
        assert_eq!(setup.missing[0].to_string(), "--provider ollama: why");
    }
}
