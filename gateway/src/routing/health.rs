//! The state of the upstreams for operators: their load, and what keeps requests from them.

use std::collections::BTreeMap;
use std::time::Instant;

use gatewright_config::Kind;
use serde::Serialize;

use super::breaker::Condition;
use super::{Provider, Routes};

/// The current state of an upstream.
#[derive(Debug, Serialize)]
pub(crate) struct Health<'a> {
    pub(crate) name: &'a str,
    kind: Kind,
    region: Option<&'a str>,
    /// Its base URL, which has no secrets; `None`: it runs in this process.
    address: Option<&'a str>,
    /// Number of requests in progress.
    pub(crate) in_flight: usize,
    /// Number of its keys.
    keys: usize,
    pub(crate) models: Vec<ModelHealth<'a>>,
}

/// A model of the gateway that the upstream serves.
#[derive(Debug, Serialize)]
pub(crate) struct ModelHealth<'a> {
    pub(crate) model: &'a str,
    /// The upstream's name for it.
    upstream_model: &'a str,
    pub(crate) breaker: Condition,
    /// Number of resting keys.
    keys_waiting: usize,
}

impl<'a> Health<'a> {
    fn of(provider: &'a Provider) -> Self {
        let upstream = &provider.upstream;
        Self {
            name: &upstream.name,
            kind: upstream.kind,
            region: upstream.region.as_deref(),
            address: (!provider.is_simulator()).then_some(&*upstream.base_url),
            in_flight: provider.load.running(),
            keys: upstream.key_count(),
            models: Vec::new(),
        }
    }
}

impl Routes {
    /// All upstreams by name, with their models in the order of the configuration.
    pub(crate) fn health(&self, now: Instant) -> impl Iterator<Item = Health<'_>> {
        let providers = self.providers.iter();
        let mut upstreams: BTreeMap<&str, Health<'_>> =
            providers.map(|(name, provider)| (name.as_str(), Health::of(provider))).collect();
        for route in &self.listed {
            for destination in &route.destinations {
                let Some(upstream) = upstreams.get_mut(&*destination.provider.upstream.name) else {
                    continue;
                };
                upstream.models.push(ModelHealth {
                    model: &route.id,
                    upstream_model: &destination.model,
                    breaker: destination.breaker.condition(now),
                    keys_waiting: destination.keys.waiting(now),
                });
            }
        }
        upstreams.into_values()
    }
}
