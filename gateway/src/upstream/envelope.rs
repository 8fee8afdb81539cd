//! The envelope of a request, for upstreams that deviate from their protocol: another path, and some body members added or
//! removed. The rest of the body stays unchanged.

use std::borrow::Cow;

use bytes::Bytes;
use gatewright_config::{self, MODEL_PLACEHOLDER, Paths};
use http::{HeaderMap, HeaderName};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::Value;

use super::escaping::SEGMENT;
use gatewright_protocol::lazy_json::{members, place, spliced};
use gatewright_protocol::{Action, PlainAction};

/// Header that enables beta features of the messages protocol: without it, bodies that use them would be rejected.
const BETA_HEADER: HeaderName = HeaderName::from_static("anthropic-beta");
/// The member that serves the same purpose.
const BETA_MEMBER: &str = "anthropic_beta";
/// Characters that a model may contain unescaped: providers write a model's version after an @.
const MODEL: &AsciiSet = &SEGMENT.remove(b'@');

/// How requests deviate from their protocol.
#[derive(Debug, Default)]
pub(super) struct RequestEnvelope {
    paths: Paths,
    set: Vec<Member>,
    omitted: Vec<String>,
    pub(super) betas_in_body: bool,
}

/// A body member.
#[derive(Debug)]
struct Member {
    name: String,
    /// As JSON.
    value: String,
    /// Whether it overrides the one in the body.
    replaces: bool,
}

impl RequestEnvelope {
    pub(super) fn new(configured: &gatewright_config::Envelope) -> Self {
        let set = configured.set_body.iter();
        let set =
            set.map(|(name, value)| Member { name: name.clone(), value: value.to_string(), replaces: true });
        Self {
            paths: configured.paths.clone(),
            set: set.collect(),
            omitted: configured.omit_body.clone(),
            betas_in_body: configured.betas_in_body,
        }
    }

    /// The path of an action, with the model in it. `None`: the protocol's path.
    pub(super) fn path(&self, action: Action, model: &str) -> Option<Cow<'_, str>> {
        self.template(action).map(|path| {
            if path.contains(MODEL_PLACEHOLDER) {
                let model = utf8_percent_encode(model, MODEL).to_string();
                path.replace(MODEL_PLACEHOLDER, &model).into()
            } else {
                path.into()
            }
        })
    }

    fn template(&self, action: Action) -> Option<&str> {
        let Paths { answer, stream, count_tokens, images, videos, .. } = &self.paths;
        let path = match action {
            Action::Answer { stream: true } => stream.as_ref().or(answer.as_ref()),
            Action::Answer { stream: false } => answer.as_ref(),
            Action::CountTokens => count_tokens.as_ref(),
            Action::Compact => None,
            Action::Plain(PlainAction::Embed { .. }) => self.paths.embeddings.as_ref(),
            Action::Plain(PlainAction::Rerank) => self.paths.rerank.as_ref(),
            Action::Plain(PlainAction::Moderate) => self.paths.moderations.as_ref(),
            Action::Plain(PlainAction::Speak) => self.paths.speech.as_ref(),
            Action::Plain(PlainAction::Transcribe) => self.paths.transcriptions.as_ref(),
            Action::Plain(PlainAction::Translate) => self.paths.translations.as_ref(),
            Action::Image => images.as_ref(),
            Action::Video => videos.as_ref(),
        };
        path.map(String::as_str)
    }

    /// The body of a request. `client`: the client's headers, if it speaks the protocol of the upstream.
    pub(super) fn body(
        &self,
        action: Action,
        body: Bytes,
        client: Option<&HeaderMap>,
    ) -> Result<Bytes, String> {
        let names_model = self.template(action).is_some_and(|path| path.contains(MODEL_PLACEHOLDER));
        let is_text = matches!(action, Action::Answer { .. } | Action::CountTokens | Action::Compact);
        let is_decided = |name: &str| {
            self.set.iter().any(|member| member.name == name)
                || self.omitted.iter().any(|omitted| omitted == name)
        };
        let takes_betas = is_text && self.betas_in_body && !is_decided(BETA_MEMBER);
        let betas = client.filter(|_| takes_betas).and_then(betas);
        let set = self.set.iter().filter(|_| is_text).chain(&betas);
        let set: Vec<&Member> = set.collect();
        let is_omitted = |name: &str| {
            names_model && name == "model" || is_text && self.omitted.iter().any(|omitted| omitted == name)
        };
        if set.is_empty() && !names_model && (!is_text || self.omitted.is_empty()) {
            return Ok(body);
        }
        rewritten(&body, &set, is_omitted)
            .ok_or_else(|| "the body of the request is not a JSON object".to_owned())
    }
}

/// The beta features from the client's headers, as a body member.
fn betas(client: &HeaderMap) -> Option<Member> {
    let headers = client.get_all(BETA_HEADER).into_iter().filter_map(|value| value.to_str().ok());
    let betas = headers.flat_map(|value| value.split(',')).map(str::trim).filter(|beta| !beta.is_empty());
    let betas: Vec<Value> = betas.map(Value::from).collect();
    let value = (!betas.is_empty()).then(|| Value::from(betas).to_string())?;
    Some(Member { name: BETA_MEMBER.to_owned(), value, replaces: false })
}

/// Rewrites an object: drops the omitted members and adds those to set, each in the place of an existing one or at the end.
/// `None`: it isn't an object.
fn rewritten(body: &Bytes, set: &[&Member], is_omitted: impl Fn(&str) -> bool) -> Option<Bytes> {
    let text = std::str::from_utf8(body).ok()?;
    let start = text.find('{')? + 1;
    let mut edits = Vec::new();
    let (mut end, mut is_first, mut is_empty) = (start, true, true);
    let mut is_there = vec![false; set.len()];
    members(text, |name, value| {
        let at = place(text, value);
        let begin = std::mem::replace(&mut end, at.end);
        let was_first = std::mem::take(&mut is_first);
        if is_omitted(name) {
            edits.push((begin..at.end, &b""[..]));
            return;
        }
        if std::mem::take(&mut is_empty) && !was_first {
            // Nothing precedes its comma any more.
            let comma = begin + text[begin..].find(',').unwrap_or_default();
            edits.push((begin..comma + 1, &b""[..]));
        }
        if let Some(index) = set.iter().position(|member| member.name == name) {
            is_there[index] = true;
            if set[index].replaces {
                edits.push((at, set[index].value.as_bytes()));
            }
        }
    })
    .ok()?;
    let mut added = String::new();
    for (member, _) in set.iter().zip(&is_there).filter(|(_, is_there)| !**is_there) {
        if !std::mem::take(&mut is_empty) {
            added.push(',');
        }
        added.push_str(&Value::from(member.name.as_str()).to_string());
        added.push(':');
        added.push_str(&member.value);
    }
    edits.push((end..end, added.as_bytes()));
    Some(spliced(body, &edits))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    fn envelope() -> RequestEnvelope {
        let mut configured = gatewright_config::Envelope::default();
        configured.paths.answer = Some("/{model}:one".to_owned());
        configured.paths.count_tokens = Some("/count".to_owned());
        configured.set_body.insert("version".to_owned(), json!("v1"));
        configured.omit_body = vec!["stream".to_owned()];
        configured.betas_in_body = true;
        RequestEnvelope::new(&configured)
    }

    fn body(text: &'static str, client: &HeaderMap) -> String {
        let answer = Action::Answer { stream: true };
        let body = envelope().body(answer, Bytes::from_static(text.as_bytes()), Some(client));
        String::from_utf8(body.expect("an object").to_vec()).expect("text")
    }

    #[test]
    fn model_in_the_path_is_removed_from_the_body() {
        for (text, expected) in [
            (
                r#"{"model":"m","a":1.50,"b":[{"model":"x"}]}"#,
                r#"{"a":1.50,"b":[{"model":"x"}],"version":"v1"}"#,
            ),
            (r#" { "a,b" : 1 , "model":"m" } "#, r#" { "a,b" : 1,"version":"v1" } "#),
            (r#"{"stream":true, "model":"m","a":1}"#, r#"{"a":1,"version":"v1"}"#),
            (r#"{"a":1,"stream":true,"model":"m","b":2}"#, r#"{"a":1,"b":2,"version":"v1"}"#),
            (r#"{"m\u006fdel":"m"}"#, r#"{"version":"v1"}"#),
            ("{}", r#"{"version":"v1"}"#),
            (r#"{"version":2,"a":1}"#, r#"{"version":"v1","a":1}"#),
            (r#"{"version":2,"version":3}"#, r#"{"version":"v1","version":"v1"}"#),
        ] {
            assert_eq!(body(text, &HeaderMap::new()), expected, "{text}");
        }
    }

    #[test]
    fn model_stays_in_the_body_if_the_path_has_none() {
        let text = Bytes::from_static(br#"{"model":"m","a":1}"#);
        let counted = envelope().body(Action::CountTokens, text.clone(), None).expect("an object");
        assert_eq!(counted, r#"{"model":"m","a":1,"version":"v1"}"#);
        let drawn = envelope().body(Action::Image, text.clone(), None).expect("an object");
        assert_eq!(drawn, text);
    }

    #[test]
    fn beta_features_move_from_headers_into_the_body() {
        let mut client = HeaderMap::new();
        client.append(BETA_HEADER, HeaderValue::from_static("one, two"));
        client.append(BETA_HEADER, HeaderValue::from_static("three"));
        let betas = r#"{"a":1,"version":"v1","anthropic_beta":["one","two","three"]}"#;
        assert_eq!(body(r#"{"a":1}"#, &client), betas);
        let own = r#"{"anthropic_beta":["mine"],"version":"v1"}"#;
        assert_eq!(body(r#"{"anthropic_beta":["mine"]}"#, &client), own);
        let mut decided =
            gatewright_config::Envelope { betas_in_body: true, ..gatewright_config::Envelope::default() };
        decided.set_body.insert(BETA_MEMBER.to_owned(), json!(["ours"]));
        let (turn, text) = (Action::Answer { stream: false }, Bytes::from_static(b"{}"));
        let sent = RequestEnvelope::new(&decided).body(turn, text, Some(&client)).expect("an object");
        assert_eq!(sent, r#"{"anthropic_beta":["ours"]}"#, "the operator decides");
    }

    #[test]
    fn model_is_one_path_segment() {
        let turn = Action::Answer { stream: false };
        for (model, path) in [
            ("claude-1@2025", "/claude-1@2025:one"),
            ("anthropic.claude-v2:0", "/anthropic.claude-v2%3A0:one"),
            ("arn:a/b?c", "/arn%3Aa%2Fb%3Fc:one"),
        ] {
            assert_eq!(envelope().path(turn, model).as_deref(), Some(path));
        }
        assert_eq!(envelope().path(Action::Image, "m"), None);
    }

    #[test]
    fn non_object_body_is_not_sent() {
        let turn = Action::Answer { stream: false };
        for text in ["", "[]", "{", "[{}]"] {
            assert!(envelope().body(turn, Bytes::from_static(text.as_bytes()), None).is_err(), "{text}");
        }
    }
}
