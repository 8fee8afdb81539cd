//! Subsets of JSON Schema that providers accept.

use serde_json::Value;

use super::Findings;
use super::words::walk;

/// Calls a function with every nested schema, but not with objects that only map names, such as properties, nor with
/// values such as those of `enum`.
pub(crate) fn each_schema<'a>(schema: &'a Value, at: &str, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(at, schema);
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (name.as_str(), value) {
            (
                "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas",
                Value::Object(inner),
            ) => {
                for (inner_name, inner) in inner {
                    each_schema(inner, &format!("{at}/{name}/{inner_name}"), visit);
                }
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(inner)) => {
                for (index, inner) in inner.iter().enumerate() {
                    each_schema(inner, &format!("{at}/{name}/{index}"), visit);
                }
            }
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else", Value::Object(_)) => {
                each_schema(value, &format!("{at}/{name}"), visit);
            }
            _ => {}
        }
    }
}

fn is_object(schema: &Value) -> bool {
    match &schema["type"] {
        Value::String(kind) => kind == "object",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        _ => false,
    }
}

/// Function arguments of chat and responses are objects whose schema lists their properties. Sources: "object schema
/// missing properties" in github.com/spring-projects/spring-ai/issues/4776, "schema must be a JSON Schema of 'type:
/// \"object\"'" in github.com/f/mcptools/issues/89, "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" in github.com/langchain-ai/langchainjs/issues/9804.
pub(crate) fn parameters(schema: &Value, at: &str, findings: &mut Findings) {
    if schema.is_null() {
        return;
    }
    if schema["type"] != "object" {
        findings.report(at, "the schema of parameters is of type object");
    } else if !schema["properties"].is_object() {
        findings.report(at, "object schema missing properties");
    }
    for word in ["oneOf", "anyOf", "allOf", "enum", "not"].into_iter().filter(|word| !schema[*word].is_null())
    {
        findings.report(format!("{at}/{word}"), "is not supported at the top level");
    }
}

/// Strict schemas of chat and responses: objects are closed, and all their properties are required. Source: "Supported
/// schemas" in the public guide "Structured outputs", developers.openai.com/api/docs/guides/structured-outputs.
pub(crate) fn strict(schema: &Value, at: &str, findings: &mut Findings) {
    if schema["type"] != "object" {
        findings.report(at, "a strict schema is an object");
    }
    each_schema(schema, at, &mut |at, schema| {
        if !is_object(schema) {
            return;
        }
        if schema["additionalProperties"] != false {
            findings.report(at, "'additionalProperties' is required to be false");
        }
        let required = |name: &String| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name))
        };
        for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if !required(name) {
                findings.report(at, format!("'required' lacks {name:?}"));
            }
        }
    });
}

/// Keywords that limit values, which the messages protocol doesn't accept in a response format.
const BOUNDS: [&str; 10] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Response formats of the messages protocol: objects are closed, values have no limits, and references aren't external.
/// Source: "JSON Schema limitations" in the public guide "Structured outputs",
/// platform.claude.com/docs/en/build-with-claude/structured-outputs; github.com/laravel/ai/issues/715.
pub(crate) fn closed(schema: &Value, at: &str, findings: &mut Findings) {
    each_schema(schema, at, &mut |at, schema| {
        for word in BOUNDS.iter().filter(|word| !schema[**word].is_null()) {
            findings.report(format!("{at}/{word}"), "is not supported");
        }
        if schema["minItems"].as_u64().is_some_and(|least| least > 1) {
            findings.report(format!("{at}/minItems"), "only 0 and 1 are supported");
        }
        if is_object(schema) && schema["additionalProperties"] != false {
            findings.report(at, "'additionalProperties' is required to be false");
        }
        if schema["$ref"].as_str().is_some_and(|place| !place.starts_with('#')) {
            findings.report(format!("{at}/$ref"), "external references are not supported");
        }
    });
}

/// Keywords that the older schemas of the native protocol lack. Source: `Schema` in the public reference,
/// ai.google.dev/api/caching#Schema; "Unknown name \"$schema\" … Cannot find field" in
/// github.com/router-for-me/CLIProxyAPI/issues/97.
const NOT_OF_PROTO: [&str; 14] = [
    "$schema",
    "$ref",
    "$defs",
    "$id",
    "definitions",
    "additionalProperties",
    "const",
    "oneOf",
    "allOf",
    "not",
    "if",
    "patternProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// Schemas in the older form of the native protocol.
pub(crate) fn proto(schema: &Value, at: &str, findings: &mut Findings) {
    each_schema(schema, at, &mut |at, schema| {
        for word in NOT_OF_PROTO.iter().filter(|word| !schema[**word].is_null()) {
            findings.report(format!("{at}/{word}"), "unknown name");
        }
        if schema["type"].is_array() {
            findings.report(format!("{at}/type"), "the field is not repeating");
        }
        let is_text = |values: &Vec<Value>| values.iter().all(Value::is_string);
        if !schema["enum"].as_array().is_none_or(is_text) {
            findings.report(format!("{at}/enum"), "values are texts");
        }
    });
}

/// Whether a value has a field with this name at any depth.
pub(crate) fn has_member(value: &Value, name: &str) -> bool {
    let mut is_there = false;
    walk(value, "", &mut |_, value| {
        is_there |= value.as_object().is_some_and(|members| members.contains_key(name));
    });
    is_there
}
