//! Cost budgets that don't cover everything their keys may use.

use gatewright_config::Config;
use gatewright_store::Key;

/// The models whose requests don't count against the cost budget of a key, because the price of a target is unknown. Empty
/// for keys without such a budget.
pub fn models_outside_budget<'c>(config: &'c Config, key: &Key) -> Vec<&'c str> {
    if key.limits.cost_per_day.or(key.limits.cost_per_month).is_none() {
        return Vec::new();
    }
    let is_allowed = |id: &str| key.scopes.allow_model(id);
    let models = config.unpriced_targets().map(|(model, _)| model);
    let allowed =
        models.filter(|model| is_allowed(&model.id) || model.aliases.iter().any(|alias| is_allowed(alias)));
    let mut ids: Vec<&str> = allowed.map(|model| model.id.as_str()).collect();
    // The targets of one model are adjacent.
    ids.dedup();
    ids
}

#[cfg(test)]
mod tests {
    use gatewright_store::NewKey;

    use super::*;
    use gatewright_config::{Kind, ModelConfig, ModelPrice, TargetConfig, UpstreamConfig};

    fn config() -> Config {
        let mut priced = TargetConfig::new("one", "priced");
        priced.price = Some(ModelPrice::new(1.0, 1.0));
        let mut named = ModelConfig::new("named", "family_one", TargetConfig::new("one", "named"));
        named.aliases.push("alias".to_owned());
        named.targets.push(TargetConfig::new("one", "other"));
        Config {
            upstreams: vec![
                UpstreamConfig::new("one", Kind::Chat, "https://one.example"),
                UpstreamConfig::new("embedded", Kind::Simulator, ""),
            ],
            models: vec![
                ModelConfig::new("priced", "family_one", priced),
                named,
                ModelConfig::new("simulated", "family_one", TargetConfig::new("embedded", "model-sol")),
            ],
            ..Config::default()
        }
    }

    #[test]
    fn cost_budget_reports_the_unpriced_models_its_key_may_use() {
        let config = config();
        let outside = |cost: Option<f64>, models: &[&str]| {
            let mut key = NewKey::new("k").issue(0);
            key.limits.cost_per_day = cost;
            key.scopes.models = models.iter().map(|&id| id.to_owned()).collect();
            models_outside_budget(&config, &key)
        };
        assert_eq!(outside(Some(1.0), &[]), ["named"]);
        assert_eq!(outside(Some(1.0), &["alias"]), ["named"]);
        assert_eq!(outside(Some(1.0), &["priced", "simulated"]), [""; 0]);
        assert_eq!(outside(None, &[]), [""; 0]);
    }
}
