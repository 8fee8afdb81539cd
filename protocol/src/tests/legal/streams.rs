//! Answers of careless providers, as known from public reports, as events of each protocol.

mod chat;
mod converse;
mod others;

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use crate::conversation::Protocol;

/// An answer, and how carelessly it is written.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) steps: Vec<Step>,
    pub(super) style: Style,
}

/// A step of an answer.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Text(String),
    Thought(String),
    /// Parallel calls, and texts between their pieces.
    Calls(Vec<Call>, Vec<String>),
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

/// How a provider writes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub(super) struct Style {
    pub(super) numbering: Numbering,
    pub(super) name: NamePlace,
    /// What later pieces contain as id, type and name.
    pub(super) later: Later,
    pub(super) arguments: Form,
    pub(super) end: Option<&'static str>,
    /// Whether remaining text comes after the finish reason.
    pub(super) late_text: bool,
    pub(super) done: bool,
    pub(super) nulls: bool,
    pub(super) usage: bool,
    /// Maximum length of a piece, in characters.
    pub(super) size: usize,
    /// Which call sends the next piece.
    pub(super) turns: Vec<u8>,
}

/// Indices of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbering {
    Right,
    Gaps,
    Missing,
    /// 0 for each call.
    Same,
    Negative,
    Text,
}

/// Where a call's name appears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamePlace {
    First,
    Second,
    /// After the arguments.
    Last,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Later {
    Missing,
    Null,
    Empty,
    Repeated,
}

/// Forms of arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Pieces,
    Whole,
    Object,
}

/// An event: its name, and its data.
pub(super) type Event = (Option<&'static str>, String);

fn text() -> impl Strategy<Value = String> {
    let odd = vec!["\n\n", "\"", "\\", "data: ", "🎈", " ", "\u{2028}", "[DONE]"];
    let piece = prop_oneof![any::<char>().prop_map(String::from), select(odd).prop_map(str::to_owned)];
    vec(piece, 1..8).prop_map(|pieces| pieces.concat())
}

fn call() -> impl Strategy<Value = Call> {
    let id = prop_oneof![4 => "[a-zA-Z0-9_]{1,12}", 1 => Just("call_1".to_owned()), 1 => "[a-z.:|]{1,12}"];
    let value =
        prop_oneof![text().prop_map(Value::from), any::<i32>().prop_map(Value::from), Just(Value::Null)];
    let arguments = btree_map("[a-z]{0,3}", value, 0..3);
    (id, "[a-z_]{1,9}", arguments).prop_map(|(id, name, arguments)| Call {
        id,
        name,
        arguments: arguments.into_iter().collect(),
    })
}

fn style() -> impl Strategy<Value = Style> {
    use Numbering::{Gaps, Missing, Negative, Right, Same, Text};
    let numbering = prop_oneof![3 => Just(Right), 2 => select(vec![Gaps, Missing, Same, Negative, Text])];
    let name =
        prop_oneof![3 => Just(NamePlace::First), 1 => Just(NamePlace::Second), 1 => Just(NamePlace::Last)];
    let later = select(vec![Later::Missing, Later::Null, Later::Empty, Later::Repeated]);
    let arguments = prop_oneof![4 => Just(Form::Pieces), 1 => Just(Form::Whole), 1 => Just(Form::Object)];
    let ends =
        vec!["stop", "tool_calls", "function_call", "", "eos", "end_turn", "STOP", "length", "tool_use"];
    let flags = (prop::bool::weighted(0.2), any::<bool>(), any::<bool>(), any::<bool>());
    (numbering, name, later, arguments, of(select(ends)), flags, 1..9_usize, vec(any::<u8>(), 0..40))
        .prop_map(|(numbering, name, later, arguments, end, flags, size, turns)| Style {
            numbering,
            name,
            later,
            arguments,
            end,
            late_text: flags.0,
            // Without a finish reason, this marks the end.
            done: flags.1 || end.is_none_or(str::is_empty),
            nulls: flags.2,
            usage: flags.3,
            size,
            turns,
        })
}

/// Answers of every kind.
pub(super) fn answers() -> impl Strategy<Value = Answer> {
    let calls =
        (vec(call(), 1..4), vec(text(), 0..3)).prop_map(|(calls, between)| Step::Calls(calls, between));
    let step = prop_oneof![2 => text().prop_map(Step::Text), 1 => text().prop_map(Step::Thought), 2 => calls];
    (vec(step, 0..4), style()).prop_map(|(steps, style)| Answer { steps, style })
}

impl Answer {
    /// What the answer says: its text, and names and arguments of its calls.
    pub(super) fn expected(&self, protocol: Protocol) -> (String, Vec<(String, Value)>) {
        let (mut text, mut calls) = (String::new(), Vec::new());
        for step in &self.steps {
            match step {
                Step::Text(piece) => text.push_str(piece),
                Step::Thought(_) => {}
                Step::Calls(of_step, between) => {
                    calls.extend(
                        of_step.iter().map(|call| (call.name.clone(), call.arguments.clone().into())),
                    );
                    // Only chat pieces can have something in between.
                    if protocol == Protocol::Chat {
                        for piece in between {
                            text.push_str(piece);
                        }
                    }
                }
            }
        }
        (text, calls)
    }

    /// Whether the provider reports truncation, in the protocols that can express it here.
    pub(super) fn is_cut(&self) -> bool {
        self.style.end == Some("length")
    }

    fn has_calls(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Calls(..)))
    }
}

/// Writes an answer as the events of a provider.
pub(super) fn write(protocol: Protocol, answer: &Answer) -> Vec<Event> {
    match protocol {
        Protocol::Chat => chat::write(answer),
        Protocol::Responses => others::responses(answer),
        Protocol::Messages => others::messages(answer),
        Protocol::Native => others::native(answer),
        Protocol::Converse => converse::write(answer),
        Protocol::External(_) => unreachable!("these are the protocols of this crate"),
    }
}

/// A text in pieces of `size` characters.
fn pieces(text: &str, size: usize) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(size).map(String::from_iter).collect()
}

/// Interleaves lists, each of which stays in order. `turns`: which list is next.
fn mixed<T>(lists: Vec<Vec<T>>, turns: &[u8]) -> Vec<T> {
    let mut lists: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    for turn in turns {
        if let Some(count) = std::num::NonZero::new(lists.len()) {
            all.extend(lists[usize::from(*turn) % count].next());
        }
    }
    all.extend(lists.into_iter().flatten());
    all
}
