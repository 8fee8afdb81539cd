//! Edits a JSON body as text, so that the order of members and the spelling of untouched numbers are preserved.

use std::borrow::Cow;
use std::fmt;

use indexmap::IndexMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::wire::error::{Error, ErrorKind};

/// The body with these members set; none if they already are. A missing member is added even if its value
/// is null.
///
/// Errors: the body is not a JSON object (InvalidRequest).
pub(super) fn with_members(body: &[u8], members: &Map<String, Value>) -> Result<Option<Vec<u8>>, Error> {
    let present = present(body, members)?;
    let changed: Vec<_> = members.iter().filter(|(name, value)| present.get(*name) != Some(value)).collect();
    if changed.is_empty() {
        return Ok(None);
    }
    if changed.iter().any(|(name, _)| present.contains_key(*name)) {
        let object: IndexMap<String, &RawValue> = serde_json::from_slice(body).map_err(not_an_object)?;
        let own = object.iter().map(|(name, own)| match members.get(name) {
            Some(value) => member(name, value),
            None => member(name, own),
        });
        let more = members.iter().filter(|(name, _)| !object.contains_key(*name));
        let all: Vec<_> = own.chain(more.map(|(name, value)| member(name, value))).collect();
        return Ok(Some(format!("{{{}}}", all.join(",")).into_bytes()));
    }
    let more: Vec<_> = changed.iter().map(|(name, value)| member(name, value)).collect();
    Ok(Some(prepended(body, &more.join(","))))
}

fn member(name: &str, value: impl fmt::Display) -> String {
    format!("{}:{value}", Value::from(name))
}

/// The body with its streaming switch set; none if it already is. A missing switch means off. is_object:
/// whether the body is certainly one JSON object, which then need not be read to make sure.
///
/// Errors: as [`with_members`].
pub(super) fn with_switch(
    body: &[u8],
    is_object: bool,
    member: &str,
    on: bool,
) -> Result<Option<Vec<u8>>, Error> {
    if is_object && certainly_lacks(body, member) {
        return Ok(on.then(|| prepended(body, &format!("\"{member}\":true"))));
    }
    let members = Map::from_iter([(member.to_owned(), Value::from(on))]);
    if !on && present(body, &members)?.is_empty() {
        return Ok(None);
    }
    with_members(body, &members)
}

/// Whether the body has a member with one of these words. A body that can't be read has none.
pub(super) fn has_word(body: &[u8], member: &str, words: &[&str]) -> bool {
    if certainly_lacks(body, member) {
        return false;
    }
    let members = Map::from_iter([(member.to_owned(), Value::Null)]);
    let found = present(body, &members).ok().and_then(|mut present| present.remove(member));
    found.as_ref().and_then(Value::as_str).is_some_and(|word| words.contains(&word))
}

/// Whether no object of the body has a member of this name, judged by its bytes. Any escape of a letter also counts,
/// because a name may be written with escapes.
fn certainly_lacks(body: &[u8], member: &str) -> bool {
    let quoted = format!("\"{member}\"");
    [quoted.as_bytes(), b"\\u005", b"\\u006", b"\\u007"]
        .iter()
        .all(|word| memchr::memmem::find(body, word).is_none())
}

/// An object with more members before its own.
fn prepended(body: &[u8], members: &str) -> Vec<u8> {
    let start = 1 + memchr::memchr(b'{', body).expect("it was read as an object");
    let is_empty = body[start..].trim_ascii_start().starts_with(b"}");
    let mut out = Vec::with_capacity(body.len() + members.len() + 1);
    out.extend_from_slice(&body[..start]);
    out.extend_from_slice(members.as_bytes());
    if !is_empty {
        out.push(b',');
    }
    out.extend_from_slice(&body[start..]);
    out
}

/// The subset of these members that the body has, with the body's values; other members are skipped without being
/// built.
fn present(body: &[u8], members: &Map<String, Value>) -> Result<Map<String, Value>, Error> {
    struct Present<'a>(&'a Map<String, Value>);

    impl<'de> serde::de::Visitor<'de> for Present<'_> {
        type Value = Map<String, Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut present = Map::new();
            while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                if self.0.contains_key(&*name) {
                    present.insert(name.into_owned(), map.next_value()?);
                } else {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
            Ok(present)
        }
    }

    let mut reader = serde_json::Deserializer::from_slice(body);
    let present =
        serde::de::Deserializer::deserialize_map(&mut reader, Present(members)).map_err(not_an_object)?;
    reader.end().map_err(not_an_object)?;
    Ok(present)
}

fn not_an_object(error: serde_json::Error) -> Error {
    let message = format!("the body is not a JSON object: {error}");
    Error::new(ErrorKind::InvalidRequest, message).with_source(error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edited(body: &str, members: &Value) -> Option<String> {
        let members = members.as_object().expect("an object");
        let edited = with_members(body.as_bytes(), members).expect("an object");
        edited.map(|body| String::from_utf8(body).expect("text"))
    }

    #[test]
    fn new_members_are_inserted_first_and_the_rest_is_unchanged() {
        let body = " { \"n\": 1.0, \"big\":123456789012345678901234567890}";
        let expected = " {\"a\":1,\"b\":[null], \"n\": 1.0, \"big\":123456789012345678901234567890}";
        assert_eq!(edited(body, &json!({"a": 1, "b": [null]})).as_deref(), Some(expected));
        assert_eq!(edited("{ }", &json!({"a": 1, "b": 2})).as_deref(), Some("{\"a\":1,\"b\":2 }"));
    }

    #[test]
    fn existing_member_is_replaced_in_place() {
        let body = r#"{"a":{"x":1},"b":2}"#;
        assert_eq!(
            edited(body, &json!({"c": 3, "a": {"y": 1}})).as_deref(),
            Some(r#"{"a":{"y":1},"b":2,"c":3}"#)
        );
    }

    #[test]
    fn numbers_beside_a_replaced_member_keep_their_spelling() {
        let body = r#"{"a":1,"seed":1180591620717411303424,"n":[1.50]}"#;
        let expected = r#"{"a":2,"seed":1180591620717411303424,"n":[1.50]}"#;
        assert_eq!(edited(body, &json!({"a": 2})).as_deref(), Some(expected));
    }

    #[test]
    fn body_with_the_requested_members_is_not_edited() {
        assert_eq!(edited(r#"{"a":[1,"x"],"b":2}"#, &json!({"a": [1, "x"]})), None);
        assert_eq!(edited("{}", &json!({})), None);
    }

    #[test]
    fn stream_switch_is_found_in_any_escaped_spelling() {
        for body in
            [r#"{"stream":false}"#, r#"{"\u0073tream":false}"#, r#"{"strea\u006d":false,"a":"\u00e9"}"#]
        {
            let switched = with_switch(body.as_bytes(), true, "stream", true).expect("an object");
            let switched: Value = serde_json::from_slice(&switched.expect("edited")).expect("JSON");
            assert_eq!(switched["stream"], true, "{body}");
            assert_eq!(with_switch(body.as_bytes(), true, "stream", false).expect("an object"), None);
        }
        let missing = r#"{"a":"\u00e9 stream"}"#;
        let edited = with_switch(missing.as_bytes(), true, "stream", true).expect("an object");
        assert_eq!(edited.as_deref(), Some(r#"{"stream":true,"a":"\u00e9 stream"}"#.as_bytes()));
        for is_object in [true, false] {
            let left = with_switch(missing.as_bytes(), is_object, "stream", false).expect("an object");
            assert_eq!(left, None);
        }
    }

    #[test]
    fn non_object_body_is_rejected() {
        for body in ["", "[]", "{} {}", "{\"a\":", "1"] {
            let error = with_members(body.as_bytes(), &Map::new()).expect_err(body);
            assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        }
    }
}
