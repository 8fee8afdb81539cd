//! The models of a configuration file, and how they and the upstreams relate.

use std::collections::HashMap;

use gatewright::catalog;
use gatewright::did_you_mean::suggestion;
use indexmap::IndexMap;

use super::super::file;
use super::super::presets::preset;
use super::super::prices::{InvalidPrice, ListedModel, price_of};
use super::super::source_map::Path;
use super::super::upstreams::{Kind, ModelConfig, ModelKind, TargetConfig, UpstreamConfig};
use super::ConfigResolver;
use super::families::of_family;
use crate::{Config, MEDIA_FAMILY, ModelPrice, SIMULATOR};

/// Maximum number of models without a price that a warning names.
const MAX_UNPRICED_NAMED: usize = 10;
/// Longest id of a model.
const MAX_ID_CHARS: usize = 256;

impl ConfigResolver<'_> {
    pub(super) fn upstreams_and_models(
        &mut self,
        config: &mut Config,
        upstreams: IndexMap<String, file::Upstream>,
        families: &IndexMap<String, file::Family>,
        models: IndexMap<String, file::Model>,
    ) {
        let root = Path::default();
        let models = if models.is_empty() { known_models(&upstreams) } else { models };
        let providers = upstreams.iter().filter_map(|(name, upstream)| {
            upstream.provider.as_ref().map(|provider| (name.clone(), provider.0.clone()))
        });
        self.providers = providers.collect();
        if !upstreams.is_empty() {
            if models.is_empty() {
                let message =
                    "no model is configured, so the upstreams get no requests; add [models.ID] with targets";
                self.wrong(root.to("upstreams"), message);
            }
            let at = root.to("upstreams");
            let upstreams = upstreams.into_iter();
            config.upstreams =
                upstreams.map(|(name, upstream)| self.upstream(&name, upstream, &at.to(&*name))).collect();
        }
        if models.is_empty() {
            config.models.iter_mut().for_each(|model| of_family(model, families));
        } else {
            self.ids(&models, &root.to("models"));
            let models = models.into_iter();
            config.models =
                models.map(|(id, model)| self.model(id, model, &config.upstreams, families)).collect();
        }
        self.note_unpriced(config);
        self.families(families, &config.models);
        for (index, upstream) in config.upstreams.iter().enumerate() {
            let used = config.models.iter().flat_map(|model| &model.targets);
            if index < 1000 && used.clone().all(|target| target.upstream != upstream.name) {
                self.warn(root.to("upstreams").to(&*upstream.name), "no model has it as a target");
            }
        }
    }

    /// Ids and aliases must be sendable, and each must mean one model.
    fn ids(&mut self, models: &IndexMap<String, file::Model>, at: &Path) {
        let mut known: HashMap<&str, Path> = HashMap::new();
        for id in models.keys() {
            known.insert(id, at.to(&**id));
        }
        for (id, model) in models {
            let at = at.to(&**id);
            if let Err(why) = check_model_id(id) {
                self.wrong(at.clone(), why);
            }
            for (index, alias) in model.aliases.iter().enumerate() {
                let at = at.to("aliases").to(index);
                if let Err(why) = check_model_id(alias) {
                    self.wrong(at.clone(), why);
                }
                if let Some(other) = known.insert(alias, at.clone()) {
                    self.wrong(at, format!("{alias:?} is already used by {other}; an id must be unique"));
                }
            }
        }
    }

    fn model(
        &mut self,
        id: String,
        file: file::Model,
        upstreams: &[UpstreamConfig],
        families: &IndexMap<String, file::Family>,
    ) -> ModelConfig {
        let at = Path::default().to("models").to(&*id);
        let (kind, limits) = self.kind_and_limits(&id, &file, &at);
        let targets: Vec<TargetConfig> = file
            .targets
            .into_iter()
            .enumerate()
            .map(|(index, target)| self.target(&id, target, upstreams, &at.to("targets").to(index)))
            .collect();
        let spoken: Vec<Option<Kind>> = targets
            .iter()
            .map(|target| upstreams.iter().find(|upstream| upstream.name == target.upstream))
            .map(|upstream| upstream.map(|upstream| upstream.kind))
            .collect();
        for (index, spoken) in spoken.iter().enumerate() {
            if let Some(refusing) = spoken.filter(|spoken| !spoken.serves(kind)) {
                let message = format!("this upstream {}", refusing.refusal(kind));
                self.wrong(at.to("targets").to(index).to("upstream"), message);
            }
        }
        if let Some(named) = &file.family {
            self.family(named, families, &at.to("family"));
        }
        let family = file.family.unwrap_or_else(|| match kind {
            ModelKind::Text => family(&id, spoken.first().copied().flatten()).to_owned(),
            _ => MEDIA_FAMILY.to_owned(),
        });
        let mut model =
            ModelConfig { aliases: file.aliases, kind, limits, ..ModelConfig::of(id, family, targets) };
        of_family(&mut model, families);
        model.take(file.translate_responses, file.default_max_tokens, file.strict, file.thinking);
        model
    }

    /// What a model generates, and whose limits apply to it.
    fn kind_and_limits(&mut self, id: &str, file: &file::Model, at: &Path) -> (ModelKind, Option<String>) {
        let limited = file.limits.as_deref().and_then(ModelKind::in_catalog);
        let kind = file.kind.or(limited).or_else(|| ModelKind::in_catalog(id)).unwrap_or(ModelKind::Text);
        let of_kind = |kind: ModelKind| -> Vec<&str> {
            match kind {
                ModelKind::Embedding => catalog::EMBEDDING_MODELS.iter().map(|model| model.id).collect(),
                ModelKind::Text
                | ModelKind::Rerank
                | ModelKind::Moderation
                | ModelKind::Speech
                | ModelKind::Transcription => Vec::new(),
                ModelKind::Image => catalog::IMAGE_MODELS.iter().map(|model| model.id).collect(),
                ModelKind::Video => catalog::VIDEO_MODELS.iter().map(|model| model.id).collect(),
            }
        };
        if let Some(limits) = &file.limits
            && !of_kind(kind).contains(&limits.as_str())
        {
            let known = match kind {
                ModelKind::Text => {
                    [ModelKind::Embedding, ModelKind::Image, ModelKind::Video].map(of_kind).concat()
                }
                kind => of_kind(kind),
            };
            let message = match file.kind {
                Some(ModelKind::Text) => {
                    "is only for embedding, image and video models, but this is a text model".to_owned()
                }
                _ if known.is_empty() => format!("is not for {} models: they have no limits", kind.name()),
                _ => format!("must be a model of the catalog: {}", known.join(", ")),
            };
            self.wrong(at.to("limits"), message);
        }
        if kind != ModelKind::Text {
            for (key, is_set) in [
                ("translate_responses", file.translate_responses.is_some()),
                ("default_max_tokens", file.default_max_tokens.is_some()),
            ] {
                if is_set {
                    self.wrong(at.to(key), "is only for text models");
                }
            }
        }
        (kind, file.limits.clone().or_else(|| ModelConfig::own_limits(id, kind)))
    }

    fn target(
        &mut self,
        id: &str,
        file: file::Target,
        upstreams: &[UpstreamConfig],
        at: &Path,
    ) -> TargetConfig {
        if !upstreams.iter().any(|upstream| upstream.name == file.upstream) {
            let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let message = format!("unknown upstream{}", suggestion(&file.upstream, &names));
            self.wrong(at.to("upstream"), message);
        }
        let mut target = TargetConfig::new(file.upstream, file.model.unwrap_or_else(|| id.to_owned()));
        target.weight = file.weight.unwrap_or(target.weight);
        target.order = file.order.unwrap_or(target.order);
        let listed = self.listed(&target).cloned();
        if let Some(listed) = &listed {
            (target.context, target.max_output) = (listed.context, listed.max_output);
        }
        target.price = match file.price {
            Some(price) => self.price(price, &at.to("price")),
            None => listed.map(|listed| listed.price),
        };
        target
    }

    fn price(&mut self, price: file::Price, at: &Path) -> Option<ModelPrice> {
        let read = price_of(price);
        read.map_err(|InvalidPrice { within, message }| {
            self.wrong(within.iter().fold(at.clone(), |at, step| at.to(*step)), message);
        })
        .ok()
    }

    /// The entry of a target in the price file.
    fn listed(&self, target: &TargetConfig) -> Option<&ListedModel> {
        let provider = self.providers.get(&target.upstream).map(String::as_str);
        self.price_list.as_ref()?.find(&target.upstream, provider, &target.model)
    }

    /// Records the models whose requests have no known cost.
    fn note_unpriced(&mut self, config: &Config) {
        let targets = config.unpriced_targets();
        let mut names: Vec<String> =
            targets.map(|(model, target)| format!("{:?} at {:?}", model.id, target.upstream)).collect();
        let more = names.len().saturating_sub(MAX_UNPRICED_NAMED);
        names.truncate(MAX_UNPRICED_NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        if !names.is_empty() {
            self.unpriced = Some(format!(
                "no price is known for {}: usage counts their requests as unpriced, and cost budgets (cost_per_day, \
                 cost_per_month) do not limit them; set a price on each target, or create a price file with gatewright \
                 prices import and set prices.file; price = {{ input = 0, output = 0 }} means free",
                names.join(", ")
            ));
        }
    }
}

/// The known models of the upstreams' providers, for a file without models. If two upstreams have a model, the later one is
/// the fallback for the earlier one.
fn known_models(upstreams: &IndexMap<String, file::Upstream>) -> IndexMap<String, file::Model> {
    let mut models: IndexMap<String, file::Model> = IndexMap::new();
    for (name, upstream) in upstreams {
        let preset = upstream.provider.as_ref().and_then(|provider| preset(&provider.0).ok());
        let Some(preset) = preset else { continue };
        for (kind, id) in preset.all_models() {
            let model = models.entry(id.to_owned()).or_default();
            model.kind = Some(kind).filter(|kind| *kind != ModelKind::Text);
            let order = u32::try_from(model.targets.len()).ok();
            model.targets.push(file::Target { upstream: name.clone(), order, ..file::Target::default() });
        }
    }
    models
}

const BAD_ID: &str = "a model id must be visible ASCII without \\, % and .., at most 256 characters, \
                      with no empty part between slashes";

/// Whether a model may have an id: clients must be able to send it, also as part of a path. Errors: why not.
pub fn check_model_id(id: &str) -> Result<(), &'static str> {
    let is_id = id.len() <= MAX_ID_CHARS
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'%'))
        && !id.contains("..")
        && id.split('/').all(|part| !matches!(part, "" | "."));
    if is_id { Ok(()) } else { Err(BAD_ID) }
}

/// The family of a model that sets none: the catalog's, otherwise the one whose provider speaks this
/// protocol.
fn family(id: &str, kind: Option<Kind>) -> &'static str {
    match (catalog::TEXT_MODELS.iter().find(|model| model.id == id), kind) {
        (Some(model), _) => model.family,
        (None, Some(Kind::Messages)) => "family_two",
        (None, Some(Kind::Native)) => "family_three",
        (None, Some(Kind::Simulator)) => SIMULATOR,
        (None, _) => "family_one",
    }
}
