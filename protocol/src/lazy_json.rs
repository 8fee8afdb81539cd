//! Finds the fields of a JSON object and their positions in its text, in one pass and without building a tree.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Visits every field of an object in order; a duplicate name is visited twice. Values are raw text. Errors: the text
/// isn't a single JSON object.
pub fn members<'a>(
    document: &'a str,
    visit: impl FnMut(&str, &'a RawValue),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(document);
    members_in(&mut deserializer, visit)?;
    deserializer.end()
}

/// The same for an object within a value that is being read.
pub fn members_in<'de, D: Deserializer<'de>>(
    deserializer: D,
    visit: impl FnMut(&str, &'de RawValue),
) -> Result<(), D::Error> {
    FieldVisitor(visit).deserialize(deserializer)
}

/// The items of an array as raw text. Errors: the text isn't a single JSON array, or has more than `max` items; a list of
/// them would take several times the memory of the text.
pub fn items(array: &str, max: usize) -> Result<Vec<&RawValue>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(array);
    let items = deserializer.deserialize_seq(ItemVisitor(max))?;
    deserializer.end()?;
    Ok(items)
}

/// Visits the items of an array as raw text, without a list of them. Errors: the text isn't a single JSON array.
pub fn each_item<'a>(array: &'a str, visit: impl FnMut(&'a RawValue)) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(array);
    deserializer.deserialize_seq(EachItem(visit))?;
    deserializer.end()
}

/// The position of a value in the text it was found in.
pub fn place(document: &str, value: &RawValue) -> Range<usize> {
    let start = value.get().as_ptr().addr() - document.as_ptr().addr();
    start..start + value.get().len()
}

/// A value that is a string.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(value.get()).ok().map(|name| name.0)
}

/// A text with some of its ranges replaced. `edits`: in order, without overlaps.
pub fn spliced(text: &Bytes, edits: &[(Range<usize>, &[u8])]) -> Bytes {
    if edits.is_empty() {
        return text.clone();
    }
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut result = BytesMut::with_capacity(text.len() + added);
    let mut from = 0;
    for (range, new) in edits {
        result.extend_from_slice(&text[from..range.start]);
        result.extend_from_slice(new);
        from = range.end;
    }
    result.extend_from_slice(&text[from..]);
    result.freeze()
}

/// Borrowed unless it contains an escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct FieldVisitor<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> DeserializeSeed<'de> for FieldVisitor<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for FieldVisitor<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = map.next_key()? {
            (self.0)(&name, map.next_value()?);
        }
        Ok(())
    }
}

struct ItemVisitor(usize);

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an array of at most {} items", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element()? {
            if found.len() == self.0 {
                return Err(A::Error::invalid_length(found.len() + 1, &self));
            }
            found.push(item);
        }
        Ok(found)
    }
}

struct EachItem<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for EachItem<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(document: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        members(document, |name, value| {
            let place = place(document, value);
            assert_eq!(&document[place], value.get());
            all.push((name.to_owned(), value.get().to_owned()));
        })
        .expect("an object");
        all
    }

    #[test]
    fn members_are_visited_with_text_and_range() {
        let document = r#" {"a" : [1, {"b": "}"}], "m\u006fdel":"x", "a":1e5} "#;
        let expected = [("a", r#"[1, {"b": "}"}]"#), ("model", r#""x""#), ("a", "1e5")];
        assert_eq!(visited(document), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn non_object_document_is_rejected() {
        for document in ["", "[]", "1", "{", "{}{}", "{\"a\"}", "{\"a\":1,}"] {
            assert!(members(document, |_, _| {}).is_err(), "{document}");
        }
        // Nesting may be arbitrarily deep.
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(members(&deep, |_, _| {}).is_ok());
    }

    #[test]
    fn items_are_raw_text_up_to_their_maximum() {
        let texts =
            |array, max| items(array, max).map(|items| items.into_iter().map(RawValue::get).collect());
        assert_eq!(texts(" [1, {\"a\":[]}] ", 2).ok(), Some(vec!["1", "{\"a\":[]}"]));
        let expected = "invalid length 2, expected an array of at most 1 items at line 1 column 5";
        // What follows isn't read: it may be long.
        assert_eq!(texts("[1,2 ?", 1).map_err(|error| error.to_string()), Err(expected.to_owned()));
        for broken in ["", "{}", "[1", "[1]2", "[,]"] {
            assert!(items(broken, 9).is_err(), "{broken}");
        }
    }

    #[test]
    fn ranges_are_replaced_in_order() {
        let text = Bytes::from_static(b"abcdef");
        assert_eq!(spliced(&text, &[(1..2, b"XX"), (4..4, b"-"), (5..6, b"")]), "aXXcd-e");
        assert_eq!(spliced(&text, &[]), text);
    }
}
