//! Plain operations: a request with a model goes to an upstream with its name for the model, and the answer is read once. What the
//! client wants of an answer is an [`AnswerForm`], of which each operation has one. An answer that is as the client wants it passes
//! through with the client's name for the model. Other lists ([`ListForm`]) are completed: only the list of results is written anew, and
//! what is missing around it is added.

pub(super) mod embeddings;
mod moderations;
mod rankings;
pub(super) mod transcripts;

use std::fmt::{Debug, Write as _};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use gatewright::redact::Redactor;
use gatewright_protocol::PlainAction;
use gatewright_protocol::conversation::{Protocol, Usage};
use gatewright_protocol::lazy_json::{items, members, place, spliced};
use http::HeaderValue;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use self::embeddings::EmbeddingForm;
use self::moderations::ModerationForm;
use self::rankings::RankingForm;
use super::document::MAX_BYTES;
use super::failure::AttemptFailure;
use crate::bounds::memory_budget::{Reservation, ReservationError};

/// What a client wants of the answer to a plain operation.
pub(super) trait AnswerForm: Debug + Send + Sync {
    /// The answer for the client. `text`: the upstream's answer, which is `document`. `share`: takes the memory of the answer. Errors:
    /// what is wrong with it.
    fn passed(
        &self,
        answered: &Answered<'_>,
        document: &Bytes,
        text: &str,
        share: &mut Reservation,
    ) -> Passed;

    /// Whether every answer states the tokens of the request.
    fn states_usage(&self) -> bool {
        true
    }

    /// What the client gets.
    fn media_type(&self) -> HeaderValue {
        HeaderValue::from_static("application/json")
    }
}

/// An answer that is a list of results.
pub(super) trait ListForm: AnswerForm {
    /// What servers call the list of results. The first name is the clients'.
    fn names(&self) -> &'static [&'static str];

    /// What the results are.
    fn noun(&self) -> &'static str;

    /// Maximum number of results that a server may send.
    fn most(&self) -> usize;

    /// The list for the client. `None`: the server's can stay as it is. `size`: of the answer, in bytes. `share`: takes the memory of
    /// the list. Errors: what is wrong with it.
    fn list(
        &self,
        listed: &[&RawValue],
        size: usize,
        share: &mut Reservation,
    ) -> Result<Option<String>, Unusable>;

    /// A member that every answer has.
    fn head(&self) -> AnswerHead;
}

/// A member that every answer has.
pub(super) enum AnswerHead {
    /// `object` with this value.
    Object(&'static str),
    /// `id`: if the server sends none, this before the id of the request.
    Id(&'static str),
}

/// An answer for the client.
pub(super) struct PassedAnswer {
    pub(super) document: Bytes,
    /// The tokens that the upstream reports.
    pub(super) usage: Option<Usage>,
    /// The length that the upstream states of the sound that it transcribed.
    pub(super) sound_millis: Option<u64>,
}

/// Errors: what is wrong with the answer.
pub(super) type Passed = Result<PassedAnswer, Unusable>;

impl PassedAnswer {
    /// The answer to a request without a sound.
    fn new(document: Bytes, usage: Option<Usage>) -> Self {
        Self { document, usage, sound_millis: None }
    }
}

/// What the client wants of the answer to a valid request. `None`: the answer is bytes, which pass as they are. `body`: its text.
pub(super) fn form_of(action: PlainAction, request: &Value, body: &Bytes) -> Option<Arc<dyn AnswerForm>> {
    let form: Arc<dyn AnswerForm> = match action {
        PlainAction::Embed { .. } => Arc::new(EmbeddingForm::of(request)),
        PlainAction::Rerank => Arc::new(RankingForm::of(request, body)),
        PlainAction::Moderate => Arc::new(ModerationForm::of(request)),
        PlainAction::Transcribe | PlainAction::Translate => transcripts::form_of(request),
        PlainAction::Speak => return None,
    };
    Some(form)
}

/// How to pass on an answer.
pub(super) struct Answered<'a> {
    /// The upstream's protocol.
    pub(super) from: Protocol,
    pub(super) form: &'a dyn AnswerForm,
    /// The client's name for the model.
    pub(super) model: &'a str,
    /// Estimated tokens of the request, if the upstream doesn't count them.
    pub(super) input: u64,
    /// The id of the request.
    pub(super) id: &'a str,
}

/// Why an answer can't be passed on.
#[derive(Debug)]
pub(super) enum Unusable {
    /// What is wrong with it.
    Broken(String),
    /// There is no memory for it in the client's form.
    NoRoom(ReservationError),
}

impl From<&str> for Unusable {
    fn from(what: &str) -> Self {
        Self::Broken(what.to_owned())
    }
}

impl From<String> for Unusable {
    fn from(what: String) -> Self {
        Self::Broken(what)
    }
}

impl From<ReservationError> for Unusable {
    fn from(why: ReservationError) -> Self {
        Self::NoRoom(why)
    }
}

/// What Cohere's servers say about a request.
#[derive(Deserialize)]
struct Meta {
    tokens: Option<MetaTokens>,
}

#[derive(Deserialize)]
struct MetaTokens {
    input_tokens: Option<f64>,
}

impl Answered<'_> {
    /// The answer for the client. `share`: holds the memory of its document. Errors: the upstream reports an error, or its answer is not
    /// what the client wants.
    pub(super) fn by(
        &self,
        document: &Bytes,
        redactor: &Redactor,
        share: &mut Reservation,
    ) -> Result<PassedAnswer, AttemptFailure> {
        let taken = share.bytes();
        let text =
            std::str::from_utf8(document).map_err(|_| AttemptFailure::broken("is not text", redactor))?;
        let passed = self.form.passed(self, document, text, share);
        let passed = passed.map_err(|unusable| {
            let why = match unusable {
                Unusable::Broken(why) => why,
                Unusable::NoRoom(why) => return AttemptFailure::no_room(why, redactor),
            };
            AttemptFailure::of_document(self.from, document, &why, redactor)
        })?;
        let is_same = passed.document.as_ptr() == document.as_ptr();
        share
            .hold(if is_same { taken } else { passed.document.len() })
            .map_err(|why| AttemptFailure::no_room(why, redactor))?;
        Ok(passed)
    }

    /// The list of an upstream of the client's form.
    fn relayed(&self, form: &dyn ListForm, document: &Bytes, text: &str, share: &mut Reservation) -> Passed {
        let names = form.names();
        let mut lists = vec![None; names.len()];
        let (mut usage, mut meta, mut model, mut object, mut id) = (None, None, None, None, None);
        members(text, |name, value| match name {
            "usage" => usage = Some(value),
            "meta" => meta = Some(value),
            "model" => model = Some(value),
            "object" => object = Some(value),
            "id" => id = Some(value),
            name => {
                if let Some(at) = names.iter().position(|known| *known == name) {
                    lists[at] = Some(value);
                }
            }
        })
        .map_err(|_| "is not a JSON object")?;
        let found = lists.iter().zip(names).find_map(|(list, name)| list.map(|list| (list, *name)));
        let (most, noun) = (form.most(), form.noun());
        let (list, name) = found.ok_or_else(|| format!("has no list of {noun}"))?;
        let listed = items(list.get(), most)
            .map_err(|_| format!("has {name} that are not a list of {most} {noun}"))?;
        let rewritten = form.list(&listed, text.len(), share)?;
        let (reported, is_whole) = reported_usage(usage, meta);
        let mut edits = Edits { text, ranges: Vec::new(), added: String::new() };
        if name == names[0] {
            if let Some(rewritten) = rewritten {
                edits.set(Some(list), name, rewritten);
            }
        } else {
            let written = rewritten.unwrap_or_else(|| list.get().to_owned());
            match key_before(text, list, name) {
                Some(key) => {
                    let range = key.start..place(text, list).end;
                    edits.ranges.push((range, format!("\"{}\":{written}", names[0])));
                }
                None => edits.set(None, names[0], written),
            }
        }
        if form.states_usage() && !is_whole {
            edits.set(usage, "usage", self.usage(reported.as_ref()));
        }
        let name = Value::from(self.model).to_string();
        if model.is_none_or(|model| model.get() != name) {
            edits.set(model, "model", name);
        }
        match form.head() {
            AnswerHead::Object(kind) => {
                let kind = format!("\"{kind}\"");
                if object.is_none_or(|object| object.get() != kind) {
                    edits.set(object, "object", kind);
                }
            }
            AnswerHead::Id(prefix) => {
                if id.is_none_or(|id| !id.get().starts_with('"')) {
                    edits.set(id, "id", Value::from(format!("{prefix}{}", self.id)).to_string());
                }
            }
        }
        let edited = edits.in_copy_of(document).ok_or("is not a JSON object")?;
        Ok(PassedAnswer::new(edited, reported.map(of_input)))
    }

    /// The usage for the client.
    fn usage(&self, reported: Option<&Usage>) -> String {
        let input = reported.and_then(|usage| usage.input).unwrap_or(self.input);
        format!("{{\"prompt_tokens\":{input},\"total_tokens\":{input}}}")
    }
}

/// Changes of members of a document.
struct Edits<'a> {
    text: &'a str,
    ranges: Vec<(Range<usize>, String)>,
    /// Members to add at its end.
    added: String,
}

impl Edits<'_> {
    /// Replaces or adds a member.
    fn set(&mut self, present: Option<&RawValue>, name: &str, value: String) {
        match present {
            Some(present) => self.ranges.push((place(self.text, present), value)),
            None => _ = write!(self.added, ",\"{name}\":{value}"),
        }
    }

    /// The document with the changes; the document itself without any. `None`: it isn't an object.
    fn in_copy_of(mut self, document: &Bytes) -> Option<Bytes> {
        let end = self.text.rfind('}')?;
        if !self.added.is_empty() {
            self.ranges.push((end..end, self.added));
        }
        self.ranges.sort_by_key(|(range, _)| range.start);
        let edits: Vec<_> = self.ranges.iter().map(|(range, new)| (range.clone(), new.as_bytes())).collect();
        Some(spliced(document, &edits))
    }
}

/// Takes further memory.
fn take(share: &mut Reservation, room: usize) -> Result<(), ReservationError> {
    share.hold(share.bytes().saturating_add(room.min(MAX_BYTES)))
}

/// The usage that a server reports, and whether it does so as clients read it.
fn reported_usage(usage: Option<&RawValue>, meta: Option<&RawValue>) -> (Option<Usage>, bool) {
    let mut total = None;
    if let Some(usage) = usage {
        _ = members(usage.get(), |name, value| {
            if name == "total_tokens" {
                total = value.get().parse::<u64>().ok();
            }
        });
    }
    let counts = usage.and_then(|usage| Protocol::Chat.usage_in(usage, Usage::default()));
    if let Some(counts) = counts.filter(|counts| counts.input.is_some()) {
        return (Some(counts), total.is_some());
    }
    let of_meta = || {
        let meta: Meta = serde_json::from_str(meta?.get()).ok()?;
        // Some servers write counts as 7.0.
        meta.tokens?.input_tokens?.to_string().parse().ok()
    };
    let input = total.or_else(of_meta);
    (input.map(|input| Usage { input: Some(input), ..Usage::default() }), false)
}

/// The place of the name before a member's value. `None`: it is written in another way.
fn key_before(text: &str, value: &RawValue, name: &str) -> Option<Range<usize>> {
    let before = text[..place(text, value).start].trim_end().strip_suffix(':')?.trim_end();
    let key = before.strip_suffix(&format!("\"{name}\""))?;
    Some(key.len()..before.len())
}

/// Results have no tokens.
fn of_input(usage: Usage) -> Usage {
    Usage { output: Some(0), ..usage }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bounds::memory_budget::MemoryBudget;

    /// What a client gets for an answer, and the counted tokens.
    pub(super) fn passed(
        from: Protocol,
        form: &dyn AnswerForm,
        document: &str,
    ) -> Result<(String, Option<u64>), String> {
        let answered = Answered { from, form, model: "mine", input: 9, id: "r1" };
        let mut share = MemoryBudget::new(MAX_BYTES).share();
        let read =
            answered.by(&Bytes::copy_from_slice(document.as_bytes()), &Redactor::default(), &mut share);
        let PassedAnswer { document, usage, .. } = read.map_err(|failure| failure.cause().message.clone())?;
        let text = String::from_utf8(document.to_vec()).expect("text");
        Ok((text, usage.and_then(|usage| usage.input)))
    }

    /// Whether an answer can be passed on if there is so much memory.
    pub(super) fn fits(form: &dyn AnswerForm, document: &str, room: usize) -> bool {
        let answered = Answered { from: Protocol::Chat, form, model: "mine", input: 9, id: "r1" };
        let mut share = MemoryBudget::new(room).share();
        let passed = form.passed(&answered, &document.to_owned().into(), document, &mut share);
        !matches!(passed, Err(Unusable::NoRoom(_)))
    }

    #[test]
    fn usage_is_read_wherever_servers_state_it() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        for (usage, meta, expected) in [
            (r#"{"prompt_tokens":4,"total_tokens":4}"#, "null", (Some(4), true)),
            (r#"{"prompt_tokens":4}"#, "null", (Some(4), false)),
            (r#"{"total_tokens":5}"#, "null", (Some(5), false)),
            (r#"{"total_tokens":"5"}"#, r#"{"tokens":{"input_tokens":6.0}}"#, (Some(6), false)),
            ("null", r#"{"billed_units":{"search_units":1}}"#, (None, false)),
            ("null", r#"{"tokens":{"input_tokens":-1}}"#, (None, false)),
            ("[]", "7", (None, false)),
        ] {
            let (reported, is_whole) = reported_usage(Some(&raw(usage)), Some(&raw(meta)));
            assert_eq!((reported.and_then(|usage| usage.input), is_whole), expected, "{usage} {meta}");
        }
    }
}
