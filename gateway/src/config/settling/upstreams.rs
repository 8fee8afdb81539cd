//! The upstreams of a configuration file.

use http::header::{self, HeaderName};

use super::super::addresses::{base_url, is_exposed, operation_of};
use super::super::capabilities::Capabilities;
use super::super::file;
use super::super::places::Path;
use super::super::upstreams::{Kind, Upstream};
use super::Settling;

/// Headers that no client may send on: those that carry its key, those of the connection, and those that the gateway
/// writes itself.
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
/// The same, of headers that are of no standard.
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

/// Longest name of an upstream.
const LONGEST_NAME: usize = 64;

impl Settling<'_> {
    pub(super) fn upstream(&mut self, name: &str, file: file::Upstream, at: &Path) -> Upstream {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(plain) {
            let message =
                format!("the name must be letters, digits, -, _ and ., at most {LONGEST_NAME} of them");
            self.wrong(at.clone(), message);
        }
        let url = self.url(file.kind, file.base_url.as_deref(), at);
        let mut upstream = Upstream::new(name, file.kind, url);
        if let Some(keys) = file.key {
            for (index, secret) in keys.into_values() {
                let at = at.to("key");
                let at = index.map_or_else(|| at.clone(), |index| at.to(index));
                upstream.keys.extend(self.key(&secret, &at));
            }
        }
        for (index, name) in file.headers.iter().enumerate() {
            upstream.headers.extend(self.header(name, &at.to("headers").to(index)));
        }
        upstream.traceparent = file.traceparent;
        self.wait(&mut upstream.connect_timeout, file.connect_timeout, &at.to("connect_timeout"));
        self.wait(&mut upstream.timeout, file.timeout, &at.to("timeout"));
        self.wait(&mut upstream.idle_timeout, file.idle_timeout, &at.to("idle_timeout"));
        upstream.max_concurrent = file.max_concurrent.and_then(|count| usize::try_from(count).ok());
        upstream.max_requests_per_minute = file.max_requests_per_minute;
        upstream.region = file.region;
        let assumed = upstream.capabilities;
        upstream.capabilities = Capabilities {
            roles: file.roles.unwrap_or(assumed.roles),
            token_limit: file.token_limit.unwrap_or(assumed.token_limit),
            custom_tools: file.custom_tools.unwrap_or(assumed.custom_tools),
            reasoning_content: file.reasoning_content.unwrap_or(assumed.reasoning_content),
            stream_options: file.stream_options.unwrap_or(assumed.stream_options),
        };
        upstream
    }

    fn url(&mut self, kind: Kind, text: Option<&str>, at: &Path) -> String {
        let Some(text) = text else {
            if kind != Kind::Simulator {
                self.wrong(at.clone(), "the key base_url is missing: where is the provider?");
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
                    let message = format!(
                        "ends with {operation}, which the gateway adds to each request: end base_url before it"
                    );
                    self.warn(at, message);
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
            let message =
                format!("{header} is never passed on: it is the client's own, or the gateway writes it");
            self.wrong(at.clone(), message);
        }
        Some(header.as_str().to_owned())
    }
}
