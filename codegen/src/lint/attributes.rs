//! Our attributes of operations and schemas: where they are allowed, and what they may name.

use serde_json::Value;

use super::Lint;
use crate::document::{child, items_of, members_of, responses, schema_name, text};
use crate::model::{Conversation, ModelKind, Protocol, SpecEnum as _};
use crate::names;
use crate::schema::variants;

const JOINED_TEXT: &[&str] = &["name", "path", "type", "member", "description"];
const WHEN: &[&str] = &["parameter", "values"];
const STREAM: &[&str] = &["parameter", "value", "always", "terminator", "last_events", "final"];
const FINAL: &[&str] = &["python", "node"];
const HELPER: &[&str] = &["own", "extends"];

impl Lint<'_> {
    /// The attributes that an operation may lack, but for those of streams and helpers.
    pub(super) fn operation_attributes(&mut self, node: &Value, at: &str) {
        self.optional_word::<ModelKind>(node, at, "x-models");
        self.optional_word::<Conversation>(node, at, "x-conversation");
        self.check_model_attributes(node, at);
        if node.get("x-inference").is_some_and(|name| name.as_str().is_none_or(str::is_empty)) {
            self.report(&child(at, "x-inference"), "x-inference is a name, such as `chat`; correct it");
        }
        if node.get("x-preview").is_some_and(|preview| preview.as_bool() != Some(true)) {
            self.report(&child(at, "x-preview"), "x-preview is true; correct it, or leave it out");
        }
        let Some(member) = node.get("x-webhook-url") else { return };
        let body = self.document.request_body(node);
        let member = member.as_str().zip(body.and_then(|body| body.get("properties")));
        if member.is_none_or(|(name, all)| all.get(name).is_none()) {
            self.report(
                &child(at, "x-webhook-url"),
                "x-webhook-url names a property of the request body; correct it",
            );
        }
    }

    /// What an operation with a body must state about models: without `x-models` its model is not checked, and without
    /// `x-inference` traces do not name calls of text models.
    fn check_model_attributes(&mut self, node: &Value, at: &str) {
        let is_of_text = Protocol::named(text(node, "x-protocol")).is_some_and(Protocol::is_of_text);
        if !is_of_text || node.get("requestBody").is_none() {
            return;
        }
        for (key, why) in [
            ("x-models", "without it nothing checks the model; add `text`"),
            ("x-inference", "without it no trace names the call; add a name, such as `chat`"),
        ] {
            if node.get(key).is_none() {
                self.report(&child(at, key), format!("{key} is missing: {why}"));
            }
        }
    }

    /// `x-stream`, along with the streaming responses.
    pub(super) fn stream(&mut self, operation: &Value, at: &str) {
        let streams = responses(operation)
            .any(|(_, response)| response.pointer("/content/text~1event-stream").is_some());
        let at = child(at, "x-stream");
        let Some(stream) = operation.get("x-stream") else {
            if streams {
                self.report(
                    &at,
                    "the operation streams: add x-stream: {parameter: stream} or {always: true}",
                );
            }
            return;
        };
        self.keys(stream, &at, "x-stream", STREAM);
        if !streams {
            self.report(
                &at,
                "x-stream without a text/event-stream response; add the response or remove x-stream",
            );
        }
        if !stream.as_object().is_some_and(|members| members.contains_key("terminator")) {
            self.report(&at, "terminator is missing; give the last data line (`\"[DONE]\"`) or null");
        }
        let needs_last = Protocol::named(text(operation, "x-protocol")).is_some_and(Protocol::ends_by_name);
        if needs_last && stream.get("last_events").is_none() {
            self.report(
                &at,
                "last_events is missing: in this protocol only the name of an event tells that a stream is whole; add it",
            );
        }
        if let Some(names) = stream.get("last_events") {
            let item = self.document.event_schema(operation);
            let known = item.and_then(|item| item.pointer("/x-discriminator/mapping"));
            let is_known = |name: &Value| {
                name.as_str().zip(known).is_some_and(|(name, known)| known.get(name).is_some())
            };
            if names.as_array().is_none_or(|names| names.is_empty() || !names.iter().all(is_known)) {
                self.report(
                    &child(&at, "last_events"),
                    "last_events names kinds of the events, as x-discriminator of x-item-schema maps them; correct it",
                );
            }
        }
        if let Some(last) = stream.get("final") {
            let at = child(&at, "final");
            self.keys(last, &at, "final", FINAL);
            for language in FINAL.iter().filter(|language| text(last, language).is_empty()) {
                self.report(
                    &at,
                    format!("{language} is missing; name the method that gives the whole document"),
                );
            }
        }
        match (stream.get("parameter").and_then(Value::as_str), stream.get("always")) {
            (Some(name), None) => {
                let body = self.document.request_body(operation);
                if body.is_none_or(|body| body.get("properties").and_then(|all| all.get(name)).is_none()) {
                    self.report(
                        &at,
                        format!("the request body has no property `{name}`; add it or correct x-stream"),
                    );
                } else if let Some(value) = stream.get("value") {
                    self.words(operation, name, std::slice::from_ref(value), &child(&at, "value"));
                }
            }
            (None, Some(Value::Bool(true))) => {}
            _ => self
                .report(&at, "must be {parameter: NAME}, {parameter: NAME, value: WORD} or {always: true}"),
        }
    }

    /// `x-when` of a text beside JSON.
    pub(super) fn text_form(&mut self, operation: &Value, at: &str) {
        for (status, response) in responses(operation) {
            for (kind, media) in members_of(response, "content") {
                let Some(when) = media.get("x-when") else { continue };
                let at = ["responses", status, "content", kind, "x-when"]
                    .iter()
                    .fold(at.to_owned(), |at, key| child(&at, key));
                self.keys(when, &at, "x-when", WHEN);
                let name = text(when, "parameter");
                let values: Vec<Value> = items_of(when, "values").cloned().collect();
                self.words(operation, name, &values, &child(&at, "values"));
            }
        }
    }

    /// Words of a member of the body that decide what the answer is.
    pub(super) fn words(&mut self, operation: &Value, name: &str, words: &[Value], at: &str) {
        let member = self.document.request_body(operation).and_then(|body| body.get("properties")?.get(name));
        let member = member.and_then(|member| self.document.follow(member).ok());
        let known = member.and_then(|member| member.get("enum")?.as_array());
        let is_known = |word: &Value| word.is_string() && known.is_some_and(|known| known.contains(word));
        if words.is_empty() || !words.iter().all(is_known) {
            self.report(
                at,
                format!("these are no values of `{name}`, whose enum lists them; correct one or the other"),
            );
        }
    }

    /// `x-helpers`: methods of the clients that are built on the operation.
    pub(super) fn helpers(&mut self, operation: &Value, at: &str) {
        let at = child(at, "x-helpers");
        let helpers = operation.get("x-helpers");
        if helpers.is_some_and(|helpers| !helpers.is_object()) {
            return self.report(&at, "x-helpers has a member for each method; correct it");
        }
        let body = self.document.request_body(operation);
        let is_member = |name: &Value| {
            let all = body.and_then(|body| body.get("properties"));
            name.as_str().zip(all).is_some_and(|(name, all)| all.get(name).is_some())
        };
        let event = self.document.event_schema(operation);
        let is_event = |name: &Value| {
            let kinds = event.into_iter().flat_map(variants);
            kinds.filter_map(|kind| kind["$ref"].as_str().and_then(schema_name)).any(|kind| name == kind)
        };
        for (name, helper) in helpers.and_then(Value::as_object).into_iter().flatten() {
            let at = child(&at, name);
            self.keys(helper, &at, "a helper", HELPER);
            if names::snake(name) != *name {
                self.report(&at, format!("a method is snake_case; rename it to `{}`", names::snake(name)));
            }
            let own = helper.get("own").map(|own| own.as_array().map_or(&[][..], Vec::as_slice));
            if own.is_some_and(|own| own.is_empty() || !own.iter().all(is_member)) {
                self.report(&child(&at, "own"), "own lists properties of the request body; correct it");
            }
            let extends = helper.get("extends").map(|kinds| kinds.as_array().map_or(&[][..], Vec::as_slice));
            if extends.is_some_and(|kinds| kinds.is_empty() || !kinds.iter().all(is_event)) {
                self.report(
                    &child(&at, "extends"),
                    "extends lists schemas of kinds of events of the stream; correct it",
                );
            }
        }
    }

    /// `x-iterable` and `x-text`, for what clients derive from a response, and `x-new` and `x-built`, for requests.
    pub(super) fn conveniences(&mut self, node: &Value, at: &str) {
        if node.get("x-new").is_some_and(|new| new != "by hand") {
            self.report(&child(at, "x-new"), "x-new says `by hand`; remove it where `new` is generated");
        }
        let is_code =
            |built: &Value| built.as_str().is_some_and(|built| syn::parse_str::<syn::Expr>(built).is_ok());
        if let Some(built) = node.get("x-built")
            && !(is_code(built) && node.get("x-new").is_some() && node.get("examples").is_some())
        {
            self.report(
                &child(at, "x-built"),
                "x-built is an expression of Rust that makes the first of `examples`, beside x-new; correct it",
            );
        }
        let property = |name: &str| node.get("properties").and_then(|all| all.get(name));
        if let Some(iterable) = node.get("x-iterable") {
            let array = iterable.as_str().and_then(property);
            if array.and_then(|array| array.get("items")).is_none() {
                self.report(
                    &child(at, "x-iterable"),
                    "x-iterable names an array among the properties; correct it",
                );
            }
        }
        if let Some(joined) = node.get("x-text") {
            let at = child(at, "x-text");
            self.keys(joined, &at, "x-text", JOINED_TEXT);
            if property(text(joined, "name")).is_some() {
                self.report(&at, "the member of x-text is a property already; rename one");
            }
            if joined.pointer("/path/0").and_then(Value::as_str).and_then(property).is_none() {
                self.report(&at, "the path of x-text begins with an array among the properties; correct it");
            }
        }
    }

    /// `x-position` and `x-assumed-kind`, which define the meaning of omitted members in a response, and `x-accepts-type`.
    pub(super) fn member_attributes(&mut self, node: &Value, at: &str) {
        if node.get("x-position").is_some_and(|is| is != true || node["type"] != "integer") {
            self.report(&child(at, "x-position"), "x-position is true, on an integer; correct it");
        }
        if node.get("x-accepts-type").is_some_and(|accepts| accepts != true) {
            self.report(&child(at, "x-accepts-type"), "x-accepts-type is true; correct it, or leave it out");
        }
        if let Some(kind) = node.get("x-assumed-kind") {
            let known = node.pointer("/x-discriminator/mapping").and_then(Value::as_object);
            if !known.zip(kind.as_str()).is_some_and(|(known, kind)| known.contains_key(kind)) {
                self.report(
                    &child(at, "x-assumed-kind"),
                    "x-assumed-kind names one of the kinds that x-discriminator maps; correct it",
                );
            }
        }
    }
}
