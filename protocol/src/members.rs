//! JSON objects of requests. When reading, fields are taken one by one, and whatever isn't taken is stored with its
//! place. When writing, it goes back to that place if the target speaks the request's protocol; otherwise the place is
//! reported.

use std::collections::{HashMap, HashSet};

use gatewright::limits;
use serde_json::{Map, Number, Value};

use super::EncodedRequest;
use crate::capabilities::Capabilities;
use crate::conversation::{Answer, Conversation, JsonPointer, Located, Protocol};

/// An object being read. A field is taken only if it has the requested type.
pub(super) struct Members {
    map: Map<String, Value>,
    at: String,
    /// Members whose names were respelled, and how the client wrote them.
    respelled: Vec<(String, String)>,
}

impl Members {
    /// Errors: the value isn't an object; it is handed back.
    pub(super) fn read(value: Value, at: impl Into<String>) -> Result<Self, Value> {
        match value {
            Value::Object(members) => Ok(Self { map: members, at: at.into(), respelled: Vec::new() }),
            other => Err(other),
        }
    }

    /// The place of the object.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// The place of a field.
    pub(super) fn place(&self, name: &str) -> String {
        format!("{}/{}", self.at, escaped(name))
    }

    /// Looks at a field without taking it.
    pub(super) fn peek(&self, name: &str) -> &Value {
        self.map.get(name).unwrap_or(&Value::Null)
    }

    /// Takes a field if `read` accepts its value; otherwise `read` hands the value back.
    pub(super) fn take<T>(&mut self, name: &str, read: impl FnOnce(Value) -> Result<T, Value>) -> Option<T> {
        let value = self.map.get_mut(name)?;
        match read(value.take()) {
            Ok(taken) => {
                self.map.swap_remove(name);
                Some(taken)
            }
            Err(back) => {
                *value = back;
                None
            }
        }
    }

    /// Takes a field and remembers its place.
    pub(super) fn given<T>(
        &mut self,
        name: &str,
        take: impl FnOnce(&mut Self, &str) -> Option<T>,
    ) -> Option<Located<T>> {
        let value = take(self, name)?;
        Some(Located::new(value, self.place(name)))
    }

    /// A value that is not null.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.take(name, |value| if value.is_null() { Err(value) } else { Ok(value) })
    }

    /// A string.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    /// A string, if it equals `word`.
    pub(super) fn word(&mut self, name: &str, word: &str) -> bool {
        self.take(name, |value| if value == word { Ok(()) } else { Err(value) }).is_some()
    }

    /// A boolean.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        self.take(name, |value| value.as_bool().ok_or(value))
    }

    /// A non-negative integer.
    pub(super) fn count(&mut self, name: &str) -> Option<u64> {
        self.take(name, |value| limits::integer(&value).ok_or(value))
    }

    /// A number as written.
    pub(super) fn number(&mut self, name: &str) -> Option<Number> {
        self.take(name, |value| match value {
            Value::Number(number) => Ok(number),
            other => Err(other),
        })
    }

    /// A non-empty array.
    pub(super) fn list(&mut self, name: &str) -> Option<Vec<Value>> {
        self.take(name, |value| match value {
            Value::Array(values) if !values.is_empty() => Ok(values),
            other => Err(other),
        })
    }

    /// A non-empty array of strings.
    pub(super) fn texts(&mut self, name: &str) -> Option<Vec<String>> {
        self.take(name, |value| match value {
            Value::Array(values) if !values.is_empty() && values.iter().all(Value::is_string) => {
                let text = |value| if let Value::String(text) = value { text } else { String::new() };
                Ok(values.into_iter().map(text).collect())
            }
            other => Err(other),
        })
    }

    /// An object, unchanged.
    pub(super) fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        self.take(name, |value| match value {
            Value::Object(members) => Ok(members),
            other => Err(other),
        })
    }

    /// An object whose fields are to be read.
    pub(super) fn members(&mut self, name: &str) -> Option<Self> {
        let at = self.place(name);
        self.take(name, |value| match value {
            Value::Object(members) if !members.is_empty() => {
                Ok(Self { map: members, at, respelled: Vec::new() })
            }
            other => Err(other),
        })
    }

    /// Renames each field to camel case. Protocols based on protocol buffers accept either spelling, and the official
    /// clients mix both; if a field has both spellings, both stay.
    pub(super) fn respell(&mut self) {
        if !self.map.keys().any(|name| name.contains('_')) {
            return;
        }
        for (name, value) in std::mem::take(&mut self.map) {
            let plain = camel(&name);
            if self.map.contains_key(&plain) {
                self.map.insert(name, value);
                continue;
            }
            if plain != name {
                self.respelled.push((plain.clone(), name));
            }
            self.map.insert(plain, value);
        }
    }

    /// The object in its current state.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.map)
    }
}

/// A name in camel case.
pub(super) fn camel(name: &str) -> String {
    let mut camel = String::with_capacity(name.len());
    let mut is_next_upper = false;
    for letter in name.chars() {
        if letter == '_' && !camel.is_empty() {
            is_next_upper = true;
        } else {
            camel.push(if is_next_upper { letter.to_ascii_uppercase() } else { letter });
            is_next_upper = false;
        }
    }
    camel
}

/// The fields that weren't taken.
#[derive(Debug, Default)]
pub(super) struct RemainingFields {
    extra: Vec<Located<Value>>,
    own: Vec<Located<Value>>,
}

impl RemainingFields {
    /// Keeps the rest of an object. `own`: names of fields that mean nothing to another protocol.
    pub(super) fn keep(&mut self, members: Members, own: &[&str]) {
        let Members { map, at, mut respelled } = members;
        for (name, value) in map {
            let list = if is_empty(&value) || own.contains(&name.as_str()) {
                &mut self.own
            } else {
                &mut self.extra
            };
            // An unknown member is reported as the client wrote it.
            let written = respelled.iter().position(|(plain, _)| *plain == name);
            let name = written.map_or(name, |index| respelled.swap_remove(index).1);
            list.push(Located::new(value, format!("{at}/{}", escaped(&name))));
        }
    }

    /// Whether this value was kept at a place.
    pub(super) fn holds(&self, at: &str, value: &str) -> bool {
        self.extra.iter().chain(&self.own).any(|given| given.at == at && given.value == value)
    }

    /// Keeps a protocol-specific value.
    pub(super) fn keep_own(&mut self, value: Value, at: impl Into<JsonPointer>) {
        self.own.push(Located::new(value, at));
    }

    /// Marks these places as converted: the fields contain nothing else that matters to another protocol.
    pub(super) fn mark_converted(&mut self, places: &HashSet<String>) {
        let (own, extra): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.extra).into_iter().partition(|given| places.contains(&*given.at));
        self.extra = extra;
        self.own.extend(own);
    }

    /// Forgets everything within these places: each is reported as a whole.
    pub(super) fn forget(&mut self, places: &HashMap<String, Value>) {
        let is_outside = |given: &Located<Value>| {
            !given.at.match_indices('/').any(|(end, _)| places.contains_key(&given.at[..end]))
        };
        self.extra.retain(is_outside);
        self.own.retain(is_outside);
    }

    /// The fields that carry a meaning beyond their protocol.
    pub(super) fn into_extra(self) -> Vec<Located<Value>> {
        self.extra
    }

    pub(super) fn into_answer(self, answer: &mut Answer) {
        answer.extra = self.extra;
        answer.own = self.own;
    }

    pub(super) fn into_conversation(self, conversation: &mut Conversation) {
        conversation.extra = self.extra;
        conversation.own = self.own;
    }
}

/// Writes a request and collects what its protocol can't express.
pub(super) struct RequestWriter<'a> {
    conversation: &'a Conversation,
    target: Protocol,
    /// Fields that are written back to their original object, by its place.
    own_fields: HashMap<&'a str, Vec<&'a Located<Value>>>,
    dropped: Vec<JsonPointer>,
    capabilities: Capabilities,
}

impl<'a> RequestWriter<'a> {
    pub(super) fn new(conversation: &'a Conversation, target: Protocol) -> Self {
        let mut own_fields: HashMap<_, Vec<_>> = HashMap::new();
        if conversation.source == target {
            for given in conversation.extra.iter().chain(&conversation.own) {
                if let Some((object, _)) = given.at.rsplit_once('/') {
                    own_fields.entry(object).or_default().push(given);
                }
            }
        }
        let capabilities = Capabilities::default();
        Self { conversation, target, own_fields, dropped: Vec::new(), capabilities }
    }

    /// For a server with these capabilities.
    pub(super) fn for_server(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// What the server supports of its protocol.
    pub(super) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Whether the request's protocol is the target's.
    pub(super) fn is_same(&self) -> bool {
        self.conversation.source == self.target
    }

    /// The protocol of the provider.
    pub(super) fn target(&self) -> Protocol {
        self.target
    }

    /// The protocol of the request.
    pub(super) fn source(&self) -> Protocol {
        self.conversation.source
    }

    /// Whether a field of the object at this place goes back as the client wrote it and isn't null.
    pub(super) fn keeps(&self, at: &str, name: &str) -> bool {
        let own_fields = self.own_fields.get(at).into_iter().flatten();
        own_fields
            .into_iter()
            .any(|given| !given.value.is_null() && given.at.rsplit('/').next() == Some(name))
    }

    /// The proof of a thought as the target accepts it; `None`: there is none, or another provider issued it.
    pub(super) fn proof<'p>(&self, proof: Option<&'p String>) -> Option<&'p str> {
        let proof = proof?.as_str();
        if self.is_same() {
            return Some(proof);
        }
        super::proof::of_maker(proof, self.conversation.source, self.target)
    }

    /// Reports a place that the target can't express.
    pub(super) fn lose(&mut self, at: impl Into<JsonPointer>) {
        self.dropped.push(at.into());
    }

    /// Reports the cache marker of a part, for protocols that can't express it.
    pub(super) fn lose_cache(&mut self, cache: Option<&Located<Value>>) {
        if let Some(cache) = cache {
            self.lose(cache.at.clone());
        }
    }

    /// Adds the fields that weren't taken from the object at this place. They replace default values.
    pub(super) fn complete(&mut self, object: &mut Map<String, Value>, at: &str) {
        for given in self.own_fields.remove(at).unwrap_or_default() {
            let name = given.at.rsplit('/').next().unwrap_or_default();
            object.insert(unescaped(name), given.value.clone());
        }
    }

    /// Sets a field on the object at this place unless the field would be empty.
    pub(super) fn set(
        &mut self,
        parent: &mut Map<String, Value>,
        name: &str,
        mut object: Map<String, Value>,
        at: &str,
    ) {
        self.complete(&mut object, at);
        if !object.is_empty() {
            parent.insert(name.to_owned(), Value::Object(object));
        }
    }

    pub(super) fn finish(mut self, body: Map<String, Value>) -> EncodedRequest {
        // Even within the same protocol something may be dropped: fields of an object that isn't written.
        let is_left = |at: &str| {
            let object = at.rsplit_once('/').map_or("", |(object, _)| object);
            !self.is_same() || self.own_fields.contains_key(object)
        };
        let left = self.conversation.extra.iter().filter(|given| is_left(&given.at));
        let left: Vec<JsonPointer> = left.map(|given| given.at.clone()).collect();
        self.dropped.extend(left);
        EncodedRequest { body: Value::Object(body), dropped: self.dropped }
    }
}

/// Whether a field carries no information.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// An object with these fields.
pub(super) fn object<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A name escaped as a JSON Pointer segment.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The unescaped name of a JSON Pointer segment.
pub(super) fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Members {
        Members::read(value, "").expect("an object")
    }

    #[test]
    fn unread_members_return_to_their_place() {
        let document = json!({ "a/b": 1, "c": { "d": "x", "e": null }, "f": [] });
        let mut members = read(document.clone());
        let mut rest = RemainingFields::default();
        let mut inner = members.members("c").expect("an object");
        assert_eq!(inner.text("d").as_deref(), Some("x"));
        rest.keep(inner, &[]);
        rest.keep(members, &[]);
        let mut conversation = Conversation::default();
        rest.into_conversation(&mut conversation);
        assert_eq!(conversation.extra, [Located::new(json!(1), "/a~1b")]);

        let mut writer = RequestWriter::new(&conversation, Protocol::Chat);
        let mut root = Map::new();
        writer.set(&mut root, "c", object([("d", json!("x"))]), "/c");
        writer.complete(&mut root, "");
        assert_eq!(writer.finish(root), EncodedRequest { body: document, dropped: Vec::new() });
    }

    #[test]
    fn other_protocols_report_dropped_members_except_meaningless_ones() {
        let mut rest = RemainingFields::default();
        rest.keep(read(json!({ "seed": 1, "state": "done", "user": null })), &["state"]);
        let mut conversation = Conversation::default();
        rest.into_conversation(&mut conversation);
        let writer = RequestWriter::new(&conversation, Protocol::Native);
        assert_eq!(writer.finish(Map::new()).dropped, ["/seed"]);
    }

    #[test]
    fn members_of_unexpected_type_are_left_unread() {
        let mut members = read(json!({ "text": 1, "flag": "x", "count": -1, "list": [], "texts": ["a", 1] }));
        assert_eq!(members.text("text"), None);
        assert_eq!(members.flag("flag"), None);
        assert_eq!(members.count("count"), None);
        assert_eq!(members.list("list"), None);
        assert_eq!(members.texts("texts"), None);
        assert_eq!(members.into_value().as_object().map(Map::len), Some(5));
    }
}
