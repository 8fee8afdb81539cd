//! What an answer says beyond the words of its client's protocol. It is in one member of the client's answer, by the place
//! that it has in the provider's.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::members::{escaped, is_empty, unescaped};
use crate::conversation::{Answer, End, Given, Media, PartKind, Place, Protocol, Source};

/// Name of the member, in every protocol.
const MEMBER: &str = "provider_extra";
/// Maximum number of members of a stream that are kept until it ends.
const MOST: usize = 100;
/// Maximum size of what is kept of a stream, in bytes.
const MOST_BYTES: usize = 1024 * 1024;

/// What belongs beside an answer.
pub(super) struct Beyond {
    is_same: bool,
    extra: Vec<Given<Value>>,
    own: Vec<Given<Value>>,
}

impl Beyond {
    /// Takes it out of an answer.
    pub(super) fn take(answer: &mut Answer, target: Protocol) -> Self {
        let is_same = answer.source == target;
        let (mut extra, own) = (std::mem::take(&mut answer.extra), std::mem::take(&mut answer.own));
        if !is_same {
            let parts = answer.choices.iter().flat_map(|choice| &choice.parts);
            extra.extend(
                parts.filter_map(|part| Some(Given::new(unsaid(&part.kind, target)?, part.at.clone()))),
            );
            extra.extend(ends(answer, target));
            extra.extend(account(answer, target));
        }
        Self { is_same, extra, own }
    }

    /// Adds it to the client's answer: to a client of the same protocol, where it was.
    pub(super) fn add(self, document: &mut Value) {
        if self.is_same {
            for Given { value, at } in self.extra.into_iter().chain(self.own) {
                put_back(document, &at, value);
            }
        } else if !self.extra.is_empty() {
            let members = self.extra.into_iter().map(|given| (given.at.into_owned(), given.value));
            document[MEMBER] = Value::Object(members.collect());
        }
    }
}

/// Adds a member, and the objects that lead to it, unless it is there and says something.
fn put_back(document: &mut Value, at: &str, value: Value) {
    let mut object = document;
    let mut names = at.split('/').skip(1).map(unescaped).peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        object = match object {
            Value::Object(members) if is_last => {
                if members.get(&name).is_none_or(|there| *there == json!([]) && value.is_array()) {
                    members.insert(name, value);
                }
                return;
            }
            Value::Object(members) => members.entry(name).or_insert_with(|| json!({})),
            Value::Array(items) => {
                let Some(item) = name.parse().ok().and_then(|index: usize| items.get_mut(index)) else {
                    return;
                };
                item
            }
            _ => return,
        };
    }
}

/// Why choices ended, where a protocol has no word for it.
fn ends(answer: &Answer, target: Protocol) -> impl Iterator<Item = Given<Value>> {
    let source = answer.source;
    answer.choices.iter().enumerate().filter_map(move |(index, choice)| {
        let (word, is_sequence) = match choice.end.as_ref()? {
            End::Other { word, .. } => (word.as_str(), false),
            End::StopSequence(Some(word)) if target != Protocol::Messages => (word.as_str(), true),
            End::Paused if matches!(target, Protocol::Chat | Protocol::Native) => ("pause_turn", false),
            _ => return None,
        };
        let at = match source {
            Protocol::Chat => format!("/choices/{index}/finish_reason"),
            Protocol::Responses => "/incomplete_details/reason".to_owned(),
            Protocol::Messages if is_sequence => "/stop_sequence".to_owned(),
            Protocol::Messages => "/stop_reason".to_owned(),
            Protocol::Native => format!("/candidates/{index}/finishReason"),
        };
        Some(Given::new(word.into(), at))
    })
}

/// What the native protocol does not count.
fn account(answer: &Answer, target: Protocol) -> impl Iterator<Item = Given<Value>> {
    let (tier, written) = match answer.source {
        Protocol::Messages => ("/usage/service_tier", "/usage/cache_creation_input_tokens"),
        Protocol::Responses => ("/service_tier", "/usage/input_tokens_details/cache_write_tokens"),
        Protocol::Chat | Protocol::Native => {
            ("/service_tier", "/usage/prompt_tokens_details/cache_write_tokens")
        }
    };
    let unusual = answer.service_tier.as_ref().filter(|word| *word != "default");
    let tier = unusual.map(|word| Given::new(word.as_str().into(), tier));
    let cached = answer.usage.and_then(|usage| usage.cache_write).filter(|tokens| *tokens > 0);
    let cached = cached.map(|tokens| Given::new(tokens.into(), written));
    tier.into_iter().chain(cached).filter(move |_| target == Protocol::Native)
}

/// A part that a protocol has no words for in its answers.
fn unsaid(kind: &PartKind, target: Protocol) -> Option<Value> {
    match (kind, target) {
        (PartKind::Other(value), _) => Some(value.clone()),
        (PartKind::Image(Media { source: Source::Inline(_), .. }), Protocol::Responses) => None,
        (PartKind::Image(media) | PartKind::Audio(media) | PartKind::File(media), _) => {
            let (name, source) = match &media.source {
                Source::FileId(id) => ("file_id", id),
                Source::Inline(_) | Source::Url(_) if target == Protocol::Native => return None,
                Source::Inline(data) => ("data", data),
                Source::Url(url) => ("url", url),
            };
            let mut said = json!({ "media_type": media.media_type, name: source });
            if let Some(title) = &media.name {
                said["name"] = title.value.as_str().into();
            }
            Some(said)
        }
        _ => None,
    }
}

/// The same of a stream, until its last event.
#[derive(Default)]
pub(super) struct Kept {
    /// With the size of each.
    members: BTreeMap<Place, (Value, usize)>,
    others: usize,
    bytes: usize,
}

impl Kept {
    /// Keeps a member; of one place, the last word counts. Of what is too much, only the place is told.
    pub(super) fn extra(&mut self, Given { value, at }: Given<Value>) {
        if let Some((_, size)) = self.members.remove(&at) {
            self.bytes -= size;
        }
        if self.members.len() >= MOST {
            return;
        }
        let (place, size) = (at.len(), at.len() + value.to_string().len());
        let (value, size) =
            if self.bytes + size <= MOST_BYTES { (value, size) } else { (Value::Null, place) };
        if self.bytes + size <= MOST_BYTES {
            self.bytes += size;
            self.members.insert(at, (value, size));
        }
    }

    /// Keeps a part of another protocol, which has no place but its order.
    pub(super) fn other(&mut self, value: Value) {
        let at = format!("/parts/{}", self.others);
        self.others += 1;
        self.extra(Given::new(value, at));
    }

    /// Keeps what nobody reads of an object. `own`: names of members that say nothing to another protocol.
    pub(super) fn unread(&mut self, members: Map<String, Value>, at: &str, own: &[&str]) {
        for (name, value) in members {
            if !is_empty(&value) && !own.contains(&name.as_str()) {
                self.extra(Given::new(value, format!("{at}/{}", escaped(&name))));
            }
        }
    }

    /// Gives what was kept.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Given<Value>> {
        self.bytes = 0;
        std::mem::take(&mut self.members).into_iter().map(|(at, (value, _))| Given::new(value, at))
    }

    /// Adds what was kept to an event.
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

    fn given(at: impl Into<Place>, value: Value) -> Given<Value> {
        Given::new(value, at)
    }

    #[test]
    fn what_is_kept_of_a_stream_is_bounded_and_its_last_word_counts() {
        let mut kept = Kept::default();
        kept.extra(given("/a", json!(1)));
        kept.extra(given("/a", json!(2)));
        kept.extra(given("/b", json!("x".repeat(MOST_BYTES))));
        kept.other(json!([]));
        for number in 0..1000 {
            kept.extra(given(format!("/many/{number}"), json!({})));
        }
        let mut event = Map::new();
        kept.add(&mut event);
        let said = &event[MEMBER];
        assert_eq!((&said["/a"], &said["/b"], &said["/parts/0"]), (&json!(2), &Value::Null, &json!([])));
        assert_eq!(said.as_object().map(Map::len), Some(MOST));
        kept.add(&mut Map::new());
        assert_eq!((kept.bytes, kept.members.len()), (0, 0));
    }

    #[test]
    fn a_member_goes_back_to_its_place_unless_it_is_there() {
        let mut document = json!({ "a": [{ "b": 1 }], "c": 2 });
        for (at, value) in [("/a/0/b", 9), ("/a/0/d/e~1f", 3), ("/a/7/b", 9), ("/c/x", 9)] {
            put_back(&mut document, at, json!(value));
        }
        assert_eq!(document, json!({ "a": [{ "b": 1, "d": { "e/f": 3 } }], "c": 2 }));
    }
}
