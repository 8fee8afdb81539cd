//! Requests of a protocol whose messages are protocol buffers (`x-json-mapping` of the specification). The mapping lets
//! a client write the same message in several ways; this file converts them to the form that the schemas use.
//!
//! A member may use its name or its other spelling (`inlineData`, `inline_data`), null means absent, and a number may
//! be text (`"3"`). Objects without declared members, such as the arguments of a function, are left unchanged.

use serde_json::{Map, Number, Value};

use super::schema::{Additional, REQUESTS, Schema, Type};
use super::walk::MAX_POINTER_BYTES;
use crate::api::operation::Operation;

/// The body in the form that the schemas use; `None` if it already has that form.
///
/// If a member is given in both spellings, both are kept, and [`check`](super::check) rejects them.
///
/// ```
/// use gatewright::limits::canonical;
/// use gatewright::operations::GENERATE_CONTENT;
/// use serde_json::json;
///
/// let body = json!({ "contents": [], "generation_config": { "top_k": "3" } });
/// let canonical = canonical(&GENERATE_CONTENT, &body).unwrap();
/// assert_eq!(canonical["generationConfig"], json!({ "topK": 3 }));
/// ```
pub fn canonical(operation: &Operation, body: &Value) -> Option<Value> {
    rewrite(body, of_body(operation)?)
}

/// Converts a pointer into the canonical body to one into the body as it was sent.
pub(super) fn as_sent(operation: &Operation, body: &Value, pointer: &str) -> String {
    let mut schema = of_body(operation);
    let mut place = body;
    let mut sent = String::with_capacity(pointer.len());
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let spelled = match place {
            // Null means absent.
            Value::Object(members) if members.get(&name).is_none_or(Value::is_null) => {
                schema.and_then(|schema| other_spelling(schema, &name, members))
            }
            _ => None,
        };
        let step = spelled.unwrap_or(segment);
        if sent.len() + 1 + step.len() > MAX_POINTER_BYTES {
            break;
        }
        sent.push('/');
        sent.push_str(step);
        schema = schema.and_then(|schema| match place {
            Value::Array(_) => schema.items.as_deref().map(resolved),
            _ => member(schema, &name),
        });
        place = match place {
            Value::Array(items) => name.parse().ok().and_then(|index: usize| items.get(index)),
            _ => place.get(spelled.unwrap_or(&name)),
        }
        .unwrap_or(&Value::Null);
    }
    sent
}

/// The schema of an operation's body, if its protocol uses the mapping.
fn of_body(operation: &Operation) -> Option<&'static Schema> {
    REQUESTS.body(operation.id).filter(|schema| schema.mapping.is_some())
}

/// The schema that a schema refers to, alone or as an alternative to null.
fn resolved(schema: &'static Schema) -> &'static Schema {
    let mut forms = schema.one_of.iter().filter(|form| form.reference.is_some());
    match (forms.next(), forms.next()) {
        (Some(only), None) => REQUESTS.follow(only),
        _ => REQUESTS.follow(schema),
    }
}

/// The schema of a member: its own, or the schema for all members of a map.
fn member(schema: &'static Schema, name: &str) -> Option<&'static Schema> {
    let each = match &schema.additional_properties {
        Some(Additional::Each(each)) => Some(&**each),
        _ => None,
    };
    schema.properties.get(name).or(each).map(resolved)
}

/// The other spelling of a member, if it is present under that spelling.
fn other_spelling(schema: &'static Schema, name: &str, members: &Map<String, Value>) -> Option<&'static str> {
    let mut spellings = schema.spellings.iter().filter(|(_, plain)| *plain == name);
    spellings.find(|(spelling, _)| members.contains_key(*spelling)).map(|(spelling, _)| spelling.as_str())
}

/// A value rewritten according to its schema; `None` if nothing changes.
fn rewrite(value: &Value, schema: &'static Schema) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let mut changed: Option<Map<String, Value>> = None;
            for (index, (name, value)) in members.iter().enumerate() {
                let plain = schema.spellings.get(name).map(String::as_str);
                let taken = plain.and_then(|plain| members.get(plain)).is_some_and(|other| !other.is_null());
                let new_name = plain.filter(|_| !taken).unwrap_or(name);
                let inner = member(schema, plain.unwrap_or(name));
                let absent = value.is_null() && schema.mapping.is_some() && inner.is_some();
                let new_value = inner.and_then(|inner| rewrite(value, inner));
                if changed.is_none() && !absent && new_value.is_none() && new_name == name {
                    continue;
                }
                let before = || members.iter().take(index).map(|(name, value)| (name.clone(), value.clone()));
                let changed = changed.get_or_insert_with(|| before().collect());
                if !absent {
                    changed.insert(new_name.to_owned(), new_value.unwrap_or_else(|| value.clone()));
                }
            }
            changed.map(Value::Object)
        }
        Value::Array(items) => {
            let schema = resolved(schema.items.as_deref()?);
            let mut changed: Option<Vec<Value>> = None;
            for (index, item) in items.iter().enumerate() {
                let new = rewrite(item, schema);
                if changed.is_some() || new.is_some() {
                    let changed = changed.get_or_insert_with(|| items[..index].to_vec());
                    changed.push(new.unwrap_or_else(|| item.clone()));
                }
            }
            changed.map(Value::Array)
        }
        Value::String(text) if is_number(schema) => text.parse::<Number>().ok().map(Value::Number),
        _ => None,
    }
}

fn is_number(schema: &Schema) -> bool {
    schema.types.iter().any(|kind| matches!(kind, Type::Integer | Type::Number))
        && !schema.types.contains(&Type::String)
}

#[cfg(test)]
mod tests {
    //! tests/vectors/limits covers what is accepted and rejected; these tests cover the conversion.

    use serde_json::json;

    use super::*;
    use crate::api::operations::{CREATE_CHAT_COMPLETION, GENERATE_CONTENT};

    #[test]
    fn both_spellings_are_canonicalized_except_in_free_objects() {
        let args = json!({ "max_tokens": null, "maxTokens": "1", "inline_data": { "mime_type": 1 } });
        let schema =
            json!({ "type": "OBJECT", "properties": { "any_of": { "min_items": "2" }, "anyOf": {} } });
        let body = json!({
            "contents": [{ "role": null, "parts": [
                { "inline_data": { "mime_type": "image/png", "data": "AA==" } },
                { "function_call": { "name": "f", "args": args } },
            ]}],
            "generation_config": { "max_output_tokens": "12", "top_p": "0.5", "response_schema": schema },
            "tools": [{ "function_declarations": [{ "name": "f", "parameters_json_schema": { "a_b": null } }] }],
            "an_unknown_member": { "stop_sequences": null },
        });
        let expected = json!({
            "contents": [{ "parts": [
                { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
                { "functionCall": { "name": "f", "args": args } },
            ]}],
            "generationConfig": { "maxOutputTokens": 12, "topP": 0.5, "responseSchema": {
                "type": "OBJECT", "properties": { "any_of": { "minItems": 2 }, "anyOf": {} } } },
            "tools": [{ "functionDeclarations": [{ "name": "f", "parametersJsonSchema": { "a_b": null } }] }],
            "an_unknown_member": { "stop_sequences": null },
        });
        let canonical_body = canonical(&GENERATE_CONTENT, &body).expect("it changes");
        assert_eq!(canonical_body, expected);
        assert_eq!(canonical(&GENERATE_CONTENT, &expected), None, "it is canonical already");
        assert_eq!(canonical(&CREATE_CHAT_COMPLETION, &body), None, "the protocol has no such mapping");
    }

    #[test]
    fn only_json_number_strings_become_numbers() {
        for text in ["", " ", "x", "NaN", "Infinity", "1,5", "0x10", "1 2"] {
            let body = json!({ "generationConfig": { "temperature": text } });
            assert_eq!(canonical(&GENERATE_CONTENT, &body), None, "{text:?}");
        }
    }

    #[test]
    fn pointer_resolves_in_the_body_as_sent() {
        let body = json!({ "generation_config": { "response_schema": { "properties": { "a/b": {
            "any_of": [{ "min_items": -1 }] } } } } });
        let sent = "/generation_config/response_schema/properties/a~1b/any_of/0/min_items";
        let plain = "/generationConfig/responseSchema/properties/a~1b/anyOf/0/minItems";
        assert_eq!(as_sent(&GENERATE_CONTENT, &body, plain), sent);
        assert_eq!(body.pointer(sent), Some(&json!(-1)));
        assert_eq!(as_sent(&GENERATE_CONTENT, &body, "/nothing/here"), "/nothing/here");
    }

    #[test]
    fn pointer_skips_a_null_for_the_other_spelling() {
        let part = json!({ "inlineData": null, "inline_data": { "mime_type": 1 } });
        let body = json!({ "contents": [{ "parts": [part] }] });
        let sent = as_sent(&GENERATE_CONTENT, &body, "/contents/0/parts/0/inlineData/mimeType");
        assert_eq!(sent, "/contents/0/parts/0/inline_data/mime_type");
        assert_eq!(body.pointer(&sent), Some(&json!(1)));
        let null = json!({ "contents": null });
        assert_eq!(as_sent(&GENERATE_CONTENT, &null, "/contents"), "/contents");
    }

    #[test]
    fn respelled_pointer_respects_the_length_limit() {
        let (mut schema, mut plain) = (json!({}), String::new());
        for _ in 0..40 {
            schema = json!({ "any_of": [schema] });
            plain.push_str("/anyOf/0");
        }
        let body = json!({ "generation_config": { "response_schema": schema } });
        let plain = format!("/generationConfig/responseSchema{}", &plain[..27 * "/anyOf/0".len()]);
        assert!(plain.len() <= MAX_POINTER_BYTES);
        let sent = as_sent(&GENERATE_CONTENT, &body, &plain);
        assert!((MAX_POINTER_BYTES - 8..=MAX_POINTER_BYTES).contains(&sent.len()), "{}", sent.len());
        assert!(body.pointer(&sent).is_some(), "{sent}");
    }
}
