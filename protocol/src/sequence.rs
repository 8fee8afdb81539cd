//! Reorders the pieces of a provider's stream so that every client protocol can express it: one part after the other.
//!
//! Providers interleave the pieces of several calls, put text between the pieces of one, announce a call before its name,
//! give two calls the same id, or none. Here the call that began first is streamed as it arrives; everything else waits
//! until its input is complete or the choice ends. A call that never gets a name can't be executed, so it is dropped.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

use super::{MalformedDocument, StreamIn, surrogates};
use crate::conversation::{Answer, Delta, Failure, FailureKind, FinishReason, Input, Part, PartKind};

/// Finish reasons that are the request's fault: a proof is missing, or the model called a tool although the request has
/// none.
const OF_THE_REQUEST: [&str; 2] = ["MISSING_THOUGHT_SIGNATURE", "UNEXPECTED_TOOL_CALL"];
/// Memory of a waiting part besides its texts, in bytes.
const PART_BYTES: usize = size_of::<QueuedDelta>();

/// A provider's stream, reordered.
pub(super) struct SequencedStream {
    inner: Box<dyn StreamIn>,
    sequence: DeltaSequence,
    /// Scratch space for the deltas of an event.
    read: Vec<Delta>,
}

impl SequencedStream {
    pub(super) fn new(inner: Box<dyn StreamIn>) -> Self {
        Self { inner, sequence: DeltaSequence::default(), read: Vec::new() }
    }
}

impl StreamIn for SequencedStream {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        let read = match self.inner.event(name, data, &mut self.read) {
            // Nothing was read: half a character isn't valid JSON.
            Err(_) if let Some(mended) = surrogates::mended(data) => {
                self.read.clear();
                self.inner.event(name, &mended, &mut self.read)
            }
            read => read,
        };
        for delta in self.read.drain(..) {
            self.sequence.push(delta, deltas);
        }
        read
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        let ended = self.inner.end(&mut self.read);
        for delta in self.read.drain(..) {
            self.sequence.push(delta, deltas);
        }
        ended
    }

    fn held(&self) -> usize {
        self.sequence.held.saturating_add(self.inner.held())
    }
}

#[derive(Default)]
struct DeltaSequence {
    choices: HashMap<u32, ChoiceSequence>,
    /// Total bytes waiting.
    held: usize,
    has_failed: bool,
}

#[derive(Default)]
struct ChoiceSequence {
    calls: HashMap<u32, SequencedCall>,
    /// The call being sent, or waiting for its name.
    open: Option<u32>,
    waiting: VecDeque<QueuedDelta>,
    /// Number of calls sent.
    sent_calls: u32,
    ids: HashSet<String>,
}

/// Deltas that wait for the open call.
enum QueuedDelta {
    Call(u32),
    Part(Delta),
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own, and they come in any order")]
struct SequencedCall {
    /// Its index among the calls that were sent.
    place: u32,
    id: String,
    name: String,
    custom: bool,
    signature: Option<String>,
    /// The part that is still waiting.
    input: String,
    has_started: bool,
    has_input: bool,
    is_whole: bool,
    is_closed: bool,
}

impl DeltaSequence {
    fn push(&mut self, delta: Delta, out: &mut Vec<Delta>) {
        if self.has_failed {
            return;
        }
        match delta {
            Delta::Ended { choice, end } => {
                let open = self.choices.entry(choice).or_default();
                open.flush(choice, &mut self.held, out);
                if let FinishReason::Failed { word, .. } = end {
                    self.has_failed = true;
                    out.push(Delta::Failed(failure(&word)));
                } else {
                    let end = with_calls(end, !open.ids.is_empty());
                    out.push(Delta::Ended { choice, end });
                }
            }
            Delta::Done => {
                // Some providers continue after a choice's finish reason.
                for (choice, open) in &mut self.choices {
                    open.flush(*choice, &mut self.held, out);
                }
                out.push(Delta::Done);
            }
            Delta::Failed(failure) => {
                self.has_failed = true;
                for (choice, open) in &mut self.choices {
                    open.fail(*choice, &mut self.held, out);
                }
                out.push(Delta::Failed(failure));
            }
            delta => match delta.choice() {
                Some(choice) => {
                    self.choices.entry(choice).or_default().push(choice, delta, &mut self.held, out);
                }
                None => out.push(delta),
            },
        }
    }
}

impl ChoiceSequence {
    fn push(&mut self, choice: u32, delta: Delta, held: &mut usize, out: &mut Vec<Delta>) {
        match delta {
            Delta::Call { call, id, name, custom, signature, .. } => {
                self.call(
                    call,
                    SequencedCall { id, name, custom, signature, ..SequencedCall::default() },
                    held,
                );
            }
            Delta::CallInput { call, text, .. } => {
                let Some(call) = self.calls.get_mut(&call).filter(|call| !call.is_closed) else { return };
                call.has_input |= !text.trim_start().is_empty();
                if call.has_started {
                    out.push(Delta::CallInput { choice, call: call.place, text });
                } else {
                    *held += text.len();
                    call.input.push_str(&text);
                }
                return;
            }
            Delta::CallDone { call, .. } => {
                if let Some(call) = self.calls.get_mut(&call) {
                    call.is_whole = true;
                }
            }
            delta if self.open.is_none() => return out.push(delta),
            delta => {
                *held += PART_BYTES + delta.memory();
                self.waiting.push_back(QueuedDelta::Part(delta));
                return;
            }
        }
        self.advance(choice, held, out);
    }

    /// Takes a call, or details of it that weren't known yet.
    fn call(&mut self, place: u32, details: SequencedCall, held: &mut usize) {
        let Some(known) = self.calls.get_mut(&place) else {
            *held += PART_BYTES + details.id.len() + details.name.len();
            self.calls.insert(place, details);
            if self.open.is_none() {
                self.open = Some(place);
            } else {
                self.waiting.push_back(QueuedDelta::Call(place));
            }
            return;
        };
        if known.has_started {
            return;
        }
        for (known, value) in [(&mut known.name, details.name), (&mut known.id, details.id)] {
            if known.is_empty() {
                *held += value.len();
                *known = value;
            }
        }
        known.custom |= details.custom;
        known.signature = known.signature.take().or(details.signature);
    }

    /// Sends what doesn't have to wait any longer.
    fn advance(&mut self, choice: u32, held: &mut usize, out: &mut Vec<Delta>) {
        loop {
            if let Some(place) = self.open {
                let Some(call) = self.calls.get_mut(&place) else { return };
                if !call.has_started && !call.name.is_empty() {
                    call.place = self.sent_calls;
                    self.sent_calls = self.sent_calls.saturating_add(1);
                    call.begin(choice, &mut self.ids, held, out);
                }
                if !(call.has_started && call.is_whole) {
                    return;
                }
                call.close(choice, out);
                self.open = None;
            }
            match self.waiting.pop_front() {
                Some(QueuedDelta::Call(place)) => self.open = Some(place),
                Some(QueuedDelta::Part(delta)) => {
                    *held = held.saturating_sub(PART_BYTES + delta.memory());
                    out.push(delta);
                }
                None => return,
            }
        }
    }

    /// The choice has ended: no call gets any further input.
    fn flush(&mut self, choice: u32, held: &mut usize, out: &mut Vec<Delta>) {
        while let Some(place) = self.open {
            if let Some(call) = self.calls.get_mut(&place) {
                call.is_whole = true;
                if !call.has_started && call.name.is_empty() {
                    *held = held.saturating_sub(call.input.len());
                    self.calls.remove(&place);
                    self.open = None;
                }
            } else {
                self.open = None;
            }
            self.advance(choice, held, out);
        }
    }

    /// The stream failed: sends everything that is complete. Nothing is sent after a partial call, or the client would
    /// take the call for complete.
    fn fail(&mut self, choice: u32, held: &mut usize, out: &mut Vec<Delta>) {
        let has_started = |place| self.calls.get(&place).is_some_and(|call| call.has_started);
        if self.open.is_some_and(has_started) {
            return;
        }
        self.calls.retain(|_, call| call.is_whole && !call.name.is_empty());
        self.waiting.retain(|waiting| match waiting {
            QueuedDelta::Call(place) => self.calls.contains_key(place),
            QueuedDelta::Part(_) => true,
        });
        self.open = None;
        self.advance(choice, held, out);
    }
}

impl SequencedCall {
    fn begin(&mut self, choice: u32, ids: &mut HashSet<String>, held: &mut usize, out: &mut Vec<Delta>) {
        self.has_started = true;
        let (call, custom) = (self.place, self.custom);
        let id = unique(std::mem::take(&mut self.id), ids);
        let (name, signature) = (std::mem::take(&mut self.name), self.signature.take());
        out.push(Delta::Call { choice, call, id, name, custom, signature });
        if !self.input.is_empty() {
            let text = std::mem::take(&mut self.input);
            *held = held.saturating_sub(text.len());
            out.push(Delta::CallInput { choice, call, text });
        }
    }

    /// Function arguments are JSON even if the model wrote none.
    fn close(&mut self, choice: u32, out: &mut Vec<Delta>) {
        self.is_closed = true;
        if !self.has_input && !self.custom {
            out.push(Delta::CallInput { choice, call: self.place, text: "{}".to_owned() });
        }
    }
}

/// The id of a call: its own, or a generated one if it has none or another call has the same. Otherwise a result couldn't
/// be matched to it.
fn unique(id: String, ids: &mut HashSet<String>) -> String {
    if !id.is_empty() && ids.insert(id.clone()) {
        return id;
    }
    let made = format!("call_{}", Uuid::new_v4().simple());
    ids.insert(made.clone());
    made
}

/// Clients execute calls only if the finish reason says that there are some, and expect some if it does.
fn with_calls(end: FinishReason, has_calls: bool) -> FinishReason {
    match end {
        FinishReason::Stop if has_calls => FinishReason::ToolCalls,
        FinishReason::ToolCalls if !has_calls => FinishReason::Stop,
        end => end,
    }
}

/// The error for an answer that ended with such a reason.
fn failure(word: &str) -> Failure {
    let kind = if OF_THE_REQUEST.contains(&word) { FailureKind::InvalidRequest } else { FailureKind::Server };
    let word = gatewright::limits::brief(word);
    let message = format!("the provider stopped the answer early: its finish reason is {word:?}");
    Failure { code: Some(word), ..Failure::new(kind, message) }
}

/// Gives the calls of a whole answer unique ids.
pub(super) fn settle_calls(answer: &mut Answer) {
    for choice in &mut answer.choices {
        let mut ids = HashSet::new();
        for Part { kind, .. } in &mut choice.parts {
            let PartKind::Call(call) = kind else { continue };
            call.id = unique(std::mem::take(&mut call.id), &mut ids);
        }
    }
}

/// Makes the finish reasons of a whole answer agree with its calls, and gives each call arguments, for a client of
/// another protocol.
pub(super) fn settle_ends(answer: &mut Answer) {
    for choice in &mut answer.choices {
        let mut has_calls = false;
        for Part { kind, .. } in &mut choice.parts {
            let PartKind::Call(call) = kind else { continue };
            has_calls = true;
            if let Input::Json(text) = &mut call.input
                && text.trim_start().is_empty()
            {
                "{}".clone_into(text);
            }
        }
        // Some providers don't say why a whole answer ended.
        choice.end = Some(with_calls(choice.end.take().unwrap_or(FinishReason::Stop), has_calls));
    }
}

/// The error of a whole answer that a provider did not complete.
pub fn failure_of(answer: &Answer) -> Option<Failure> {
    answer.choices.iter().find_map(|choice| match &choice.end {
        Some(FinishReason::Failed { word, .. }) => Some(failure(word)),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
