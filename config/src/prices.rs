//! Price files: prices and limits of models, which `gatewright prices import` writes and operators may edit. A single module
//! reads and writes them, so that both agree on the format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path as FilePath;

use gatewright::did_you_mean::suggestion;
use gatewright_store::billionths;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::file;
use super::model_price::{ModelPrice, TieredPrice, TokenPrice};
use super::problem::{Problem, Problems};
use super::source_map::{Path, SourceMap, line_and_column};
use super::toml_as_json::table;

/// Maximum size of a price file, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Maximum number of models in a price file.
const MAX_MODELS: usize = 100_000;
/// Maximum number of problems collected in a price file.
const MAX_PROBLEMS: usize = 50;
/// Maximum price, as in the schema of configuration files.
const MAX_PRICE: f64 = 1_000_000_000.0;
/// Maximum number of tiers of a price.
const MAX_TIERS: usize = 16;

/// The tables of a price file.
const TABLES: [&str; 2] = ["providers", "upstreams"];

/// Prices and limits of models, by provider or by upstream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PriceList {
    providers: Tables,
    upstreams: Tables,
}

/// Models by their id at the provider, by provider or upstream name.
type Tables = BTreeMap<String, BTreeMap<String, ListedModel>>;

/// Which models a part of a price list covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PricesOf<'n> {
    /// The models of a provider, by the name that upstreams use for it.
    Provider(&'n str),
    /// The models of a single upstream.
    Upstream(&'n str),
}

/// A price list's entry for a model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ListedModel {
    /// Its price.
    pub price: ModelPrice,
    /// Maximum number of tokens of prompt and response together.
    pub context: Option<u64>,
    /// Maximum number of tokens of a response.
    pub max_output: Option<u64>,
}

impl ListedModel {
    /// A model with a price and no limits.
    pub fn new(price: ModelPrice) -> Self {
        Self { price, ..Self::default() }
    }
}

/// A model in the format of a price file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFileEntry {
    input: Option<f64>,
    output: Option<f64>,
    cached_input: Option<f64>,
    cache_write: Option<f64>,
    reasoning: Option<f64>,
    image: Option<f64>,
    video_second: Option<f64>,
    audio_second: Option<f64>,
    speech_characters: Option<f64>,
    #[serde(default)]
    tiers: Vec<file::PriceTier>,
    context: Option<u64>,
    max_output: Option<u64>,
}

impl PriceList {
    /// Reads a price file. Errors: all problems in it.
    pub fn read(path: &FilePath) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let text = text_of(path).map_err(|error| unreadable(&name, &error.to_string()))?;
        Self::parse(&text, &name)
    }

    /// Parses a price file. `name`: its name in messages.
    pub fn parse(text: &str, name: &str) -> Result<Self, Problems> {
        if text.len() as u64 > MAX_BYTES {
            return Err(unreadable(name, &format!("it is larger than {MAX_BYTES} bytes")));
        }
        let problem =
            |place, key: String, message| Problem { file: name.to_owned(), place: Some(place), key, message };
        let (root, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let problems = errors.iter().take(MAX_PROBLEMS).map(|error| {
                let place = line_and_column(text, &error.span().unwrap_or_default());
                problem(place, String::new(), error.message().to_owned())
            });
            return Err(Problems::new(problems.collect()));
        }
        let document = table(root.get_ref());
        let places = SourceMap::new(text, root);
        let mut reading = Reading::default();
        let list = reading.list(document);
        if reading.wrong.is_empty() {
            return Ok(list);
        }
        let wrong = reading.wrong.into_iter();
        let problems = wrong.map(|(path, message)| problem(places.of(&path), path.to_string(), message));
        Err(Problems::new(problems.collect()))
    }

    /// An upstream's model: entries for the upstream itself take precedence over entries for its provider.
    pub(super) fn find(&self, upstream: &str, provider: Option<&str>, model: &str) -> Option<&ListedModel> {
        let of_upstream = self.upstreams.get(upstream).and_then(|models| models.get(model));
        let of_provider = || self.providers.get(provider?)?.get(model);
        of_upstream.or_else(of_provider)
    }

    /// The models of a provider or an upstream, by their ids.
    pub fn models(&self, of: PricesOf<'_>) -> impl Iterator<Item = (&str, &ListedModel)> {
        let models = match of {
            PricesOf::Provider(name) => self.providers.get(name),
            PricesOf::Upstream(name) => self.upstreams.get(name),
        };
        models.into_iter().flatten().map(|(id, model)| (id.as_str(), model))
    }

    /// Adds a model. Returns the one that it replaces.
    pub fn insert(&mut self, of: PricesOf<'_>, id: &str, model: ListedModel) -> Option<ListedModel> {
        let (tables, name) = match of {
            PricesOf::Provider(name) => (&mut self.providers, name),
            PricesOf::Upstream(name) => (&mut self.upstreams, name),
        };
        tables.entry(name.to_owned()).or_default().insert(id.to_owned(), model)
    }

    /// Number of models in it.
    pub fn len(&self) -> usize {
        self.providers.values().chain(self.upstreams.values()).map(BTreeMap::len).sum()
    }

    /// Whether it contains no models.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file's text: sorted, with a table for each model, so that two imports differ only in what has
    /// changed.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for (table, tables) in [("providers", &self.providers), ("upstreams", &self.upstreams)] {
            for (name, models) in tables {
                for (id, model) in models {
                    _ = write!(text, "\n[{table}.{}.{}]\n", key(name), key(id));
                    model.write(&mut text);
                }
            }
        }
        text
    }
}

fn unreadable(name: &str, why: &str) -> Problems {
    let message = format!("cannot be read: {why}");
    Problems::new(vec![Problem { file: name.to_owned(), place: None, key: String::new(), message }])
}

fn text_of(path: &FilePath) -> io::Result<String> {
    let mut text = String::new();
    // Reads one byte more than allowed, to detect that it is too long.
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Collects problems while reading.
#[derive(Default)]
struct Reading {
    wrong: Vec<(Path, String)>,
    models: usize,
}

impl Reading {
    fn list(&mut self, document: Value) -> PriceList {
        let mut list = PriceList::default();
        let root = Path::default();
        for (name, value) in members(document) {
            let tables = match name.as_str() {
                "providers" => &mut list.providers,
                "upstreams" => &mut list.upstreams,
                _ => {
                    let message = format!("unknown table{}", suggestion(&name, TABLES));
                    self.wrong(root.to(&*name), message);
                    continue;
                }
            };
            let at = root.to(&*name);
            let Some(owners) = self.table(value, &at) else { continue };
            for (owner, models) in owners {
                let at = at.to(&*owner);
                let Some(models) = self.table(models, &at) else { continue };
                let models = models.into_iter().filter_map(|(id, model)| {
                    let model = self.model(model, &at.to(&*id))?;
                    Some((id, model))
                });
                tables.insert(owner, models.collect());
            }
        }
        list
    }

    fn table(&mut self, value: Value, at: &Path) -> Option<Map<String, Value>> {
        let Value::Object(members) = value else {
            self.wrong(at.clone(), "must be a table");
            return None;
        };
        Some(members)
    }

    fn model(&mut self, value: Value, at: &Path) -> Option<ListedModel> {
        self.models += 1;
        if self.models > MAX_MODELS {
            if self.models == MAX_MODELS + 1 {
                self.wrong(at.clone(), format!("is one model too many: a price file may have {MAX_MODELS}"));
            }
            return None;
        }
        if let Some(name) = value.as_object().into_iter().flatten().find(|(_, value)| value.is_object()) {
            let message =
                format!("must be a number; if the name of the model has a dot before {}, quote it", name.0);
            self.wrong(at.to(&*name.0.clone()), message);
            return None;
        }
        if let Some(name) = unlike_json(&value) {
            self.wrong(at.to(name), "must be a finite number");
            return None;
        }
        let entry = match PriceFileEntry::deserialize(value) {
            Ok(entry) => entry,
            Err(error) => {
                self.wrong(at.clone(), error.to_string());
                return None;
            }
        };
        let PriceFileEntry { context, max_output, .. } = entry;
        match price_of(entry.into_price()) {
            Ok(price) => Some(ListedModel { price, context, max_output }),
            Err(InvalidPrice { within, message }) => {
                self.wrong(within.iter().fold(at.clone(), |at, step| at.to(*step)), message);
                None
            }
        }
    }

    fn wrong(&mut self, at: Path, message: impl Into<String>) {
        if self.wrong.len() < MAX_PROBLEMS {
            self.wrong.push((at, message.into()));
        }
    }
}

fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The member of a model, or of one of its tiers, whose number JSON can't represent.
fn unlike_json(model: &Value) -> Option<&str> {
    let members = model.as_object()?;
    let is_null = |value: &Value| {
        let within = |tier: &Value| tier.as_object().is_some_and(|tier| tier.values().any(Value::is_null));
        value.is_null() || value.as_array().is_some_and(|tiers| tiers.iter().any(within))
    };
    members.iter().find(|(_, value)| is_null(value)).map(|(name, _)| name.as_str())
}

impl PriceFileEntry {
    fn into_price(self) -> file::Price {
        file::Price {
            input: self.input,
            output: self.output,
            cached_input: self.cached_input,
            cache_write: self.cache_write,
            reasoning: self.reasoning,
            image: self.image,
            video_second: self.video_second,
            audio_second: self.audio_second,
            speech_characters: self.speech_characters,
            tiers: self.tiers,
        }
    }
}

/// Why a price is invalid, and which member causes that.
#[derive(Debug)]
pub(super) struct InvalidPrice {
    pub(super) within: Vec<&'static str>,
    pub(super) message: String,
}

impl InvalidPrice {
    fn new(within: &[&'static str], message: impl Into<String>) -> Self {
        Self { within: within.to_vec(), message: message.into() }
    }
}

/// The price that a file states.
pub(super) fn price_of(file: file::Price) -> Result<ModelPrice, InvalidPrice> {
    let file::Price { input, output, cached_input, cache_write, reasoning, tiers, .. } = file;
    let file::Price { image, video_second, audio_second, speech_characters, .. } = file;
    let mut price =
        ModelPrice { image, video_second, audio_second, speech_characters, ..ModelPrice::default() };
    price.tokens = match (input, output) {
        (Some(input), Some(output)) => TokenPrice { input, output, cached_input, cache_write, reasoning },
        (None, None) if price.media().iter().any(|(_, amount)| amount.is_some()) => {
            let others = [cached_input, cache_write, reasoning];
            if others.iter().any(Option::is_some) || !tiers.is_empty() {
                return Err(InvalidPrice::new(&[], "has prices of some tokens: set input and output, too"));
            }
            TokenPrice::default()
        }
        _ => {
            let names = price.media().map(|(name, _)| name).join(", ");
            let message = format!("must set input and output, or only some of {names}; 0 means free");
            return Err(InvalidPrice::new(&[], message));
        }
    };
    check(&price.tokens, &[])?;
    for (name, amount) in price.media() {
        check_amount(amount, &[name])?;
    }
    if tiers.len() > MAX_TIERS {
        return Err(InvalidPrice::new(&["tiers"], format!("must have {MAX_TIERS} or fewer items")));
    }
    let tiers = tiers.into_iter().map(|tier| {
        let file::PriceTier { above, input, output, cached_input, cache_write, reasoning } = tier;
        TieredPrice { above, tokens: TokenPrice { input, output, cached_input, cache_write, reasoning } }
    });
    price.tiers = tiers.collect();
    let tiers = &price.tiers;
    if tiers.iter().any(|tier| tier.above == 0) || !tiers.is_sorted_by(|one, next| one.above < next.above) {
        let message = "must be sorted by above, each with a different number of tokens, 1 or more";
        return Err(InvalidPrice::new(&["tiers"], message));
    }
    tiers.iter().try_for_each(|tier| check(&tier.tokens, &["tiers"]))?;
    Ok(price)
}

fn check(tokens: &TokenPrice, within: &[&'static str]) -> Result<(), InvalidPrice> {
    amounts(tokens).into_iter().try_for_each(|(name, amount)| {
        let at = if within.is_empty() { vec![name] } else { within.to_vec() };
        check_amount(amount, &at)
    })
}

fn check_amount(amount: Option<f64>, within: &[&'static str]) -> Result<(), InvalidPrice> {
    match amount {
        Some(amount) if !(0.0..=MAX_PRICE).contains(&amount) => {
            Err(InvalidPrice::new(within, format!("must be from 0 to {MAX_PRICE}")))
        }
        _ => Ok(()),
    }
}

fn amounts(tokens: &TokenPrice) -> [(&'static str, Option<f64>); 5] {
    [
        ("input", Some(tokens.input)),
        ("output", Some(tokens.output)),
        ("cached_input", tokens.cached_input),
        ("cache_write", tokens.cache_write),
        ("reasoning", tokens.reasoning),
    ]
}

impl ListedModel {
    fn write(&self, text: &mut String) {
        let ModelPrice { tokens, tiers, .. } = &self.price;
        let media = self.price.media();
        let stated = amounts(tokens).into_iter().filter(|_| self.price.states_tokens()).chain(media);
        for (name, amount) in stated {
            if let Some(amount) = amount {
                _ = writeln!(text, "{name} = {}", decimal(amount));
            }
        }
        if !tiers.is_empty() {
            let tiers: Vec<String> = tiers.iter().map(inline).collect();
            _ = writeln!(text, "tiers = [{}]", tiers.join(", "));
        }
        for (name, tokens) in [("context", self.context), ("max_output", self.max_output)] {
            if let Some(tokens) = tokens {
                _ = writeln!(text, "{name} = {tokens}");
            }
        }
    }
}

fn inline(tier: &TieredPrice) -> String {
    let amounts = amounts(&tier.tokens).into_iter();
    let amounts = amounts.filter_map(|(name, amount)| Some(format!(", {name} = {}", decimal(amount?))));
    format!("{{ above = {}{} }}", tier.above, amounts.collect::<String>())
}

/// A key in TOML syntax. TOML reads JSON's escapes.
fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !name.is_empty() && name.bytes().all(bare) { name.to_owned() } else { Value::from(name).to_string() }
}

/// An amount to the billionth, in TOML syntax.
fn decimal(amount: f64) -> String {
    let billionths = billionths(amount);
    let (whole, rest) = (billionths / 1_000_000_000, billionths % 1_000_000_000);
    let rest = format!("{rest:09}");
    match rest.trim_end_matches('0') {
        "" => whole.to_string(),
        rest => format!("{whole}.{rest}"),
    }
}

#[cfg(test)]
mod tests;
