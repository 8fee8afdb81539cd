//! Data of an answer that the client's protocol can't express. It is added to the client's answer as one field, keyed by
//! its place in the provider's answer.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::members::{escaped, is_empty, unescaped};
use crate::codec::{AnswerRules, CitationRule, MediaRule, ProviderRules};
use crate::conversation::{
    Answer, FinishReason, JsonPointer, Located, Media, MediaSource, PartKind, Protocol,
};

/// Name of the field, in every protocol.
const MEMBER: &str = "provider_extra";
/// Maximum number of stream fields retained until the stream ends.
const MAX_MEMBERS: usize = 100;
/// Maximum size of the data retained from a stream, in bytes.
const MAX_BYTES: usize = 1024 * 1024;

/// Maximum number of empty filler items in an answer.
const MAX_EMPTY: usize = 64 * 1024;

/// What to add to an answer.
pub(super) struct AnswerExtra {
    is_same: bool,
    extra: Vec<Located<Value>>,
    own: Vec<Located<Value>>,
}

impl AnswerExtra {
    /// Takes the extra data out of an answer.
    pub(super) fn take(answer: &mut Answer, target: Protocol) -> Self {
        let rules = target.answer_rules().filter(|_| answer.source != target);
        let (mut extra, mut own) = (std::mem::take(&mut answer.extra), std::mem::take(&mut answer.own));
        if let Some(rules) = rules {
            if is_cited_without_text(answer, rules) {
                extra.extend(own.extract_if(.., |given| is_of_citations(&given.at)));
            }
            extra.extend(names(answer, rules.media));
            let parts = answer.choices.iter().flat_map(|choice| &choice.parts);
            extra.extend(parts.filter_map(|part| {
                Some(Located::new(inexpressible_media(&part.kind, rules.media)?, part.at.clone()))
            }));
            extra.extend(ends(answer, target));
            if !rules.has_usage_details {
                extra.extend(account(answer));
            }
        }
        Self { is_same: rules.is_none(), extra, own }
    }

    /// Adds it to the client's answer; for a client of the same protocol, at its original place.
    pub(super) fn add(self, document: &mut Value) {
        if self.is_same {
            let mut room = MAX_EMPTY;
            for Located { value, at } in self.extra.into_iter().chain(self.own) {
                put_back(document, &at, value, &mut room);
            }
        } else if !self.extra.is_empty() {
            let members = self.extra.into_iter().map(|given| (given.at.into_owned(), given.value));
            document[MEMBER] = Value::Object(members.collect());
        }
    }
}

/// Whether there are citations but no text to attach them to in this protocol.
fn is_cited_without_text(answer: &Answer, target: &AnswerRules) -> bool {
    let is_citable = |kind: &PartKind| match (kind, target.citations) {
        (_, CitationRule::Any) | (PartKind::Text(_), CitationRule::OfText) => true,
        (PartKind::Text(text), CitationRule::OfWrittenText) => !text.is_empty(),
        _ => false,
    };
    target.citations != CitationRule::Any
        && answer.choices.first().is_some_and(|choice| {
            !choice.citations.is_empty() && !choice.parts.iter().any(|part| is_citable(&part.kind))
        })
}

/// Whether a place belongs to citations, in any protocol.
fn is_of_citations(at: &str) -> bool {
    let name = at.rsplit('/').next().unwrap_or_default();
    ["annotations", "citations", "groundingChunks", "groundingSupports", "citationSources"].contains(&name)
}

/// Names of media that a protocol can represent: none can represent their names.
fn names(answer: &Answer, target: MediaRule) -> impl Iterator<Item = Located<Value>> {
    let parts = answer.choices.iter().flat_map(|choice| &choice.parts);
    parts.filter(move |part| inexpressible_media(&part.kind, target).is_none()).filter_map(|part| match &part
        .kind
    {
        PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media) => {
            media.name.as_ref().map(|name| Located::new(name.value.as_str().into(), name.at.clone()))
        }
        _ => None,
    })
}

/// Adds a field, creating the objects on the path to it. It replaces default values. `room`: how many empty filler items
/// may still be added.
fn put_back(document: &mut Value, at: &str, value: Value, room: &mut usize) {
    let mut object = document;
    let mut names = at.split('/').skip(1).map(unescaped).peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        if object.is_null() {
            *object = json!({});
        }
        object = match object {
            Value::Object(members) if is_last => {
                // The first list may already contain the values of several lists of the answer.
                let is_filled = members.get(&name).and_then(Value::as_array).is_some_and(|it| !it.is_empty());
                if !(is_filled && value == json!([])) {
                    members.insert(name, value);
                }
                return;
            }
            Value::Object(members) => members.entry(name).or_insert(Value::Null),
            Value::Array(items) => {
                let Ok(index) = name.parse::<usize>() else { return };
                // This item and those before it may have no other fields: pad with nulls.
                if index >= items.len() {
                    let Some(left) = room.checked_sub(index - items.len()) else { return };
                    *room = left;
                    items.resize(index + 1, Value::Null);
                }
                &mut items[index]
            }
            _ => return,
        };
    }
}

/// Why choices ended, if a protocol can't express it.
fn ends(answer: &Answer, target: Protocol) -> impl Iterator<Item = Located<Value>> {
    let source = answer.source;
    answer.choices.iter().filter_map(move |choice| {
        let (word, is_sequence) = inexpressible_end(choice.end.as_ref()?, target)?;
        let at = source.codec().end_place(&choice.at, is_sequence);
        Some(Located::new(word.into(), at))
    })
}

/// The provider's finish reason that a protocol can't express, and whether it is a stop sequence.
fn inexpressible_end(end: &FinishReason, target: Protocol) -> Option<(&str, bool)> {
    match end {
        FinishReason::Other { source, word } | FinishReason::Failed { source, word } if *source != target => {
            Some((word, false))
        }
        FinishReason::StopSequence(Some(word)) if !target.answer_rules()?.names_stop_sequence => {
            Some((word, true))
        }
        FinishReason::Paused if !target.answer_rules()?.has_pauses => Some(("pause_turn", false)),
        _ => None,
    }
}

/// Usage details that not every protocol has.
fn account(answer: &Answer) -> impl Iterator<Item = Located<Value>> {
    let ProviderRules { service_tier_at, cache_write_at, .. } = *answer.source.rules();
    let unusual = answer.service_tier.as_ref().filter(|word| *word != "default");
    let tier = unusual.map(|word| Located::new(word.as_str().into(), service_tier_at));
    let cached = answer.usage.and_then(|usage| usage.cache_write).filter(|tokens| *tokens > 0);
    let cached = cached.map(|tokens| Located::new(tokens.into(), cache_write_at));
    tier.into_iter().chain(cached)
}

/// A part that a protocol can't express in its answers.
fn inexpressible_media(kind: &PartKind, target: MediaRule) -> Option<Value> {
    match (kind, target) {
        (PartKind::Other(value), _) => Some(value.clone()),
        (PartKind::Image(Media { source: MediaSource::Inline(_), .. }), MediaRule::InlineImages) => None,
        (PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media), _) => {
            let (name, source) = match &media.source {
                MediaSource::FileId(id) => ("file_id", id),
                MediaSource::Inline(_) | MediaSource::Url(_) if target == MediaRule::Nameless => {
                    return None;
                }
                MediaSource::Inline(data) => ("data", data),
                MediaSource::Url(url) => ("url", url),
            };
            let mut member = json!({ "media_type": media.media_type, name: source });
            if let Some(title) = &media.name {
                member["name"] = title.value.as_str().into();
            }
            Some(member)
        }
        _ => None,
    }
}

/// The same for a stream, until its last event.
#[derive(Default)]
pub(super) struct StreamExtra {
    /// With the size of each value.
    members: BTreeMap<JsonPointer, (Value, usize)>,
    others: usize,
    bytes: usize,
}

impl StreamExtra {
    /// Keeps a field; for each place, the last value counts. For values that are too large, only the place is kept.
    pub(super) fn extra(&mut self, Located { value, at }: Located<Value>) {
        if let Some((_, size)) = self.members.remove(&at) {
            self.bytes -= size;
        }
        if self.members.len() >= MAX_MEMBERS {
            return;
        }
        let (place, size) = (at.len(), at.len() + value.to_string().len());
        let (value, size) = if self.bytes + size <= MAX_BYTES { (value, size) } else { (Value::Null, place) };
        if self.bytes + size <= MAX_BYTES {
            self.bytes += size;
            self.members.insert(at, (value, size));
        }
    }

    /// Keeps a part of another protocol, which has no place but its order.
    pub(super) fn other(&mut self, value: Value) {
        let at = format!("/parts/{}", self.others);
        self.others += 1;
        self.extra(Located::new(value, at));
    }

    /// Keeps an image that the client's protocol can't express in its answers.
    pub(super) fn image(&mut self, image: Media, target: Protocol) {
        let Some(rules) = target.answer_rules() else { return };
        if let Some(member) = inexpressible_media(&PartKind::Image(image), rules.media) {
            self.other(member);
        }
    }

    /// Keeps why a choice ended, if the client's protocol can't express it.
    pub(super) fn end(&mut self, choice: u32, end: &FinishReason, target: Protocol) {
        let Some((word, is_sequence)) = inexpressible_end(end, target) else { return };
        let source = match end {
            FinishReason::Other { source, .. } | FinishReason::Failed { source, .. } => *source,
            // No other protocol pauses, or names the sequence.
            _ => Protocol::Messages,
        };
        let at = source.codec().stream_end_place(choice, is_sequence);
        self.extra(Located::new(word.into(), at));
    }

    /// Keeps the unread fields of an object. `own`: names of fields that mean nothing to another protocol.
    pub(super) fn unread(&mut self, members: Map<String, Value>, at: &str, own: &[&str]) {
        for (name, value) in members {
            if !is_empty(&value) && !own.contains(&name.as_str()) {
                self.extra(Located::new(value, format!("{at}/{}", escaped(&name))));
            }
        }
    }

    /// Takes everything that was kept.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Located<Value>> {
        self.bytes = 0;
        std::mem::take(&mut self.members).into_iter().map(|(at, (value, _))| Located::new(value, at))
    }

    /// Adds everything that was kept to an event.
    pub(super) fn add(&mut self, event: &mut Map<String, Value>) {
        let members: Map<String, Value> =
            self.take().map(|given| (given.at.into_owned(), given.value)).collect();
        if !members.is_empty() {
            event.insert(MEMBER.to_owned(), members.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(at: impl Into<JsonPointer>, value: Value) -> Located<Value> {
        Located::new(value, at)
    }

    #[test]
    fn stream_extra_is_bounded_and_the_last_value_wins() {
        let mut stream_extra = StreamExtra::default();
        stream_extra.extra(given("/a", json!(1)));
        stream_extra.extra(given("/a", json!(2)));
        stream_extra.extra(given("/b", json!("x".repeat(MAX_BYTES))));
        stream_extra.other(json!([]));
        for number in 0..1000 {
            stream_extra.extra(given(format!("/many/{number}"), json!({})));
        }
        let mut event = Map::new();
        stream_extra.add(&mut event);
        let extra = &event[MEMBER];
        assert_eq!((&extra["/a"], &extra["/b"], &extra["/parts/0"]), (&json!(2), &Value::Null, &json!([])));
        assert_eq!(extra.as_object().map(Map::len), Some(MAX_MEMBERS));
        stream_extra.add(&mut Map::new());
        assert_eq!((stream_extra.bytes, stream_extra.members.len()), (0, 0));
    }

    #[test]
    fn members_are_restored_at_their_pointer() {
        let mut document = json!({ "a": [{ "b": 1 }], "c": 2, "d": null });
        let members = [
            ("/a/0/b", 9),
            ("/a/0/d/e~1f", 3),
            ("/a/2/b", 4),
            ("/a/5/b", 9),
            ("/a/x/b", 9),
            ("/c/x", 9),
            ("/d/0", 5),
        ];
        let mut room = 2;
        for (at, value) in members {
            put_back(&mut document, at, json!(value), &mut room);
        }
        let items = json!([{ "b": 9, "d": { "e/f": 3 } }, null, { "b": 4 }]);
        assert_eq!(document, json!({ "a": items, "c": 2, "d": { "0": 5 } }));
    }
}
