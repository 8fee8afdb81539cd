//! What a run is told, held to the bounds of section 2.12 before anything is sent.

use std::path::PathBuf;
use std::sync::LazyLock;

use gatewright::report::{AgentMode, CheckId, Profile, SCHEMA};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::key::ApiKey;
use crate::redaction::{Redactor, SHORTEST_DISTINCT};

/// Time limit of a request unless the options say otherwise, in milliseconds.
pub const DEFAULT_TIMEOUT_MS: u64 = 30_000;
/// Time limit of an agent's run unless the options say otherwise, in milliseconds.
pub const DEFAULT_AGENT_TIMEOUT_MS: u64 = 120_000;
/// Where the API is below the endpoint unless the options say otherwise.
pub const DEFAULT_BASE_PATH: &str = "/v1";
/// Environment variable that names the agent's program.
pub const AGENT_PROGRAM_VARIABLE: &str = "GATEWRIGHT_AGENT_PROGRAM";

static BOUNDS: LazyLock<Value> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the embedded schema is JSON");
    schema["$defs"]["configuration"]["properties"].clone()
});

/// Why a run cannot begin: one text for each thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong, each with the way out.
    pub problems: Vec<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problems.join("; "))
    }
}

impl std::error::Error for Refused {}

/// Options of a run. Start from [`Options::new`] and set what differs, or [read](Options::read) them from a JSON object:
/// its members are these fields, and all but the endpoint may be left out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Address of the service, http or https, without the base path.
    pub endpoint: String,
    /// Path below the endpoint that the API's paths are appended to; starts with `/`.
    #[serde(default = "base_path")]
    pub base_path: String,
    /// Models under test, in order, out of the profile's; none means all of them.
    #[serde(default)]
    pub models: Vec<String>,
    /// Whether the stream and the function tool are checked on every model and not only on the first.
    #[serde(default)]
    pub full: bool,
    /// Which models the agent's program is run on.
    #[serde(default = "agent_mode")]
    pub agent_mode: AgentMode,
    /// Time limit of a whole request, 1000 to 120000 ms.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// Time limit of an agent's run, 5000 to 300000 ms.
    #[serde(default = "agent_timeout_ms")]
    pub agent_timeout_ms: u64,
    /// The agent's program; else that of `GATEWRIGHT_AGENT_PROGRAM`, else the one on the path.
    #[serde(default)]
    pub agent_program: Option<PathBuf>,
    /// Environment variables that are handed on to the agent beside PATH.
    #[serde(default)]
    pub agent_env: Vec<String>,
    /// Checks to run; none means all.
    #[serde(default)]
    pub only: Vec<CheckId>,
    /// Checks to leave out.
    #[serde(default)]
    pub skip: Vec<CheckId>,
    /// Whether the models are checked at the same time, up to [`MAX_PARALLEL`](crate::MAX_PARALLEL) of them.
    #[serde(default)]
    pub parallel: bool,
    /// A deployment's own kit name and model ids.
    #[serde(default)]
    pub profile: Profile,
    /// PEM file of certificates that are trusted beside the platform's.
    #[serde(default)]
    pub ca_bundle: Option<PathBuf>,
    /// `environment.runtime_version` of the report: a `v`, then digits.
    #[serde(default = "runtime_version")]
    pub runtime_version: String,
}

fn base_path() -> String {
    DEFAULT_BASE_PATH.to_owned()
}

fn agent_mode() -> AgentMode {
    AgentMode::Skipped
}

fn timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

fn agent_timeout_ms() -> u64 {
    DEFAULT_AGENT_TIMEOUT_MS
}

fn runtime_version() -> String {
    concat!("v", env!("CARGO_PKG_RUST_VERSION")).to_owned()
}

impl Options {
    /// The defaults: the three models of 2.12, not full, no agent.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            base_path: base_path(),
            models: Vec::new(),
            full: false,
            agent_mode: agent_mode(),
            timeout_ms: timeout_ms(),
            agent_timeout_ms: agent_timeout_ms(),
            agent_program: None,
            agent_env: Vec::new(),
            only: Vec::new(),
            skip: Vec::new(),
            parallel: false,
            profile: Profile::default(),
            ca_bundle: None,
            runtime_version: runtime_version(),
        }
    }

    /// The same options as the report states them: the base path without a slash at its end.
    pub(crate) fn normalised(mut self) -> Self {
        let path = self.base_path.strip_suffix('/').filter(|path| !path.is_empty() && !path.ends_with('/'));
        if let Some(path) = path.map(str::to_owned) {
            self.base_path = path;
        }
        self
    }

    /// The models to test, in order.
    pub(crate) fn tested_models(&self) -> Vec<String> {
        if self.models.is_empty() { self.profile.models().to_vec() } else { self.models.clone() }
    }

    /// Endpoint as the report states it, and the URL below which the API is. Every fault goes to `problems`.
    pub(crate) fn check(
        &self,
        key: &ApiKey,
        redactor: &Redactor,
        problems: &mut Vec<String>,
    ) -> Option<(String, Url)> {
        bounded("timeout_ms", self.timeout_ms, problems);
        bounded("agent_timeout_ms", self.agent_timeout_ms, problems);
        let profile = serde_json::to_vec(&self.profile).expect("strings serialise");
        problems.extend(Profile::read(&profile).err().map(|problem| format!("profile: {problem}")));
        self.check_models(problems);
        for name in &self.agent_env {
            if name.is_empty() || name.contains(['=', '\0']) {
                problems.push(format!("agent_env: {name:?} is no name of an environment variable"));
            }
        }
        let place = self.check_endpoint(problems);
        let texts = [&self.endpoint, &self.base_path, &self.runtime_version];
        let texts =
            texts.into_iter().chain(&self.models).chain(&self.profile.models).chain(&self.profile.kit_name);
        // These stand in the report as they are. A key as short as a word may be part of them by chance.
        if key.expose().len() >= SHORTEST_DISTINCT && texts.into_iter().any(|text| redactor.finds(text)) {
            problems.push("the API key is part of the endpoint, of a path or of a name; it belongs in the environment alone".to_owned());
        }
        place
    }

    fn check_models(&self, problems: &mut Vec<String>) {
        let known = self.profile.models();
        for (index, model) in self.models.iter().enumerate() {
            if !known.contains(model) {
                problems.push(format!(
                    "models: {model:?} is none of {}; other ids come from a profile (2.12)",
                    known.join(", ")
                ));
            } else if self.models[..index].contains(model) {
                problems.push(format!("models: {model:?} is there twice (2.12)"));
            }
        }
    }

    fn check_endpoint(&self, problems: &mut Vec<String>) -> Option<(String, Url)> {
        let before = problems.len();
        let mut refuse =
            |option: &str, why: &str, way_out: &str| problems.push(format!("{option} {why}: {way_out}"));
        let address = "give the service's address, such as https://gateway.example";
        let path = "give a plain path, such as /v1 (2.12)";
        if !self.base_path.starts_with('/') {
            refuse("base_path", "does not start with /", path);
        } else if self.base_path.contains("//") {
            refuse("base_path", "holds //", path);
        } else if self.base_path.contains(['?', '#', '\\', '%'])
            || self.base_path.split('/').any(|step| step == "." || step == "..")
            || !self.base_path.bytes().all(|byte| byte.is_ascii_graphic())
        {
            refuse("base_path", "holds characters that a path is not made of", path);
        }
        let url = match Url::parse(self.endpoint.trim()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Some(url),
            Ok(_) => {
                refuse("endpoint", "is neither http:// nor https://", address);
                None
            }
            Err(error) => {
                refuse("endpoint", &format!("cannot be read ({error})"), address);
                None
            }
        };
        if let Some(url) = &url {
            if !url.username().is_empty() || url.password().is_some() {
                refuse("endpoint", "holds a user name or password, which would stand in the report", address);
            }
            if url.query().is_some() || url.fragment().is_some() {
                refuse("endpoint", "has a query or a fragment", address);
            }
            let below = self.base_path.trim_end_matches('/');
            if !below.is_empty() && url.path().trim_end_matches('/').ends_with(below) {
                refuse(
                    "endpoint",
                    &format!("ends with the base path {below}, which is added to it"),
                    "leave it out, or set base_path to /",
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
                problems.push(format!("endpoint and base_path make no URL ({error})"));
                None
            }
        }
    }
}

/// Least and greatest of a number, by the schema of the report.
pub(crate) fn bounds(name: &str) -> (u64, u64) {
    let bound = |keyword: &str| BOUNDS[name][keyword].as_u64().expect("the schema bounds it");
    (bound("minimum"), bound("maximum"))
}

/// Holds a number to the bounds that the schema of the report has for it.
fn bounded(name: &str, value: u64, problems: &mut Vec<String>) {
    let (minimum, maximum) = bounds(name);
    if !(minimum..=maximum).contains(&value) {
        problems.push(format!("{name} must be from {minimum} to {maximum}, not {value} (2.12)"));
    }
}
