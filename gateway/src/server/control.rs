//! Configuration changes of a running gateway.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gatewright_config::{Config, Kind};
use gatewright_store::Pepper;

use super::bind_error::BindError;
use super::tls::Certificate;
use crate::app::{App, RejectedConfig};

/// Changes the configuration of a running gateway.
#[derive(Clone)]
pub struct Control {
    pub(super) app: Arc<App>,
    pub(super) certificate: Option<Arc<Certificate>>,
}

/// The outcome of a configuration change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reloaded {
    /// Keys of the configuration file that have changed but only take effect after a restart.
    pub waiting: Vec<&'static str>,
    /// Keys of the configuration file whose API keys were replaced: the previous ones are rejected.
    pub replaced: Vec<&'static str>,
    /// Keys of the configuration file that no longer contain an API key: the previous one is rejected, and nothing
    /// replaces it.
    pub removed: Vec<&'static str>,
}

impl Control {
    /// Replaces the upstreams, models, certificate and API keys in use with those of a configuration, for all new
    /// requests and connections. Requests in progress are not affected.
    ///
    /// A configuration without a client key keeps the random one generated at the start. If the gateway was started with
    /// a key, there is no such key: then only the store's keys are accepted.
    ///
    /// Errors: the configuration can't be used, or it names no provider although the gateway has some: the simulator
    /// can only be chosen at the start. Then nothing changes.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, BindError> {
        if self.loses_providers(config) {
            return Err(BindError::LosesProviders);
        }
        let certificate = match (&config.tls, &self.certificate) {
            (Some(tls), Some(in_use)) => Some((in_use, tls.read()?)),
            _ => None,
        };
        let changed = self.app.reload(config)?;
        if let Some((in_use, certificate)) = certificate {
            in_use.replace(certificate);
        }
        self.app.live.stale.store(None);
        let mut reloaded = Reloaded { waiting: waiting(&self.app.config, config), ..Reloaded::default() };
        self.set_restart_needed(!reloaded.waiting.is_empty());
        for (name, is_changed, is_there) in [
            ("access.key", changed.key, self.app.key_of(config).is_some()),
            ("access.admin_key", changed.admin, config.admin_key.is_some()),
        ] {
            match (is_changed, is_there) {
                (true, true) => reloaded.replaced.push(name),
                (true, false) => reloaded.removed.push(name),
                (false, _) => {}
            }
        }
        Ok(reloaded)
    }

    /// Makes `/health/ready` report that the configuration file was rejected and an earlier one is in use, until a reload
    /// succeeds. `place`: line and column of the first problem, from 1.
    pub fn mark_stale(&self, place: Option<(usize, usize)>) {
        self.app.live.stale.store(Some(Arc::new(RejectedConfig { place })));
    }

    /// Sets whether `/health/ready` reports that changes of the configuration file take effect only after a restart. A reload
    /// sets it for the keys that it knows; the caller knows those of the log.
    pub fn set_restart_needed(&self, is_needed: bool) {
        self.app.live.needs_restart.store(is_needed, Ordering::Relaxed);
    }

    /// Whether only the simulator would remain. An emptied or truncated file has this effect.
    fn loses_providers(&self, config: &Config) -> bool {
        let has_providers = self.app.live.shared.is_some() || self.app.live.routes.load().has_providers();
        has_providers
            && config.shared_config.is_none()
            && config.upstreams.iter().all(|upstream| upstream.kind == Kind::Simulator)
    }
}

/// The keys whose values differ and that can't be changed while the gateway runs.
fn waiting(old: &Config, new: &Config) -> Vec<&'static str> {
    compared(old, new).into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
}

/// The keys that can't be changed while the gateway runs, and whether their values are the same. They are those with `x-restart` in the
/// schema, but for those of the log, which the program compares.
fn compared(old: &Config, new: &Config) -> Vec<(&'static str, bool)> {
    let addresses = |config: &Config| config.tls.as_ref().map(|tls| tls.listen.clone());
    // Every field is listed, so that a new one can't be forgotten.
    let Config {
        listen,
        health_listen,
        tls: _,
        name,
        key: _,
        admin_key: _,
        data,
        store,
        pepper,
        shared_config,
        counters,
        files,
        public_url,
        max_body_bytes,
        max_connections,
        max_connections_per_peer,
        header_timeout,
        body_timeout,
        write_timeout,
        allowed_origins,
        shutdown_grace,
        drain_delay,
        open_metrics,
        event_delay,
        video_time,
        fetch_images,
        video_poll,
        batch_poll: _,
        video_timeout,
        video_lease,
        max_file_bytes,
        max_held_bytes,
        max_idempotent_answers,
        max_percent_per_key,
        webhook_secret,
        webhook_previous_secrets,
        webhook_backoff,
        allow_private_webhooks,
        content_requests,
        content_time,
        currency,
        faults,
        upstreams: _,
        models: _,
    } = old;
    let secret = |secret: &Option<gatewright::webhook::Secret>| {
        secret.as_ref().map(gatewright::webhook::Secret::expose)
    };
    let secrets = |secrets: &[gatewright::webhook::Secret]| -> Vec<String> {
        secrets.iter().map(gatewright::webhook::Secret::expose).collect()
    };
    let check = |pepper: &Option<Pepper>| pepper.as_ref().map(Pepper::check);
    vec![
        ("server.listen", *listen == new.listen),
        ("server.health_listen", *health_listen == new.health_listen),
        ("server.tls.listen", addresses(old) == addresses(new)),
        ("server.name", *name == new.name),
        ("server.public_url", *public_url == new.public_url),
        ("server.allowed_origins", *allowed_origins == new.allowed_origins),
        ("server.shutdown_grace", *shutdown_grace == new.shutdown_grace),
        ("server.drain_delay", *drain_delay == new.drain_delay),
        ("limits.max_body", *max_body_bytes == new.max_body_bytes),
        ("limits.max_files", *max_file_bytes == new.max_file_bytes),
        ("limits.max_held", *max_held_bytes == new.max_held_bytes),
        ("limits.max_idempotent_answers", *max_idempotent_answers == new.max_idempotent_answers),
        ("limits.max_percent_per_key", *max_percent_per_key == new.max_percent_per_key),
        ("limits.max_connections", *max_connections == new.max_connections),
        ("limits.max_connections_per_peer", *max_connections_per_peer == new.max_connections_per_peer),
        ("limits.header_timeout", *header_timeout == new.header_timeout),
        ("limits.body_timeout", *body_timeout == new.body_timeout),
        ("limits.write_timeout", *write_timeout == new.write_timeout),
        ("store.data", *data == new.data),
        ("store.url", *store == new.store),
        ("store.pepper", check(pepper) == check(&new.pepper)),
        ("store.shared_config", *shared_config == new.shared_config),
        ("counters", *counters == new.counters),
        ("files", *files == new.files),
        ("webhooks.secret", secret(webhook_secret) == secret(&new.webhook_secret)),
        (
            "webhooks.previous_secrets",
            secrets(webhook_previous_secrets) == secrets(&new.webhook_previous_secrets),
        ),
        ("webhooks.backoff", *webhook_backoff == new.webhook_backoff),
        ("webhooks.allow_private", *allow_private_webhooks == new.allow_private_webhooks),
        ("observe.open_metrics", *open_metrics == new.open_metrics),
        ("images.fetch", *fetch_images == new.fetch_images),
        ("videos.poll", *video_poll == new.video_poll),
        ("videos.timeout", *video_timeout == new.video_timeout),
        ("videos.lease", *video_lease == new.video_lease),
        ("observe.content_requests", *content_requests == new.content_requests),
        ("observe.content_time", *content_time == new.content_time),
        ("prices.currency", *currency == new.currency),
        ("simulator.faults", *faults == new.faults),
        ("simulator.event_delay", *event_delay == new.event_delay),
        ("simulator.video_time", *video_time == new.video_time),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::server::Gateway;
    use gatewright_config::{ModelConfig, TargetConfig, UpstreamConfig};

    #[test]
    fn keys_that_need_a_restart_are_those_that_the_schema_marks() {
        fn marked(table: &Value, place: &str, keys: &mut BTreeSet<String>) {
            for (name, key) in table["properties"].as_object().into_iter().flatten() {
                let place = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                if key["x-restart"] == true {
                    keys.insert(place);
                } else {
                    marked(key, &place, keys);
                }
            }
        }
        let mut keys = BTreeSet::new();
        marked(gatewright_config::schema(), "", &mut keys);
        keys.retain(|key| {
            !["observe.log_level", "observe.log_format", "observe.otlp_endpoint"].contains(&key.as_str())
        });
        // The secrets that shared upstreams may name are part of `store.shared_config`.
        assert!(keys.remove("store.shared_secrets"));
        let config = Config::default();
        let compared: BTreeSet<String> =
            compared(&config, &config).into_iter().map(|(key, _)| key.to_owned()).collect();
        assert_eq!(compared, keys);
    }

    fn simulated() -> Config {
        Config { listen: vec!["127.0.0.1:0".to_owned()], ..Config::default() }
    }

    fn with_provider() -> Config {
        let upstreams = vec![UpstreamConfig::new("one", Kind::Chat, "http://127.0.0.1:9/v1")];
        let models = vec![ModelConfig::new("mine", "family", TargetConfig::new("one", "model-sol"))];
        Config { upstreams, models, ..simulated() }
    }

    async fn bind(config: Config) -> Gateway {
        Gateway::bind(config).await.expect("a free port")
    }

    async fn readiness(gateway: &Gateway) -> (u16, Value) {
        let request = http::Request::get("/health/ready").body("").expect("a request");
        let response = gateway.embedded.answer(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.expect("a body").to_bytes();
        (status, serde_json::from_slice(&body).expect("JSON"))
    }

    #[tokio::test]
    async fn reload_that_loses_every_provider_is_rejected() {
        let gateway = bind(with_provider()).await;
        let error =
            gateway.control().reload(&simulated()).expect_err("the simulator would answer").to_string();
        assert!(error.contains("names no provider") && error.contains("restart the gateway"), "{error}");
        let routes = gateway.embedded.shared().live.routes.load_full();
        assert!(
            routes.has_providers() && routes.find("mine").is_some() && routes.find("model-sol").is_none()
        );
        gateway.control().reload(&with_provider()).expect("it has a provider");
    }

    #[tokio::test]
    async fn simulator_only_gateway_may_gain_providers_by_reload() {
        let gateway = bind(simulated()).await;
        gateway.control().reload(&simulated()).expect("no provider is removed");
        gateway.control().reload(&with_provider()).expect("there is a provider now");
        gateway.control().reload(&simulated()).expect_err("it is no longer a pure simulator");
    }

    #[tokio::test]
    async fn readiness_reports_a_stale_configuration_until_a_reload_succeeds() {
        let gateway = bind(with_provider()).await;
        assert_eq!(readiness(&gateway).await, (200, json!({ "status": "ready" })));
        gateway.control().mark_stale(Some((12, 3)));
        let stale =
            json!({ "status": "ready", "configuration": "stale", "configuration_problem_at": "12:3" });
        assert_eq!(readiness(&gateway).await, (200, stale));
        gateway.control().reload(&with_provider()).expect("it is right");
        assert_eq!(readiness(&gateway).await, (200, json!({ "status": "ready" })));
    }

    #[tokio::test]
    async fn readiness_reports_changes_that_wait_for_a_restart() {
        let gateway = bind(with_provider()).await;
        let changed = Config { max_connections: 7, ..with_provider() };
        let reloaded = gateway.control().reload(&changed).expect("it is right");
        assert_eq!(reloaded.waiting, ["limits.max_connections"]);
        let waiting = json!({ "status": "ready", "configuration": "restart_needed" });
        assert_eq!(readiness(&gateway).await, (200, waiting));
        gateway.control().reload(&with_provider()).expect("it is right");
        assert_eq!(readiness(&gateway).await, (200, json!({ "status": "ready" })));
    }
}
