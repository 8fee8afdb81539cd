//! The models of a configuration file, and what they and the upstreams have to do with each other.

use std::collections::HashMap;

use gatewright::catalog;
use indexmap::IndexMap;

use super::super::file;
use super::super::places::Path;
use super::super::schema::offer;
use super::super::upstreams::{Kind, Model, Price, Target, Upstream};
use super::Settling;
use crate::config::{Config, SIMULATOR};

/// Longest id of a model.
const LONGEST_ID: usize = 256;

impl Settling<'_> {
    pub(super) fn upstreams_and_models(
        &mut self,
        config: &mut Config,
        upstreams: IndexMap<String, file::Upstream>,
        models: IndexMap<String, file::Model>,
    ) {
        let root = Path::default();
        if !upstreams.is_empty() {
            if models.is_empty() {
                let message =
                    "there is no model, so the upstreams would get no request; add [models.ID] with targets";
                self.wrong(root.to("upstreams"), message);
            }
            let at = root.to("upstreams");
            let upstreams = upstreams.into_iter();
            config.upstreams =
                upstreams.map(|(name, upstream)| self.upstream(&name, upstream, &at.to(&*name))).collect();
        }
        if !models.is_empty() {
            self.ids(&models, &root.to("models"));
            let models = models.into_iter();
            config.models = models.map(|(id, model)| self.model(id, model, &config.upstreams)).collect();
        }
        for (index, upstream) in config.upstreams.iter().enumerate() {
            let used = config.models.iter().flat_map(|model| &model.targets);
            if index < 1000 && used.clone().all(|target| target.upstream != upstream.name) {
                self.warn(root.to("upstreams").to(&*upstream.name), "no model has it as a target");
            }
        }
    }

    /// Ids and aliases can be sent, and each of them means one model.
    fn ids(&mut self, models: &IndexMap<String, file::Model>, at: &Path) {
        let mut known: HashMap<&str, Path> = HashMap::new();
        for id in models.keys() {
            known.insert(id, at.to(&**id));
        }
        for (id, model) in models {
            let at = at.to(&**id);
            if !is_id(id) {
                self.wrong(at.clone(), BAD_ID);
            }
            for (index, alias) in model.aliases.iter().enumerate() {
                let at = at.to("aliases").to(index);
                if !is_id(alias) {
                    self.wrong(at.clone(), BAD_ID);
                }
                if let Some(other) = known.insert(alias, at.clone()) {
                    self.wrong(at, format!("{alias:?} already is at {other}; an id means one model"));
                }
            }
        }
    }

    fn model(&mut self, id: String, file: file::Model, upstreams: &[Upstream]) -> Model {
        let at = Path::default().to("models").to(&*id);
        let targets: Vec<Target> = file
            .targets
            .into_iter()
            .enumerate()
            .map(|(index, target)| self.target(&id, target, upstreams, &at.to("targets").to(index)))
            .collect();
        let kind = targets
            .first()
            .and_then(|target| upstreams.iter().find(|upstream| upstream.name == target.upstream))
            .map(|upstream| upstream.kind);
        let family = file.family.unwrap_or_else(|| family(&id, kind).to_owned());
        Model {
            aliases: file.aliases,
            family,
            targets,
            translate_responses: file.translate_responses,
            default_max_tokens: file.default_max_tokens.map_or(Model::DEFAULT_MAX_TOKENS, u64::from),
            strict: file.strict,
            id,
        }
    }

    fn target(&mut self, id: &str, file: file::Target, upstreams: &[Upstream], at: &Path) -> Target {
        if !upstreams.iter().any(|upstream| upstream.name == file.upstream) {
            let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
            let message = format!("there is no upstream of this name{}", offer(&file.upstream, &names));
            self.wrong(at.to("upstream"), message);
        }
        let mut target = Target::new(file.upstream, file.model.unwrap_or_else(|| id.to_owned()));
        target.weight = file.weight.unwrap_or(target.weight);
        target.order = file.order.unwrap_or(target.order);
        target.price = file.price.map(|price| Price {
            input: price.input,
            output: price.output,
            cached_input: price.cached_input,
            cache_write: price.cache_write,
        });
        target
    }
}

const BAD_ID: &str = "a model id must be visible ASCII without \\, % and .., at most 256 characters, \
                      with something between its slashes";

/// Whether a client can send a model id, also as a part of a path.
fn is_id(id: &str) -> bool {
    id.len() <= LONGEST_ID
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'%'))
        && !id.contains("..")
        && id.split('/').all(|part| !matches!(part, "" | "."))
}

/// The family of a model that states none: as in the catalog, else the one whose provider speaks this way.
fn family(id: &str, kind: Option<Kind>) -> &'static str {
    match (catalog::TEXT_MODELS.iter().find(|model| model.id == id), kind) {
        (Some(model), _) => model.family,
        (None, Some(Kind::Messages)) => "family_two",
        (None, Some(Kind::Native)) => "family_three",
        (None, Some(Kind::Simulator)) => SIMULATOR,
        (None, _) => "family_one",
    }
}
