//! Maps models to upstreams: aliases, weights, order, failover and breakers. Works on a snapshot of the configuration and does no
//! I/O; time and randomness are passed in.

mod breaker;
mod health;
mod keys;
mod load;
mod plan;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gatewright::redact::Redactor;
use gatewright::{catalog, limits, operations};
use gatewright_config::{Capabilities, Kind, ModelConfig, ModelKind, TargetConfig, UpstreamConfig};
use gatewright_protocol::conversation::Protocol;

use self::breaker::Breaker;
use self::keys::RestingKeys;
use self::load::Load;
pub(crate) use self::plan::{Plan, SkipReason, Unavailable, UpstreamAttempt};
use crate::observe::Attempts;
use crate::upstream::Endpoint;
use crate::usage::Rates;

/// Maximum number of targets of a model.
const MAX_TARGETS: usize = 64;

/// The models that the gateway offers and where their requests go: replaced as a whole when the configuration changes.
#[derive(Debug)]
pub(crate) struct Routes {
    /// In the order of the configuration.
    listed: Vec<Arc<ModelRoute>>,
    /// By id and alias.
    by_name: HashMap<Arc<str>, Arc<ModelRoute>>,
    providers: HashMap<String, Arc<Provider>>,
}

/// Why a configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct InvalidRoutes(pub(crate) String);

/// A model and its upstreams.
#[derive(Debug)]
pub(crate) struct ModelRoute {
    pub(crate) model: ModelConfig,
    /// The id of the model.
    pub(crate) id: Arc<str>,
    /// Sorted by order.
    destinations: Vec<Arc<Destination>>,
}

/// An upstream and its name for a model. State is kept per pair.
#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) provider: Arc<Provider>,
    /// The upstream's name for the model.
    pub(crate) model: Arc<str>,
    /// What a request costs; `None` if no price is configured.
    pub(crate) rates: Option<Arc<Rates>>,
    weight: u32,
    order: u32,
    breaker: Arc<Breaker>,
    keys: Arc<RestingKeys>,
    pub(crate) attempts: Arc<Attempts>,
}

/// An upstream and its load.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) endpoint: Endpoint,
    upstream: UpstreamConfig,
    load: Arc<Load>,
    /// Whether its server has rejected the `stream_options` that the gateway added.
    refuses_stream_options: AtomicBool,
}

impl Routes {
    /// Errors: a target names an upstream that doesn't exist; an id or alias is used twice; an address is invalid.
    pub(crate) fn new(upstreams: &[UpstreamConfig], models: &[ModelConfig]) -> Result<Self, InvalidRoutes> {
        Self::build(upstreams, models, None)
    }

    /// The routes of a changed configuration. Upstreams and targets with the same names keep their state: open connections,
    /// requests in progress, and, if the address is unchanged, breakers and resting keys.
    pub(crate) fn renewed(
        &self,
        upstreams: &[UpstreamConfig],
        models: &[ModelConfig],
    ) -> Result<Self, InvalidRoutes> {
        Self::build(upstreams, models, Some(self))
    }

    fn build(
        upstreams: &[UpstreamConfig],
        models: &[ModelConfig],
        before: Option<&Self>,
    ) -> Result<Self, InvalidRoutes> {
        let mut providers: HashMap<String, Arc<Provider>> = HashMap::new();
        for upstream in upstreams {
            let old = before.and_then(|before| before.providers.get(&upstream.name));
            let provider = Arc::new(Provider::new(upstream, old.map(Arc::as_ref))?);
            if providers.insert(upstream.name.clone(), provider).is_some() {
                return Err(InvalidRoutes(format!("two upstreams have the name {:?}", upstream.name)));
            }
        }
        let mut routes =
            Self { listed: Vec::with_capacity(models.len()), by_name: HashMap::new(), providers };
        for model in models {
            let old = before.and_then(|before| before.by_name.get(model.id.as_str()));
            let route = Arc::new(ModelRoute::new(model, &routes.providers, old.map(Arc::as_ref))?);
            for name in std::iter::once(&model.id).chain(&model.aliases) {
                if routes.by_name.insert(name.as_str().into(), Arc::clone(&route)).is_some() {
                    return Err(InvalidRoutes(format!("two models have the id or alias {name:?}")));
                }
            }
            routes.listed.push(route);
        }
        Ok(routes)
    }

    /// Whether an upstream is configured that is not the simulator.
    pub(crate) fn has_providers(&self) -> bool {
        self.providers.values().any(|provider| !provider.is_simulator())
    }

    /// The route of a model, by its id or an alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<ModelRoute>> {
        self.by_name.get(name)
    }

    /// An upstream by name.
    pub(crate) fn provider(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.get(name)
    }

    /// The route of a model of a kind, by its id or an alias.
    pub(crate) fn find_of(&self, kind: ModelKind, name: &str) -> Option<&Arc<ModelRoute>> {
        self.find(name).filter(|route| route.model.kind == kind)
    }

    /// The provider as currently configured, with its current keys. The same one if it is no longer configured, or has another
    /// address.
    pub(crate) fn current(&self, provider: &Arc<Provider>) -> Arc<Provider> {
        let current = self.providers.get(&provider.upstream.name);
        let current = current.filter(|current| {
            (&current.upstream.base_url, current.upstream.kind)
                == (&provider.upstream.base_url, provider.upstream.kind)
        });
        Arc::clone(current.unwrap_or(provider))
    }

    /// The redactors of all upstreams, which know their keys.
    pub(crate) fn redactors(&self) -> impl Iterator<Item = &Redactor> {
        self.providers.values().map(|provider| &provider.endpoint.redactor)
    }

    /// All routes, in the order of the configuration.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = &Arc<ModelRoute>> {
        self.listed.iter()
    }
}

impl ModelRoute {
    fn new(
        model: &ModelConfig,
        providers: &HashMap<String, Arc<Provider>>,
        before: Option<&Self>,
    ) -> Result<Self, InvalidRoutes> {
        let id = &model.id;
        if model.targets.is_empty() || model.targets.len() > MAX_TARGETS {
            let count = model.targets.len();
            return Err(InvalidRoutes(format!(
                "the model {id:?} has {count} targets; it must have 1 to {MAX_TARGETS}"
            )));
        }
        let own: Arc<str> = id.as_str().into();
        let mut destinations = Vec::with_capacity(model.targets.len());
        for target in &model.targets {
            let Some(provider) = providers.get(&target.upstream) else {
                let upstream = &target.upstream;
                return Err(InvalidRoutes(format!(
                    "the model {id:?} names the upstream {upstream:?}, which does not exist"
                )));
            };
            let kind = provider.upstream.kind;
            if !kind.serves(model.kind) {
                let (upstream, why) = (&target.upstream, kind.refusal(model.kind));
                return Err(InvalidRoutes(format!(
                    "the model {id:?} names the upstream {upstream:?}, which {why}"
                )));
            }
            // State from the old address doesn't apply to the new one.
            let old = before
                .and_then(|before| before.destination(&target.upstream, &target.model))
                .filter(|old| old.provider.upstream.base_url == provider.upstream.base_url);
            destinations.push(Arc::new(Destination::new(target, provider, &own, old)));
        }
        destinations.sort_by_key(|destination| destination.order);
        Ok(Self { model: model.clone(), id: own, destinations })
    }

    /// The first destination whose upstream supports files and batches.
    pub(crate) fn destination_with_files(&self) -> Option<&Arc<Destination>> {
        self.destinations.iter().find(|destination| destination.provider.has_files())
    }

    /// The prices of an upstream for the model.
    pub(crate) fn rates_at(&self, upstream: &str) -> Option<Arc<Rates>> {
        let destination = self.destinations.iter().find(|found| found.provider.upstream.name == upstream);
        destination.and_then(|destination| destination.rates.clone())
    }

    fn destination(&self, upstream: &str, model: &str) -> Option<&Destination> {
        let matches =
            |found: &&Arc<Destination>| found.provider.upstream.name == upstream && &*found.model == model;
        self.destinations.iter().find(matches).map(Arc::as_ref)
    }

    /// Whether all upstreams are the embedded provider.
    pub(crate) fn is_embedded(&self) -> bool {
        self.destinations.iter().all(|destination| destination.provider.is_simulator())
    }

    /// Whether the model is available through a protocol. Every model is, except through one whose responses are stored (4
    /// rule 1): then its family and one of its upstreams speak it, or the configuration allows translation.
    pub(crate) fn serves(&self, protocol: Protocol) -> bool {
        if !protocol.binding().stores_responses {
            return true;
        }
        let translates = self.model.translate_responses
            && self.destinations.iter().any(|destination| destination.answers_clients_of(protocol));
        translates || {
            let family = catalog::FAMILIES.iter().find(|family| family.id == self.model.family);
            family.is_none_or(|family| family.protocols.contains(&protocol.name())) && self.speaks(protocol)
        }
    }

    /// Whether one of the upstreams counts tokens for a protocol.
    pub(crate) fn counts_tokens(&self, protocol: Protocol) -> bool {
        self.destinations
            .iter()
            .any(|destination| destination.speaks(protocol) && destination.counts_tokens())
    }

    /// Whether one of the upstreams speaks a protocol natively.
    pub(crate) fn speaks(&self, protocol: Protocol) -> bool {
        self.destinations.iter().any(|destination| destination.speaks(protocol))
    }

    /// Plans the destinations of a request, in the order in which to try them. `only`: the protocol that each of them must speak
    /// natively.
    pub(crate) fn plan(self: &Arc<Self>, only: Option<Protocol>) -> Plan {
        Plan::new(Arc::clone(self), only)
    }
}

impl Destination {
    /// `id`: the client's name for the model.
    fn new(target: &TargetConfig, provider: &Arc<Provider>, id: &Arc<str>, before: Option<&Self>) -> Self {
        let keys = provider.upstream.key_count();
        let stated = target.price.as_ref().map(Rates::new);
        let rates = stated.or_else(|| provider.is_simulator().then(Rates::free));
        Self {
            provider: Arc::clone(provider),
            model: target.model.as_str().into(),
            rates: rates.map(Arc::new),
            weight: target.weight,
            order: target.order,
            breaker: before.map(|before| Arc::clone(&before.breaker)).unwrap_or_default(),
            attempts: Arc::new(Attempts::new(Arc::clone(&provider.endpoint.name), Arc::clone(id))),
            keys: before
                .filter(|before| before.provider.has_keys_of(&provider.upstream))
                .map_or_else(|| Arc::new(RestingKeys::new(keys)), |before| Arc::clone(&before.keys)),
        }
    }

    /// Whether the upstream speaks a protocol natively.
    pub(crate) fn speaks(&self, protocol: Protocol) -> bool {
        self.provider.upstream.kind.protocols().contains(&protocol) && self.answers_clients_of(protocol)
    }

    /// Whether the upstream answers clients of a protocol, natively or translated. The simulator serves each of its models in the
    /// protocols of the model's family only, whatever family the configuration states (4 rule 1).
    fn answers_clients_of(&self, protocol: Protocol) -> bool {
        !protocol.binding().stores_responses
            || !self.provider.is_simulator()
            || limits::wrong_endpoint(&operations::CREATE_RESPONSE, &self.model).is_none()
    }

    /// Whether the upstream counts tokens, if its protocol can.
    fn counts_tokens(&self) -> bool {
        self.provider.upstream.envelope.paths.count_tokens()
    }

    /// The protocol for requests to the upstream: the client's if the upstream speaks it.
    pub(crate) fn protocol_for(&self, client: Protocol) -> Protocol {
        let kind = self.provider.upstream.kind;
        if kind.protocols().contains(&client) { client } else { kind.main_protocol() }
    }
}

impl Provider {
    /// A digest of the upstream's address and protocol, which identifies it after a restart.
    pub(crate) fn place(&self) -> i64 {
        let place = format!("{:?} {}", self.upstream.kind, self.upstream.base_url);
        let digest = ring::digest::digest(&ring::digest::SHA256, place.as_bytes());
        digest.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
    }

    fn new(upstream: &UpstreamConfig, before: Option<&Self>) -> Result<Self, InvalidRoutes> {
        let connections = before.filter(|before| {
            before.upstream.connect_timeout == upstream.connect_timeout
                && before.upstream.kind == upstream.kind
        });
        let endpoint = Endpoint::new(upstream, connections.map(|before| &before.endpoint))
            .map_err(|error| InvalidRoutes(error.to_string()))?;
        let load = before.map(|before| Arc::clone(&before.load)).unwrap_or_default();
        let known = before.filter(|before| before.place_of_server() == (upstream.kind, &*upstream.base_url));
        let refuses_stream_options =
            known.is_some_and(|known| known.refuses_stream_options.load(Ordering::Relaxed)).into();
        Ok(Self { endpoint, upstream: upstream.clone(), load, refuses_stream_options })
    }

    fn place_of_server(&self) -> (Kind, &str) {
        (self.upstream.kind, &self.upstream.base_url)
    }

    /// What its server supports of its protocol: as configured, minus what it has rejected.
    pub(crate) fn capabilities(&self) -> Capabilities {
        let configured = self.upstream.capabilities;
        let stream_options =
            configured.stream_options && !self.refuses_stream_options.load(Ordering::Relaxed);
        Capabilities { stream_options, ..configured }
    }

    /// Stops sending `stream_options` to its server, which doesn't support them.
    pub(crate) fn refuse_stream_options(&self) {
        if !self.refuses_stream_options.swap(true, Ordering::Relaxed) {
            let upstream = &*self.endpoint.name;
            tracing::warn!(
                upstream,
                "the server does not accept stream_options; set stream_options = false for it"
            );
        }
    }

    /// Whether its server supports files and batches.
    pub(crate) fn has_files(&self) -> bool {
        matches!(self.upstream.kind, Kind::Gatewright | Kind::Simulator) || self.upstream.capabilities.files
    }

    /// Whether it is the embedded provider.
    pub(crate) fn is_simulator(&self) -> bool {
        self.upstream.kind == Kind::Simulator
    }

    fn has_keys_of(&self, other: &UpstreamConfig) -> bool {
        let texts = |upstream: &UpstreamConfig| {
            upstream.keys.iter().map(|key| key.expose().to_owned()).collect::<Vec<_>>()
        };
        texts(&self.upstream) == texts(other) && self.upstream.key_source == other.key_source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstreams() -> Vec<UpstreamConfig> {
        vec![
            UpstreamConfig::new("one", Kind::Chat, "http://127.0.0.1:1/v1"),
            UpstreamConfig::new("two", Kind::Messages, "http://127.0.0.1:2/v1"),
        ]
    }

    fn model(id: &str, upstream: &str) -> ModelConfig {
        ModelConfig::new(id, "family_one", TargetConfig::new(upstream, "m"))
    }

    #[test]
    fn ids_and_aliases_resolve_to_the_model() {
        let mut fast = model("fast", "one");
        fast.aliases.push("quick".to_owned());
        let routes = Routes::new(&upstreams(), &[fast, model("slow", "two")]).expect("routes");
        assert_eq!(routes.find("quick").map(|route| &*route.id), Some("fast"));
        assert_eq!(routes.find("slow").map(|route| &*route.id), Some("slow"));
        assert!(routes.find("m").is_none());
        assert_eq!(routes.all().len(), 2);
    }

    #[test]
    fn contradictory_configuration_makes_no_routes() {
        let error_of = |upstreams: &[UpstreamConfig], models: &[ModelConfig]| {
            Routes::new(upstreams, models).map(|_| ()).expect_err("a contradiction").to_string()
        };
        assert_eq!(
            error_of(&upstreams(), &[model("fast", "three")]),
            "the model \"fast\" names the upstream \"three\", which does not exist"
        );
        let mut alias = model("slow", "one");
        alias.aliases.push("fast".to_owned());
        assert_eq!(
            error_of(&upstreams(), &[model("fast", "one"), alias]),
            "two models have the id or alias \"fast\""
        );
        let twice = [upstreams(), upstreams()].concat();
        assert_eq!(error_of(&twice, &[]), "two upstreams have the name \"one\"");
        let nowhere = [UpstreamConfig::new("one", Kind::Chat, "localhost")];
        assert!(error_of(&nowhere, &[]).contains("one"));
    }

    #[test]
    fn state_survives_a_reload_of_unchanged_names() {
        let models = [model("fast", "one"), model("slow", "two")];
        let routes = Routes::new(&upstreams(), &models).expect("routes");
        let renewed = routes.renewed(&upstreams()[..1], &models[..1]).expect("routes");
        let first = |routes: &Routes| Arc::clone(&routes.find("fast").expect("fast").destinations[0]);
        let (old, new) = (first(&routes), first(&renewed));
        assert!(Arc::ptr_eq(&old.breaker, &new.breaker) && Arc::ptr_eq(&old.keys, &new.keys));
        assert!(Arc::ptr_eq(&old.provider.load, &new.provider.load));
        // Another address means another upstream.
        let mut moved = upstreams();
        moved[0].base_url = "http://127.0.0.1:9/v1".to_owned();
        let moved = first(&routes.renewed(&moved, &models).expect("routes"));
        assert!(!Arc::ptr_eq(&old.breaker, &moved.breaker) && !Arc::ptr_eq(&old.keys, &moved.keys));
        // State of the old keys doesn't apply to new ones.
        let mut changed = upstreams();
        changed[0].keys.push(gatewright::ApiKey::new("k").expect("a key"));
        let renewed = renewed.renewed(&changed, &models).expect("routes");
        assert!(!Arc::ptr_eq(&new.keys, &first(&renewed).keys));
    }

    #[test]
    fn current_provider_has_the_reloaded_keys_at_an_unchanged_address() {
        let before = Routes::new(&upstreams(), &[model("fast", "one")]).expect("routes");
        let used = Arc::clone(&before.find("fast").expect("fast").destinations[0].provider);
        let mut changed = upstreams();
        changed[0].keys.push(gatewright::ApiKey::new("new").expect("a key"));
        let renewed = before.renewed(&changed, &[model("fast", "one")]).expect("routes");
        assert_eq!(renewed.current(&used).upstream.keys.len(), 1);
        changed[0].base_url = "http://127.0.0.1:9/v1".to_owned();
        let moved = before.renewed(&changed, &[model("fast", "one")]).expect("routes");
        assert!(Arc::ptr_eq(&moved.current(&used), &used));
        let gone = before.renewed(&upstreams()[1..], &[]).expect("routes");
        assert!(Arc::ptr_eq(&gone.current(&used), &used));
    }

    #[test]
    fn image_model_requires_an_upstream_that_supports_images() {
        let routes = |upstream: &str| {
            let mut model = model("pictures", upstream);
            model.kind = ModelKind::Image;
            Routes::new(&upstreams(), &[model])
        };
        let routes_of_chat = routes("one").expect("routes");
        assert!(routes_of_chat.find_of(ModelKind::Image, "pictures").is_some());
        assert!(routes_of_chat.find_of(ModelKind::Text, "pictures").is_none());
        assert!(
            routes("two").expect_err("messages").to_string().contains("does not support images and videos")
        );
    }

    #[test]
    fn responses_are_served_natively_or_by_translation() {
        let upstreams = [
            UpstreamConfig::new("chat", Kind::Chat, "http://127.0.0.1:1"),
            UpstreamConfig::new("both", Kind::Responses, "http://127.0.0.1:1"),
        ];
        let serves = |family: &str, upstream: &str, translate: bool| {
            let mut model = ModelConfig::new("m", family, TargetConfig::new(upstream, "m"));
            model.translate_responses = translate;
            let routes = Routes::new(&upstreams, &[model]).expect("routes");
            routes.find("m").expect("m").serves(Protocol::Responses)
        };
        assert!(serves("family_one", "both", false));
        assert!(serves("my-own", "both", false));
        assert!(!serves("family_one", "chat", false));
        assert!(!serves("family_two", "both", false));
        assert!(serves("family_two", "chat", true));
    }

    #[test]
    fn simulated_model_is_served_in_the_protocols_of_its_family() {
        let simulator = [UpstreamConfig::new("sim", Kind::Simulator, "")];
        let serves = |family: &str, simulated: &str, translate: bool| {
            let mut model = ModelConfig::new("claude-x", family, TargetConfig::new("sim", simulated));
            model.translate_responses = translate;
            let routes = Routes::new(&simulator, &[model]).expect("routes");
            routes.find("claude-x").expect("the model").serves(Protocol::Responses)
        };
        assert!(serves("simulator", "model-sol", false));
        // model-breeze is of family_two, which the responses endpoints don't serve.
        for translate in [false, true] {
            assert!(!serves("simulator", "model-breeze", translate));
            assert!(!serves("family_one", "model-breeze", translate));
        }
    }
}
