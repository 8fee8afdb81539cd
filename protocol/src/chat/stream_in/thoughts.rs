//! Thoughts of a stream, and the details with their proofs. They are joined like those of a whole message.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::text_of;
use crate::conversation::{Delta, Located, Protocol};
use crate::provider_extra::StreamExtra;

/// Fields of a detail that are read, or mean nothing to another protocol, apart from texts.
const OWN: [&str; 2] = ["index", "format"];

/// The thoughts of a choice so far.
#[derive(Default)]
pub(super) struct Thoughts {
    count: u32,
    open: Option<CurrentThought>,
}

/// The last thought.
struct CurrentThought {
    thought: u32,
    id: Option<String>,
    /// The provider's index of its last detail.
    index: Option<u64>,
    part: u32,
    summary: bool,
    is_signed: bool,
}

/// The proof of a call.
pub(super) struct CallProof {
    pub(super) id: String,
    /// Taken by the call.
    pub(super) data: Option<String>,
    /// The index of its detail.
    place: u64,
}

/// Where a piece belongs: the thought, its id unless reported before, and which of its texts.
type ThoughtRef = (u32, Option<String>, u32);

impl Thoughts {
    /// Reads pieces of thoughts, and returns the proofs of calls. Text next to details, `shown`, repeats them. `called`:
    /// the ids of calls.
    pub(super) fn push(
        &mut self,
        choice: u32,
        details: Value,
        shown: [Value; 3],
        called: &HashSet<&str>,
        deltas: &mut Vec<Delta>,
    ) -> Vec<CallProof> {
        let mut proofs = Vec::new();
        let details = match details {
            Value::Array(details) if !details.is_empty() => details,
            _ => {
                if let Some(text) = shown.map(text_of).into_iter().find(|text| !text.is_empty()) {
                    let (thought, id, part) = self.belongs(false, None, None);
                    deltas.push(Delta::Thought { choice, thought, id, part, text, summary: false });
                }
                return proofs;
            }
        };
        for (place, mut detail) in (0..).zip(details) {
            let Some(texts) = texts_of(&detail) else {
                self.open = None;
                deltas.push(Delta::Other { choice, source: Protocol::Chat, value: detail });
                continue;
            };
            let index = detail["index"].as_u64();
            let mut take = |name: &str| {
                detail.get_mut(name).map(Value::take).map(text_of).filter(|text| !text.is_empty())
            };
            let id = take("id");
            let mut taken = texts.iter().map(|name| take(name));
            let (first, second) = (taken.next().flatten(), taken.next().flatten());
            match *texts {
                [DATA] => {
                    let Some(data) = first else { continue };
                    match id {
                        Some(id) if !self.is_of_summary(Some(&id)) && called.contains(id.as_str()) => {
                            let place = index.unwrap_or(place);
                            proofs.push(CallProof { id, data: Some(data), place });
                        }
                        id => deltas.push(self.encrypted(choice, id, data)),
                    }
                }
                _ if first.is_none() && second.is_none() => {}
                _ => self.push_text(choice, (id, index), (first, second), texts[0] == SUMMARY, deltas),
            }
        }
        proofs
    }

    /// Emits a piece of text, and its proof unless it is a summary.
    fn push_text(
        &mut self,
        choice: u32,
        (id, index): (Option<String>, Option<u64>),
        (text, signature): (Option<String>, Option<String>),
        summary: bool,
        deltas: &mut Vec<Delta>,
    ) {
        let (thought, id, part) = self.belongs(summary, id, index);
        if let Some(text) = text {
            deltas.push(Delta::Thought { choice, thought, id, part, text, summary });
        }
        if let (Some(signature), Some(open)) = (signature, &mut self.open) {
            open.is_signed = true;
            let id = open.id.clone();
            deltas.push(Delta::ThoughtSigned { choice, thought, id, signature, redacted: false });
        }
    }

    /// The proof of the open summary, or a hidden thought.
    fn encrypted(&mut self, choice: u32, id: Option<String>, signature: String) -> Delta {
        let is_proof = self.is_of_summary(id.as_deref());
        let open = match &mut self.open {
            Some(open) if is_proof => open,
            _ => self.begin(false, id.clone(), None),
        };
        open.is_signed = true;
        Delta::ThoughtSigned { choice, thought: open.thought, id, signature, redacted: !is_proof }
    }

    /// Whether hidden content with this id is the open summary's proof.
    fn is_of_summary(&self, id: Option<&str>) -> bool {
        self.open.as_ref().is_some_and(|open| open.summary && !open.is_signed && open.id.as_deref() == id)
    }

    /// Pieces with the same index belong to one detail. Summary details with the same id are texts of one thought.
    fn belongs(&mut self, summary: bool, id: Option<String>, index: Option<u64>) -> ThoughtRef {
        if let Some(open) = &mut self.open
            && open.summary == summary
            && !open.is_signed
        {
            let may_be = |known: bool, is_given: bool, is_same: bool| !known || !is_given || is_same;
            let is_same_index = may_be(open.index.is_some(), index.is_some(), open.index == index);
            if is_same_index && may_be(open.id.is_some(), id.is_some(), open.id == id) {
                open.index = open.index.or(index);
                let new_id = if open.id.is_none() { id } else { None };
                if new_id.is_some() {
                    open.id.clone_from(&new_id);
                }
                return (open.thought, new_id, open.part);
            }
            if summary && id.is_some() && open.id == id {
                open.part = open.part.saturating_add(1);
                open.index = index;
                return (open.thought, None, open.part);
            }
        }
        let open = self.begin(summary, id, index);
        (open.thought, open.id.clone(), 0)
    }

    fn begin(&mut self, summary: bool, id: Option<String>, index: Option<u64>) -> &mut CurrentThought {
        let thought = self.count;
        self.count = self.count.saturating_add(1);
        self.open.insert(CurrentThought { thought, id, index, part: 0, summary, is_signed: false })
    }
}

impl CallProof {
    /// A proof that no call took because its call began earlier.
    pub(super) fn untaken(self, choice: u32) -> Option<Delta> {
        let at = format!("/choices/{choice}/delta/reasoning_details/{}/{DATA}", self.place);
        Some(Delta::Extra(Located::new(self.data?.into(), at)))
    }
}

const SUMMARY: &str = "summary";
const DATA: &str = "data";

/// The text fields of a detail; `None` if its kind is unknown.
fn texts_of(detail: &Value) -> Option<&'static [&'static str]> {
    match detail["type"].as_str()? {
        "reasoning.text" => Some(&["text", "signature"]),
        "reasoning.summary" => Some(&[SUMMARY]),
        "reasoning.encrypted" => Some(&[DATA]),
        _ => None,
    }
}

/// Keeps the unread fields of details. Details of unknown kinds are reported as a whole. `at`: the delta's place.
pub(super) fn keep_unread(details: &Value, at: &str, extra: &mut StreamExtra) {
    for (place, detail) in (0..).zip(details.as_array().into_iter().flatten()) {
        let (Some(texts), Value::Object(members)) = (texts_of(detail), detail) else { continue };
        let is_read = |name: &str, value: &Value| {
            OWN.contains(&name)
                || value.is_string() && (["type", "id"].contains(&name) || texts.contains(&name))
        };
        let unread = members.iter().filter(|(name, value)| !is_read(name, value));
        let unread: Map<_, _> = unread.map(|(name, value)| (name.clone(), value.clone())).collect();
        if !unread.is_empty() {
            let place = detail["index"].as_u64().unwrap_or(place);
            extra.unread(unread, &format!("{at}/reasoning_details/{place}"), &[]);
        }
    }
}
