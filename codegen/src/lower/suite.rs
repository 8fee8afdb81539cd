//! The public test suite of JSON Schema, limited to the schemas that the checker of [`super::checker()`] can decide. The
//! checker reads objects whose values have one type each. So a schema of the suite becomes the schema of a member, and one
//! without a type becomes a schema for each type, and one for lists of strings: the suite's verdict applies to instances of
//! that type, and all others are invalid.

use serde_json::{Map, Value, json};

use super::checker::{KEYWORDS, checker_of};
use crate::load::SuiteFile;
use crate::model::checker::{Checker, Suite, SuiteCase};

/// Checkers of all schemas of the suite that can be decided.
pub(super) fn suite(files: &[SuiteFile]) -> Suite {
    let mut suite = Suite::default();
    for file in files {
        for (group, node) in file.groups.iter().enumerate() {
            let schema = &node["schema"];
            let typed = with_types(schema);
            let mut refusals = Vec::new();
            let taken = suite.cases.len();
            for (kind, schema) in typed {
                let name = format!("case{}", suite.cases.len());
                match checker_of(&document(&schema, &name), &name) {
                    Ok(checker) => {
                        add(&mut suite.checker, checker);
                        suite.cases.push(SuiteCase { name, file: file.name.clone(), group, kind });
                    }
                    Err(why) => refusals.push(format!("{why:#}")),
                }
            }
            if taken == suite.cases.len() {
                // The last one is about objects, whose schemas have the fewest keywords.
                suite.refused.extend(refusals.pop());
            }
        }
    }
    suite
}

/// The schema unchanged if it can be decided, and otherwise with each type.
fn with_types(schema: &Value) -> Vec<(&'static str, Value)> {
    let whole = vec![("", schema.clone())];
    let Some(members) = schema.as_object() else { return whole };
    if members.contains_key("type") || checker_of(&document(schema, "case"), "case").is_ok() {
        return whole;
    }
    let typed = |name, kind: &str, items: Option<Value>| {
        let mut members = members.clone();
        members.insert("type".to_owned(), json!(kind));
        members.extend(items.map(|items| ("items".to_owned(), items)));
        (name, Value::Object(members))
    };
    let strings = (!members.contains_key("items"))
        .then(|| typed("array of strings", "array", Some(json!({"type": "string"}))));
    let kinds = KEYWORDS.iter().map(|(kind, _)| typed(kind, kind, None));
    whole.into_iter().chain(strings).chain(kinds).collect()
}

/// The schema of an object whose member `value` has this schema, with its definitions renamed.
fn document(schema: &Value, name: &str) -> Value {
    let mut schema = schema.clone();
    let mut own = Map::new();
    if let Some(Value::Object(definitions)) =
        schema.as_object_mut().and_then(|members| members.remove("$defs"))
    {
        own = definitions;
    }
    refer(&mut schema, name);
    let own: Map<String, Value> = own
        .into_iter()
        .map(|(key, mut value)| {
            refer(&mut value, name);
            (format!("{name}_{key}"), value)
        })
        .collect();
    json!({"type": "object", "properties": {"value": schema}, "required": ["value"], "$defs": own})
}

/// Redirects references to definitions to their new location. Any other reference is left dangling, and is rejected.
fn refer(node: &mut Value, name: &str) {
    match node {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        *reference = match reference.strip_prefix("#/$defs/") {
                            Some(definition) => format!("#/$defs/{name}_{definition}"),
                            None => format!("#/of another document/{reference}"),
                        };
                    }
                    other => refer(other, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, name)),
        _ => {}
    }
}

/// Adds the parts of one case, whose names are unique to it.
fn add(all: &mut Checker, one: Checker) {
    all.objects.extend(one.objects);
    all.lists.extend(one.lists);
    all.enums.extend(one.enums);
    all.configured.extend(one.configured);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::suite;
    use crate::fixture::own_sources;

    #[test]
    fn unsupported_suite_schemas_are_rejected_with_recorded_reasons() {
        let suite = suite(&own_sources().suite);
        let mut reasons = BTreeMap::<String, usize>::new();
        for why in &suite.refused {
            // The keyword alone, not the place.
            let (place, problem) = why.split_once(": ").unwrap_or(("", why));
            let keyword = place.rsplit('/').next().unwrap_or_default();
            let problem = problem.split(';').next().unwrap_or_default();
            let phrases = ["is no place of this schema", "is not among the properties"];
            let why = phrases
                .iter()
                .find(|phrase| problem.contains(**phrase))
                .map_or_else(|| format!("{keyword}: {problem}"), |phrase| format!("a name {phrase}"));
            *reasons.entry(why).or_default() += 1;
        }
        let reasons: Vec<String> =
            reasons.into_iter().map(|(why, count)| format!("{count} × {why}")).collect();
        let cases = suite.cases.len();
        insta::assert_snapshot!(format!("{cases} schemas have a checker\n{}", reasons.join("\n")));
    }
}
