//! Reads a config.yaml of LiteLLM's proxy: what each deployment, alias, fallback and key becomes here. Anything not
//! converted is listed with its path.

mod invalid_yaml;
#[cfg(test)]
pub(crate) mod mixed;
mod providers;
mod setting;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::ops::RangeInclusive;

use gatewright_gateway::check_model_id;
use serde_json::Value;

use self::providers::provider;
use self::setting::{Key, Section, Setting};
use super::writing::{ImportedTarget, Model, Plan, Price, Upstream};

/// Maximum number of deployments.
const MAX_DEPLOYMENTS: usize = 10_000;
/// Maximum number of notes.
const MAX_LISTED: usize = 200;
/// Variable for the client key, if the file contains the key itself.
const KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_KEY";
/// Numbers of requests, within our configuration's limits.
const COUNTS: RangeInclusive<u64> = 1..=4_294_967_295;
/// Orders.
const RANKS: RangeInclusive<u64> = 0..=1_000_000;
/// Weights, which may be fractions in the source file.
const WEIGHTS: RangeInclusive<f64> = 0.0..=1_000_000.0;
/// Order of a deployment that has none.
const LAST: u64 = u64::MAX;
/// Times in seconds: our configuration supports thousandths.
const TIMES_S: RangeInclusive<f64> = 0.001..=999_999_999.0;
/// Costs of one token.
const COSTS: RangeInclusive<f64> = 0.0..=1000.0;

/// The result of an import.
#[derive(Debug)]
pub(super) struct Imported {
    /// A configuration file.
    pub(super) text: String,
    /// Settings that have no counterpart or need manual work, a line each.
    pub(super) notes: Vec<String>,
}

/// `source`: the file's name. Errors: the text is not YAML, exceeds the limits, or has no model list.
pub(super) fn import(yaml: &str, source: &str) -> Result<Imported, String> {
    let document: Value =
        serde_saphyr::from_str_with_options(yaml, bounds()).map_err(|error| invalid_yaml::explain(&error))?;
    let Value::Object(members) = document else { return Err("it has no settings".to_owned()) };
    let mut document = Section::of_file(members);
    let Some(Ok(deployments)) = document.take("model_list").map(Setting::list) else {
        return Err("it has no model_list".to_owned());
    };
    if deployments.len() > MAX_DEPLOYMENTS {
        return Err(format!("its model_list has more than {MAX_DEPLOYMENTS} entries"));
    }
    let mut import = LitellmImport::default();
    let mut settings = ["router_settings", "litellm_settings", "general_settings"].map(|name| {
        document.take(name).and_then(|section| import.noted(section.section())).unwrap_or_default()
    });
    let mut take = |name: &str| settings.iter_mut().find_map(|members| members.take(name));
    let timeout = take("request_timeout").or_else(|| take("timeout"));
    import.timeout_s = timeout.and_then(|timeout| import.time_s(&timeout));
    let [key, aliases, default_fallbacks] =
        ["master_key", "model_group_alias", "default_fallbacks"].map(&mut take);
    let fallbacks = [take("fallbacks"), take("fallbacks")];

    for deployment in deployments {
        if let Err(why) = import.deployment(deployment) {
            import.leave(format!("{why}; the deployment is skipped"));
        }
    }
    import.rank();
    if let Some(aliases) = aliases {
        import.aliases(aliases);
    }
    import.fallbacks(fallbacks.into_iter().flatten().collect(), default_fallbacks);
    if let Some(key) = key {
        import.plan.key = import.variable(&key, KEY_VARIABLE);
    }
    for section in settings.into_iter().chain([document]) {
        import.leave_rest(section);
    }
    Ok(import.finish(source))
}

/// Prevents YAML aliases from blowing up the file.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 100_000, max_nodes: 100_000, max_depth: 32, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

#[derive(Default)]
struct LitellmImport {
    plan: Plan,
    /// Position of a model by its id.
    by_id: HashMap<String, usize>,
    timeout_s: Option<f64>,
    /// Variables for keys that are written in the file.
    variables: HashMap<String, String>,
    notes: Vec<String>,
    /// Number of notes beyond the listed ones.
    unlisted: usize,
}

impl LitellmImport {
    /// Errors: why it has no counterpart.
    fn deployment(&mut self, deployment: Setting) -> Result<(), String> {
        let at = deployment.path.clone();
        let mut deployment = deployment.section()?;
        let parameters = deployment.take("litellm_params").map(Setting::section).transpose()?;
        let mut parameters = parameters.unwrap_or_default();
        let (Some(id), Some(called)) = (deployment.take("model_name"), parameters.take("model")) else {
            return Err(format!("{at}: it has no model_name or no litellm_params.model"));
        };
        let (id, called) = (id.text()?, called.text()?);
        if id.contains('*') || called.contains('*') {
            return Err(format!("{at}: {id}: a wildcard; list each model"));
        }
        check_model_id(&id).map_err(|why| format!("{at}: {why}"))?;
        let info = deployment.take("model_info").and_then(|info| self.noted(info.section()));
        let mut info = info.unwrap_or_default();
        let makes = match info.take("mode").map(|mode| mode.text()).transpose()?.as_deref() {
            None => made_by(called.rsplit('/').next().unwrap_or(&called)),
            Some("chat" | "completion" | "responses") => None,
            Some("embedding") => Some("embedding"),
            Some("rerank") => Some("rerank"),
            Some("moderation") => Some("moderation"),
            Some("audio_speech") => Some("speech"),
            Some("audio_transcription") => Some("transcription"),
            Some("image_generation") => Some("image"),
            Some("video_generation") => Some("video"),
            Some(mode) => return Err(format!("{at}: {id}: a model of mode {mode}")),
        };
        let base = parameters.take("api_base").or_else(|| parameters.take("base_url"));
        let base = base.map(|base| base.text()).transpose()?;
        let (provider, model) = provider(&called, makes, base.as_deref(), &mut parameters)
            .map_err(|why| format!("{at}: {id}: {why}"))?;
        let refused = match makes {
            Some("embedding") if matches!(provider.kind, "messages" | "converse") => Some("embeddings"),
            Some("rerank") if matches!(provider.kind, "messages" | "native" | "converse") => Some("rankings"),
            Some("moderation") if matches!(provider.kind, "messages" | "native" | "converse") => {
                Some("moderations")
            }
            Some("speech") if matches!(provider.kind, "messages" | "native" | "converse") => Some("speech"),
            Some("transcription") if matches!(provider.kind, "messages" | "native" | "converse") => {
                Some("transcriptions")
            }
            Some("image" | "video") if matches!(provider.kind, "messages" | "native" | "converse") => {
                Some("images and videos")
            }
            _ => None,
        };
        if let Some(what) = refused {
            return Err(format!("{at}: {id}: {what} from a provider of kind {}", provider.kind));
        }
        if self.by_id.get(&id).is_some_and(|position| self.plan.models[*position].makes != makes) {
            return Err(format!("{at}: {id}: an earlier deployment of the model has a different mode"));
        }
        let max_requests_per_minute = self.count(&mut parameters, "rpm", &COUNTS);
        let max_concurrent = self.count(&mut parameters, "max_parallel_requests", &COUNTS);
        let weight =
            parameters.take("weight").and_then(|weight| self.noted(weight.number("a number", &WEIGHTS)));
        // Only text has one.
        let default_max_tokens = match makes {
            None => self.count(&mut parameters, "max_tokens", &COUNTS),
            Some(_) => None,
        };
        let order = self.count(&mut parameters, "order", &RANKS).unwrap_or(LAST);
        let timeout_s = parameters.take("timeout").and_then(|timeout| self.time_s(&timeout));
        let region = parameters.take("region_name").and_then(|region| self.noted(region.text()));
        let price = self.price(&id, &mut parameters, &mut info);
        let given = parameters.take("api_key");
        // A model's own rate limit requires a separate upstream.
        let alone = max_requests_per_minute.is_some() || max_concurrent.is_some();
        let own = provider.name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let key = match given {
            // Not the provider's usual variable: that may contain another host's key.
            Some(key) => self.variable(&key, &format!("UPSTREAM_{own}_API_KEY")),
            None => provider.key_variable.map(str::to_owned),
        };
        let is_signed = provider.is_signed && key.is_none();
        let upstream = self.upstream(
            Upstream {
                name: provider.name,
                kind: provider.kind,
                preset: provider.preset,
                is_signed,
                base_url: provider.base_url,
                key,
                timeout_s: timeout_s.or(self.timeout_s),
                max_concurrent,
                max_requests_per_minute,
                region,
            },
            alone,
        );
        let target = ImportedTarget { upstream, model, weight: thousandths(weight), order, price };
        let position = *self.by_id.entry(id.clone()).or_insert_with(|| {
            self.plan.models.push(Model { id, makes, ..Model::default() });
            self.plan.models.len() - 1
        });
        self.plan.models[position].targets.push(target);
        self.limit(position, default_max_tokens, &at);
        for section in [parameters, info, deployment] {
            self.leave_rest(section);
        }
        Ok(())
    }

    /// Deployments of one model may differ in the limit for requests that set none; a model of ours has one.
    fn limit(&mut self, position: usize, max_tokens: Option<u64>, at: &str) {
        let model = &mut self.plan.models[position];
        let is_first = model.targets.len() == 1;
        if is_first {
            model.default_max_tokens = max_tokens;
        } else if model.default_max_tokens != max_tokens {
            self.leave(format!(
                "{at}.litellm_params.max_tokens: an earlier deployment of the model has a different value"
            ));
        }
    }

    fn count(&mut self, members: &mut Section, name: &str, range: &RangeInclusive<u64>) -> Option<u64> {
        members.take(name).and_then(|count| self.noted(count.number("a whole number", range)))
    }

    fn time_s(&mut self, time: &Setting) -> Option<f64> {
        let time = self.noted(time.number("a number of seconds", &TIMES_S))?;
        Some((time * 1e3).round() / 1e3)
    }

    /// The token prices of a deployment, from its parameters or from its model info.
    fn price(&mut self, model: &str, parameters: &mut Section, info: &mut Section) -> Option<Price> {
        let mut given = |name: &str| [parameters.take(name), info.take(name)];
        let (input, output) = (given("input_cost_per_token"), given("output_cost_per_token"));
        let cached = [given("cache_read_input_token_cost"), given("cache_creation_input_token_cost")];
        let (input, output) = (self.per_million(input), self.per_million(output));
        if input.is_none() && output.is_none() {
            for cost in cached.into_iter().flatten().flatten() {
                self.leave(format!("{}: it needs input_cost_per_token", cost.path));
            }
            return None;
        }
        // LiteLLM may take the other one from its own price list.
        for (side_price, side) in [(input, "input"), (output, "output")] {
            if side_price.is_none() {
                self.note(format!(
                    "the model {model} has no {side}_cost_per_token, so its {side} counts as free: add it to the price"
                ));
            }
        }
        let [cached_input, cache_write] = cached.map(|given| self.per_million(given));
        let (input, output) = (input.unwrap_or(0.0), output.unwrap_or(0.0));
        Some(Price { input, output, cached_input, cache_write })
    }

    /// The cost of a million tokens, from the first setting that states the cost of one.
    fn per_million(&mut self, given: [Option<Setting>; 2]) -> Option<f64> {
        let cost =
            given.into_iter().flatten().find_map(|cost| self.noted(cost.number("a number", &COSTS)))?;
        // Rounding removes the conversion error.
        Some((cost * 1e12).round() / 1e6)
    }

    /// Converts the orders and weights of the file to ours. In the source, a deployment without an order comes after
    /// those with one. Within an order, one without a weight, or with weight 0, comes after those with one.
    fn rank(&mut self) {
        let mut behind = Vec::new();
        for model in &mut self.plan.models {
            let weighted = model.targets.iter().filter(|target| target.weight > 0);
            let weighted: HashSet<u64> = weighted.map(|target| target.order).collect();
            let place = |target: &ImportedTarget| {
                (target.order, target.weight == 0 && weighted.contains(&target.order))
            };
            let places: BTreeSet<(u64, bool)> = model.targets.iter().map(place).collect();
            if places.iter().any(|(_, is_behind)| *is_behind) {
                behind.push(model.id.clone());
            }
            let orders: HashMap<(u64, bool), u64> = places.into_iter().zip(0..).collect();
            for target in &mut model.targets {
                target.order = orders[&place(target)];
            }
            // Whole numbers are kept; fractions keep their proportions.
            let divisor =
                model.targets.iter().map(|target| target.weight).fold(THOUSANDTHS, greatest_divisor);
            for target in &mut model.targets {
                target.weight = (target.weight / divisor).max(1);
            }
        }
        for id in behind {
            self.note(format!(
                "the model {id}: a deployment without a weight, or with weight 0, is only used when those with one fail"
            ));
        }
    }

    /// The name of an equivalent upstream, which is added if there is none.
    fn upstream(&mut self, mut upstream: Upstream, alone: bool) -> String {
        let own = upstream.name.clone();
        let same = |known: &&Upstream| {
            let known_by =
                known.name.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
            known_by
                && Upstream { name: String::new(), ..(*known).clone() }
                    == Upstream { name: String::new(), ..upstream.clone() }
        };
        if let Some(known) = self.plan.upstreams.iter().find(same).filter(|_| !alone) {
            return known.name.clone();
        }
        let mut number = 2;
        while self.plan.upstreams.iter().any(|known| known.name == upstream.name) {
            upstream.name = format!("{own}-{number}");
            number += 1;
        }
        let name = upstream.name.clone();
        self.plan.upstreams.push(upstream);
        name
    }

    fn aliases(&mut self, aliases: Setting) {
        let aliases = self.noted(aliases.section()).unwrap_or_default();
        for (alias, model) in aliases.rest() {
            if let Err(why) = self.alias(alias, model) {
                self.leave(why);
            }
        }
    }

    fn alias(&mut self, alias: String, model: Setting) -> Result<(), String> {
        let path = model.path.clone();
        // Either the model, or an object that also states whether the alias is listed.
        let model = if model.is_object() {
            let mut members = model.section()?;
            let model = members.take("model").ok_or_else(|| format!("{path}: names no model"))?;
            self.leave_rest(members);
            model
        } else {
            model
        };
        let position = self.position(&model)?;
        check_model_id(&alias).map_err(|why| format!("{path}: {why}"))?;
        if self.by_id.contains_key(&alias) {
            return Err(format!("{path}: a model with this name exists"));
        }
        self.plan.models[position].aliases.push(alias.clone());
        self.by_id.insert(alias, position);
        Ok(())
    }

    /// The model that a setting names.
    fn position(&self, model: &Setting) -> Result<usize, String> {
        let id = model.text()?;
        self.by_id.get(&id).copied().ok_or_else(|| format!("{}: the result has no model {id}", model.path))
    }

    /// `lists`: each is `[{ model: [others] }, …]`; `*` means the models that have no fallbacks of their own, as does
    /// `default`, which takes precedence.
    fn fallbacks(&mut self, lists: Vec<Setting>, default: Option<Setting>) {
        let (mut have_own, mut of_the_rest) = (HashSet::new(), Vec::new());
        for list in lists {
            for item in self.noted(list.list()).unwrap_or_default() {
                let members = self.noted(item.section()).unwrap_or_default();
                for (id, others) in members.rest() {
                    let path = others.path.clone();
                    let others = self.others(others);
                    match self.by_id.get(&id).copied() {
                        Some(position) => {
                            self.fall_back(position, &others);
                            have_own.insert(position);
                        }
                        None if id == "*" => of_the_rest = others,
                        None => self.leave(format!("{path}: the result has no model {id}")),
                    }
                }
            }
        }
        if let Some(list) = default {
            of_the_rest = self.others(list);
        }
        for position in (0..self.plan.models.len()).filter(|position| !have_own.contains(position)) {
            self.fall_back(position, &of_the_rest);
        }
    }

    /// The models that a list names, each with its position in the file.
    fn others(&mut self, list: Setting) -> Vec<(String, usize)> {
        let items = self.noted(list.list()).unwrap_or_default();
        let other = |item: Setting| self.noted(self.position(&item)).map(|position| (item.path, position));
        items.into_iter().filter_map(other).collect()
    }

    /// Appends the targets of other models to those of a model.
    fn fall_back(&mut self, position: usize, others: &[(String, usize)]) {
        for (path, behind) in others {
            let (model, other) = (&self.plan.models[position], &self.plan.models[*behind]);
            if *behind == position {
                continue;
            }
            if other.makes != model.makes {
                self.leave(format!(
                    "{path}: the output of {} differs in kind from that of {}",
                    other.id, model.id
                ));
                continue;
            }
            let after = model.targets.iter().map(|target| target.order).max().unwrap_or(0);
            // The model's own targets are not added again as fallbacks.
            let mut targets = other.targets.clone();
            targets.retain(|target| !model.targets.iter().any(|known| same_place(known, target)));
            for target in &mut targets {
                target.order += after + 1;
            }
            self.plan.models[position].targets.extend(targets);
        }
    }

    /// The variable for a key: the one that it refers to, or one that the operator must set. Two keys never share
    /// one.
    fn variable(&mut self, key: &Setting, own: &str) -> Option<String> {
        let key = match self.noted(key.key())? {
            Key::Variable(name) => return Some(name),
            Key::Itself(key) => key,
        };
        if let Some(known) = self.variables.get(&key) {
            return Some(known.clone());
        }
        let mut name = own.to_owned();
        let mut number = 2;
        while self.variables.values().any(|known| *known == name) {
            name = format!("{own}_{number}");
            number += 1;
        }
        self.variables.insert(key, name.clone());
        self.note(format!("set the variable {name}: its key is written in the file and was not copied"));
        Some(name)
    }

    /// The value of a setting, or none with a note.
    fn noted<T>(&mut self, read: Result<T, String>) -> Option<T> {
        read.map_err(|why| self.leave(why)).ok()
    }

    fn leave_rest(&mut self, members: Section) {
        for (_, setting) in members.rest() {
            self.leave(setting.path);
        }
    }

    fn leave(&mut self, what: impl Display) {
        self.note(format!("has no counterpart: {what}"));
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < MAX_LISTED {
            self.notes.push(note);
        } else {
            self.unlisted += 1;
        }
    }

    fn finish(self, source: &str) -> Imported {
        let mut notes = self.notes;
        if self.plan.models.is_empty() {
            notes.insert(
                0,
                "no deployment was imported: a gateway with this file simulates a provider".to_owned(),
            );
        }
        if self.unlisted > 0 {
            notes.push(format!("and {} more", self.unlisted));
        }
        Imported { text: self.plan.to_toml(source), notes }
    }
}

/// Thousandths per unit.
const THOUSANDTHS: u64 = 1000;

/// A weight in thousandths as a whole number, so that fractions keep their proportions.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a weight is bounded"
)]
fn thousandths(weight: Option<f64>) -> u64 {
    weight.map_or(0, |weight| (weight * THOUSANDTHS as f64).ceil() as u64)
}

fn greatest_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_divisor(other, one % other) }
}

/// What a model without a mode generates, judged by the names that its vendor gives to models. `None`: text.
fn made_by(model: &str) -> Option<&'static str> {
    let begins = |names: &[&str]| names.iter().any(|name| model.starts_with(name));
    match () {
        () if begins(&["dall-e", "gpt-image", "imagen"]) => Some("image"),
        () if model.contains("embed") => Some("embedding"),
        () if model.contains("rerank") => Some("rerank"),
        () if begins(&["omni-moderation", "text-moderation", "mistral-moderation"]) => Some("moderation"),
        () if begins(&["tts-"]) || model.ends_with("-tts") => Some("speech"),
        () if begins(&["whisper"]) || model.ends_with("-transcribe") => Some("transcription"),
        () => None,
    }
}

fn same_place(one: &ImportedTarget, other: &ImportedTarget) -> bool {
    one.upstream == other.upstream && one.model == other.model
}
