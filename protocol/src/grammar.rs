//! The guarantees that clients rely on in the streams of each protocol: the order of events, and the answer that they add
//! up to. Reads the bytes that a client gets, and reports how a strict client would interpret them, and where the stream
//! breaks a rule. The rules are in each protocol's `grammar.rs`.

mod events;

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

pub use self::events::{EventData, TranscriptEvent};
use crate::conversation::Protocol;

/// Where a stream breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleViolation {
    /// Name of the broken rule.
    pub rule: &'static str,
    /// How the stream breaks it, for people.
    pub message: String,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.rule, self.message)
    }
}

/// A call as the client received it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceivedCall {
    /// The choice it belongs to.
    pub choice: u64,
    /// The id by which a result refers to the call. Empty: it has none, which only the native protocol allows.
    pub id: String,
    /// Name of the called tool.
    pub name: String,
    /// JSON of a function, text of a custom tool.
    pub input: String,
    /// Whether the tool is a custom tool, whose input is text.
    pub custom: bool,
}

impl ReceivedCall {
    /// The object that is its input. `None`: it isn't one.
    pub(crate) fn arguments(&self) -> Option<Value> {
        serde_json::from_str(&self.input).ok().filter(Value::is_object)
    }
}

/// A stream as a client interprets it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// Text of the answer, all choices and parts concatenated.
    pub text: String,
    /// Text of refusals, concatenated.
    pub refusal: String,
    /// Text of thoughts and their summaries, concatenated.
    pub thoughts: String,
    /// The calls of all choices.
    pub calls: Vec<ReceivedCall>,
    /// The finish reason of each choice.
    pub ends: Vec<String>,
    /// Whether the stream reports a failure.
    pub failed: bool,
    /// The rules that the stream breaks. Empty: a strict client understands it.
    pub faults: Vec<RuleViolation>,
}

impl Transcript {
    /// The stream breaks a rule.
    pub fn fault(&mut self, rule: &'static str, message: impl Into<String>) {
        self.faults.push(RuleViolation { rule, message: message.into() });
    }

    /// Checks that calls have the fields that clients need. `cut`: whether the answer was cut off, so that the last call
    /// may be incomplete.
    pub(crate) fn check_calls(&mut self, needs_id: bool, cut: bool) {
        let calls = std::mem::take(&mut self.calls);
        let mut ids = HashSet::new();
        for (index, call) in calls.iter().enumerate() {
            if call.name.is_empty() || (needs_id && call.id.is_empty()) {
                self.fault("a_call_has_its_id_and_name", format!("call {index}: {call:?}"));
            }
            if !call.id.is_empty() && !ids.insert((call.choice, &call.id)) {
                self.fault("ids_of_calls_are_unique", format!("call {index}: {:?}", call.id));
            }
            let may_be_cut = cut && index + 1 == calls.len();
            if !call.custom && !may_be_cut && call.arguments().is_none() {
                self.fault("arguments_are_whole", format!("call {index}: {:?}", call.input));
            }
        }
        self.calls = calls;
    }
}

/// Rule names of a protocol.
#[cfg(test)]
fn rules(protocol: Protocol) -> &'static [&'static str] {
    match protocol.client_codec() {
        Some(codec) => codec.stream_rules(),
        None => &[],
    }
}

/// Reads a client's stream of server-sent events.
pub fn transcript(protocol: Protocol, bytes: &[u8]) -> Transcript {
    let mut transcript = Transcript::default();
    let events = events::read(bytes, &mut transcript);
    if let Some(codec) = protocol.client_codec() {
        codec.read_stream(&events, &mut transcript);
    }
    transcript
}

#[cfg(test)]
mod tests;
