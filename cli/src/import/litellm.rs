//! Reads a config.yaml of LiteLLM's proxy: what each deployment, alias, fallback and key becomes here. What is not taken
//! is listed by its path.

mod providers;

use std::collections::HashMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use self::providers::provider;
use super::writing::{Model, Plan, Target, Upstream};

/// Maximum number of deployments.
const MOST: usize = 10_000;
/// Maximum number of notes.
const MOST_LISTED: usize = 200;
/// How a text names a variable.
const VARIABLE: &str = "os.environ/";
/// Variable of the key of clients, where the file holds the key itself.
const KEY_VARIABLE: &str = "GATEWRIGHT_SERVE_KEY";

/// The result of an import.
#[derive(Debug)]
pub(super) struct Imported {
    /// A configuration file.
    pub(super) text: String,
    /// What has no counterpart, or needs the operator's hand: a line each.
    pub(super) notes: Vec<String>,
}

/// Errors: the text is not YAML, exceeds the bounds, or has no list of models.
pub(super) fn import(yaml: &str) -> Result<Imported, String> {
    let document: Value = serde_saphyr::from_str_with_options(yaml, bounds())
        // Without an excerpt of the file: it may hold keys.
        .map_err(|error| format!("it is not YAML that can be read: {}", error.without_snippet()))?;
    let Value::Object(mut document) = document else { return Err("it holds no settings".to_owned()) };
    let Some(Value::Array(deployments)) = document.remove("model_list") else {
        return Err("it has no model_list".to_owned());
    };
    if deployments.len() > MOST {
        return Err(format!("its model_list has more than {MOST} entries"));
    }
    let mut import = Import::default();
    let mut settings = ["router_settings", "litellm_settings", "general_settings"]
        .map(|name| (name, object(document.remove(name))));
    let mut take = |name: &str| settings.iter_mut().find_map(|(_, members)| members.remove(name));
    import.timeout_s = take("request_timeout").or_else(|| take("timeout")).as_ref().and_then(Value::as_f64);
    let key = take("master_key");
    let aliases = object(take("model_group_alias"));
    let fallbacks = [take("fallbacks"), take("fallbacks")];
    let default_fallbacks = take("default_fallbacks");

    for (at, deployment) in deployments.into_iter().enumerate() {
        import.deployment(&format!("model_list[{at}]"), object(Some(deployment)));
    }
    import.aliases(aliases);
    for list in fallbacks.into_iter().flatten() {
        import.fallbacks(&list);
    }
    if let Some(list) = default_fallbacks {
        let others = texts(&list);
        for id in import.plan.models.iter().map(|model| model.id.clone()).collect::<Vec<_>>() {
            import.fall_back(&id, &others);
        }
    }
    if let Some(key) = key {
        import.plan.key = import.variable(&key, KEY_VARIABLE);
    }
    for (name, members) in settings {
        import.leave_all(name, &members);
    }
    import.leave_all("", &document);
    Ok(Imported { text: import.plan.to_toml("config.yaml"), notes: import.notes })
}

/// Aliases may not make more of a file than it is.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_events: 100_000, max_nodes: 100_000, max_depth: 32, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
    }
}

#[derive(Default)]
struct Import {
    plan: Plan,
    /// Position of a model by its id.
    by_id: HashMap<String, usize>,
    timeout_s: Option<f64>,
    /// Variables for keys that stand in the file.
    variables: HashMap<String, String>,
    notes: Vec<String>,
}

impl Import {
    fn deployment(&mut self, at: &str, mut deployment: Map<String, Value>) {
        let mut parameters = object(deployment.remove("litellm_params"));
        let mut info = object(deployment.remove("model_info"));
        let id = text(deployment.remove("model_name"));
        let called = text(parameters.remove("model"));
        let (Some(id), Some(called)) = (id, called) else {
            return self.leave(format!("{at}: it has no model_name or no litellm_params.model"));
        };
        if id.contains('*') || called.contains('*') {
            return self.leave(format!("{at}: {id}: a model for many names; list each model"));
        }
        let makes = match text(info.remove("mode")).as_deref() {
            None | Some("chat" | "completion" | "responses") => None,
            Some("image_generation") => Some("image"),
            Some("video_generation") => Some("video"),
            Some(mode) => return self.leave(format!("{at}: {id}: a model of the mode {mode}")),
        };
        let base = text(parameters.remove("api_base")).or_else(|| text(parameters.remove("base_url")));
        let (provider, model) = match provider(&called, base.as_deref()) {
            Ok(found) => found,
            Err(why) => return self.leave(format!("{at}: {id}: {why}")),
        };
        if makes.is_some() && matches!(provider.kind, "messages" | "native") {
            return self
                .leave(format!("{at}: {id}: images and videos of a provider of kind {}", provider.kind));
        }
        if self.by_id.get(&id).is_some_and(|position| self.plan.models[*position].makes != makes) {
            return self.leave(format!("{at}: {id}: an earlier deployment of the model has another mode"));
        }
        let mut count = |name: &str| parameters.remove(name).as_ref().and_then(Value::as_u64);
        let (max_requests_per_minute, max_concurrent) = (count("rpm"), count("max_parallel_requests"));
        let (weight, order) = (count("weight").unwrap_or(1).max(1), count("order").unwrap_or(0));
        let timeout_s = parameters.remove("timeout").as_ref().and_then(Value::as_f64).or(self.timeout_s);
        let region = text(parameters.remove("region_name"));
        let mut cost = |name: &str| {
            let of_info = info.remove(name);
            parameters.remove(name).or(of_info).as_ref().and_then(Value::as_f64)
        };
        let price = match (cost("input_cost_per_token"), cost("output_cost_per_token")) {
            (None, None) => None,
            (input, output) => Some((per_million(input), per_million(output))),
        };
        let given = parameters.remove("api_key");
        // A model's own rate is that of an upstream of its own.
        let alone = max_requests_per_minute.is_some() || max_concurrent.is_some();
        let own = provider.name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let key = match given {
            // Not the provider's usual variable: the key of another host may be in that.
            Some(key) => self.variable(&key, &format!("UPSTREAM_{own}_API_KEY")),
            None => provider.key_variable.map(str::to_owned),
        };
        let upstream = self.upstream(
            Upstream {
                name: provider.name,
                kind: provider.kind,
                base_url: provider.base_url,
                key,
                timeout_s,
                max_concurrent,
                max_requests_per_minute,
                region,
            },
            alone,
        );
        let target = Target { upstream, model, weight, order, price };
        let position = *self.by_id.entry(id.clone()).or_insert_with(|| {
            self.plan.models.push(Model { id, makes, aliases: Vec::new(), targets: Vec::new() });
            self.plan.models.len() - 1
        });
        self.plan.models[position].targets.push(target);
        self.leave_all(&format!("{at}.litellm_params"), &parameters);
        self.leave_all(&format!("{at}.model_info"), &info);
        self.leave_all(at, &deployment);
    }

    /// The name of an upstream like this one, which is added if there is none.
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

    fn aliases(&mut self, aliases: Map<String, Value>) {
        for (alias, model) in aliases {
            // Either the model, or an object that also says whether the alias is listed.
            let model = match model {
                Value::Object(mut members) => text(members.remove("model")),
                model => text(Some(model)),
            };
            let position = model.and_then(|model| self.by_id.get(&model).copied());
            match position {
                Some(position) if !self.by_id.contains_key(&alias) => {
                    self.plan.models[position].aliases.push(alias.clone());
                    self.by_id.insert(alias, position);
                }
                _ => self.leave(format!("model_group_alias.{alias}: its model is not in model_list")),
            }
        }
    }

    /// `[{ model: [others] }, …]`
    fn fallbacks(&mut self, list: &Value) {
        for (id, others) in list.as_array().into_iter().flatten().filter_map(Value::as_object).flatten() {
            if id == "*" {
                let ids: Vec<String> = self.plan.models.iter().map(|model| model.id.clone()).collect();
                for id in ids {
                    self.fall_back(&id, &texts(others));
                }
            } else {
                self.fall_back(id, &texts(others));
            }
        }
    }

    /// Puts the targets of other models behind those of a model.
    fn fall_back(&mut self, id: &str, others: &[String]) {
        let Some(&position) = self.by_id.get(id) else {
            return self.leave(format!("fallbacks.{id}: it is not in model_list"));
        };
        for other in others {
            let Some(&behind) = self.by_id.get(other) else {
                self.leave(format!("fallbacks.{id}: {other} is not in model_list"));
                continue;
            };
            if behind == position {
                continue;
            }
            if self.plan.models[behind].makes != self.plan.models[position].makes {
                self.leave(format!("fallbacks.{id}: {other} makes something else"));
                continue;
            }
            let after =
                self.plan.models[position].targets.iter().map(|target| target.order).max().unwrap_or(0);
            // Those that it falls back on itself are not its own.
            let mut targets = self.plan.models[behind].targets.clone();
            targets.retain(|target| {
                !self.plan.models[position].targets.iter().any(|known| same_place(known, target))
            });
            for target in &mut targets {
                target.order += after + 1;
            }
            self.plan.models[position].targets.extend(targets);
        }
    }

    /// The variable of a key: the one that it names, or one that the operator has to set. Two keys never share one.
    fn variable(&mut self, key: &Value, own: &str) -> Option<String> {
        let key = key.as_str().filter(|key| !key.is_empty())?;
        if let Some(name) = key.strip_prefix(VARIABLE) {
            return Some(name.to_owned());
        }
        if let Some(known) = self.variables.get(key) {
            return Some(known.clone());
        }
        let mut name = own.to_owned();
        let mut number = 2;
        while self.variables.values().any(|known| *known == name) {
            name = format!("{own}_{number}");
            number += 1;
        }
        self.variables.insert(key.to_owned(), name.clone());
        self.note(format!("set the variable {name}: its key stands in the file and is not carried over"));
        Some(name)
    }

    fn leave_all(&mut self, at: &str, members: &Map<String, Value>) {
        for name in members.keys() {
            let dot = if at.is_empty() { "" } else { "." };
            self.leave(format!("{at}{dot}{name}"));
        }
    }

    fn leave(&mut self, what: impl Display) {
        self.note(format!("has no counterpart: {what}"));
    }

    fn note(&mut self, note: String) {
        match self.notes.len() {
            count if count < MOST_LISTED => self.notes.push(note),
            MOST_LISTED => self.notes.push("and more".to_owned()),
            _ => {}
        }
    }
}

fn same_place(one: &Target, other: &Target) -> bool {
    one.upstream == other.upstream && one.model == other.model
}

/// Prices are for one token there; rounding takes what the conversion adds.
fn per_million(cost: Option<f64>) -> f64 {
    let cost = cost.unwrap_or(0.0) * 1e6;
    (cost * 1e6).round() / 1e6
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn text(value: Option<Value>) -> Option<String> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| text(Some(item.clone()))).collect()
}
