//! Validates the options of a run against the bounds of section 2.12 before anything is sent. The options themselves
//! are generated from `spec/options.json`.

mod json;

use std::sync::LazyLock;

use gatewright::ApiKey;
use gatewright::catalog::{EMBEDDING_MODELS, IMAGE_MODELS, PLAIN_MODELS, TEXT_MODELS, VIDEO_MODELS};
use gatewright::did_you_mean::closest;
use gatewright::report::{Profile, SCHEMA};
use serde_json::Value;
use url::Url;

use crate::generated::options::Options;
use crate::probed_protocol::ProbedProtocol;
use crate::redaction::{MAX_KEY_CHARS, Redactor, SHORTEST_DISTINCT};

static BOUNDS: LazyLock<Value> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
    schema["$defs"]["configuration"]["properties"].clone()
});

/// Why a run cannot start: one text per problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidOptions {
    /// The problems, each with its remedy.
    pub problems: Vec<String>,
}

impl std::fmt::Display for InvalidOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for InvalidOptions {}

impl Options {
    /// The same options as in the report: the base path without a trailing slash. Protocols are in the order of their document.
    pub(crate) fn normalised(mut self) -> Self {
        let path = self.base_path.strip_suffix('/').filter(|path| !path.is_empty() && !path.ends_with('/'));
        if let Some(path) = path.map(str::to_owned) {
            self.base_path = path;
        }
        let protocols = ProbedProtocol::ALL.into_iter().filter(|known| self.protocols.contains(known));
        self.protocols = protocols.collect();
        // Models of another deployment are a profile of their own.
        if self.profile.models.is_empty() && self.models.iter().any(|model| is_foreign(model)) {
            self.profile.models.clone_from(&self.models);
        }
        self
    }

    /// The models to test, in order.
    pub(crate) fn tested_models(&self) -> Vec<String> {
        if self.models.is_empty() { self.profile.models().to_vec() } else { self.models.clone() }
    }

    /// Endpoint as in the report, and the base URL of the API. Adds every problem to `problems`.
    pub(crate) fn check(
        &self,
        key: &ApiKey,
        redactor: &Redactor,
        problems: &mut Vec<String>,
    ) -> Option<(String, Url)> {
        if key.expose().len() > MAX_KEY_CHARS {
            problems.push(format!("the API key is longer than {MAX_KEY_CHARS} characters"));
        }
        bounded("timeout_ms", self.timeout_ms, problems);
        bounded("agent_timeout_ms", self.agent_timeout_ms, problems);
        let profile = serde_json::to_vec(&self.profile).expect("strings serialize");
        problems.extend(Profile::read(&profile).err().map(|problem| format!("profile: {problem}")));
        self.check_models(problems);
        for name in &self.agent_env {
            if name.is_empty() || name.contains(['=', '\0']) {
                problems.push(format!("agent_env: {name:?} is not the name of an environment variable"));
            }
        }
        let place = self.check_endpoint(problems);
        let texts = [&self.endpoint, &self.base_path, &self.runtime_version];
        let texts =
            texts.into_iter().chain(&self.models).chain(&self.profile.models).chain(&self.profile.kit_name);
        // These appear in the report unchanged. A key as short as a word may be part of them by chance.
        if key.expose().len() >= SHORTEST_DISTINCT && texts.into_iter().any(|text| redactor.finds(text)) {
            problems.push(
                "the API key is part of the endpoint, a path or a name; keep it in the environment only"
                    .to_owned(),
            );
        }
        place
    }

    fn check_models(&self, problems: &mut Vec<String>) {
        let known = self.profile.models();
        for (index, model) in self.models.iter().enumerate() {
            if !known.contains(model) {
                let known_ones = known.join(", ");
                let why = of_catalog(model).map_or_else(
                    || {
                        let similar = closest(model, known).map(|known| format!(" (did you mean {known}?)"));
                        format!("is not one of {known_ones}{}", similar.unwrap_or_default())
                    },
                    |what| format!("{what}: use {known_ones}"),
                );
                problems.push(format!(
                    "models: {model:?} {why}; to test it all the same, list it in a profile: {{\"models\": [{model:?}]}}"
                ));
            } else if self.models[..index].contains(model) {
                problems.push(format!("models: {model:?} is listed twice"));
            }
        }
    }

    fn check_endpoint(&self, problems: &mut Vec<String>) -> Option<(String, Url)> {
        let before = problems.len();
        let mut refuse =
            |option: &str, why: &str, way_out: &str| problems.push(format!("{option} {why}: {way_out}"));
        let address = "set the service's address, such as https://gateway.example";
        let path = "set a plain path, such as /v1";
        if !self.base_path.starts_with('/') {
            refuse("base_path", "does not start with /", path);
        } else if self.base_path.contains("//") {
            refuse("base_path", "contains //", path);
        } else if self.base_path.contains(['?', '#', '\\', '%'])
            || self.base_path.split('/').any(|step| step == "." || step == "..")
            || !self.base_path.bytes().all(|byte| byte.is_ascii_graphic())
        {
            refuse("base_path", "contains characters that are not allowed in a path", path);
        }
        let url = match Url::parse(self.endpoint.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            Ok(_) => {
                refuse("endpoint", "is neither http:// nor https://", address);
                None
            }
            Err(error) => {
                refuse("endpoint", &format!("is not a valid URL ({error})"), address);
                None
            }
        };
        if let Some(url) = &url {
            if !url.username().is_empty() || url.password().is_some() {
                refuse(
                    "endpoint",
                    "contains a user name or password, which would appear in the report",
                    address,
                );
            }
            if url.query().is_some() || url.fragment().is_some() {
                refuse("endpoint", "has a query or a fragment", address);
            }
            let below = self.base_path.trim_end_matches('/');
            if !below.is_empty() && url.path().trim_end_matches('/').ends_with(below) {
                refuse(
                    "endpoint",
                    &format!("ends with the base path {below}, which is appended to it"),
                    "remove it, or set base_path to /",
                );
            }
        }
        if problems.len() > before {
            return None;
        }
        let url = url?;
        let endpoint = url.as_str().trim_end_matches('/').to_owned();
        match Url::parse(&format!("{endpoint}{}", self.base_path.trim_end_matches('/'))) {
            Ok(url) => Some((endpoint, url)),
            Err(error) => {
                problems.push(format!("endpoint and base_path do not form a URL ({error})"));
                None
            }
        }
    }
}

/// Whether an id is one of another deployment, and not a misspelled or unsupported one of the specification.
fn is_foreign(model: &str) -> bool {
    let known = Profile::default();
    !model.is_empty()
        && !known.models().iter().any(|known| known == model)
        && of_catalog(model).is_none()
        && closest(model, known.models()).is_none()
}

/// The kind of a catalog model that can't be in a report; `None`: it is not in the catalog.
fn of_catalog(model: &str) -> Option<&'static str> {
    if TEXT_MODELS.iter().any(|known| known.id == model) {
        Some("is a text model that these reports do not support")
    } else if EMBEDDING_MODELS.iter().any(|known| known.id == model) {
        Some("embeds texts, but all checks request text")
    } else if PLAIN_MODELS.iter().any(|known| known.id == model) {
        Some("ranks or judges texts, but all checks request text")
    } else if IMAGE_MODELS.iter().any(|known| known.id == model) {
        Some("generates images, but all checks request text")
    } else {
        let is_video = VIDEO_MODELS.iter().any(|known| known.id == model);
        is_video.then_some("generates videos, but all checks request text")
    }
}

/// Minimum and maximum of a number, from the schema of the report.
pub(crate) fn bounds(name: &str) -> (u64, u64) {
    let bound = |keyword: &str| BOUNDS[name][keyword].as_u64().expect("the schema bounds it");
    (bound("minimum"), bound("maximum"))
}

/// Validates a number against its bounds in the schema of the report.
fn bounded(name: &str, value: u64, problems: &mut Vec<String>) {
    let (minimum, maximum) = bounds(name);
    if !(minimum..=maximum).contains(&value) {
        problems.push(format!("{name} must be from {minimum} to {maximum}, not {value}"));
    }
}
