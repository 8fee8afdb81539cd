//! How an upstream's requests deviate from its protocol.

use http::uri::PathAndQuery;

use super::super::envelope::{Envelope, MODEL_PLACEHOLDER, Paths};
use super::super::source_map::Path;
use super::super::upstreams::Kind;
use super::ConfigResolver;

/// Body members that the gateway reads or writes itself.
const OWN_MEMBERS: [&str; 7] =
    ["model", "stream", "stream_options", "messages", "input", "contents", "previous_response_id"];
/// Those of these members that may be omitted.
const MAY_BE_OMITTED: [&str; 2] = ["stream", "stream_options"];
/// Maximum size of a member that is set, in bytes of JSON.
const MAX_MEMBER_BYTES: usize = 4096;

impl ConfigResolver<'_> {
    pub(super) fn check_envelope(&mut self, kind: Kind, envelope: &Envelope, at: &Path) {
        let Envelope { paths, set_body, omit_body, betas_in_body } = envelope;
        self.check_paths(kind, paths, &at.to("paths"));
        if kind == Kind::Simulator && !(set_body.is_empty() && omit_body.is_empty()) {
            let message = "the simulator only accepts unchanged bodies: remove set_body and omit_body";
            self.wrong(at.clone(), message);
        }
        for (name, value) in set_body {
            let at = at.to("set_body").to(name.as_str());
            if OWN_MEMBERS.contains(&name.as_str()) {
                self.wrong(at, "cannot be set: the gateway sets it");
            } else if omit_body.contains(name) {
                self.wrong(at, "is also in omit_body: remove it from one of them");
            } else if value.is_null() {
                self.wrong(at, "must be a value that JSON can represent");
            } else if value.to_string().len() > MAX_MEMBER_BYTES {
                self.wrong(at, format!("must be at most {MAX_MEMBER_BYTES} bytes as JSON"));
            }
        }
        for (index, name) in omit_body.iter().enumerate() {
            let name = name.as_str();
            let message = match name {
                "model" => format!(
                    "put {MODEL_PLACEHOLDER} in the path instead: the model is then omitted from the body"
                ),
                _ if OWN_MEMBERS.contains(&name) && !MAY_BE_OMITTED.contains(&name) => {
                    "cannot be omitted: it is the request itself".to_owned()
                }
                _ => continue,
            };
            self.wrong(at.to("omit_body").to(index), message);
        }
        if *betas_in_body && kind.main_protocol().binding().beta_header.is_none() {
            self.wrong(at.to("betas_in_body"), "only the kind messages has beta features: remove the key");
        }
    }

    fn check_paths(&mut self, kind: Kind, paths: &Paths, at: &Path) {
        for (key, path) in paths.all() {
            let why = check_path(path).err().or_else(|| {
                let why = out_of_place(kind, key)?;
                Some(format!("{why}: remove the key"))
            });
            if let Some(why) = why {
                self.wrong(at.to(key), why);
            } else if key == "videos" && path.contains(['?', '{']) {
                self.wrong(
                    at.to(key),
                    "must not have a query or {model}: the id of a video is appended to it",
                );
            }
        }
        let model_in_path = kind.main_protocol().binding().model_in_path;
        if model_in_path && paths.answer.is_some() && paths.stream.is_none() {
            let message =
                "the key stream is missing: for this kind, streams have a different path than answer";
            self.wrong(at.clone(), message);
        }
    }
}

/// Why a path is useless for this kind of upstream.
fn out_of_place(kind: Kind, key: &str) -> Option<&'static str> {
    const AUDIO: [&str; 3] = ["speech", "transcriptions", "translations"];
    let is_audio = AUDIO.contains(&key);
    let is_text = !is_audio && !matches!(key, "embeddings" | "rerank" | "moderations" | "images" | "videos");
    match kind {
        Kind::Simulator => Some("the simulator is part of the gateway and has no paths"),
        Kind::Gatewright => Some("another gateway always has the paths of the protocols"),
        Kind::Responses if is_text => {
            Some("the kind responses has two protocols with a path each; use the kind chat, which has one")
        }
        Kind::Chat if key == "count_tokens" => Some("the kind chat has no token counting"),
        Kind::Converse if key == "count_tokens" => Some("the kind converse counts no tokens"),
        Kind::Messages | Kind::Converse if key == "embeddings" => {
            Some("this kind does not support embeddings")
        }
        Kind::Messages | Kind::Native | Kind::Converse if matches!(key, "rerank" | "moderations") => {
            Some("this kind supports neither rankings nor moderations")
        }
        Kind::Messages | Kind::Native | Kind::Converse if is_audio => {
            Some("this kind supports neither speech nor transcriptions")
        }
        Kind::Messages | Kind::Native | Kind::Converse if !is_text && key != "embeddings" => {
            Some("this kind supports neither images nor videos")
        }
        _ => None,
    }
}

/// Whether a path can be appended to a URL. Errors: why not.
fn check_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err("must begin with /: it is appended to base_url".to_owned());
    }
    let without = path.replace(MODEL_PLACEHOLDER, "m");
    if let Some(start) = without.find(['{', '}']) {
        let rest = &without[start..];
        let name = rest.find('}').map_or(rest, |end| &rest[..=end]);
        return Err(format!("unknown placeholder {name}; a path may only contain {MODEL_PLACEHOLDER}"));
    }
    let is_path = !without.contains('#') && without.bytes().all(|byte| byte.is_ascii_graphic());
    let is_path = is_path && without.parse::<PathAndQuery>().is_ok();
    is_path
        .then_some(())
        .ok_or_else(|| "must be a path of visible ASCII, such as \"/chat/completions\"".to_owned())
}
