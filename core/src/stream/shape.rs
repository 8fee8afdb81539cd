//! The shapes of a stream's items, and the repair of an item that deviates from its shape. The check is one scan of the text
//! that builds no values. Only if it fails is the item parsed, repaired and serialized again. The generated shapes drive
//! both. Anything that a shape does not name is left unchanged.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::text::text_of;
use crate::api::shape::{Member, Presence, Shape};
use crate::wire::repair;

/// How far a value is repaired to match its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepairLevel {
    /// Values that are present are converted to the right shape as far as possible, and lists and objects that code
    /// iterates over are added. No text and no number is invented.
    Structure,
    /// Also adds required members that are missing, with empty values: types can hold the result.
    Whole,
    /// Also discards optional members of another shape: text takes them as JSON, anything else becomes null.
    Forced,
}

/// Checks whether the text is one JSON document whose structure is of this shape, so that [`RepairLevel::Structure`] would
/// change nothing. Errors: it is not JSON, or it is of another shape.
pub(super) fn check(shape: &'static Shape, text: &str) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    Check { shape, nullable: false }.deserialize(&mut reader)?;
    reader.end()
}

/// Repairs a value to match a shape.
pub(super) fn mend(shape: &'static Shape, mut value: Value, mending: RepairLevel) -> Value {
    mend_value(shape, &mut value, 0, mending);
    value
}

/// Repairs the data of an event to match a shape. Errors: it is not JSON.
pub(super) fn mend_text(
    shape: &'static Shape,
    data: &str,
    mending: RepairLevel,
) -> Result<String, serde_json::Error> {
    Ok(mend(shape, repair::value(data)?, mending).to_string())
}

/// Examines a value by its shape.
#[derive(Clone, Copy)]
struct Check {
    shape: &'static Shape,
    nullable: bool,
}

impl<'de> DeserializeSeed<'de> for Check {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Check {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.shape {
            Shape::Any => "a value",
            Shape::Text(_) => "a string",
            Shape::Integer | Shape::Position => "an integer",
            Shape::Number => "a number",
            Shape::Flag => "a boolean",
            Shape::Object(_) | Shape::Map(_) => "an object",
            Shape::List(_) => "an array",
        })
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        if self.nullable { Ok(()) } else { Err(E::custom("null stands where a value is required")) }
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        match self.shape {
            Shape::Flag => Ok(()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        match self.shape {
            Shape::Integer | Shape::Position | Shape::Number => Ok(()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match self.shape {
            Shape::Number => Ok(()),
            Shape::Integer | Shape::Position if i64::try_from(value).is_ok() => Ok(()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        match self.shape {
            Shape::Number => Ok(()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        match self.shape {
            Shape::Text(_) => Ok(()),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(value), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Shape::List(shape) = self.shape else {
            return Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &self));
        };
        while values.next_element_seed(Check { shape, nullable: false })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = match self.shape {
            Shape::Object(members) => *members,
            Shape::Map(shape) => {
                while map.next_key::<IgnoredAny>()?.is_some() {
                    map.next_value_seed(Check { shape, nullable: false })?;
                }
                return Ok(());
            }
            _ => return Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self)),
        };
        // One bit per member; tests limit the tables to 64.
        let mut seen = 0_u64;
        while let Some(place) = map.next_key_seed(Name(members))? {
            let Some(place) = place else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen & (1 << place) != 0 {
                return Err(A::Error::duplicate_field(members[place].name));
            }
            seen |= 1 << place;
            let member = &members[place];
            map.next_value_seed(Check { shape: member.shape, nullable: member.may_be_null() })?;
        }
        let missing = members
            .iter()
            .enumerate()
            .find(|(place, member)| seen & (1 << place) == 0 && !member.may_be_missing());
        missing.map_or(Ok(()), |(_, member)| Err(A::Error::missing_field(member.name)))
    }
}

/// Finds a member's position in the table.
struct Name(&'static [Member]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|member| member.name == name))
    }
}

/// Repairs a value that is present. Returns whether it now has the shape.
fn mend_value(shape: &'static Shape, value: &mut Value, position: usize, mending: RepairLevel) -> bool {
    match shape {
        Shape::Any => true,
        Shape::Text(_) => {
            if !value.is_string()
                && let Some(text) = text_of(value.clone())
            {
                *value = text.into();
            }
            value.is_string()
        }
        Shape::Integer | Shape::Position => {
            if value.as_i64().is_none()
                && let Some(integer) = integer_of(value)
            {
                *value = integer.into();
            }
            value.as_i64().is_some()
        }
        Shape::Number => {
            if let Some(number) = value.as_str().and_then(|text| text.trim().parse::<f64>().ok()) {
                *value = number.into();
            }
            value.is_number()
        }
        Shape::Flag => {
            *value = match std::mem::take(value) {
                Value::String(text) if text.eq_ignore_ascii_case("true") => true.into(),
                Value::String(text) if text.eq_ignore_ascii_case("false") => false.into(),
                other => other,
            };
            value.is_boolean()
        }
        Shape::Object(members) => {
            let Value::Object(object) = value else { return false };
            each(members.iter(), |member| mend_member(member, object, position, mending))
        }
        Shape::Map(shape) => {
            let Value::Object(object) = value else { return false };
            object.retain(|_, value| !value.is_null());
            each(object.values_mut(), |value| mend_value(shape, value, 0, mending))
        }
        Shape::List(shape) => {
            let Value::Array(values) = value else { return false };
            values.retain(|value| !value.is_null());
            let placed = values.iter_mut().enumerate();
            each(placed, |(place, value)| mend_value(shape, value, place, mending))
        }
    }
}

/// Repairs each value, even after one that cannot be repaired. Returns whether all of them have their shape.
fn each<T>(values: impl Iterator<Item = T>, mut mend: impl FnMut(T) -> bool) -> bool {
    let failed = values.filter_map(|value| (!mend(value)).then_some(())).count();
    failed == 0
}

/// Repairs one member of an object, and adds it if it is required.
fn mend_member(
    member: &'static Member,
    object: &mut Map<String, Value>,
    position: usize,
    mending: RepairLevel,
) -> bool {
    let Member { name, shape, presence } = member;
    let add_missing = mending != RepairLevel::Structure || shape.is_structure();
    let value = match object.get_mut(*name) {
        None | Some(Value::Null) if *presence == Presence::Required && add_missing => {
            object.insert((*name).to_owned(), empty(shape, position));
            return true;
        }
        None if *presence == Presence::Stated && mending != RepairLevel::Structure => {
            object.insert((*name).to_owned(), Value::Null);
            return true;
        }
        Some(Value::Null) if *presence == Presence::Optional => {
            object.shift_remove(*name);
            return true;
        }
        None | Some(Value::Null) => return true,
        Some(value) => value,
    };
    if *presence == Presence::Nullable && mending != RepairLevel::Structure && is_blank(shape, value) {
        *value = Value::Null;
        return true;
    }
    if mend_value(shape, value, position, mending) {
        return true;
    }
    if mending != RepairLevel::Forced || *presence == Presence::Required {
        return false;
    }
    *value = match shape {
        // A type with text in this place can hold no other shape.
        Shape::Text(_) => value.to_string().into(),
        _ => Value::Null,
    };
    if *presence == Presence::Optional && value.is_null() {
        object.shift_remove(*name);
    }
    true
}

/// `{}` for an object that has required members: `"usage": {}`.
fn is_blank(shape: &Shape, value: &Value) -> bool {
    let (Shape::Object(members), Value::Object(given)) = (shape, value) else { return false };
    given.is_empty() && members.iter().any(|member| member.presence == Presence::Required)
}

/// The value for a required member that did not arrive.
fn empty(shape: &'static Shape, position: usize) -> Value {
    match shape {
        Shape::Any => Value::Null,
        Shape::Text(text) => (*text).into(),
        Shape::Integer | Shape::Number => 0.into(),
        Shape::Position => position.into(),
        Shape::Flag => false.into(),
        Shape::Object(_) => mend(shape, Value::Object(Map::new()), RepairLevel::Whole),
        Shape::Map(_) => Value::Object(Map::new()),
        Shape::List(_) => Value::Array(Vec::new()),
    }
}

/// An integer written as a fraction or as text.
fn integer_of(value: &Value) -> Option<i64> {
    let number = match value {
        Value::Number(number) => match number.as_i64() {
            Some(integer) => return Some(integer),
            None => number.as_f64()?,
        },
        Value::String(text) => {
            let text = text.trim();
            if let Ok(integer) = text.parse() {
                return Some(integer);
            }
            text.parse().ok()?
        }
        _ => return None,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a fraction is cut off, and the bounds are those of i64"
    )]
    let integer = number.is_finite().then_some(number as i64);
    integer
}
