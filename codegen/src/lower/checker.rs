//! Lowers a JSON Schema to the steps of a checker that reads a document once.
//!
//! The supported keywords are in [`KEYWORDS`] and in [`CheckerLowering::condition`]; any other is an error, and so is a known one
//! in a place or a combination that the checker could not decide. What a checker leaves undecided at run time is not its
//! concern: unknown members, for one, whether the schema allows them or not.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use indexmap::IndexMap;
use serde_json::Value;

use super::super::document::{child, is_true, items_of, members_of};
use super::super::model::checker::{
    Checker, Condition, EnumNode, Format, Is, ListNode, Node, ObjectNode, Test, ValueNode,
};
use super::super::names;
use super::super::schema::types;

#[cfg(test)]
mod tests;

/// Keywords that require nothing.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$defs",
    "$id",
    "$schema",
    "default",
    "description",
    "examples",
    "title",
    "x-configured",
    "x-meanings",
    "x-source",
];

/// The keywords of each type of values.
pub(super) const KEYWORDS: &[(&str, &[&str])] = &[
    ("boolean", &["type"]),
    ("integer", &["type", "minimum", "maximum"]),
    ("string", &["type", "minLength", "maxLength", "format", "pattern"]),
    ("array", &["type", "items", "minItems", "uniqueItems"]),
    ("object", &["type", "properties", "required", "additionalProperties", "allOf"]),
];

/// Members and tests of an object are bits of an integer.
const MAX_BITS: usize = 64;

/// The checker of reports.
pub(super) fn checker(schema: &Value) -> Result<Checker> {
    checker_of(schema, "report")
}

/// The checker of a schema whose document is an object, which is called `name`.
pub(super) fn checker_of(schema: &Value, name: &str) -> Result<Checker> {
    let mut lowering = CheckerLowering { schema, checker: Checker::default(), inside: Vec::new() };
    let root = lowering.value("", schema, name);
    let root = root.map_err(|error| anyhow!("spec/report.schema.json#{error:#}"))?;
    ensure!(matches!(root.node, Node::Object(_)), "spec/report.schema.json: the document is no object");
    for ObjectNode { pointer, members, tests, .. } in lowering.checker.objects.values() {
        let fits = members.len().max(tests.len()) <= MAX_BITS;
        ensure!(fits, "spec/report.schema.json#{pointer}: more than {MAX_BITS} properties, or tests of them");
    }
    Ok(lowering.checker)
}

struct CheckerLowering<'a> {
    schema: &'a Value,
    checker: Checker,
    /// Places of the objects that the present place is in.
    inside: Vec<String>,
}

impl CheckerLowering<'_> {
    /// The node of the values at a place of the schema; `name` is their name.
    fn value(&mut self, at: &str, node: &Value, name: &str) -> Result<ValueNode> {
        if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap_or(reference);
            let target = self
                .schema
                .pointer(pointer)
                .with_context(|| format!("{at}/$ref: {reference} is no place of this schema; correct it"))?;
            only(at, node, &["$ref"])?;
            let name = pointer.rsplit('/').next().unwrap_or_default();
            return self.value(pointer, &target.clone(), name);
        }
        if node.get("enum").is_some() || node.get("const").is_some() {
            return self.constants(at, node, name);
        }
        let (types, nullable) = types(node)?;
        let [kind] = types[..] else {
            bail!("{at}: the checker decides values of one type, and null; give this schema one")
        };
        let Some((_, keywords)) = KEYWORDS.iter().find(|(known, _)| *known == kind) else {
            bail!("{at}/type: the checker does not know {kind}")
        };
        only(at, node, keywords)?;
        let lowered = match kind {
            "boolean" => Node::Boolean,
            "integer" => {
                Node::Integer { least: integer(at, node, "minimum")?, most: integer(at, node, "maximum")? }
            }
            "string" => text(at, node)?,
            "array" => self.list(at, node, name)?,
            _ => self.object(at, node, name)?,
        };
        Ok(ValueNode { nullable, node: lowered })
    }

    /// A constant, or one of several: strings and null, or one integer.
    fn constants(&mut self, at: &str, node: &Value, name: &str) -> Result<ValueNode> {
        only(at, node, if node.get("enum").is_some() { &["enum"] } else { &["const"] })?;
        if let Some(integer) = node.get("const").and_then(Value::as_i64) {
            let lowered = Node::Integer { least: Some(integer), most: Some(integer) };
            return Ok(ValueNode { nullable: false, node: lowered });
        }
        let values: Vec<&Value> = match node.get("enum").and_then(Value::as_array) {
            Some(values) => values.iter().collect(),
            None => node.get("const").into_iter().collect(),
        };
        let nullable = values.iter().any(|value| value.is_null());
        let mut words = Vec::new();
        for value in values.into_iter().filter(|value| !value.is_null()) {
            let Some(word) = value.as_str() else {
                bail!("{at}: {value} is no string; the checker cannot compare with it")
            };
            words.push(word.to_owned());
        }
        let name = names::snake(name);
        if is_true(node, "x-configured") {
            same(&mut self.checker.configured, &name, at, |place| place, || at.to_owned())?;
            return Ok(ValueNode { nullable, node: Node::Configured(name) });
        }
        let is_plain = |byte: u8| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
        if let Some(word) = words.iter().find(|word| !word.bytes().all(is_plain)) {
            bail!(
                "{at}: {word:?} is not of ASCII alone, or is written with escapes; the checker cannot compare with it"
            );
        }
        let lowered = || EnumNode { pointer: at.to_owned(), values: words };
        same(&mut self.checker.enums, &name, at, |known| &known.pointer, lowered)?;
        Ok(ValueNode { nullable, node: Node::Enum(name) })
    }

    fn list(&mut self, at: &str, node: &Value, name: &str) -> Result<Node> {
        let name = names::snake(name);
        let items = node.get("items").with_context(|| format!("{at}: items is missing"))?;
        let lowered = ListNode {
            pointer: at.to_owned(),
            item: self.value(&child(at, "items"), items, &format!("{name}_item"))?,
            min_items: count(at, node, "minItems")?.unwrap_or(0),
            unique: node.get("uniqueItems").is_some_and(|unique| *unique != Value::Bool(false)),
        };
        let comparable = matches!(lowered.item.node, Node::Text { .. } | Node::Enum(_) | Node::Configured(_));
        ensure!(
            !lowered.unique || (comparable && !lowered.item.nullable),
            "{at}/uniqueItems: the checker compares strings only"
        );
        same(&mut self.checker.lists, &name, at, |known| &known.pointer, || lowered)?;
        Ok(Node::List(name))
    }

    fn object(&mut self, at: &str, node: &Value, name: &str) -> Result<Node> {
        let name = names::snake(name);
        if self.checker.objects.get(&name).is_some_and(|known| known.pointer == at) {
            return Ok(Node::Object(name));
        }
        ensure!(!self.inside.iter().any(|outer| outer == at), "{at}: an object is in itself, without an end");
        self.inside.push(at.to_owned());
        let mut members = IndexMap::new();
        for (member, node) in members_of(node, "properties") {
            let place = child(&child(at, "properties"), member);
            let lowered = self.value(&place, node, &names::snake(&format!("{name}_{member}")))?;
            members.insert(member.clone(), lowered);
        }
        self.inside.pop();
        let required = strings(at, node, "required")?;
        if let Some(unknown) = required.iter().find(|required| !members.contains_key(*required)) {
            bail!("{at}/required: {unknown} is not among the properties");
        }
        let lowered = ObjectNode {
            pointer: at.to_owned(),
            members,
            required,
            tests: Vec::new(),
            conditions: Vec::new(),
        };
        same(&mut self.checker.objects, &name, at, |known| &known.pointer, || lowered)?;
        for (index, node) in items_of(node, "allOf").enumerate() {
            let condition = self.condition(&name, &format!("{at}/allOf/{index}"), node)?;
            self.checker.objects[&name].conditions.push(condition);
        }
        Ok(Node::Object(name))
    }

    /// What a schema requires of an object whose members are known.
    fn condition(&mut self, object: &str, at: &str, node: &Value) -> Result<Condition> {
        only(at, node, &["properties", "required", "allOf", "anyOf", "if", "then"])?;
        let mut all = Vec::new();
        for (member, node) in members_of(node, "properties") {
            let place = child(&child(at, "properties"), member);
            all.extend(self.tests(object, member, &place, node)?.into_iter().map(Condition::Passes));
        }
        for name in strings(at, node, "required")? {
            let known = self.checker.objects[object].members.contains_key(&name);
            ensure!(known, "{at}/required: {name} is not among the properties of {object}");
            all.push(Condition::Has(name));
        }
        for key in ["allOf", "anyOf"] {
            let Some(branches) = node.get(key).and_then(Value::as_array) else { continue };
            let branches = branches.iter().enumerate();
            let branches =
                branches.map(|(index, node)| self.condition(object, &format!("{at}/{key}/{index}"), node));
            let branches = branches.collect::<Result<_>>()?;
            all.push(if key == "allOf" { Condition::All(branches) } else { Condition::Any(branches) });
        }
        match (node.get("if"), node.get("then")) {
            (Some(condition), Some(then)) => {
                let condition = self.condition(object, &child(at, "if"), condition)?;
                let then = self.condition(object, &child(at, "then"), then)?;
                all.push(Condition::If(Box::new((condition, then))));
            }
            (None, None) => {}
            _ => bail!("{at}: if and then belong together"),
        }
        Ok(match all.len() {
            1 => all.remove(0),
            _ => Condition::All(all),
        })
    }

    /// The tests that a schema is for a member, as indices of the object's tests.
    fn tests(&mut self, object: &str, member: &str, at: &str, node: &Value) -> Result<Vec<usize>> {
        let Some(value) = self.checker.objects[object].members.get(member) else {
            bail!("{at}: {member} is not among the properties of {object}")
        };
        let mut found = Vec::new();
        match &value.node {
            Node::Integer { .. } => {
                only(at, node, &["const", "minimum", "maximum"])?;
                found.extend(integer(at, node, "const")?.map(Is::Integer));
                found.extend(integer(at, node, "minimum")?.map(Is::AtLeast));
                found.extend(integer(at, node, "maximum")?.map(Is::AtMost));
            }
            Node::Enum(name) => {
                only(at, node, &["const"])?;
                let constant = node.get("const").and_then(Value::as_str);
                let index =
                    self.checker.enums[name].values.iter().position(|word| Some(word.as_str()) == constant);
                found.push(Is::EnumValue(
                    index.with_context(|| format!("{at}/const: {member} never has this value"))?,
                ));
            }
            Node::Object(inner) => {
                only(at, node, &["properties"])?;
                let inner = inner.clone();
                for (member, node) in members_of(node, "properties") {
                    let place = child(&child(at, "properties"), member);
                    found.extend(self.tests(&inner, member, &place, node)?.into_iter().map(Is::Passing));
                }
            }
            _ => bail!("{at}: the checker cannot decide this of {member}"),
        }
        let tests = &mut self.checker.objects[object].tests;
        let mut indices = Vec::new();
        for is in found {
            let test = Test { member: member.to_owned(), is };
            let index = tests.iter().position(|known| *known == test).unwrap_or(tests.len());
            if index == tests.len() {
                tests.push(test);
            }
            indices.push(index);
        }
        Ok(indices)
    }
}

fn text(at: &str, node: &Value) -> Result<Node> {
    let format = match node.get("format").and_then(Value::as_str) {
        None => None,
        Some("date-time") => Some(Format::DateTime),
        Some("uri") => Some(Format::Uri),
        Some(other) => bail!("{at}/format: the checker does not know {other}"),
    };
    let pattern = node.get("pattern").and_then(Value::as_str).map(|pattern| {
        beginning(pattern).with_context(|| {
            format!("{at}/pattern: the checker knows `^`, then letters, `/` and [a-b], each with + or not: {pattern}")
        })
    });
    Ok(Node::Text {
        least: count(at, node, "minLength")?.unwrap_or(0),
        most: count(at, node, "maxLength")?,
        format,
        pattern: pattern.transpose()?.unwrap_or_default(),
    })
}

/// The characters that a pattern requires at the beginning.
fn beginning(pattern: &str) -> Option<Vec<(u8, u8, bool)>> {
    let mut rest = pattern.strip_prefix('^')?.as_bytes();
    let mut atoms = Vec::new();
    while let Some((first, after)) = rest.split_first() {
        let (low, high, after) = match (first, after) {
            (b'[', [low, b'-', high, b']', after @ ..]) if low.is_ascii_alphanumeric() => {
                (*low, *high, after)
            }
            (literal, after) if literal.is_ascii_alphanumeric() || *literal == b'/' => {
                (*literal, *literal, after)
            }
            _ => return None,
        };
        let is_range = low <= high && high.is_ascii_alphanumeric() || low == high;
        let repeated = after.first() == Some(&b'+');
        rest = &after[usize::from(repeated)..];
        atoms.push(is_range.then_some((low, high, repeated))?);
    }
    Some(atoms)
}

fn integer(at: &str, node: &Value, key: &str) -> Result<Option<i64>> {
    let value = node.get(key);
    value
        .map(|value| value.as_i64().with_context(|| format!("{at}/{key}: {value} is no integer")))
        .transpose()
}

fn count(at: &str, node: &Value, key: &str) -> Result<Option<u64>> {
    let count = |value: &Value| value.as_u64().with_context(|| format!("{at}/{key}: {value} is no count"));
    node.get(key).map(count).transpose()
}

fn strings(at: &str, node: &Value, key: &str) -> Result<Vec<String>> {
    let Some(list) = node.get(key) else { return Ok(Vec::new()) };
    serde_json::from_value(list.clone()).with_context(|| format!("{at}/{key} is no list of strings"))
}

/// Rejects keywords other than these and those that require nothing.
fn only(at: &str, node: &Value, keywords: &[&str]) -> Result<()> {
    let Some(members) = node.as_object() else { bail!("{at} is no object") };
    let known: BTreeSet<&str> = keywords.iter().chain(ANNOTATIONS).copied().collect();
    match members.keys().find(|key| !known.contains(key.as_str())) {
        Some(key) => bail!("{at}/{key}: the checker of reports does not know this keyword here; teach it"),
        None => Ok(()),
    }
}

/// Adds a named part. Two places of the schema with the same name are an error.
fn same<T>(
    all: &mut IndexMap<String, T>,
    name: &str,
    at: &str,
    place: impl Fn(&T) -> &String,
    node: impl FnOnce() -> T,
) -> Result<()> {
    match all.get(name) {
        Some(known) => ensure!(place(known) == at, "{at} and {} would both be called {name}", place(known)),
        None => _ = all.insert(name.to_owned(), node()),
    }
    Ok(())
}
