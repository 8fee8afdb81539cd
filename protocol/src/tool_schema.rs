//! Schemas of the arguments of tools, for providers that only accept the schema of an object at the top.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The keywords that combine schemas.
const UNIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// All keywords that providers reject at the top.
const REJECTED: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];
/// How many references lead from one to the next before a schema.
const MAX_REFERENCES: usize = 8;

/// Makes one object of a union of arguments: any member of its branches may be sent, those that all alternatives require are required,
/// and the description has the union, so that the model can keep to it. A reference becomes its definition. Returns whether there was a
/// union, or another keyword that providers reject at the top.
pub(super) fn without_top_unions(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else { return false };
    inline_reference(members);
    let unions: Vec<(&str, Value)> =
        REJECTED.into_iter().filter_map(|name| Some((name, members.remove(name)?))).collect();
    if unions.is_empty() {
        return false;
    }
    let mut properties = object_in(members, "properties");
    let mut required = names_in(members.get("required"));
    for (name, union) in unions.iter().filter(|(name, _)| UNIONS.contains(name)) {
        let branches = union.as_array().into_iter().flatten();
        // A definition that is repeated adds nothing, and may be large.
        let mut seen = BTreeSet::new();
        let branches = branches.filter(|branch| reference_in(branch).is_none_or(|name| seen.insert(name)));
        let branches = branches.filter_map(|branch| resolved(branch, members));
        let branches: Vec<_> = branches.filter(|branch| branch.get("type") != Some(&json!("null"))).collect();
        let mut by_branch = branches.iter().map(|branch| names_in(branch.get("required")));
        if *name == "allOf" {
            required.extend(by_branch.flatten());
        } else {
            let first = by_branch.next().unwrap_or_default();
            required.extend(by_branch.fold(first, |common, names| &common & &names));
        }
        for (property, schema) in branches.iter().flat_map(|branch| object_in(branch, "properties")) {
            properties.entry(property).or_insert(schema);
        }
    }
    let unions = unions.iter().map(|(name, union)| format!("{name}: {union}"));
    let description = members.get("description").and_then(Value::as_str).map(str::to_owned);
    let description: Vec<String> = description.into_iter().chain(unions).collect();
    members.insert("description".to_owned(), description.join("\n").into());
    members.insert("type".to_owned(), "object".into());
    members.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        members.insert("required".to_owned(), json!(required));
    }
    true
}

/// Puts the definition that the whole schema refers to in place of the reference, unless both have the same keyword.
fn inline_reference(members: &mut Map<String, Value>) {
    for _ in 0..MAX_REFERENCES {
        let Some(reference) = members.get("$ref").and_then(Value::as_str) else { return };
        let Some(definition) = definition(reference, members) else { return };
        if definition.keys().any(|name| name != "$ref" && members.contains_key(name)) {
            return;
        }
        let definition = definition.clone();
        members.remove("$ref");
        members.extend(definition);
    }
}

fn object_in(members: &Map<String, Value>, name: &str) -> Map<String, Value> {
    members.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn names_in(list: Option<&Value>) -> BTreeSet<String> {
    let names = list.and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn reference_in(branch: &Value) -> Option<&str> {
    branch.get("$ref")?.as_str()
}

/// A branch, or the definition that it refers to.
fn resolved<'s>(branch: &'s Value, root: &'s Map<String, Value>) -> Option<&'s Map<String, Value>> {
    let Some(reference) = reference_in(branch) else { return branch.as_object() };
    definition(reference, root)
}

fn definition<'s>(reference: &str, root: &'s Map<String, Value>) -> Option<&'s Map<String, Value>> {
    let (group, name) = reference.strip_prefix("#/")?.split_once('/')?;
    root.get(group)?.get(name)?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(mut schema: Value) -> Value {
        assert!(without_top_unions(&mut schema), "{schema}");
        schema["description"] = schema["description"].as_str().map(|text| text.lines().count()).into();
        schema
    }

    #[test]
    fn top_union_becomes_one_object_that_describes_it() {
        let (a, b) = (json!({ "type": "string" }), json!({ "type": "integer" }));
        let by_name = json!({ "type": "object", "description": "Of a person.", "required": ["c"],
            "properties": { "a": a, "b": b, "c": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
        assert_eq!(
            merged(by_name),
            json!({ "type": "object", "description": 2, "required": ["c"], "properties": { "a": a, "b": b, "c": {} } })
        );
        let referred = json!({ "oneOf": [{ "$ref": "#/$defs/A" }, { "type": "null" },
            { "properties": { "a": {}, "b": b }, "required": ["b", "a"] }],
            "$defs": { "A": { "properties": { "a": a }, "required": ["a"] } } });
        assert_eq!(
            merged(referred),
            json!({ "type": "object", "description": 1, "required": ["a"], "properties": { "a": a, "b": b },
                "$defs": { "A": { "properties": { "a": a }, "required": ["a"] } } })
        );
        let all = json!({ "allOf": [{ "properties": { "a": a }, "required": ["a"] }, { "properties": { "b": b }, "required": ["b"] }] });
        assert_eq!(
            merged(all),
            json!({ "type": "object", "description": 1, "required": ["a", "b"], "properties": { "a": a, "b": b } })
        );
    }

    #[test]
    fn reference_at_the_top_becomes_its_definition() {
        let node = json!({ "type": "object", "properties": { "next": { "$ref": "#/$defs/B" } } });
        let defs = json!({ "A": { "$ref": "#/$defs/B" }, "B": node, "C": { "$ref": "#/$defs/C" } });
        let mut schema = json!({ "$ref": "#/$defs/A", "title": "t", "$defs": defs });
        assert!(!without_top_unions(&mut schema), "nothing is lost");
        let properties = &node["properties"];
        assert_eq!(
            schema,
            json!({ "type": "object", "title": "t", "properties": properties, "$defs": defs })
        );
        for odd in [
            json!({ "$ref": "#/$defs/C", "$defs": defs }),
            json!({ "$ref": "#/$defs/B", "type": "object", "$defs": defs }),
        ] {
            let mut same = odd.clone();
            assert!(!without_top_unions(&mut same));
            assert_eq!(same, odd);
        }
    }

    #[test]
    fn keywords_that_restrict_a_whole_object_are_described() {
        let schema = json!({ "properties": { "a": {} }, "enum": [{ "a": 1, "properties": { "b": 1 } }], "not": { "required": ["c"] } });
        assert_eq!(merged(schema), json!({ "type": "object", "description": 2, "properties": { "a": {} } }));
    }

    /// It would take minutes if each reference copied the definition.
    #[test]
    fn definition_that_is_repeated_is_read_once() {
        let large: Map<String, Value> = (0..20_000).map(|number| (format!("p{number}"), json!({}))).collect();
        let repeated = vec![json!({ "$ref": "#/$defs/A" }); 200_000];
        let mut schema =
            json!({ "oneOf": repeated, "$defs": { "A": { "properties": large, "required": ["p0"] } } });
        assert!(without_top_unions(&mut schema));
        assert_eq!(schema["properties"].as_object().map(Map::len), Some(20_000));
        assert_eq!(schema["required"], json!(["p0"]));
    }

    #[test]
    fn schema_without_a_top_union_stays_as_it_is() {
        for schema in [
            json!({ "type": "object", "properties": { "a": { "anyOf": [{}, {}] } } }),
            json!({ "$ref": "#/$defs/A" }),
            json!({}),
            json!(true),
        ] {
            let mut same = schema.clone();
            assert!(!without_top_unions(&mut same));
            assert_eq!(same, schema);
        }
    }

    #[test]
    fn odd_unions_are_merged_as_far_as_they_go() {
        for union in [
            json!(null),
            json!("a"),
            json!([7, null, []]),
            json!([{ "$ref": "#/a" }, { "$ref": 7 }]),
            json!([]),
        ] {
            let mut schema = json!({ "anyOf": union });
            assert!(without_top_unions(&mut schema));
            assert_eq!((&schema["type"], &schema["properties"]), (&json!("object"), &json!({})), "{union}");
        }
    }
}
