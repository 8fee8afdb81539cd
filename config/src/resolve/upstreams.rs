//! The upstreams of a configuration file.

use gatewright_protocol::Capabilities;
use http::header::{self, HeaderName, HeaderValue};
use indexmap::IndexMap;

use super::super::addresses::{base_url, is_exposed, operation_of};
use super::super::envelope::{Envelope, Paths};
use super::super::file;
use super::super::key_source::KeySource;
use super::super::keys::{KeyPlace, RequestSetting};
use super::super::presets::{Preset, preset, with_path};
use super::super::secret::{self, Credential};
use super::super::source_map::Path;
use super::super::upstreams::{Kind, UpstreamConfig};
use super::ConfigResolver;

/// Headers that are never passed on from clients: those with the key, those of the connection, and those that the
/// gateway writes itself.
const NEVER_PASSED_ON: [&HeaderName; 20] = [
    &header::AUTHORIZATION,
    &header::PROXY_AUTHORIZATION,
    &header::PROXY_AUTHENTICATE,
    &header::COOKIE,
    &header::SET_COOKIE,
    &header::HOST,
    &header::CONNECTION,
    &header::CONTENT_LENGTH,
    &header::CONTENT_TYPE,
    &header::CONTENT_ENCODING,
    &header::ACCEPT,
    &header::ACCEPT_ENCODING,
    &header::EXPECT,
    &header::TE,
    &header::TRAILER,
    &header::TRANSFER_ENCODING,
    &header::UPGRADE,
    &header::FORWARDED,
    &header::VIA,
    &header::USER_AGENT,
];
/// The same for nonstandard headers.
const NEVER_PASSED_ON_EITHER: [&str; 8] = [
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "keep-alive",
    "proxy-connection",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-request-id",
];

/// Headers that can't be set: those of the connection, and those that describe the body.
const NEVER_SET: [&HeaderName; 11] = [
    &header::HOST,
    &header::CONNECTION,
    &header::CONTENT_LENGTH,
    &header::CONTENT_TYPE,
    &header::CONTENT_ENCODING,
    &header::ACCEPT_ENCODING,
    &header::EXPECT,
    &header::TE,
    &header::TRAILER,
    &header::TRANSFER_ENCODING,
    &header::UPGRADE,
];

/// Longest name of an upstream.
const MAX_NAME_CHARS: usize = 64;

impl ConfigResolver<'_> {
    pub(super) fn upstream(&mut self, name: &str, file: file::Upstream, at: &Path) -> UpstreamConfig {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.bytes().all(plain) {
            let message =
                format!("the name must be letters, digits, -, _ and ., at most {MAX_NAME_CHARS} of them");
            self.wrong(at.clone(), message);
        }
        // A missing kind has already been reported.
        let kind = file.kind.unwrap_or(Kind::Chat);
        let has_paths = file.paths != Paths::default();
        let url = self.url(kind, file.base_url.as_deref(), has_paths, at);
        let mut upstream = UpstreamConfig::new(name, kind, url);
        let provider = file.provider.and_then(|provider| preset(&provider.0).ok());
        let variables = provider.map_or(&[][..], Preset::key_variables);
        if let Some(keys) = file.key {
            self.keys(&mut upstream, keys, variables, &at.to("key"));
        }
        if file.key_in.is_some() && matches!(upstream.key_source, Some(KeySource::SigV4(_))) {
            let message = "a signature has its place, the header authorization: remove the key";
            self.wrong(at.to("key_in"), message);
        }
        upstream.key_place = file.key_in.and_then(|place| self.key_place(place, &at.to("key_in")));
        upstream.set_headers = self.settings(file.set_headers, &at.to("set_headers"), check_header);
        upstream.set_query = self.settings(file.set_query, &at.to("set_query"), |_, _| Ok(()));
        for (index, name) in file.headers.iter().enumerate() {
            upstream.headers.extend(self.header(name, &at.to("headers").to(index)));
        }
        upstream.traceparent = file.traceparent;
        self.wait(&mut upstream.connect_timeout, file.connect_timeout, &at.to("connect_timeout"));
        self.wait(&mut upstream.timeout, file.timeout, &at.to("timeout"));
        self.wait(&mut upstream.idle_timeout, file.idle_timeout, &at.to("idle_timeout"));
        upstream.retry_lost = file.retry_lost.unwrap_or_default();
        upstream.max_concurrent = file.max_concurrent.and_then(|count| usize::try_from(count).ok());
        upstream.max_requests_per_minute = file.max_requests_per_minute;
        upstream.region = file.region;
        let assumed = upstream.capabilities;
        upstream.capabilities = Capabilities {
            roles: file.roles.unwrap_or(assumed.roles),
            token_limit: file.token_limit.unwrap_or(assumed.token_limit),
            custom_tools: file.custom_tools.unwrap_or(assumed.custom_tools),
            call_ids: file.call_ids.unwrap_or(assumed.call_ids),
            user_after_tool: file.user_after_tool.unwrap_or(assumed.user_after_tool),
            reasoning_content: file.reasoning_content.unwrap_or(assumed.reasoning_content),
            stream_options: file.stream_options.unwrap_or(assumed.stream_options),
            files: file.files.unwrap_or(assumed.files),
            bucket_urls: file.bucket_urls.unwrap_or(assumed.bucket_urls),
        };
        upstream.envelope = Envelope {
            paths: file.paths,
            set_body: file.set_body,
            omit_body: file.omit_body,
            betas_in_body: file.betas_in_body.unwrap_or_default(),
        };
        self.check_envelope(kind, &upstream.envelope, at);
        upstream
    }

    /// `variables`: the provider's, which the file need not mention.
    fn keys(
        &mut self,
        upstream: &mut UpstreamConfig,
        keys: file::OneOrMany<Credential>,
        variables: &[String],
        at: &Path,
    ) {
        for (index, credential) in keys.into_values() {
            let at = index.map_or_else(|| at.clone(), |index| at.to(index));
            match credential {
                Credential::Kept(secret) => {
                    let known = self.problems();
                    upstream.keys.extend(self.key(&secret, &at));
                    if matches!(&secret, secret::Secret::Env(names) if names == variables) {
                        let what = if variables.len() == 1 { "it" } else { "one of them" };
                        let hint =
                            format!("; set {what} to the provider's key, or set key to where the key is");
                        self.explain_since(known, &hint);
                    }
                }
                _ if index.is_some() => {
                    let message = "a key that expires must be the only one, not part of a list";
                    self.wrong(at, message);
                }
                credential => {
                    upstream.key_source = self.key_source(credential, &upstream.base_url, &at);
                }
            }
        }
    }

    fn key_place(&mut self, place: file::KeyIn, at: &Path) -> Option<KeyPlace> {
        let place = match (place.header, place.prefix, place.query) {
            (Some(name), prefix, None) => {
                let prefix = prefix.unwrap_or_default();
                if let Err(why) = check_header(&name, &prefix) {
                    self.wrong(at.clone(), why);
                }
                KeyPlace::Header { name, prefix }
            }
            (None, None, Some(name)) => KeyPlace::Query(name),
            _ => {
                let message =
                    "must be { header = \"NAME\" }, optionally with a prefix, or { query = \"NAME\" }";
                self.wrong(at.clone(), message);
                return None;
            }
        };
        Some(place)
    }

    fn settings(
        &mut self,
        settings: IndexMap<String, secret::Setting>,
        at: &Path,
        check: fn(&str, &str) -> Result<(), String>,
    ) -> Vec<RequestSetting> {
        let mut settled = Vec::with_capacity(settings.len());
        for (name, setting) in settings {
            let at = at.to(&*name);
            let setting = match setting {
                secret::Setting::Text(text) => RequestSetting::new(name, text),
                secret::Setting::Kept(secret) => match self.secret(&secret, &at) {
                    Some(value) => RequestSetting::secret(name, value),
                    None => continue,
                },
            };
            if let Err(why) = check(&setting.name, &setting.value) {
                self.wrong(at, why);
            }
            settled.push(setting);
        }
        settled
    }

    /// `has_paths`: the upstream states the paths of its operations, which may contain those of the provider.
    fn url(&mut self, kind: Kind, text: Option<&str>, has_paths: bool, at: &Path) -> String {
        let Some(text) = text else {
            if kind != Kind::Simulator {
                self.wrong(at.clone(), "the key base_url is missing: set it to the provider's address");
            }
            return String::new();
        };
        let at = at.to("base_url");
        if kind == Kind::Simulator {
            self.wrong(at, "the simulator is part of the gateway and has no URL: remove the key");
            return String::new();
        }
        match base_url(text) {
            Ok(url) if is_exposed(&url) => {
                self.warn(at, "http sends prompts and keys unencrypted to a public host; use https");
            }
            Ok(url) => {
                if let Some(operation) = operation_of(&url) {
                    let message =
                        format!("ends with {operation}, which the gateway appends to it: remove it");
                    self.warn(at, message);
                } else if let Some(whole) = with_path(&url, kind).filter(|_| !has_paths) {
                    self.warn(at, format!("lacks the provider's path: set it to {whole}"));
                }
            }
            Err(why) => self.wrong(at, why),
        }
        text.trim_end_matches('/').to_owned()
    }

    fn header(&mut self, name: &str, at: &Path) -> Option<String> {
        let Ok(header) = HeaderName::try_from(name) else {
            self.wrong(at.clone(), "must be the name of a header, such as \"x-trace-id\"");
            return None;
        };
        if NEVER_PASSED_ON.contains(&&header) || NEVER_PASSED_ON_EITHER.contains(&header.as_str()) {
            let message = format!(
                "{header} is never forwarded: it belongs to the client's connection, or the gateway sets it"
            );
            self.wrong(at.clone(), message);
        }
        Some(header.as_str().to_owned())
    }
}

/// Whether a header may be added to each request. Errors: why not; never quotes its value, which may be
/// secret.
fn check_header(name: &str, value: &str) -> Result<(), String> {
    let header = HeaderName::try_from(name)
        .map_err(|_| format!("{name:?} is not the name of a header, such as \"x-title\""))?;
    if NEVER_SET.contains(&&header) {
        return Err(format!("{header} cannot be set: the gateway sets it"));
    }
    HeaderValue::try_from(value).map(drop).map_err(|_| "its value must be visible ASCII".to_owned())
}
