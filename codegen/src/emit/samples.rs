//! Values of types, for the examples of the documentation: small ones that the specification allows.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Number, Value, json};

use crate::model::{Api, Constraints, Field, Kind, Schema, Type};
use crate::names;

/// Characters of JSON from which on a value leaves out the items of its arrays.
const LONG: usize = 320;

/// Makes values of the types of one document.
pub(super) struct Samples<'a> {
    schemas: &'a IndexMap<String, Schema>,
    /// Texts of examples of the specification, those of calls first, by the member that holds them.
    texts: HashMap<&'a str, &'a str>,
}

impl<'a> Samples<'a> {
    /// Of the types of the API.
    pub(super) fn of_api(api: &'a Api) -> Self {
        let mut texts = HashMap::new();
        for operation in &api.operations {
            gather(&operation.example, &mut texts);
        }
        for schema in api.schemas.values() {
            let Kind::Object(object) = &schema.kind else { continue };
            for field in &object.fields {
                if let Some(Value::String(text)) = &field.example {
                    texts.entry(&field.name).or_insert(text);
                }
            }
        }
        Self { schemas: &api.schemas, texts }
    }

    /// Of types that stand alone.
    pub(super) fn of(schemas: &'a IndexMap<String, Schema>) -> Self {
        Self { schemas, texts: HashMap::new() }
    }

    /// The members of a type that is an object, or of the first kind of an open union.
    pub(super) fn fields(&self, name: &str) -> &'a [Field] {
        match self.schemas.get(name).map(|schema| &schema.kind) {
            Some(Kind::Object(object)) => &object.fields,
            Some(kind) => first(kind).map_or(&[], |first| self.fields(first)),
            None => &[],
        }
    }

    /// The required members of an object, with the items of its arrays if that is not too long.
    pub(super) fn object(&self, name: &str) -> Map<String, Value> {
        if let Some(stated) = self.stated(name).and_then(Value::as_object) {
            return stated.clone();
        }
        let whole = self.members(name, true, 0);
        if Value::Object(whole.clone()).to_string().len() <= LONG {
            whole
        } else {
            self.members(name, false, 0)
        }
    }

    /// The example that the specification has of a type, or of the first kind of an open union.
    fn stated(&self, name: &str) -> Option<&'a Value> {
        let schema = self.schemas.get(name)?;
        schema.example.as_ref().or_else(|| self.stated(first(&schema.kind)?))
    }

    /// A value of one member.
    pub(super) fn member(&self, field: &Field) -> Value {
        self.field(field, true, 0)
    }

    /// A value of the member that an inline type is named after.
    pub(super) fn nested(&self, name: &str) -> Option<Value> {
        let parents = self.schemas.keys().filter(|parent| name.starts_with(parent.as_str()));
        let mut members =
            parents.flat_map(|parent| self.fields(parent).iter().map(move |field| (parent, field)));
        let (_, field) = members.find(|(parent, field)| names::nested(parent, &field.name) == name)?;
        Some(self.member(field))
    }

    /// A text of an example, in a member of this name.
    pub(super) fn example_text(&self, member: &str) -> Option<&'a str> {
        self.texts.get(member).copied()
    }

    /// A text that stands in a member of this name.
    pub(super) fn text(&self, member: &str) -> String {
        self.texts.get(member).map_or_else(|| member.to_owned(), |text| (*text).to_owned())
    }

    fn members(&self, name: &str, with_items: bool, depth: usize) -> Map<String, Value> {
        let required = self.fields(name).iter().filter(|field| field.required);
        required.map(|field| (field.name.clone(), self.field(field, with_items, depth))).collect()
    }

    fn field(&self, field: &Field, with_items: bool, depth: usize) -> Value {
        let stated = field.example.clone().or_else(|| {
            // What is assumed anyway says little about a switch or a choice.
            let shown = !matches!(bare(&field.ty), Type::Boolean | Type::Enum(_));
            field.default.clone().filter(|default| shown && !default.is_null())
        });
        if field.position {
            return json!(0);
        }
        // `1` of a document is `1.0` of a type.
        let stated = stated.map(|value| match (bare(&field.ty), value.as_f64()) {
            (Type::Number, Some(number)) => json!(number),
            _ => value,
        });
        stated.unwrap_or_else(|| {
            self.value(&field.ty, &field.name, &field.constraints, field.default.as_ref(), with_items, depth)
        })
    }

    fn value(
        &self,
        ty: &Type,
        member: &str,
        constraints: &Constraints,
        default: Option<&Value>,
        with_items: bool,
        depth: usize,
    ) -> Value {
        match ty {
            Type::Any | Type::File => json!(self.text(member)),
            Type::String => json!(match constraints.format.as_deref() {
                Some("uri") => "https://example.com/file".to_owned(),
                Some("date-time") => "2026-01-02T03:04:05Z".to_owned(),
                _ => self.text(member),
            }),
            Type::Integer => {
                let low = constraints.minimum.as_ref().and_then(Number::as_i64);
                json!(low.map_or(1, |low| low.max(1)))
            }
            Type::Number => json!(match bounds(constraints) {
                (Some(low), Some(high)) => f64::midpoint(low, high),
                (Some(low), None) => low + 0.5,
                _ => 0.5,
            }),
            Type::Boolean => json!(default != Some(&json!(true))),
            Type::Const(value) => value.clone(),
            Type::Enum(string_enum) => {
                let other = string_enum
                    .values
                    .iter()
                    .find(|word| Some(word.as_str()) != default.and_then(Value::as_str));
                json!(other)
            }
            Type::Array(item) if with_items || constraints.min_items.is_some() => {
                json!([self.value(
                    item,
                    &singular(member),
                    &Constraints::default(),
                    None,
                    with_items,
                    depth + 1
                )])
            }
            Type::Array(_) => json!([]),
            Type::Map(value) => {
                json!({ "key": self.value(value, "value", &Constraints::default(), None, with_items, depth + 1) })
            }
            Type::Ref(name) => self.named(name, member, with_items, depth),
            Type::Union(union) => union
                .variants
                .first()
                .map_or(Value::Null, |first| self.value(first, member, constraints, None, with_items, depth)),
            Type::Nullable(inner) => self.value(inner, member, constraints, default, with_items, depth),
        }
    }

    fn named(&self, name: &str, member: &str, with_items: bool, depth: usize) -> Value {
        let schema = &self.schemas[name];
        if let Some(stated) = &schema.example {
            return stated.clone();
        }
        match &schema.kind {
            // A type that holds itself ends somewhere.
            _ if depth > 8 => Value::Null,
            Kind::Object(_) => Value::Object(self.members(name, with_items, depth + 1)),
            Kind::Enum(string_enum) => json!(string_enum.values.first()),
            Kind::Union(union) => union.variants.first().map_or(Value::Null, |first| {
                self.value(first, member, &schema.constraints, None, with_items, depth + 1)
            }),
            Kind::Alias(ty) => self.value(ty, member, &schema.constraints, None, with_items, depth + 1),
        }
    }
}

/// JSON as a person writes it: what fits into a line is on one.
pub(super) fn written(value: &Value, indent: usize, columns: usize) -> String {
    let short = in_line(value);
    if indent + short.len() <= columns { short } else { broken(value, indent, columns) }
}

/// The same, with each member or item of the value on a line of its own.
pub(super) fn broken(value: &Value, indent: usize, columns: usize) -> String {
    let inner = " ".repeat(indent + 4);
    let outer = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            let lines: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    let name = format!("{}: ", json!(name));
                    // The name takes room from the value's first line only.
                    let value = if indent + 4 + name.len() + in_line(value).len() < columns {
                        in_line(value)
                    } else {
                        written(value, indent + 4, columns.saturating_sub(name.len()))
                    };
                    format!("{inner}{name}{value}")
                })
                .collect();
            format!("{{\n{}\n{outer}}}", lines.join(",\n"))
        }
        Value::Array(items) => {
            let lines: Vec<String> = items
                .iter()
                .map(|item| format!("{inner}{}", written(item, indent + 4, columns - 1)))
                .collect();
            format!("[\n{}\n{outer}]", lines.join(",\n"))
        }
        _ => in_line(value),
    }
}

fn in_line(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{}: {}", json!(name), in_line(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(in_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// Notes each text of a document under its member, the first one of a name.
fn gather<'a>(members: &'a Map<String, Value>, texts: &mut HashMap<&'a str, &'a str>) {
    for (name, value) in members {
        match value {
            Value::String(text) => _ = texts.entry(name).or_insert(text),
            Value::Object(members) => gather(members, texts),
            Value::Array(items) => {
                items.iter().filter_map(Value::as_object).for_each(|members| gather(members, texts));
            }
            _ => {}
        }
    }
}

/// The type that a union tries first, or that another name is for.
fn first(kind: &Kind) -> Option<&str> {
    match kind {
        Kind::Union(union) => union.variants.first(),
        Kind::Alias(ty) => Some(ty),
        _ => None,
    }
    .and_then(|ty| match ty {
        Type::Ref(name) => Some(name.as_str()),
        Type::Union(union) => match union.variants.first()? {
            Type::Ref(name) => Some(name.as_str()),
            _ => None,
        },
        _ => None,
    })
}

/// The lowest and the highest value.
fn bounds(constraints: &Constraints) -> (Option<f64>, Option<f64>) {
    let number = |number: &Option<Number>| number.as_ref().and_then(Number::as_f64);
    (
        number(&constraints.minimum).or_else(|| number(&constraints.exclusive_minimum).map(|low| low + 1.0)),
        number(&constraints.maximum).or_else(|| number(&constraints.exclusive_maximum)),
    )
}

/// The type without null.
fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Nullable(inner) => bare(inner),
        other => other,
    }
}

/// The name of an item of an array: `stop_sequences` → `stop_sequence`.
fn singular(member: &str) -> String {
    let snake = names::snake(member);
    snake.strip_suffix('s').map_or_else(|| snake.clone(), str::to_owned)
}
