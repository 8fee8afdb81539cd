//! Converts the tree to the typed report, without parsing again.

use serde::de::value::{BorrowedStrDeserializer, Error, MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserialize as _, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::model::Report;
use crate::protocols::ProtocolReport;
use crate::tree::{Node, Value};

/// The typed report of a valid document.
pub(crate) fn report(root: &Node<'_>) -> Result<Report, Error> {
    Report::deserialize(root)
}

/// The typed additional checks of a valid document.
pub(crate) fn protocols(root: &Node<'_>) -> Result<ProtocolReport, Error> {
    ProtocolReport::deserialize(root)
}

impl<'de> IntoDeserializer<'de, Error> for &'de Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for &'de Node<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(boolean) => visitor.visit_bool(*boolean),
            Value::Number(number) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(string) => visitor.visit_borrowed_str(string),
            Value::Sound(_) => Err(de::Error::custom("this was not read")),
            Value::Array(items) => visitor.visit_seq(SeqDeserializer::new(items.iter())),
            Value::Object(members) => {
                let members =
                    members.iter().map(|member| (BorrowedStrDeserializer::new(&member.name), &member.node));
                visitor.visit_map(MapDeserializer::new(members))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    /// Integers written as `3e4`, or too large, are still integers: 2.12 states no maximum.
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Number(number) if number.is_integer() => {
                let integer = number.saturating().clamp(0, u64::MAX.into());
                visitor.visit_u64(u64::try_from(integer).expect("clamped"))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Number(number) if number.is_integer() => {
                let integer = number.saturating().clamp(i64::MIN.into(), i64::MAX.into());
                visitor.visit_i64(i64::try_from(integer).expect("clamped"))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.as_str() {
            Some(string) => BorrowedStrDeserializer::new(string).deserialize_enum(name, variants, visitor),
            None => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 u8 u16 u32 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}
