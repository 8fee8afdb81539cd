//! The parts of a client's request that determine how it is routed and relayed, read from the bytes of the body.

use std::ops::Range;

use bytes::Bytes;
use gatewright_config::Capabilities;
use gatewright_protocol::RequestMembers;
use gatewright_protocol::conversation::Protocol;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use gatewright_protocol::lazy_json::{self, members, spliced};

/// The request members that routing and relaying read.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent members of a request")]
pub(crate) struct RequestMeta {
    /// The client's name for the model. Empty if the body names none.
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether the client wants the usage chunk at the end of a stream (chat).
    pub(crate) include_usage: bool,
    /// Whether the response is generated in the background (responses).
    pub(crate) background: bool,
    /// The response that it continues.
    pub(crate) previous: Option<String>,
    /// Maximum number of tokens per choice, if the client sets it.
    pub(crate) most_tokens: Option<u64>,
    /// Number of choices requested.
    pub(crate) choices: u32,
    /// Whether `input` is a list.
    pub(crate) lists_input: bool,
    /// A member that the body has in another spelling, which servers that ignore case read as the same one.
    pub(crate) misspelled: Option<&'static str>,
    /// The body; of duplicate members, only the last remains.
    pub(super) body: Bytes,
    model_at: Option<Range<usize>>,
    options_at: Option<Range<usize>>,
    /// In the native protocol, a request to count tokens repeats the model name inside another request.
    inner_at: Option<Range<usize>>,
    /// The closing brace of the body.
    end: usize,
}

/// `stream_options` of the chat protocol.
#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// The output limits of a request, in the format of each protocol. If there are several, the largest counts.
#[derive(Default)]
struct OutputLimits {
    tokens: Option<u64>,
    choices: Option<u64>,
}

impl OutputLimits {
    /// Takes a member of a request.
    fn note(&mut self, names: &RequestMembers, name: &str, value: &RawValue) {
        if names.parameters.is_empty() {
            self.note_parameter(names, name, value);
        } else if names.parameters.contains(&name) {
            _ = members(value.get(), |name, value| self.note_parameter(names, name, value));
        }
    }

    fn note_parameter(&mut self, names: &RequestMembers, name: &str, value: &RawValue) {
        let amount = if names.max_tokens.contains(&name) {
            &mut self.tokens
        } else if names.choices.contains(&name) {
            &mut self.choices
        } else {
            return;
        };
        // Native requests may write numbers as strings.
        let stated = value.get().trim_matches('"').parse().ok();
        *amount = stated.max(*amount);
    }
}

/// The routing member that a name becomes if case is ignored. Servers in Go do so, and the last member wins.
fn spelling_of(name: &str) -> Option<&'static str> {
    const ROUTING: [&str; 5] = ["model", "stream", "stream_options", "previous_response_id", "background"];
    let folded = || {
        name.chars().map(|letter| match letter {
            // The only other letters that Unicode folds to ASCII.
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            letter => letter.to_ascii_lowercase(),
        })
    };
    ROUTING.into_iter().find(|known| *known != name && folded().eq(known.chars()))
}

impl RequestMeta {
    /// None if the body isn't a JSON object.
    pub(crate) fn read(body: &Bytes, protocol: Protocol) -> Option<Self> {
        let (meta, twice) = Self::read_once(body, protocol)?;
        if !twice {
            return Some(meta);
        }
        // Gateway and upstream must not read different duplicates.
        let document: Value = serde_json::from_slice(body).ok()?;
        Self::read_once(&document.to_string().into(), protocol).map(|(meta, _)| meta)
    }

    /// The same without rewriting the body. `None` also if it has duplicate members.
    pub(crate) fn read_unchanged(body: &Bytes, protocol: Protocol) -> Option<Self> {
        Self::read_once(body, protocol).and_then(|(meta, twice)| (!twice).then_some(meta))
    }

    /// Also returns whether there are duplicate members.
    fn read_once(body: &Bytes, protocol: Protocol) -> Option<(Self, bool)> {
        let binding = protocol.binding();
        let text = std::str::from_utf8(body).ok()?;
        let (mut model, mut stream, mut options, mut inner) = (None, None, None, None);
        let (mut previous, mut background, mut input, mut twice) = (None, None, None, false);
        let (mut amount, mut misspelled) = (OutputLimits::default(), None);
        members(text, |name, value| {
            amount.note(&binding.request, name, value);
            let member = match name {
                "model" => &mut model,
                "stream" => &mut stream,
                "stream_options" => &mut options,
                name if binding.counted_request == Some(name) => &mut inner,
                "previous_response_id" => &mut previous,
                "background" => &mut background,
                "input" => &mut input,
                name => {
                    misspelled = misspelled.or_else(|| spelling_of(name));
                    return;
                }
            };
            twice |= member.replace(value).is_some();
        })
        .ok()?;
        let include_usage = options
            .and_then(|options| serde_json::from_str::<StreamOptions>(options.get()).ok()?.include_usage);
        let mut inner_at = None;
        if let Some(inner) = inner {
            _ = members(inner.get(), |name, value| {
                if name == "model" {
                    twice |= inner_at.replace(lazy_json::place(text, value)).is_some();
                }
            });
        }
        let meta = Self {
            model: model.and_then(lazy_json::string).map(String::from).unwrap_or_default(),
            stream: stream.is_some_and(|stream| stream.get() == "true"),
            include_usage: include_usage == Some(true),
            background: background.is_some_and(|background| background.get() == "true"),
            most_tokens: amount.tokens,
            choices: amount.choices.map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX).max(1)),
            lists_input: input.is_some_and(|input| input.get().starts_with('[')),
            misspelled,
            previous: previous.and_then(lazy_json::string).map(String::from),
            model_at: model.map(|model| lazy_json::place(text, model)),
            options_at: options.map(|options| lazy_json::place(text, options)),
            inner_at,
            end: text.rfind('}')?,
            body: body.clone(),
        };
        Some((meta, twice))
    }

    /// Where the model is in the body, with its quotes. `None`: the body names none.
    pub(crate) fn model_place(&self) -> Option<Range<usize>> {
        self.model_at.clone()
    }

    /// Whether the client names a model. Null is absence.
    pub(super) fn names_model(&self) -> bool {
        self.model_at.clone().is_some_and(|at| self.body[at] != *b"null")
    }

    /// The request with a model, for a client that names none.
    pub(super) fn choosing(self, model: &str) -> Self {
        let name = Value::from(model).to_string();
        let edit = match self.model_at.clone() {
            Some(at) => (at, name),
            None => (self.end..self.end, format!(",\"model\":{name}")),
        };
        let body = spliced(&self.body, &[(edit.0, edit.1.as_bytes())]);
        // An empty object has no place for it, and lacks more than a model.
        Self::read(&body, Protocol::Chat).unwrap_or(self)
    }

    /// The body with the upstream's name for the model.
    pub(crate) fn named(&self, protocol: Protocol, model: &str) -> Bytes {
        spliced(&self.body, &self.renaming(protocol, &quoted(protocol, model)))
    }

    fn renaming<'m>(&self, protocol: Protocol, model: &'m str) -> Vec<(Range<usize>, &'m [u8])> {
        let at = if protocol.binding().model_in_path { &self.inner_at } else { &self.model_at };
        let at = at.clone().filter(|at| self.body[at.clone()] != *model.as_bytes());
        at.map(|at| (at, model.as_bytes())).into_iter().collect()
    }

    /// The body for an upstream of the same protocol: with its name for the model, and in chat streams with a request for the
    /// usage if the server supports it. Everything else is as the client wrote it.
    pub(crate) fn body_for(&self, protocol: Protocol, model: &str, server: Capabilities) -> Bytes {
        let model = quoted(protocol, model);
        let mut edits = self.renaming(protocol, &model);
        let adds_usage = protocol.binding().stream.usage_on_request && server.stream_options;
        if adds_usage && self.stream && !self.include_usage {
            edits.push(match &self.options_at {
                None => (self.end..self.end, br#","stream_options":{"include_usage":true}"#),
                Some(at) => match self.with_usage(at.clone()) {
                    Some(inside) => (inside, br#""include_usage":true,"#),
                    None => (at.clone(), br#"{"include_usage":true}"#),
                },
            });
        }
        edits.sort_by_key(|(range, _)| range.start);
        spliced(&self.body, &edits)
    }

    /// Where to add `include_usage` to options that have other members but not this one.
    fn with_usage(&self, options: Range<usize>) -> Option<Range<usize>> {
        let text = std::str::from_utf8(&self.body[options.clone()]).ok()?;
        let (mut count, mut named) = (0, false);
        members(text, |name, _| {
            count += 1;
            named |= name == "include_usage";
        })
        .ok()?;
        let inside = options.start + 1;
        (count > 0 && !named).then_some(inside..inside)
    }
}

/// The name of a model as JSON.
fn quoted(protocol: Protocol, model: &str) -> String {
    Value::from(protocol.model_name(model)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_for(body: &'static str, model: &str) -> String {
        let meta =
            RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Chat).expect("an object");
        String::from_utf8(meta.body_for(Protocol::Chat, model, Capabilities::default()).to_vec())
            .expect("text")
    }

    #[test]
    fn members_that_servers_read_if_they_ignore_case_are_noticed() {
        for (member, expected) in [
            ("Model", Some("model")),
            ("\u{6d}ODEL", Some("model")),
            ("\u{17f}tream", Some("stream")),
            ("Stream_Options", Some("stream_options")),
            ("bac\u{212a}ground", Some("background")),
            ("model", None),
            ("models", None),
            ("Temperature", None),
        ] {
            let body = Bytes::from(format!(r#"{{"model":"m","{member}":1}}"#));
            let meta = RequestMeta::read(&body, Protocol::Chat).expect("an object");
            assert_eq!(meta.misspelled, expected, "{member}");
        }
    }

    #[test]
    fn only_the_model_name_changes() {
        let body = r#"{ "future": {"a":1.50},  "model" :"m", "n":1e0}"#;
        assert_eq!(body_for(body, "m"), body);
        assert_eq!(body_for(body, "up/\"x\""), body.replace(r#""m""#, r#""up/\"x\"""#));
    }

    #[test]
    fn chat_streams_request_usage() {
        for (body, expected) in [
            (
                r#"{"model":"m","stream":true}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"stream_options":null,"model":"m","stream":true}"#,
                r#"{"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
            ),
            (
                r#"{"model":"m","stream":true,"stream_options":{"x":1}}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":1}}"#,
            ),
            (
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":false}}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
                r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            ),
            (r#"{"model":"m","stream":false}"#, r#"{"model":"m","stream":false}"#),
        ] {
            assert_eq!(body_for(body, "m"), expected);
        }
    }

    #[test]
    fn server_without_stream_options_gets_none() {
        let body = r#"{"model":"m","stream":true}"#;
        let meta =
            RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Chat).expect("an object");
        let server = Capabilities { stream_options: false, ..Capabilities::default() };
        assert_eq!(meta.body_for(Protocol::Chat, "m", server), body);
    }

    #[test]
    fn duplicate_members_are_sent_once() {
        let body = r#"{"model":"cheap","messages":[],"mode\u006c":"dear","n":1}"#;
        let meta =
            RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Chat).expect("an object");
        assert_eq!(meta.model, "dear");
        assert_eq!(body_for(body, "up"), r#"{"model":"up","messages":[],"n":1}"#);
    }

    #[test]
    fn model_is_added_to_a_request_without_one() {
        for (body, expected) in [
            (r#"{"input":"a"} "#, r#"{"input":"a","model":"m"} "#),
            (r#"{"model":null,"input":"a"}"#, r#"{"model":"m","input":"a"}"#),
            ("{}", "{}"),
        ] {
            let meta =
                RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Chat).expect("an object");
            assert!(!meta.names_model(), "{body}");
            let meta = meta.choosing("m");
            assert_eq!((&*meta.body, meta.names_model()), (expected.as_bytes(), body != "{}"));
        }
        let empty = Bytes::from_static(br#"{"model":""}"#);
        assert!(RequestMeta::read(&empty, Protocol::Chat).is_some_and(|meta| meta.names_model()));
    }

    #[test]
    fn native_count_request_renames_the_nested_model() {
        let body = r#"{"model":"x","generateContentRequest":{"model":"models/mine","contents":[]}}"#;
        let meta =
            RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Native).expect("an object");
        let sent = meta.body_for(Protocol::Native, "theirs", Capabilities::default());
        assert_eq!(sent, body.replace("models/mine", "models/theirs"));
    }

    #[test]
    fn non_object_body_is_rejected() {
        for body in ["", "[]", "{", "\u{feff}{}"] {
            assert_eq!(RequestMeta::read(&Bytes::from_static(body.as_bytes()), Protocol::Chat), None);
        }
        let meta = RequestMeta::read(&Bytes::from_static(br#"{"model":7,"stream":"true"}"#), Protocol::Chat)
            .expect("an object");
        assert_eq!((meta.model.as_str(), meta.stream), ("", false));
    }

    #[test]
    fn token_and_choice_limits_are_read_from_each_protocol() {
        let (chat, native) = (Protocol::Chat, Protocol::Native);
        for (protocol, body, expected) in [
            (chat, r#"{"max_tokens":7,"n":3}"#, (Some(7), 3)),
            (chat, r#"{"max_tokens":7,"max_completion_tokens":9}"#, (Some(9), 1)),
            (Protocol::Responses, r#"{"max_output_tokens":7}"#, (Some(7), 1)),
            (native, r#"{"generationConfig":{"maxOutputTokens":"7","candidateCount":2}}"#, (Some(7), 2)),
            (
                native,
                r#"{"generation_config":{"max_output_tokens":7,"generation_config":{"n":9}}}"#,
                (Some(7), 1),
            ),
            (chat, r#"{"max_tokens":null,"n":0}"#, (None, 1)),
            (chat, r#"{"max_tokens":-1,"n":1e3}"#, (None, 1)),
            (chat, r#"{"messages":[{"max_tokens":7,"n":3}]}"#, (None, 1)),
        ] {
            let meta = RequestMeta::read(&Bytes::from_static(body.as_bytes()), protocol).expect("an object");
            assert_eq!((meta.most_tokens, meta.choices), expected, "{body}");
        }
    }
}
