//! Applies the rules to a document. Nothing is stored: violations are reported as they are found.

use gatewright_safe::uri::is_uri;
use serde_json::Value as Json;

use super::date_time::is_date_time;
use super::{Format, Id, Rules, Schema, Type};
use crate::path::Path;
use crate::tree::{Member, Node, Number, Value, first_equal_pair};

/// A rule that a value violates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'w> {
    pub(crate) rules: &'w Rules,
    pub(crate) broken: FailedKeyword<'w>,
    pub(crate) node: &'w Node<'w>,
    pub(crate) path: &'w Path<'w>,
}

/// The violated keyword.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FailedKeyword<'w> {
    False,
    Type,
    Const,
    Enum,
    Minimum,
    Maximum,
    MinLength,
    MaxLength,
    MinItems,
    Required(&'w str),
    Pattern,
    Format,
    UniqueItems,
    /// A property that is not listed.
    AdditionalProperties(&'w Member<'w>),
    /// None of several properties is present, of which one is required.
    AnyRequired(&'w [&'w str]),
}

type OnFailure<'t> = dyn FnMut(Failure<'_>) + 't;

impl Schema {
    /// Reports every rule that a document violates. Those of one value come in the order of [`FailedKeyword`].
    pub(crate) fn walk(&self, root: &Node<'_>, on_failure: &mut OnFailure<'_>) {
        self.value(0, root, &Path::Root, on_failure);
    }

    fn value(&self, id: Id, node: &Node<'_>, path: &Path<'_>, on_failure: &mut OnFailure<'_>) {
        if matches!(node.value, Value::Sound(_)) {
            return;
        }
        let rules = &self.0[id];
        rules.assert(node, &mut |broken| on_failure(Failure { rules, broken, node, path }));
        match &node.value {
            Value::Object(members) if rules.closed || !rules.properties.is_empty() => {
                let mut properties = OrderedLookup::new(&rules.properties);
                for member in members {
                    match properties.find(|(name, _)| **name == *member.name) {
                        Some((name, id)) => {
                            self.value(*id, &member.node, &Path::Member(path, name), on_failure);
                        }
                        None if rules.closed => {
                            let broken = FailedKeyword::AdditionalProperties(member);
                            on_failure(Failure { rules, broken, node, path });
                        }
                        None => {}
                    }
                }
            }
            Value::Array(items) => {
                if let Some(id) = rules.items {
                    for (index, item) in items.iter().enumerate() {
                        self.value(id, item, &Path::Item(path, index), on_failure);
                    }
                }
            }
            _ => {}
        }
        for id in &rules.all_of {
            self.value(*id, node, path, on_failure);
        }
        if !rules.any_of.is_empty() {
            self.any_of(rules, node, path, on_failure);
        }
        if let (Some(condition), Some(consequence)) = (rules.condition, rules.consequence)
            && self.holds(condition, node)
        {
            self.value(consequence, node, path, on_failure);
        }
        if let Some(id) = rules.reference {
            self.value(id, node, path, on_failure);
        }
    }

    fn holds(&self, id: Id, node: &Node<'_>) -> bool {
        let mut holds = true;
        self.value(id, node, &Path::Root, &mut |_| holds = false);
        holds
    }

    /// If the branches only lack properties, that is one failure; otherwise all failures of each branch are
    /// reported.
    fn any_of(&self, rules: &Rules, node: &Node<'_>, path: &Path<'_>, on_failure: &mut OnFailure<'_>) {
        if rules.any_of.iter().any(|id| self.holds(*id, node)) {
            return;
        }
        let mut names: Option<Vec<String>> = Some(Vec::new());
        for id in &rules.any_of {
            self.value(*id, node, path, &mut |failure| match (failure.broken, &mut names) {
                (FailedKeyword::Required(name), Some(names)) => names.push(name.to_owned()),
                _ => names = None,
            });
        }
        match names {
            Some(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                on_failure(Failure { rules, broken: FailedKeyword::AnyRequired(&names), node, path });
            }
            None => rules.any_of.iter().for_each(|id| self.value(*id, node, path, on_failure)),
        }
    }
}

impl Rules {
    /// The rules of the value itself.
    fn assert<'w>(&'w self, node: &'w Node<'w>, on_failure: &mut dyn FnMut(FailedKeyword<'w>)) {
        let mut hold = |holds: bool, broken| {
            if !holds {
                on_failure(broken);
            }
        };
        hold(!self.is_false, FailedKeyword::False);
        if let Some(types) = &self.types {
            hold(types.iter().any(|one| one.admits(node)), FailedKeyword::Type);
        }
        if let Some(constant) = &self.constant {
            hold(node.equals(constant), FailedKeyword::Const);
        }
        if let Some(options) = &self.options {
            hold(options.iter().any(|option| node.equals(option)), FailedKeyword::Enum);
        }
        match &node.value {
            Value::Number(number) => {
                let limit = |limit: &Option<serde_json::Number>, side| {
                    limit.as_ref().is_none_or(|limit| number.compared_with(limit) != side)
                };
                hold(limit(&self.minimum, std::cmp::Ordering::Less), FailedKeyword::Minimum);
                hold(limit(&self.maximum, std::cmp::Ordering::Greater), FailedKeyword::Maximum);
            }
            Value::String(text) => {
                // Most texts are so short or so long that counting code points is unnecessary.
                let fits = |most: usize| text.len() <= most || text.chars().count() <= most;
                hold(
                    self.min_length.is_none_or(|least| least == 0 || !fits(least - 1)),
                    FailedKeyword::MinLength,
                );
                hold(self.max_length.is_none_or(fits), FailedKeyword::MaxLength);
                hold(self.pattern.as_ref().is_none_or(|one| one.is_match(text)), FailedKeyword::Pattern);
                hold(self.format.is_none_or(|format| format.admits(text)), FailedKeyword::Format);
            }
            Value::Array(items) => {
                hold(self.min_items.is_none_or(|least| items.len() >= least), FailedKeyword::MinItems);
                hold(!self.unique_items || first_equal_pair(items).is_none(), FailedKeyword::UniqueItems);
            }
            Value::Object(members) => {
                let mut members = OrderedLookup::new(members);
                for name in &self.required {
                    hold(
                        members.find(|member| *member.name == **name).is_some(),
                        FailedKeyword::Required(name),
                    );
                }
            }
            _ => {}
        }
    }
}

/// Finds items in sequence. Each search starts where the last one ended: two lists of names mostly have the same order.
struct OrderedLookup<'l, T> {
    list: &'l [T],
    next: usize,
}

impl<'l, T> OrderedLookup<'l, T> {
    fn new(list: &'l [T]) -> Self {
        Self { list, next: 0 }
    }

    fn find(&mut self, is_it: impl Fn(&T) -> bool) -> Option<&'l T> {
        let (before, after) = self.list.split_at_checked(self.next)?;
        let found = match after.iter().position(&is_it) {
            Some(place) => before.len() + place,
            None => before.iter().position(is_it)?,
        };
        self.next = found + 1;
        self.list.get(found)
    }
}

impl Type {
    fn admits(self, node: &Node<'_>) -> bool {
        match (self, &node.value) {
            (Self::Integer, Value::Number(number)) => number.is_integer(),
            (Self::Array, Value::Array(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::Object, Value::Object(_))
            | (Self::String, Value::String(_))
            | (Self::Null, Value::Null) => true,
            _ => false,
        }
    }
}

impl Format {
    fn admits(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Uri => is_uri(text),
        }
    }
}

impl Node<'_> {
    /// Whether the value equals this one: numbers by value, objects regardless of the order of their members.
    pub(super) fn equals(&self, other: &Json) -> bool {
        match (&self.value, other) {
            (Value::Null, Json::Null) => true,
            (Value::Bool(one), Json::Bool(other)) => one == other,
            (Value::Number(one), Json::Number(other)) => one.equals(Number::new(&other.to_string())),
            (Value::String(one), Json::String(other)) => one == other,
            (Value::Array(one), Json::Array(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.equals(other))
            }
            (Value::Object(members), Json::Object(other)) => {
                let equal = |member: &Member<'_>| {
                    other.get(&*member.name).is_some_and(|other| member.node.equals(other))
                };
                members.len() == other.len() && members.iter().all(equal)
            }
            _ => false,
        }
    }
}
