//! The ways to call an operation whose answer depends on members of its request.

use serde_json::Value;

use super::operations::Operation;
use super::types::Type;
use super::{Api, Kind};

/// One way to call an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CallVariant {
    pub answer: AnswerKind,
    /// What the members of the request are that decide, by wire name. The others may be anything.
    pub members: Vec<(String, MemberCondition)>,
}

/// What an operation answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Document,
    /// Text in place of JSON.
    Text,
    Stream,
    /// Any of them: it is unknown what the members are.
    Unknown,
}

/// What a member of a request is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MemberCondition {
    /// One of these values.
    OneOf(Vec<Value>),
    /// One of these values, null, or left out.
    AtMost(Vec<Value>),
}

impl Api {
    /// The ways to call an operation, the most special first; empty if it has one kind of answer.
    pub(crate) fn call_variants(&self, operation: &Operation) -> Vec<CallVariant> {
        if operation.response.is_none() && operation.non_json.is_none() {
            return Vec::new();
        }
        let text = operation.text_form.as_ref().map(|text| {
            (
                AnswerKind::Text,
                &text.parameter,
                text.values.iter().map(|value| Value::from(value.as_str())).collect(),
            )
        });
        let stream = operation
            .stream_switch()
            .map(|switch| (AnswerKind::Stream, &switch.parameter, vec![switch.on()]));
        // A stream is one whatever the format of its text is, so its switch is the last.
        let switches: Vec<(AnswerKind, &String, Vec<Value>)> = text.into_iter().chain(stream).collect();
        if switches.is_empty() {
            return Vec::new();
        }
        let off = |(_, name, on): &(AnswerKind, &String, Vec<Value>)| {
            let mut values = self.values_of(operation, name);
            values.retain(|value| !on.contains(value));
            ((*name).clone(), MemberCondition::AtMost(values))
        };
        let mut variants =
            vec![CallVariant { answer: AnswerKind::Document, members: switches.iter().map(off).collect() }];
        for (index, (answer, name, on)) in switches.iter().enumerate() {
            let mut members = vec![((*name).clone(), MemberCondition::OneOf(on.clone()))];
            members.extend(switches[index + 1..].iter().map(off));
            variants.push(CallVariant { answer: *answer, members });
        }
        variants.push(CallVariant { answer: AnswerKind::Unknown, members: Vec::new() });
        variants
    }

    /// All values of a member of a request that is true or false, or one of a list of words.
    fn values_of(&self, operation: &Operation, name: &str) -> Vec<Value> {
        let field = self.request_fields(operation).iter().find(|field| field.name == name);
        let mut ty = field.map(|field| &field.ty);
        while let Some(Type::Nullable(inner)) = ty {
            ty = Some(inner);
        }
        let words = |values: &[String]| values.iter().map(|value| Value::from(value.as_str())).collect();
        match ty {
            Some(Type::Boolean) => vec![true.into(), false.into()],
            Some(Type::Enum(values)) => words(&values.values),
            Some(Type::Ref(name)) => match &self.schemas[name].kind {
                Kind::Enum(values) => words(&values.values),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}
