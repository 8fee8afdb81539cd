//! The families of a configuration file.

use std::collections::HashSet;

use gatewright::catalog;
use gatewright::did_you_mean::suggestion;
use indexmap::IndexMap;

use super::super::file::Family;
use super::super::source_map::Path;
use super::super::upstreams::ModelConfig;
use super::ConfigResolver;
use crate::MEDIA_FAMILY;

/// Longest id of a family.
const MAX_ID_CHARS: usize = 64;

/// Gives a model its family's settings.
pub(super) fn of_family(model: &mut ModelConfig, families: &IndexMap<String, Family>) {
    if let Some(family) = families.get(&model.family) {
        model.owner.clone_from(&family.name);
        model.take(family.translate_responses, family.default_max_tokens, family.strict, family.thinking);
    }
}

impl ConfigResolver<'_> {
    /// Family ids must be words, and each family needs a model.
    pub(super) fn families(&mut self, families: &IndexMap<String, Family>, models: &[ModelConfig]) {
        let used: HashSet<&str> = models.iter().map(|model| model.family.as_str()).collect();
        for id in families.keys() {
            let at = Path::default().to("families").to(&**id);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if id.is_empty() || id.len() > MAX_ID_CHARS || !id.bytes().all(plain) {
                let message =
                    format!("the id must be letters, digits, -, _ and ., at most {MAX_ID_CHARS} of them");
                self.wrong(at, message);
            } else if !used.contains(id.as_str()) {
                self.warn(at, "no model belongs to this family");
            }
        }
    }

    /// If a file has families, those that its models name must be among them or in the catalog. Otherwise, a family is
    /// just a name.
    pub(super) fn family(&mut self, named: &str, families: &IndexMap<String, Family>, at: &Path) {
        let of_catalog = || catalog::FAMILIES.iter().map(|family| family.id).chain([MEDIA_FAMILY]);
        if families.is_empty() || families.contains_key(named) || of_catalog().any(|id| id == named) {
            return;
        }
        let known: Vec<&str> = families.keys().map(String::as_str).chain(of_catalog()).collect();
        self.wrong(at.clone(), format!("unknown family{}", suggestion(named, &known)));
    }
}
